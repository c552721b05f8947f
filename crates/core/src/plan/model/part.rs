//! One fleet's part of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalog::Condition;
use crate::names::{Digest, FleetKey, ResourceKey};
use crate::plan::Reach;
use crate::plan::memory::SettledFleet;
use crate::plan::model::record_state::RecordCounts;
use crate::plan::model::troubles::TroubleCauses;
use crate::plan::model::{Change, FleetPlan};
use crate::plan::preflight::FleetSupport;
use crate::problem::Problem;

/// The newest version of Kafka that each cluster could have, if newer than its own.
pub type NewerVersions = BTreeMap<ResourceKey, &'static str>;

#[derive(Debug, Clone)]
pub struct FleetPart {
    pub(in crate::plan) fleet: FleetKey,
    /// `None` for a fleet that is gone.
    pub(in crate::plan) plan: Option<FleetPlan>,
    pub(in crate::plan) problems: Vec<Problem>,
    /// The hash of what was observed on the target.
    pub(in crate::plan) observed: Digest,
    /// The resources with changes on this fleet, or that could have some.
    pub(in crate::plan) owners: Arc<BTreeSet<ResourceKey>>,
    /// The Kubernetes cluster of the target; `None` if unknown or planned from a remembered comparison.
    pub(in crate::plan) cluster: Option<String>,
    pub(in crate::plan) newer: NewerVersions,
    pub(in crate::plan) support: FleetSupport,
    pub(in crate::plan) records: RecordCounts,
    /// The known causes of its clusters' trouble.
    pub(in crate::plan) troubles: TroubleCauses,
    /// Resources with approved changes, including those that still wait for their turn.
    pub(in crate::plan) approved: BTreeSet<ResourceKey>,
    /// Possible repairs of resources, used if their changes turn out to wait.
    pub(in crate::plan) repairs: Vec<Repair>,
    pub(in crate::plan) quiet: Option<Arc<UnchangedFleet>>,
    /// The part to keep for the next plan; `None` if it has to be made anew each time.
    pub(in crate::plan) settled: Option<Arc<SettledFleet>>,
}

impl FleetPart {
    /// Returns the comparison to remember; `None` if it found a change or a remark.
    pub fn quiet(&self) -> Option<&Arc<UnchangedFleet>> {
        self.quiet.as_ref()
    }

    pub fn is_reached(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.reach == Reach::Reached)
    }

    /// Returns the changes that are refused there.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Returns newer Kafka versions for the fleet's clusters that its operator is known to support.
    pub fn newer(&self) -> &NewerVersions {
        &self.newer
    }

    /// Returns what the fleet has for its clusters.
    pub fn support(&self) -> &FleetSupport {
        &self.support
    }

    /// Returns how its DNS records stand.
    pub fn records(&self) -> &RecordCounts {
        &self.records
    }

    /// Whether planning needs preflight facts: a change is planned there, or the cluster lacked something before.
    pub fn needs_facts(&self) -> bool {
        let changes = self.plan.iter().flat_map(|plan| &plan.changes);
        changes.flat_map(|change| &change.steps).any(|step| step.after.is_some())
            || !self.repairs.is_empty()
            || self.quiet.as_ref().is_some_and(|quiet| quiet.lacks_something())
    }
}

/// The result of a comparison that found every object as it should be: all that the rest of planning needs.
/// Valid as long as the desired, the recorded and the observed objects of the fleet stay the same.
#[derive(Debug, Clone)]
pub struct UnchangedFleet {
    pub(in crate::plan) observed: Digest,
    pub(in crate::plan) owners: BTreeSet<ResourceKey>,
    /// The conditions of its Kubernetes cluster when it was planned.
    pub(in crate::plan) lacks: Vec<Condition>,
    pub(in crate::plan) newer: NewerVersions,
    pub(in crate::plan) support: FleetSupport,
    pub(in crate::plan) records: RecordCounts,
    /// Whether one of its clusters waits for an operator that supports a newer version of Kafka.
    pub(in crate::plan) awaits_operator: bool,
}

impl UnchangedFleet {
    /// Whether something is missing on its Kubernetes cluster, so that the facts may be outdated.
    pub fn lacks_something(&self) -> bool {
        !self.lacks.is_empty() || self.awaits_operator
    }
}

/// The possible repair of one resource while its change waits.
#[derive(Debug, Clone)]
pub(in crate::plan) struct Repair {
    pub whole: Change,
    /// The part of the plan that disrupts nothing; `None` if it would be the whole plan or empty.
    pub undisruptive: Option<Change>,
    pub left: Vec<String>,
}
