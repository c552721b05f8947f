//! Explains the status of a cluster, from its file to the events of its pods.

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::{NotFound, find_cluster};
use crate::catalog::{Absence, Hold, Status};
use crate::component::health::objects::{self, DriftedObject, ObjectFindings};
use crate::names::{FleetKey, ResourceKey};
use crate::plan::{self, Cause, Change, Reach, Verb, Waiting};
use crate::problem::Origin;
use crate::record::{self, Standing};
use crate::round::Round;
use crate::target::Target;

#[derive(Debug, Serialize, Deserialize)]
pub struct WhyReport {
    pub cluster: ResourceKey,
    pub fleet: Option<FleetKey>,
    /// `None` if no document names it.
    pub spec: Option<Origin>,
    pub status: Status,
    /// Set where the status alone raises a question.
    pub reason: Option<String>,
    /// `None` if unknown.
    pub since: Option<String>,
    /// Set if the cluster can't be observed now.
    pub last_known: Option<LastKnown>,
    /// The planned change, and the reasons why it waits.
    pub plan: Vec<String>,
    /// Why no objects are listed, if none are.
    pub unseen: Option<String>,
    /// Problems of the whole fleet.
    pub of_fleet: Vec<String>,
    pub objects: ObjectFindings,
    /// Suggested actions, most important first.
    pub next: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct LastKnown {
    pub status: Status,
    pub reason: Option<String>,
    pub at: String,
}

/// Explains the status of a cluster, given by name or path. Suggested commands call the tree `tree`. It
/// blocks, as planning does.
///
/// # Errors
/// Like [`find_cluster`].
pub fn page(round: &Round, named: &str, tree: &str, runtime: &Handle) -> Result<WhyReport, NotFound> {
    let cluster = find_cluster(round, named)?;
    let checked = &round.checked;
    let resource = checked.catalog.resources.get(&cluster);
    let recorded = checked.recorded.resources.get(&cluster);
    let change = round.change(&cluster);
    let good = || recorded?.cached.last_good.as_ref().map(|good| good.origin.clone());
    let Standing { status, reason, since, .. } = round.standing(&cluster);
    let fleet = round.fleet_of(&cluster);
    let drifted = drifted(change);
    let objects =
        round.observe_cluster(&cluster, runtime).map(|(wanted, seen)| objects::of(wanted, &seen, &drifted));
    let absence = checked.catalog.absent.get(&cluster);
    let is_named = !matches!(absence, Some(Absence::Removed | Absence::Suspicious { .. }));
    let spec = change.and_then(|it| it.origin.clone()).or(resource.map(|it| it.origin.clone())).or_else(good);
    let mut page = WhyReport {
        spec: spec.filter(|_| is_named),
        status,
        reason,
        since: since.map(record::timestamp),
        last_known: last_known(&cluster, status, round),
        plan: change.map_or_else(
            || vec![if recorded.is_some() { "nothing to do" } else { "not applied yet" }.to_owned()],
            lines_of,
        ),
        unseen: objects.is_none().then(|| unseen(fleet.as_ref(), status, round)),
        objects: objects.unwrap_or_else(|| ObjectFindings::drifted(&drifted)),
        next: Vec::new(),
        of_fleet: of_fleet(fleet.as_ref(), round),
        fleet,
        cluster,
    };
    page.next = next(&page, change, round, tree);
    Ok(page)
}

/// Problems of the whole fleet, which affect all its clusters.
fn of_fleet(fleet: Option<&FleetKey>, round: &Round) -> Vec<String> {
    let plan = fleet.and_then(|fleet| round.fleet_plan(fleet));
    let conditions =
        plan.and_then(|plan| plan.status.as_ref()).into_iter().flat_map(|status| &status.conditions);
    let amiss = conditions.filter(|condition| condition.degraded);
    amiss.map(|condition| condition.message.clone()).collect()
}

/// The objects that were changed on the target.
fn drifted(change: Option<&Change>) -> Vec<DriftedObject<'_>> {
    let change = change.filter(|change| matches!(change.cause, Cause::Drift { .. }));
    let steps = change.into_iter().flat_map(|change| &change.steps);
    let steps = steps.filter(|step| step.verb != Verb::Delete);
    steps.map(|step| DriftedObject { object: &step.object, gone: step.verb == Verb::Create }).collect()
}

