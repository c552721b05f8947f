//! One line for each decision, when it is another one than in the round before.

use std::collections::BTreeMap;
use std::io::Write as _;

use crate::catalog::{ResourceStatus, Status};
use crate::names::{FleetKey, ResourceKey};
use crate::plan::{Cause, Change, Plan, Verb, Waiting, reason};
use crate::problem;
use crate::round::Round;

/// What was told last.
#[derive(Default)]
pub(super) struct Log {
    color: bool,
    waiting: BTreeMap<ResourceKey, String>,
    problems: String,
    unknown: Vec<String>,
    /// How fleets and clusters are: the word, and why.
    told: BTreeMap<ResourceKey, (Status, Option<String>)>,
}

impl Log {
    pub(super) fn new(color: bool) -> Self {
        Self { color, ..Self::default() }
    }

    /// What a plan does, what waits and for what, and what is wrong with the specs.
    pub(super) fn decisions(&mut self, round: &Round) {
        let plan = &round.plan;
        let problems = problem::render(&plan.problems, self.color);
        if problems != self.problems {
            // A log that nobody can read any more is no reason to stop.
            let _ = std::io::stderr().write_all(problems.as_bytes());
            self.problems = problems;
        }
        let unknown: Vec<String> =
            round.unknown.iter().map(|unknown| format!("{} {}", unknown.fleet, unknown.owner)).collect();
        if unknown != self.unknown {
            round.unknown.iter().for_each(|unknown| tracing::warn!("{unknown}"));
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
        for change in plan.organizations.iter().flat_map(|organization| &organization.changes) {
            self.decision(plan, None, change);
        }
        for fleet in &plan.fleets {
            let name = fleet.fleet.to_string();
            fleet.changes.iter().for_each(|change| self.decision(plan, Some(&name), change));
        }
        self.waiting.retain(|resource, _| plan.change(resource).is_some_and(|it| !it.waiting.is_empty()));
    }

    /// How a fleet or a cluster is, where that is another word, or for another reason, than was told. Who is well at first
    /// needs no line.
    fn health(&mut self, fleet: &FleetKey, resource: ResourceKey, status: &ResourceStatus) {
        let ResourceStatus { status: to, reason, .. } = status;
        let told = self.told.get(&resource);
        let is_known = match told {
            Some((word, why)) => word == to && why == reason,
            None => *to == Status::Healthy,
        };
        if is_known && told.is_some() {
            return;
        }
        let from = told.map(|(word, _)| tracing::field::display(*word));
        match to {
            _ if is_known => {}
            Status::Degraded | Status::Failed | Status::Unreachable => {
                tracing::warn!(%fleet, %resource, from, %to, reason, "health");
            }
            _ => tracing::info!(%fleet, %resource, from, %to, reason, "health"),
        }
        self.told.insert(resource, (*to, reason.clone()));
    }

    fn decision(&mut self, plan: &Plan, fleet: Option<&str>, change: &Change) {
        let Change { resource, verb, cause, waiting, origin, effects, .. } = change;
        let (cause, by) = told(cause);
        let (file, line) = (origin.as_ref().map(|at| at.path.as_str()), origin.as_ref().map(|at| at.line));
        let commit = plan.inputs.commit.as_ref();
        let (commit, author) = (commit.map(|commit| &commit.id), commit.map(|commit| &commit.author));
        let (made, plan) = (plan.created_at, &plan.id);
        if waiting.is_empty() {
            if *verb != Verb::Keep {
                let why = [reason(change)].into_iter().chain(effects.iter().map(|effect| sentence(effect)));
                let why = why.collect::<Vec<_>>().join(". ");
                tracing::info!(
                    fleet, %resource, %verb, cause, by, file, line, plan, commit, author,
                    "decided to {verb} {resource}: {why}"
                );
            }
            return;
        }
        // What is being done as it should be is soon over.
        if waiting.iter().any(|waiting| waiting.is_soon_over(made)) {
            return;
        }
        let waits: Vec<String> = waiting.iter().map(ToString::to_string).collect();
        let waits = waits.join("; ");
        if self.waiting.get(resource) != Some(&waits) {
            let approve = waiting.iter().find_map(|waiting| match waiting {
                Waiting::Approval { id, .. } => Some(id),
                _ => None,
            });
            tracing::warn!(
                fleet, %resource, %verb, cause, by, file, line, plan, commit, author, approve,
                "waits: {waits}"
            );
            self.waiting.insert(resource.clone(), waits);
        }
    }
}

/// What follows from something, as a sentence of its own.
fn sentence(effect: &str) -> String {
    let mut letters = effect.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Why something is done, as a word, and who changed the target where that is why.
fn told(cause: &Cause) -> (&'static str, Option<&str>) {
    match cause {
        Cause::Spec => ("spec", None),
        Cause::Reference { .. } => ("reference", None),
        Cause::Settings => ("settings", None),
        Cause::Upgrade { .. } => ("upgrade", None),
        Cause::Drift { by } => ("drift", by.as_deref()),
        Cause::Software { .. } => ("software", None),
    }
}
