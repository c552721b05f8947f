//! How a fleet is: its Strimzi operator, and each of its clusters.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::catalog::{Condition, ResourceStatus, Status};
use crate::names::ResourceKey;

use super::memory::first_after;
use super::reason::brief;
use super::view::Operator;
use super::{DEADLINE, DEBOUNCE, GAP, Judgement, Memory, Seen, Wanted};

/// Everything that is seen of a fleet at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetSeen {
    /// The operator that looks after the fleet.
    pub operator: Operator,
    /// The clusters that could be seen. One that is wanted and isn't here is not known to be well or unwell.
    pub clusters: BTreeMap<ResourceKey, Seen>,
    /// What can't be looked at, and what to do about it.
    pub hidden: Vec<Condition>,
    /// The address of the Gateway through which clients come in, where there is one.
    pub gateway: Option<String>,
    /// The Gateway, where it is there and has no address.
    pub unserved: Option<Unserved>,
}

/// A Gateway that has no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unserved {
    /// The Gateway: `namespace/name`.
    pub gateway: String,
    /// When it was made.
    pub made: Option<Timestamp>,
    /// What its controller complains of; none where it says nothing.
    pub says: Option<String>,
}

/// How a fleet and its clusters are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetHealth {
    /// The fleet.
    pub status: ResourceStatus,
    /// Its clusters.
    pub clusters: BTreeMap<ResourceKey, Judgement>,
}

impl FleetHealth {
    /// How the fleet, or one of its clusters, is; none where nothing of it was ever applied.
    pub fn status_of(&self, resource: &ResourceKey) -> Option<&ResourceStatus> {
        match self.clusters.get(resource) {
            Some(judgement) => Some(&judgement.status),
            None => (resource.kind == crate::names::Kind::Fleet).then_some(&self.status),
        }
    }
}

/// What is remembered of a fleet and its clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memories {
    /// The fleet.
    pub fleet: FleetMemory,
    /// Its clusters.
    pub clusters: BTreeMap<ResourceKey, Memory>,
}

impl Memories {
    /// When a word may become another one though nothing is seen to change; none where time alone changes nothing.
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let clusters = self.clusters.values().filter_map(|memory| memory.due(now));
        let of_fleet = self.fleet.down.into_iter().chain(self.fleet.unserved);
        clusters.chain(first_after(of_fleet, now)).min()
    }
}

/// Judges a fleet and everything on it, by what was last applied, what is seen, what was remembered, and the time. It may be
/// called after each change that is seen, and every few seconds in between, or once by a person: see [`super::judge`].
pub fn judge_all(
    wanted: &BTreeMap<ResourceKey, Wanted>,
    seen: &FleetSeen,
    before: &Memories,
    now: Timestamp,
) -> (FleetHealth, Memories) {
    let (mut clusters, mut memories) = (BTreeMap::new(), BTreeMap::new());
    for (key, wanted) in wanted {
        let known = before.clusters.get(key).cloned().unwrap_or_default();
        let (judgement, memory) = match seen.clusters.get(key) {
            Some(seen) => super::judge(wanted, seen, &known, now),
            None => (unseen(wanted, seen, &known, now), known),
        };
        clusters.insert(key.clone(), judgement);
        memories.insert(key.clone(), memory);
    }
    let statuses: Vec<Status> = clusters.values().map(|judgement| judgement.status.status).collect();
    let (mut status, mut fleet) = judge(&seen.operator, &statuses, &before.fleet, now);
    let is_fine = |_: &&Condition| [Status::Healthy, Status::Pending].contains(&status.status);
    let unserved = unserved(seen, &mut fleet, now);
    let no_room = no_room(&clusters);
    let known = || seen.hidden.iter().chain(&unserved).chain(&no_room);
    if let Some(bad) = known().find(|condition| condition.degraded).filter(is_fine) {
        (status.status, status.reason) = (Status::Degraded, Some(bad.message.clone()));
    } else if let Some(waits) = no_room.as_ref().filter(is_fine) {
        // Nodes may be on their way.
        (status.status, status.reason) = (Status::Updating, Some(waits.message.clone()));
    }
    status.conditions.extend(known().cloned());
    if seen.gateway.is_some() {
        fleet.gateway.clone_from(&seen.gateway);
    }
    (FleetHealth { status, clusters }, Memories { fleet, clusters: memories })
}

