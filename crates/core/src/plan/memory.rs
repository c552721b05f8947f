//! Remembers the resources and fleets that the last plan left as they are, so that the next one looks only at what
//! changed since.
//!
//! Values that stayed the same are shared between the catalogs and records of two rounds, so they are told by their
//! address. A plan that is made with this memory is the same as one that is made without it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::iter::Peekable;
use std::sync::{Arc, Mutex};

use crate::catalog::{
    Catalog, Recorded, RecordedResource, ResolvedCluster, ResolvedFleet, Resource, SharedRecord,
};
use crate::config::Config;
use crate::health::FleetHealth;
use crate::names::{FleetKey, Identifier, ResourceKey};
use crate::parallel::locked;
use crate::plan::compare::origins::Origins;
use crate::plan::model::part::FleetPart;
use crate::plan::world::PlanContext;
use crate::plan::{Change, Reach, UnchangedFleet};

#[derive(Default)]
pub struct PlanMemory(Mutex<Arc<Settled>>);

/// The resources and fleets that a plan left as they are.
#[derive(Default)]
pub(super) struct Settled {
    common: Option<Common>,
    /// In the order of their keys.
    resources: Vec<SettledResource>,
    fleets: BTreeMap<FleetKey, Arc<SettledFleet>>,
}

/// The inputs that any resource may depend on: the settings, and of its organization all but clusters and what is on them.
struct Common {
    config: Arc<Config>,
    software: String,
    resources: Vec<(Arc<Resource>, Option<Arc<SharedRecord>>)>,
    origins: Arc<Origins>,
}

struct SettledResource {
    resource: Arc<Resource>,
    record: Arc<SharedRecord>,
    cluster: Option<Arc<ResolvedCluster>>,
    /// A cluster is made from the fact that it has topics, which its record shows by the first one.
    first_topic: Option<ResourceKey>,
}

/// The part of a fleet in a plan that left it as it is.
#[derive(Debug)]
pub(super) struct SettledFleet {
    resolved: Option<Arc<ResolvedFleet>>,
    health: Option<FleetHealth>,
    part: FleetPart,
}

/// What stayed as it was when the last plan left it as it is.
pub(super) struct Unchanged<'a> {
    /// Clusters, and what is on them.
    clusters: HashSet<&'a ResourceKey>,
    /// The organizations of which anything else changed.
    others: BTreeSet<Identifier>,
}

impl Unchanged<'_> {
    pub fn has(&self, cluster: &ResourceKey) -> bool {
        self.clusters.contains(cluster)
    }

    /// Whether nothing but clusters, and what is on them, can have changed of an organization.
    pub fn is_steady(&self, organization: &Identifier) -> bool {
        !self.others.contains(organization)
    }
}

impl PlanMemory {
    /// A memory of its own that knows the same.
    pub fn copy(&self) -> Self {
        Self(Mutex::new(self.last()))
    }

    pub(super) fn last(&self) -> Arc<Settled> {
        // A poisoned lock is safe to use: only whole values are assigned.
        Arc::clone(&locked(&self.0))
    }

    pub(super) fn keep(&self, settled: Settled) {
        *locked(&self.0) = Arc::new(settled);
    }
}

fn is_common(key: &ResourceKey) -> bool {
    !key.kind.is_of_cluster()
}

fn is_same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

impl Common {
    fn of(world: &PlanContext) -> Self {
        let PlanContext { catalog, recorded, policy, origins, .. } = world;
        let resources = catalog.resources.iter().filter(|(key, _)| is_common(key));
        let resources = resources
            .map(|(key, resource)| (Arc::clone(resource), recorded.resources.shared(key).map(Arc::clone)));
        let (config, software) = (Arc::clone(&catalog.config), policy.software.clone());
        Self { config, software, resources: resources.collect(), origins: Arc::clone(origins) }
    }

    /// The organizations of which any of it changed; `None` if the settings did, or the software.
    fn changed<'a>(
        &'a self,
        catalog: &'a Catalog,
        recorded: &Recorded,
        software: &str,
    ) -> Option<BTreeSet<&'a Identifier>> {
        if !Arc::ptr_eq(&self.config, &catalog.config) || self.software != software {
            return None;
        }
        let mut before = InOrder::of(self.resources.iter().map(|was| (&was.0.key, was)));
        let mut changed = BTreeSet::new();
        let now = catalog.resources.iter().filter(|(key, _)| is_common(key));
        for (key, resource) in now {
            changed.extend(before.before(key).map(|(gone, _)| &gone.organization));
            let is_same = before.get(key).is_some_and(|(was, record)| {
                Arc::ptr_eq(was, resource) && is_same(record.as_ref(), recorded.resources.shared(key))
            });
            if !is_same {
                changed.insert(&key.organization);
            }
        }
        changed.extend(before.0.map(|(gone, _)| &gone.organization));
        Some(changed)
    }
}

/// The values of keys that are asked for in their order, without a search for each of them.
struct InOrder<'a, V, I: Iterator<Item = (&'a ResourceKey, V)>>(Peekable<I>);

impl<'a, V, I: Iterator<Item = (&'a ResourceKey, V)>> InOrder<'a, V, I> {
    fn of(values: impl IntoIterator<IntoIter = I>) -> Self {
        Self(values.into_iter().peekable())
    }

    /// Those of keys before this one that weren't asked for.
    fn before(&mut self, key: &ResourceKey) -> impl Iterator<Item = (&'a ResourceKey, V)> {
        std::iter::from_fn(|| self.0.next_if(|(its, _)| *its < key))
    }

    fn get(&mut self, key: &ResourceKey) -> Option<V> {
        self.before(key).for_each(drop);
        self.0.next_if(|(its, _)| *its == key).map(|(_, value)| value)
    }
}

