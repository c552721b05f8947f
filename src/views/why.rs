//! Explains the status of a cluster, from its file to the events of its pods.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::catalog::{Absence, Hold, Resource, Status};
use crate::component::health::objects::{self, DriftedObject, ObjectFindings};
use crate::names::{FleetKey, ResourceKey};
use crate::plan::{self, Cause, Change, Reach, Verb, Waiting};
use crate::problem::Origin;
use crate::record::{self, Audience, Standing, UnplannedWrite};
use crate::round::{ObservationError, Round};

/// Why a cluster is as it is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct WhyReport {
    pub cluster: ResourceKey,
    pub fleet: Option<FleetKey>,
    /// The location of its document; null if no document names it.
    pub spec: Option<Origin>,
    pub status: Status,
    /// Set where the status alone raises a question.
    pub reason: Option<String>,
    /// The time since which it has the status; null if unknown.
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

/// The last status of a cluster that can't be observed now.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LastKnown {
    pub status: Status,
    pub reason: Option<String>,
    pub at: String,
}

/// The placeholder for the tree in suggested commands; [`WhyReport::name_tree`] puts the user's own words in its place.
const TREE: &str = "TREE";

/// The cluster to explain, with what the plan doesn't include yet.
pub struct WhySubject<'a> {
    pub cluster: ResourceKey,
    pub unplanned: Option<UnplannedWrite>,
    /// The cluster as it was written last, if the plan doesn't include that.
    pub written: Option<&'a Resource>,
}

const UNPLANNED: &str = "its last write through the API is not planned yet";
const NOTHING: &str = "nothing";
const CHECK_AGAIN: &str = "wait, and check again";

/// Explains the status of a cluster. It blocks, as planning does.
pub fn report(round: &Round, subject: WhySubject, audience: Audience, runtime: &Handle) -> WhyReport {
    let WhySubject { cluster, unplanned, written } = subject;
    let checked = &round.checked;
    let resource = written.or_else(|| checked.catalog.resources.get(&cluster).map(|it| &**it));
    let recorded = checked.recorded.resources.get(&cluster);
    // A plan from before the write may be outdated.
    let change = round.change(&cluster).filter(|_| unplanned.is_none());
    let good = || recorded?.cached.last_good.as_ref().map(|good| good.origin.clone());
    let Standing { status, reason, since, .. } = round.standing_for(&cluster, unplanned, audience);
    let fleet = round.fleet_of(&cluster).or_else(|| written?.fleet());
    let drifted = drifted(round.change(&cluster));
    let observed = round.observe_cluster(&cluster, runtime);
    let failed = observed.as_ref().err().copied();
    let objects = observed.ok().flatten().map(|(wanted, seen)| objects::of(wanted, &seen, &drifted));
    let is_named = match unplanned {
        Some(UnplannedWrite::Removed) => false,
        Some(UnplannedWrite::Changed) => true,
        None => {
            let absence = checked.catalog.absent.get(&cluster);
            !matches!(absence, Some(Absence::Removed | Absence::Suspicious { .. }))
        }
    };
    let spec = change.and_then(|it| it.origin.clone()).or(resource.map(|it| it.origin.clone())).or_else(good);
    let mut page = WhyReport {
        spec: spec.filter(|_| is_named),
        status,
        reason,
        since: since.map(record::timestamp),
        last_known: last_known(&cluster, status, round),
        plan: match change {
            Some(change) => lines_of(change, audience),
            None if unplanned.is_some() => vec![UNPLANNED.to_owned()],
            None if recorded.is_some() => vec!["nothing to do".to_owned()],
            None => vec!["not applied yet".to_owned()],
        },
        unseen: objects.is_none().then(|| unseen(fleet.as_ref(), status, failed, round)),
        objects: objects.unwrap_or_else(|| ObjectFindings::drifted(&drifted)),
        next: Vec::new(),
        of_fleet: of_fleet(fleet.as_ref(), round),
        fleet,
        cluster,
    };
    page.next = next(&page, change, round, audience);
    if failed.is_some() && page.next == [NOTHING] {
        page.next = vec![CHECK_AGAIN.to_owned()];
    }
    page
}

