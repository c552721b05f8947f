//! How a fleet is, as far as its Strimzi operator is concerned.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::catalog::{Condition, ResourceStatus, Status};

use super::view::Operator;
use super::{DEADLINE, DEBOUNCE};

/// What a judgement of a fleet remembers for the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetMemory {
    /// Whether the operator has ever been ready.
    worked: bool,
    /// Since when it is down.
    down: Option<Timestamp>,
    /// What a person was told last.
    told: Option<ResourceStatus>,
}

/// Judges a fleet by its operator and the words for its clusters. A cluster in trouble is told and doesn't make the
/// fleet Degraded; an operator that is down does, since no cluster of the fleet is looked after then.
pub fn judge(
    operator: &Operator,
    clusters: &[Status],
    before: &FleetMemory,
    now: Timestamp,
) -> (ResourceStatus, FleetMemory) {
    let mut memory = before.clone();
    memory.worked |= matches!(operator, Operator::Found { ready: 1.., .. });
    memory.down = operator.is_down().then(|| memory.down.unwrap_or(now));
    let lasted = memory.down.map(|since| now.duration_since(since));
    let (status, reason) = match (operator, lasted) {
        (Operator::Unknown, _) => {
            (Status::Pending, Some("nothing is known of the Strimzi operator yet".to_owned()))
        }
        (_, None) => (Status::Healthy, None),
        (_, Some(lasted)) if !memory.worked && lasted < DEADLINE => {
            (Status::Provisioning, Some(why(operator)))
        }
        (_, Some(_)) if !memory.worked => (Status::Failed, Some(why(operator))),
        (_, Some(lasted)) if lasted < DEBOUNCE => {
            memory.told.clone().map_or((Status::Healthy, None), |told| (told.status, told.reason))
        }
        _ => (Status::Degraded, Some(why(operator))),
    };
    let since = memory.told.as_ref().filter(|told| told.status == status).map_or(now, |told| told.since);
    let told =
        ResourceStatus { status, reason, conditions: in_trouble(clusters).into_iter().collect(), since };
    memory.told = Some(told.clone());
    (told, memory)
}

fn why(operator: &Operator) -> String {
    let effect = "clusters go on running, while changes and lost pods wait";
    match operator {
        Operator::Found { name, wanted: 0, .. } => {
            format!("the Strimzi operator `{name}` is scaled to 0: {effect}; scale it up again")
        }
        Operator::Found { name, wanted, .. } => format!(
            "the Strimzi operator `{name}` has no ready pod, {wanted} wanted: {effect}; see why its pods don't start"
        ),
        Operator::Missing | Operator::Unknown => {
            format!("the Strimzi operator has no Deployment: {effect}; install it")
        }
    }
}

fn in_trouble(clusters: &[Status]) -> Option<Condition> {
    let bad = [Status::Degraded, Status::Failed, Status::Unreachable];
    let count = clusters.iter().filter(|status| bad.contains(status)).count();
    (count > 0).then(|| Condition {
        kind: "ClustersInTrouble".to_owned(),
        degraded: false,
        message: format!("{count} of {} clusters are in trouble", clusters.len()),
    })
}
