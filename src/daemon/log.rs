//! Logs one line for each decision that differs from the previous round's.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::catalog::{ResourceStatus, Status};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::plan::{self, Cause, Change, Plan, Verb, Waiting, reason, summary_sentence};
use crate::problem::{Problem, Severity};
use crate::round::{Round, Throttle, Unknown, WaitingChanges, WaitingDiff, left_out};

const MOST_UNKNOWN: usize = 10;

/// The most problems of specs that one plan logs, so that they don't bury the rest of the log.
const MOST_PROBLEMS: usize = 20;

#[derive(Default)]
pub(super) struct DecisionLog {
    has_begun: bool,
    waiting: WaitingChanges<PendingApproval>,
    /// Decisions whose work has not begun yet, since other fleets come first.
    decided: BTreeMap<ResourceKey, (Option<FleetKey>, String)>,
    problems: BTreeSet<Problem>,
    unknown: Vec<String>,
    /// The last logged status and reason of fleets and clusters.
    logged_statuses: BTreeMap<ResourceKey, (Status, Option<String>)>,
    health: Throttle<ResourceKey>,
    decisions: Throttle<ResourceKey>,
    unknown_owner_throttle: Throttle<FleetKey>,
}

impl DecisionLog {
    /// Logs what a plan does, what waits and why, and the problems of the specs.
    pub(super) fn decisions(&mut self, round: &Round) {
        let plan = &round.plan;
        self.problems(&plan.problems);
        if !std::mem::replace(&mut self.has_begun, true) {
            log_summary(round);
        }
        let unknown: Vec<String> =
            round.unknown.iter().map(|unknown| format!("{} {}", unknown.fleet, unknown.owner)).collect();
        if unknown != self.unknown {
            let mut fleets: BTreeMap<&FleetKey, Vec<&Unknown>> = BTreeMap::new();
            round.unknown.iter().for_each(|unknown| fleets.entry(&unknown.fleet).or_default().push(unknown));
            for (fleet, unknown) in fleets {
                let Some(untold) = self.unknown_owner_throttle.admit(fleet, Instant::now()) else { continue };
                let (told, more) = unknown.split_at(unknown.len().min(MOST_UNKNOWN));
                told.iter().for_each(|unknown| tracing::warn!("{unknown}{}", left_out(untold)));
                if !more.is_empty() {
                    tracing::warn!(%fleet, "fleet {fleet} has objects of {} more unknown resources", more.len());
                }
            }
            self.unknown = unknown;
        }
        for (fleet, health) in &round.health {
            let judged = health.judged.iter();
            let clusters = judged.clone().flat_map(|judged| &judged.clusters);
            let clusters = clusters.map(|(cluster, judgement)| (cluster.clone(), &judgement.status));
            for (resource, status) in judged.map(|judged| (fleet.resource(), &judged.status)).chain(clusters)
            {
                self.health(fleet, resource, status);
            }
        }
        self.decided(plan);
        self.waits(plan);
    }

    /// Logs new problems of the specs, and when none are left.
    fn problems(&mut self, problems: &[Problem]) {
        let before = std::mem::replace(&mut self.problems, problems.iter().cloned().collect());
        let new: Vec<&Problem> = self.problems.difference(&before).collect();
        for problem in new.iter().take(MOST_PROBLEMS) {
            let Problem { location, severity, code, message, hint, .. } = problem;
            let file = location.as_ref().map(|at| at.path.as_str());
            let line = location.as_ref().map(|at| at.line).filter(|line| *line > 0);
            match severity {
                Severity::Error => tracing::error!(file, line, code, hint, "{message}"),
                Severity::Warning => tracing::warn!(file, line, code, hint, "{message}"),
            }
        }
        if let Some(more) = new.len().checked_sub(MOST_PROBLEMS).filter(|more| *more > 0) {
            tracing::error!("{more} more problems in the specs: `streamfleet validate` shows them");
        }
        if !before.is_empty() && self.problems.is_empty() {
            tracing::info!("the specs have no problems left");
        }
    }

