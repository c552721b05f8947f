//! Checks whether a fleet's Kubernetes cluster has what its Kafka clusters need, before any of it is created.
//!
//! A finding becomes a condition of the fleet. If going on would leave something half made or never working,
//! the changes concerned wait. What is as it should be is left alone in any case.

mod checks;
mod facts;
mod needs;
mod nodes;
mod operator;
mod requests;
mod role;

use std::collections::BTreeSet;

use crate::catalog::{Condition, ResolvedFleet};
use crate::component::{Manifest, ObjectRole};
use crate::names::ResourceKey;
use crate::plan::site::FleetInputs;
use crate::plan::world::PlanContext;
use crate::plan::{Change, Reach, Size, Step, Verb, Waiting};

pub(super) use checks::OPERATOR_MISSING;
pub use facts::{LoadBalancers, NodeCapacity, PreflightFacts, StorageClass, Version, name_of};
pub use needs::{NAMESPACE_ROLE, Permission, missing, permissions};
pub use nodes::NodeConstraints;
pub(super) use operator::SupportedVersions;
pub use operator::{Operator, Watches};
pub use requests::{PodRequest, Requests};
pub use role::{CLUSTER_NAMESPACES, Role, SYSTEM_NAMESPACE};

struct PreflightFinding {
    kind: &'static str,
    why: String,
    remedy: String,
    /// Resources whose changes would fail.
    stops: BTreeSet<ResourceKey>,
}

struct PreflightContext<'a> {
    world: &'a PlanContext<'a>,
    site: &'a FleetInputs<'a>,
    facts: &'a PreflightFacts,
    changes: &'a [Change],
}

/// Evaluates a fleet's facts: returns conditions, and makes changes wait that would fail.
pub(super) fn judge(
    world: &PlanContext,
    site: &FleetInputs,
    facts: &PreflightFacts,
    reach: &Reach,
    changes: &mut [Change],
) -> Vec<Condition> {
    // A Kubernetes cluster that may not be the fleet's is only checked for the permissions of our own user.
    let checks = if *reach == Reach::Reached { checks::ALL } else { &checks::ALL[..1] };
    let mut conditions = Vec::new();
    for check in checks {
        // Each check sees the waits added by earlier ones.
        for finding in check(&PreflightContext { world, site, facts, changes }) {
            finding.hold_up(changes);
            conditions.push(finding.condition());
        }
    }
    conditions
}

impl PreflightFinding {
    /// Returns a finding that blocks nothing.
    fn warning(kind: &'static str, why: impl Into<String>, remedy: impl Into<String>) -> PreflightFinding {
        PreflightFinding { kind, why: why.into(), remedy: remedy.into(), stops: BTreeSet::new() }
    }

    fn stops<'k>(self, resources: impl IntoIterator<Item = &'k ResourceKey>) -> PreflightFinding {
        PreflightFinding { stops: resources.into_iter().cloned().collect(), ..self }
    }

    fn hold_up(&self, changes: &mut [Change]) {
        for change in changes.iter_mut().filter(|change| self.stops.contains(&change.resource)) {
            let (condition, why) = (self.kind.to_owned(), self.why.clone());
            change.waiting.push(Waiting::Preflight { condition, why });
        }
    }

    fn condition(self) -> Condition {
        let PreflightFinding { kind, why, remedy, stops } = self;
        Condition { kind: kind.to_owned(), degraded: !stops.is_empty(), message: format!("{why}; {remedy}") }
    }
}

impl<'a> PreflightContext<'a> {
    fn writing(&self) -> impl Iterator<Item = (&'a ResourceKey, impl Iterator<Item = &'a Manifest>)> {
        let writes = |change: &'a Change| change.steps.iter().filter_map(|step: &Step| step.after.as_ref());
        let going = self.changes.iter().filter(|change| change.verb != Verb::Keep);
        going.filter(move |change| writes(change).next().is_some()).map(move |it| (&it.resource, writes(it)))
    }

    fn all_written(&self) -> impl Iterator<Item = (&'a ResourceKey, &'a Manifest)> {
        self.writing().flat_map(|(resource, writes)| writes.map(move |write| (resource, write)))
    }

    fn written(&self, kind: &str) -> impl Iterator<Item = (&'a ResourceKey, &'a Manifest)> {
        self.all_written().filter(move |(_, write)| write.key.kind == kind)
    }

    fn written_as(&self, role: ObjectRole) -> impl Iterator<Item = (&'a ResourceKey, &'a Manifest)> {
        self.all_written().filter(move |(_, write)| write.facts().role == role)
    }

    fn all_desired(&self) -> impl Iterator<Item = &'a Manifest> {
        self.site.desired.into_iter().flat_map(|objects| objects.values())
    }

    fn desired(&self, kind: &str) -> impl Iterator<Item = &'a Manifest> {
        self.all_desired().filter(move |object| object.key.kind == kind)
    }

    fn desired_as(&self, role: ObjectRole) -> impl Iterator<Item = &'a Manifest> {
        self.all_desired().filter(move |object| object.facts().role == role)
    }

    fn desired_sizes(&self) -> impl Iterator<Item = Size> {
        self.all_desired().map(|object| match object.key.kind.as_str() {
            "Deployment" => Size::of_deployment(&object.body),
            _ => (object.facts().size)(&object.body),
        })
    }

    fn writers(&self, of: &BTreeSet<&'a ResourceKey>) -> BTreeSet<&'a ResourceKey> {
        self.written_as(ObjectRole::Cluster)
            .map(|(resource, _)| resource)
            .filter(|resource| of.contains(resource))
            .collect()
    }

    fn fleet(&self) -> Option<&'a ResolvedFleet> {
        self.world.catalog.fleets.get(self.site.fleet)
    }
}