/// That the fleet has no room for a pod of a cluster. The fleet is in trouble by that when the cluster is.
fn no_room(clusters: &BTreeMap<ResourceKey, Judgement>) -> Option<Condition> {
    let in_trouble = |status: Status| [Status::Degraded, Status::Failed].contains(&status);
    let waits = clusters.iter().filter(|(_, it)| it.status.status != Status::Deleting);
    let waits =
        waits.filter_map(|(key, it)| Some((in_trouble(it.status.status), key, it.unschedulable.as_ref()?)));
    let waits: Vec<_> = waits.collect();
    let (degraded, cluster, why) = waits.iter().max_by_key(|(degraded, ..)| degraded)?;
    let more = match waits.len() {
        1 => String::new(),
        count => format!(" (and pods of {} more of its clusters)", count - 1),
    };
    let message = format!("no node takes a pod of {cluster}: {why}{more}");
    Some(Condition { kind: "PodsUnschedulable".to_owned(), degraded: *degraded, message })
}

/// That the Gateway has had no address for longer than any controller takes. One that never had any has had none since it
/// was made.
fn unserved(seen: &FleetSeen, memory: &mut FleetMemory, now: Timestamp) -> Option<Condition> {
    let Some(Unserved { gateway, made, says }) = &seen.unserved else {
        memory.unserved = None;
        return None;
    };
    let made = made.filter(|_| memory.gateway.is_none());
    let since = *memory.unserved.get_or_insert(made.unwrap_or(now));
    let says =
        says.as_ref().map_or_else(String::new, |says| format!("; its controller says: {}", brief(says)));
    (now.duration_since(since) >= DEADLINE).then(|| Condition {
        kind: "GatewayUnserved".to_owned(),
        degraded: true,
        message: format!(
            "Gateway {gateway} has had no address since {} UTC, so no client outside of Kubernetes reaches a cluster through \
             it{says}; see that the controller of its GatewayClass runs and that something serves its load balancer",
            since.strftime("%Y-%m-%d %H:%M")
        ),
    })
}

/// What a cluster that can't be looked at is told as: as it was a moment ago, or else as one of which nothing is known. What
/// was seen before it was changed says nothing of it.
fn unseen(wanted: &Wanted, seen: &FleetSeen, known: &Memory, now: Timestamp) -> Judgement {
    let why = seen.hidden.first().map(|hidden| hidden.message.clone());
    let unknown =
        ResourceStatus { status: Status::Unreachable, reason: why, conditions: Vec::new(), since: now };
    Judgement {
        status: known.told_lately(wanted, now).cloned().unwrap_or(unknown),
        in_progress: Vec::new(),
        pending_destructions: Vec::new(),
        outputs: known.outputs().clone(),
        unschedulable: None,
        gone: false,
        clear_certificates: known.had_clear_certificates(wanted),
    }
}

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
    /// When it was last judged.
    judged: Option<Timestamp>,
    /// The address of its Gateway, as last known.
    gateway: Option<String>,
    /// Since when its Gateway has no address.
    unserved: Option<Timestamp>,
}

impl FleetMemory {
    /// The address of its Gateway, as last known.
    pub fn gateway(&self) -> Option<&str> {
        self.gateway.as_deref()
    }
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
    // Whoever looks after a long time is told what is so now.
    let watched = memory.judged.is_some_and(|judged| now.duration_since(judged) < GAP);
    let began = || if watched || !memory.worked { now } else { now.saturating_sub(DEBOUNCE).unwrap_or(now) };
    memory.down = operator.is_down().then(|| memory.down.unwrap_or_else(began));
    let lasted = memory.down.map(|since| now.duration_since(since));
    let (status, reason) = match (operator, lasted) {
        (Operator::Unknown, _) => before.told.clone().map_or_else(
            || (Status::Pending, Some("nothing is known of the Strimzi operator yet".to_owned())),
            |told| (told.status, told.reason),
        ),
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
    memory.judged = Some(now);
    (told, memory)
}

/// Whether a fleet is told to be as it is since nothing runs the Strimzi operator.
pub fn lacks_operator(status: &ResourceStatus) -> bool {
    status.reason.as_ref().is_some_and(|reason| *reason == why(&Operator::Missing))
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
            format!(
                "the Strimzi operator isn't installed: {effect}; install it, or name a version to install in \
                 `advanced_config.components.strimzi` of the fleet"
            )
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