    /// Logs the health of a fleet or a cluster if its status or reason changed. A resource that is healthy at
    /// first needs no line.
    fn health(&mut self, fleet: &FleetKey, resource: ResourceKey, status: &ResourceStatus) {
        let ResourceStatus { status: to, reason, .. } = status;
        let told = self.logged_statuses.get(&resource);
        let is_known = match told {
            Some((word, why)) => word == to && why == reason,
            None => *to == Status::Healthy,
        };
        if is_known && told.is_some() {
            return;
        }
        let untold = if is_known { Some(0) } else { self.health.admit(&resource, Instant::now()) };
        // The next round may log it.
        let Some(untold) = untold else { return };
        let from = told.map(|(word, _)| tracing::field::display(*word));
        let left_out = left_out(untold);
        match to {
            _ if is_known => {}
            Status::Degraded | Status::Failed | Status::Unreachable => {
                tracing::warn!(%fleet, %resource, from, %to, reason, "{resource} is {to}{left_out}");
            }
            _ => tracing::info!(%fleet, %resource, from, %to, reason, "{resource} is {to}{left_out}"),
        }
        self.logged_statuses.insert(resource, (*to, reason.clone()));
    }

    /// Forgets the decisions about a fleet, since their work begins. Doing the same again is another
    /// decision.
    pub(super) fn begins(&mut self, begun: &FleetKey) {
        self.decided.retain(|_, (fleet, _)| fleet.as_ref() != Some(begun));
    }

    fn decided(&mut self, plan: &Plan) {
        let mut before = std::mem::take(&mut self.decided);
        for (on, change) in plan.placed_changes().filter(|(_, change)| change.is_ready()) {
            let why = why(change);
            let told = before.remove(&change.resource).map(|(_, told)| told);
            let is_new = told.as_ref() != Some(&why);
            let untold = if is_new { self.decisions.admit(&change.resource, Instant::now()) } else { None };
            if let Some(untold) = untold {
                let left_out = left_out(untold);
                let DecisionFields { fleet, resource, verb, cause, by, file, line, plan, commit, author } =
                    DecisionFields::of(plan, on, change);
                tracing::info!(
                    fleet, %resource, %verb, cause, by, file, line, plan, commit, author,
                    "decided to {verb} {resource}: {why}{left_out}"
                );
            }
            let told = if is_new && untold.is_none() { told } else { Some(why) };
            if let Some(told) = told {
                self.decided.insert(change.resource.clone(), (on.cloned(), told));
            }
        }
    }

    fn waits(&mut self, plan: &Plan) {
        let WaitingDiff { begun, over } = self.waiting.turn(plan, Instant::now(), PendingApproval::of);
        // A failure was logged with the time of the next attempt.
        for (fleet, change, untold) in begun.into_iter().filter(|(_, change, _)| !has_failed_itself(change)) {
            let PendingApproval { waits, approve } = PendingApproval::of(change);
            // Hints with commands are left out, since the reader of the log may have to address the
            // installation in another way.
            let hint = change.waiting.iter().find_map(|waiting| plan::wait_remedy(change, waiting, ""));
            let hint = hint.filter(|hint| !hint.contains("streamfleet "));
            // An approver needs to know the effect.
            let would = approve.as_ref().map(|_| format!(". To {} it: {}", change.verb, why(change)));
            let would = would.unwrap_or_default() + &left_out(untold);
            let DecisionFields { fleet, resource, verb, cause, by, file, line, plan, commit, author } =
                DecisionFields::of(plan, fleet, change);
            tracing::warn!(
                fleet, %resource, %verb, cause, by, file, line, plan, commit, author, approve, hint,
                "{resource} {waits}{would}"
            );
        }
        for (_, resource) in over {
            tracing::info!(%resource, plan = plan.id, "{resource} no longer waits: nothing to do");
        }
    }
}

/// Whether a change waits only because it failed itself.
fn has_failed_itself(change: &Change) -> bool {
    let own = change.resource.to_string();
    let is_own = |failed: &str| failed.strip_prefix(&own).is_some_and(|rest| rest.starts_with([' ', ':']));
    change.waiting.iter().all(|waiting| matches!(waiting, Waiting::Retry { failed, .. } if is_own(failed)))
}