impl WhyReport {
    /// Names the tree in suggested commands as the user does.
    pub fn name_tree(&mut self, arguments: &str) {
        for line in &mut self.next {
            let begin = line.find("streamfleet ").unwrap_or(line.len());
            let command = line.split_off(begin);
            line.push_str(&command.replace(TREE, arguments));
        }
    }
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

fn unseen(
    fleet: Option<&FleetKey>,
    status: Status,
    failed: Option<ObservationError>,
    round: &Round,
) -> String {
    let target = fleet.and_then(|fleet| round.targets.get(fleet));
    match failed {
        Some(ObservationError::Timeout(limit)) => {
            let limit = limit.as_secs();
            return format!(
                "unknown, because the fleet's Kubernetes cluster did not answer within {limit} s"
            );
        }
        Some(ObservationError::Unreadable) => {
            return "unknown, because the fleet's Kubernetes cluster can't be read now".to_owned();
        }
        None => {}
    }
    match (target, fleet, status) {
        (Some(target), Some(fleet), _) if !target.capabilities().observes => {
            format!("unknown: fleet {fleet} is a folder, so streamfleet can't observe its objects")
        }
        (_, _, Status::Unreachable) => "unknown, because the target can't be reached".to_owned(),
        _ => "none created yet".to_owned(),
    }
}

/// The planned change, and the reasons why it waits.
fn lines_of(change: &Change, audience: Audience) -> Vec<String> {
    let done = match change.verb {
        Verb::Keep => Vec::new(),
        verb => {
            let fields: Vec<String> = change.fields.iter().map(ToString::to_string).collect();
            let fields = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
            let when = if change.waiting.is_empty() { "the next apply will" } else { "would" };
            vec![format!("{when} {verb} it{fields}")]
        }
    };
    let waits = change.waiting.iter().map(|waiting| audience.labelled_waiting(waiting));
    done.into_iter().chain(waits).collect()
}

/// Suggested actions, most important first.
fn next(page: &WhyReport, change: Option<&Change>, round: &Round, audience: Audience) -> Vec<String> {
    let waiting = |change: &Change| -> Vec<String> {
        change.waiting.iter().filter_map(|waiting| step(page, change, waiting, audience)).collect()
    };
    let mut next: Vec<String> =
        page.objects.amiss.iter().find_map(|it| it.next.clone()).into_iter().collect();
    next.extend(change.map(waiting).unwrap_or_default());
    if change.is_some_and(Change::is_ready) && audience == Audience::Host {
        next.push(format!("streamfleet apply {TREE}"));
    }
    if next.is_empty() && page.status == Status::Unreachable && audience == Audience::Host {
        next.extend(hint_of_reach(page, round));
        next.push(format!("check again afterwards: streamfleet status {TREE}"));
    }
    if next.is_empty() {
        next.push(
            match page.status {
                Status::Healthy => NOTHING,
                Status::Written => "ask the tool that applies the folder's manifests",
                _ => CHECK_AGAIN,
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

/// The suggested action for a change that waits. Tenants can't run commands on this host.
fn step(page: &WhyReport, change: &Change, waiting: &Waiting, audience: Audience) -> Option<String> {
    let spec = page.spec.as_ref().map_or_else(|| "its spec".to_owned(), ToString::to_string);
    let is_tenant = audience == Audience::Tenants;
    let told = if is_tenant { waiting.redacted_for_tenants() } else { Cow::Borrowed(waiting) };
    match &*told {
        Waiting::Held(Hold::Invalid { .. }) if is_tenant => Some(format!("fix {spec}")),
        Waiting::Held(Hold::Invalid { .. }) => Some(format!("fix {spec}: streamfleet validate {TREE}")),
        Waiting::Approval { id, .. } if is_tenant => {
            Some(format!("to approve, as an administrator of the organization: POST /v1/plans/{id}/approve"))
        }
        Waiting::Refused { .. } => match change.cause {
            Cause::Drift { .. } => Some(plan::UNDO_BY_HAND.to_owned()),
            _ => Some(format!("revert {spec}, or make the change in another way")),
        },
        Waiting::Unreachable { hint, .. } if !hint.is_empty() => Some(hint.clone()),
        told => plan::wait_remedy(change, told, TREE)
            .filter(|remedy| !is_tenant || !remedy.contains("streamfleet ")),
    }
}