impl Settled {
    /// The inputs of objects, and what stayed as it was when a plan left it as it is. `None` if something changed that
    /// all of it may depend on.
    pub fn unchanged<'a>(
        &self,
        catalog: &'a Catalog,
        recorded: &Recorded,
        software: &str,
        first_topics: &BTreeMap<ResourceKey, &ResourceKey>,
    ) -> Option<(Arc<Origins>, Unchanged<'a>)> {
        let common = self.common.as_ref()?;
        let changed = common.changed(catalog, recorded, software)?;
        let mut before = InOrder::of(self.resources.iter().map(|was| (&was.resource.key, was)));
        let (mut records, mut clusters) =
            (InOrder::of(recorded.resources.all_shared()), InOrder::of(&catalog.clusters));
        let mut is_unchanged = |key: &ResourceKey, resource: &Arc<Resource>| {
            let (was, record, cluster) = (before.get(key), records.get(key), clusters.get(key));
            was.is_some_and(|was| {
                Arc::ptr_eq(&was.resource, resource)
                    && is_same(Some(&was.record), record)
                    && is_same(was.cluster.as_ref(), cluster)
                    && was.first_topic.as_ref() == first_topics.get(key).copied()
            })
        };
        let clusters = catalog.resources.iter().filter(|(key, _)| !is_common(key));
        let clusters = clusters.filter(|(key, _)| !changed.contains(&key.organization));
        let clusters = clusters.filter(|(key, resource)| is_unchanged(key, resource));
        let clusters = clusters.map(|(key, _)| key).collect();
        let origins = match changed.is_empty() {
            true => Arc::clone(&common.origins),
            false => Arc::new(Origins::of(catalog)),
        };
        let others = changed.into_iter().cloned().collect();
        Some((origins, Unchanged { clusters, others }))
    }

    /// The part of a fleet on which nothing changed, neither there nor in what is wanted.
    pub fn part(
        &self,
        world: &PlanContext,
        fleet: &FleetKey,
        (quiet, health): (&Arc<UnchangedFleet>, Option<&FleetHealth>),
    ) -> Option<FleetPart> {
        let settled = self.fleets.get(fleet)?;
        let SettledFleet { resolved, health: was, part } = &**settled;
        let is_known = is_same(part.quiet.as_ref(), Some(quiet))
            && is_same(resolved.as_ref(), world.catalog.fleets.get(fleet))
            && was.as_ref() == health
            && world.owners.get(fleet).is_some_and(|owners| owners.iter().copied().eq(&part.owners))
            && world.is_steady(&fleet.organization)
            && part.owners.iter().all(|owner| is_common(owner) || world.is_settled(owner))
            && !is_postponed(world, fleet);
        is_known.then(|| FleetPart { settled: Some(Arc::clone(settled)), ..part.clone() })
    }

    /// The resources and fleets that a plan leaves as they are. `parts` are those of fleets that did not have to be observed.
    pub fn of<'p>(
        world: &PlanContext,
        changes: impl Iterator<Item = &'p Change>,
        remember: &BTreeMap<ResourceKey, RecordedResource>,
        parts: BTreeMap<FleetKey, Arc<SettledFleet>>,
    ) -> Self {
        let changed: BTreeSet<&ResourceKey> = changes.map(|change| &change.resource).collect();
        let is_left = |key: &ResourceKey, resource: &Resource| {
            !is_common(key)
                && resource.hold.is_none()
                && !changed.contains(key)
                && !remember.contains_key(key)
                && world.absence(key).is_none()
                && !world.policy.announced.contains_key(key)
        };
        let left = world.catalog.resources.iter().filter(|(key, resource)| is_left(key, resource));
        let (mut records, mut clusters) =
            (InOrder::of(world.recorded.resources.all_shared()), InOrder::of(&world.catalog.clusters));
        let left = left.filter_map(|(key, resource)| {
            let (cluster, record) = (clusters.get(key).map(Arc::clone), Arc::clone(records.get(key)?));
            let first_topic = world.first_topics.get(key).copied().cloned();
            Some(SettledResource { resource: Arc::clone(resource), record, cluster, first_topic })
        });
        Self { common: Some(Common::of(world)), resources: left.collect(), fleets: parts }
    }
}

impl SettledFleet {
    /// `None` if the part has to be made anew each time.
    pub fn of(world: &PlanContext, part: &FleetPart, health: Option<&FleetHealth>) -> Option<Arc<Self>> {
        let plan = part.plan.as_ref()?;
        let is_calm = plan.changes.is_empty()
            && plan.guard.is_none()
            && plan.void_approvals.is_empty()
            && plan.reach == Reach::Reached
            && part.problems.is_empty()
            && part.approved.is_empty()
            && part.repairs.is_empty()
            && !is_postponed(world, &part.fleet);
        let resolved = world.catalog.fleets.get(&part.fleet).map(Arc::clone);
        is_calm.then(|| Arc::new(Self { resolved, health: health.cloned(), part: part.clone() }))
    }
}

/// Whether a plan of a fleet depends on the time.
fn is_postponed(world: &PlanContext, fleet: &FleetKey) -> bool {
    let pauses = &world.policy.pauses;
    pauses.failed.contains_key(fleet)
        || pauses.flapping.keys().any(|(flapping, _)| flapping == fleet)
        || world.recorded.approvals.iter().any(|approval| approval.fleet == *fleet)
}
