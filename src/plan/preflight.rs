//! Whether a fleet's Kubernetes cluster has what its Kafka clusters need, judged before anything of them is made.
//!
//! A finding becomes a condition of the fleet. Where going on would leave something half made or never working, the changes
//! that it concerns wait; what is as it should be is left alone in any case.

mod checks;
mod facts;
mod needs;
mod nodes;
mod operator;
mod requests;
mod role;

use std::collections::BTreeSet;

use crate::catalog::{Condition, ResolvedFleet};
use crate::names::ResourceKey;
use crate::plan::site::Site;
use crate::plan::world::World;
use crate::plan::{Change, Reach, Size, Step, Verb, Waiting};
use crate::render::Manifest;

pub(super) use checks::OPERATOR_MISSING;
pub use facts::{Facts, LoadBalancers, Room, StorageClass, Version, name_of};
pub use needs::{Extra, Extras, NEEDS, Need, Permission, missing, permissions};
pub use nodes::Place;
pub(super) use operator::Running;
pub use operator::{Operator, Watches};
pub use requests::{PodRequest, Requests};
pub(super) use requests::{amount, requested, requested_by_pod};
pub use role::{CLUSTER_NAMESPACES, NAMESPACE_ROLE, Role, SYSTEM_NAMESPACE};

/// Something that a Kubernetes cluster lacks.
struct Finding {
    /// The name of the condition.
    kind: &'static str,
    /// What is lacking, in one sentence.
    why: String,
    /// What to do about it.
    remedy: String,
    /// The resources whose changes would go wrong.
    stops: BTreeSet<ResourceKey>,
}

/// What a judgement looks at.
struct Look<'a> {
    world: &'a World<'a>,
    site: &'a Site<'a>,
    facts: &'a Facts,
    changes: &'a [Change],
}

/// Judges what is known of a fleet's Kubernetes cluster: gives the conditions, and makes wait what would go wrong.
pub(super) fn judge(
    world: &World,
    site: &Site,
    facts: &Facts,
    reach: &Reach,
    changes: &mut [Change],
) -> Vec<Condition> {
    // Of a cluster that may not be the fleet's nothing is told but what its own user may do there.
    let checks = if *reach == Reach::Reached { checks::ALL } else { &checks::ALL[..1] };
    let mut conditions = Vec::new();
    for check in checks {
        // Each sees what waits for the ones before.
        for finding in check(&Look { world, site, facts, changes }) {
            finding.hold_up(changes);
            conditions.push(finding.condition());
        }
    }
    conditions
}

impl Finding {
    /// Something that a person should know and that stops nothing.
    fn warning(kind: &'static str, why: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { kind, why: why.into(), remedy: remedy.into(), stops: BTreeSet::new() }
    }

    fn stops<'k>(self, resources: impl IntoIterator<Item = &'k ResourceKey>) -> Finding {
        Finding { stops: resources.into_iter().cloned().collect(), ..self }
    }

    fn hold_up(&self, changes: &mut [Change]) {
        for change in changes.iter_mut().filter(|change| self.stops.contains(&change.resource)) {
            let (condition, why) = (self.kind.to_owned(), self.why.clone());
            change.waiting.push(Waiting::Preflight { condition, why });
        }
    }

    fn condition(self) -> Condition {
        let Finding { kind, why, remedy, stops } = self;
        Condition { kind: kind.to_owned(), degraded: !stops.is_empty(), message: format!("{why}; {remedy}") }
    }
}

impl<'a> Look<'a> {
    /// The changes that something is done for, with the steps that make or change an object.
    fn writing(&self) -> impl Iterator<Item = (&'a ResourceKey, impl Iterator<Item = &'a Manifest>)> {
        let writes = |change: &'a Change| change.steps.iter().filter_map(|step: &Step| step.after.as_ref());
        let going = self.changes.iter().filter(|change| change.verb != Verb::Keep);
        going.filter(move |change| writes(change).next().is_some()).map(move |it| (&it.resource, writes(it)))
    }

    /// The objects of a kind that are made or changed, each with its resource.
    fn written(&self, kind: &str) -> impl Iterator<Item = (&'a ResourceKey, &'a Manifest)> {
        let all = self.writing().flat_map(|(resource, writes)| writes.map(move |write| (resource, write)));
        all.filter(move |(_, write)| write.key.kind == kind)
    }

    /// The objects of a kind that the fleet should hold.
    fn desired(&self, kind: &str) -> impl Iterator<Item = &'a Manifest> {
        let objects = self.site.desired.into_iter().flat_map(|objects| objects.values());
        objects.filter(move |object| object.key.kind == kind)
    }

    /// What the objects that the fleet should hold request of its nodes.
    fn desired_sizes(&self) -> impl Iterator<Item = Size> {
        let objects = self.site.desired.into_iter().flat_map(|objects| objects.values());
        objects.map(|object| match object.key.kind.as_str() {
            "Deployment" => Size::of_deployment(&object.body),
            kind => Size::of_object(kind, &object.body),
        })
    }

    /// Those whose objects of a kind are made or changed, of these.
    fn writers(&self, kind: &str, of: &BTreeSet<&'a ResourceKey>) -> BTreeSet<&'a ResourceKey> {
        self.written(kind).map(|(resource, _)| resource).filter(|resource| of.contains(resource)).collect()
    }

    fn fleet(&self) -> Option<&'a ResolvedFleet> {
        self.world.catalog.fleets.get(self.site.fleet)
    }
}
