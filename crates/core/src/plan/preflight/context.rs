use std::collections::BTreeSet;

use super::facts::PreflightFacts;
use crate::catalog::{Condition, ResolvedFleet};
use crate::component::{Manifest, ObjectRole, Size};
use crate::names::{Kind, ResourceKey};
use crate::plan::model::site::FleetInputs;
use crate::plan::model::{Change, Step, Verb, Waiting};
use crate::plan::world::PlanContext;

pub(super) struct PreflightFinding {
    pub kind: &'static str,
    pub why: String,
    pub remedy: String,
    /// Resources whose changes would fail.
    pub stops: BTreeSet<ResourceKey>,
}

pub(super) struct PreflightContext<'a> {
    pub world: &'a PlanContext<'a>,
    pub site: &'a FleetInputs<'a>,
    pub facts: &'a PreflightFacts,
    pub changes: &'a [Change],
}

impl PreflightFinding {
    /// Returns a finding that blocks nothing.
    pub fn warning(
        kind: &'static str,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> PreflightFinding {
        PreflightFinding { kind, why: why.into(), remedy: remedy.into(), stops: BTreeSet::new() }
    }

    pub fn stops<'k>(self, resources: impl IntoIterator<Item = &'k ResourceKey>) -> PreflightFinding {
        PreflightFinding { stops: resources.into_iter().cloned().collect(), ..self }
    }

    pub fn hold_up(&self, changes: &mut [Change]) {
        for change in changes.iter_mut().filter(|change| self.stops.contains(&change.resource)) {
            let (condition, why) = (self.kind.to_owned(), self.why.clone());
            change.waiting.push(Waiting::Preflight { condition, why });
        }
    }

    pub fn condition(self) -> Condition {
        let PreflightFinding { kind, why, remedy, stops } = self;
        Condition { kind: kind.to_owned(), degraded: !stops.is_empty(), message: format!("{why}; {remedy}") }
    }
}

impl<'a> PreflightContext<'a> {
    pub fn writing(&self) -> impl Iterator<Item = (&'a ResourceKey, impl Iterator<Item = &'a Manifest>)> {
        let writes = |change: &'a Change| change.steps.iter().filter_map(|step: &Step| step.after.as_ref());
        let going = self.changes.iter().filter(|change| change.verb != Verb::Keep);
        going.filter(move |change| writes(change).next().is_some()).map(move |it| (&it.resource, writes(it)))
    }

    pub fn all_written(&self) -> impl Iterator<Item = (&'a ResourceKey, &'a Manifest)> {
        self.writing().flat_map(|(resource, writes)| writes.map(move |write| (resource, write)))
    }

    pub fn written(&self, kind: &str) -> impl Iterator<Item = (&'a ResourceKey, &'a Manifest)> {
        self.all_written().filter(move |(_, write)| write.key.kind == kind)
    }

    pub fn written_as(&self, role: ObjectRole) -> impl Iterator<Item = (&'a ResourceKey, &'a Manifest)> {
        self.all_written().filter(move |(_, write)| write.facts().role == role)
    }

    pub fn all_desired(&self) -> impl Iterator<Item = &'a Manifest> {
        self.site.desired.into_iter().flat_map(|objects| objects.values())
    }

    pub fn desired(&self, kind: &str) -> impl Iterator<Item = &'a Manifest> {
        self.all_desired().filter(move |object| object.key.kind == kind)
    }

    pub fn desired_as(&self, role: ObjectRole) -> impl Iterator<Item = &'a Manifest> {
        self.all_desired().filter(move |object| object.facts().role == role)
    }

    pub fn desired_sizes(&self) -> impl Iterator<Item = Size> {
        self.all_desired().map(|object| (object.facts().size)(&object.body))
    }

    /// The sizes of what runs beside the clusters.
    pub fn fleet_sizes(&self) -> impl Iterator<Item = Size> {
        let beside = self.all_desired().filter(|object| object.owner.kind == Kind::Fleet);
        beside.map(|object| (object.facts().size)(&object.body))
    }

    pub fn writers(&self, of: &BTreeSet<&'a ResourceKey>) -> BTreeSet<&'a ResourceKey> {
        self.written_as(ObjectRole::Cluster)
            .map(|(resource, _)| resource)
            .filter(|resource| of.contains(resource))
            .collect()
    }

    pub fn fleet(&self) -> Option<&'a ResolvedFleet> {
        self.world.catalog.fleets.get(self.site.fleet).map(|fleet| &**fleet)
    }
}

/// How many names a message lists.
const NAMES: usize = 6;

/// `a`, `a and b`, `a, b and c`, cut to fit a line or two.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [first @ .., _] if names.len() > NAMES => {
            let more = names.len() - NAMES;
            format!("{} and {more} more", first.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", "))
        }
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