/// The last judgement, if the cluster can't be observed now.
fn last_known(cluster: &ResourceKey, status: Status, round: &Round) -> Option<LastKnown> {
    if status != Status::Unreachable {
        return None;
    }
    let (told, at) = round.last_known(cluster)?;
    let (status, reason) = (told.status, told.reason.clone());
    Some(LastKnown { status, reason, at: record::timestamp(at) })
}

fn unseen(fleet: Option<&FleetKey>, status: Status, round: &Round) -> String {
    let target = fleet.and_then(|fleet| round.targets.get(fleet));
    match (target, fleet, status) {
        (Some(Target::Directory(_)), Some(fleet), _) => {
            format!("unknown: fleet {fleet} is a folder, and streamfleet doesn't see its objects run")
        }
        (_, _, Status::Unreachable) => "unknown, because the target can't be reached".to_owned(),
        _ => "none created yet".to_owned(),
    }
}

/// The planned change, and the reasons why it waits.
fn lines_of(change: &Change) -> Vec<String> {
    let done = match change.verb {
        Verb::Keep => Vec::new(),
        verb => {
            let fields: Vec<String> = change.fields.iter().map(ToString::to_string).collect();
            let fields = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
            let when = if change.waiting.is_empty() { "the next apply will" } else { "would" };
            vec![format!("{when} {verb} it{fields}")]
        }
    };
    let waits = change.waiting.iter().map(Waiting::labelled);
    done.into_iter().chain(waits).collect()
}

/// Suggested actions, most important first.
fn next(page: &WhyReport, change: Option<&Change>, round: &Round, tree: &str) -> Vec<String> {
    let waiting = |change: &Change| -> Vec<String> {
        change.waiting.iter().filter_map(|waiting| step(page, change, waiting, tree)).collect()
    };
    let mut next: Vec<String> =
        page.objects.amiss.iter().find_map(|it| it.next.clone()).into_iter().collect();
    next.extend(change.map(waiting).unwrap_or_default());
    if change.is_some_and(Change::is_ready) {
        next.push(format!("streamfleet apply {tree}"));
    }
    if next.is_empty() && page.status == Status::Unreachable {
        next.extend(hint_of_reach(page, round));
        next.push(format!("check again afterwards: streamfleet status {tree}"));
    }
    if next.is_empty() {
        next.push(
            match page.status {
                Status::Healthy => "nothing",
                Status::Written => {
                    "nothing here; the tool that applies the folder's manifests shows their health"
                }
                _ => "wait, and check again",
            }
            .to_owned(),
        );
    }
    next
}

/// The suggested action for an unreachable target.
fn hint_of_reach(page: &WhyReport, round: &Round) -> Option<String> {
    match &round.fleet_plan(page.fleet.as_ref()?)?.reach {
        Reach::Unreachable { hint, .. } if !hint.is_empty() => Some(hint.clone()),
        _ => None,
    }
}

/// The suggested action for a change that waits.
fn step(page: &WhyReport, change: &Change, waiting: &Waiting, tree: &str) -> Option<String> {
    let spec = page.spec.as_ref().map_or_else(|| "its spec".to_owned(), ToString::to_string);
    match waiting {
        Waiting::Held(Hold::Invalid { .. }) => Some(format!("fix {spec}: streamfleet validate {tree}")),
        Waiting::Refused { .. } => match change.cause {
            Cause::Drift { .. } => Some(plan::UNDO_BY_HAND.to_owned()),
            _ => Some(format!("revert {spec}, or make the change in another way")),
        },
        Waiting::Unreachable { hint, .. } if !hint.is_empty() => Some(hint.clone()),
        _ => plan::wait_remedy(change, waiting, tree),
    }
}