/// The reasons for waiting, and the id to approve it with.
#[derive(Debug, Default, PartialEq)]
struct PendingApproval {
    waits: String,
    approve: Option<String>,
}

impl PendingApproval {
    fn of(change: &Change) -> PendingApproval {
        let waits: Vec<String> = change.waiting.iter().map(Waiting::labelled).collect();
        let approve = change.waiting.iter().find_map(|waiting| match waiting {
            Waiting::Approval { id, .. } => Some(id.clone()),
            _ => None,
        });
        PendingApproval { waits: waits.join("; "), approve }
    }
}

struct DecisionFields<'a> {
    fleet: Option<String>,
    resource: &'a ResourceKey,
    verb: Verb,
    cause: &'static str,
    by: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    plan: &'a str,
    commit: Option<&'a str>,
    author: Option<&'a str>,
}

impl<'a> DecisionFields<'a> {
    fn of(plan: &'a Plan, fleet: Option<&FleetKey>, change: &'a Change) -> DecisionFields<'a> {
        let (cause, by) = cause_label(&change.cause);
        let (origin, commit) = (change.origin.as_ref(), plan.inputs.commit.as_ref());
        DecisionFields {
            fleet: fleet.map(ToString::to_string),
            resource: &change.resource,
            verb: change.verb,
            cause,
            by,
            file: origin.map(|origin| origin.path.as_str()),
            line: origin.map(|origin| origin.line),
            plan: &plan.id,
            commit: commit.map(|commit| commit.id.as_str()),
            author: commit.map(|commit| commit.author.as_str()),
        }
    }
}

fn why(change: &Change) -> String {
    let effects = change.effects.iter().map(|effect| sentence(effect));
    [reason(change)].into_iter().chain(effects).collect::<Vec<_>>().join(". ")
}

fn log_summary(round: &Round) {
    let resources = &round.checked.catalog.resources;
    let number = |kind| resources.keys().filter(|key| key.kind == kind).count();
    let (source, commit) = (&round.plan.inputs.source.0, round.plan.inputs.commit.as_ref());
    let (plan, commit) = (&round.plan.id, commit.map(|commit| &commit.id));
    if resources.is_empty() {
        let hint = "if this is unexpected, set the folder of the specs with `--specs`";
        return tracing::warn!(plan, commit, hint, "no specs in {source}");
    }
    let (fleets, clusters) = (number(Kind::Fleet), number(Kind::Cluster));
    let does = summary_sentence(round.plan.summary);
    tracing::info!(
        plan,
        commit,
        fleets,
        clusters,
        "read the specs in {source}. {}",
        does.trim_end_matches('.')
    );
}

fn sentence(effect: &str) -> String {
    let mut letters = effect.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the cause as a word and, for drift, who changed the target.
fn cause_label(cause: &Cause) -> (&'static str, Option<&str>) {
    match cause {
        Cause::Spec => ("spec", None),
        Cause::Reference { .. } => ("reference", None),
        Cause::Settings => ("settings", None),
        Cause::Upgrade { .. } => ("upgrade", None),
        Cause::Drift { by } => ("drift", by.as_deref()),
        Cause::Certificate => ("certificate", None),
        Cause::Clusters => ("clusters", None),
        Cause::Addresses => ("addresses", None),
        Cause::Software { .. } => ("software", None),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::daemon::tests::logged;

    #[test]
    fn a_status_whose_words_keep_changing_is_logged_at_a_bounded_rate() {
        let fleet: FleetKey = "acme/eu".to_owned().try_into().unwrap();
        let mut log = DecisionLog::default();
        let lines = logged(|| {
            for number in 0..100 {
                let (since, conditions) = (Timestamp::UNIX_EPOCH, Vec::new());
                let reason = Some(format!("pod-{number} is in a crash loop"));
                let status = ResourceStatus { status: Status::Degraded, reason, since, conditions };
                log.health(&fleet, fleet.resource(), &status);
            }
        });
        assert_eq!(lines.lines().count(), 20, "{lines}");
    }
}
