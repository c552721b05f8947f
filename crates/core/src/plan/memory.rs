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
use crate::names::{Digest, FleetKey, Identifier, OrganizationPart, ResourceKey, is_same};
use crate::parallel::locked;
use crate::plan::model::part::FleetPart;
use crate::plan::roster::{Roster, is_common};
use crate::plan::world::PlanContext;
use crate::plan::{Change, Reach, UnchangedFleet};

#[derive(Default)]
pub struct PlanMemory(Mutex<Arc<Settled>>);

/// The organizations and fleets as a plan left them.
#[derive(Default)]
pub(super) struct Settled {
    settings: Option<PlannedSettings>,
    organizations: BTreeMap<Identifier, Arc<SettledOrganization>>,
    fleets: BTreeMap<FleetKey, Arc<SettledFleet>>,
}

/// The inputs of all resources of all organizations.
struct PlannedSettings {
    config: Arc<Config>,
    software: String,
    digest: Digest,
}

pub(super) struct SettledOrganization {
    roster: Arc<Roster>,
    clusters: Option<OrganizationPart<Arc<ResolvedCluster>>>,
    /// The resources that should exist, but for the clusters, and what is on them, that the plan left as they are. Sorted.
    pub others: Vec<ResourceKey>,
    /// The fleets of which all clusters, and what is on them, are left.
    fleets: BTreeSet<FleetKey>,
    /// Whether no more of it would be left by another plan of the same.
    is_whole: bool,
}

/// The part of an organization that is as it was when the last plan left it as it is.
pub(super) enum Unchanged<'a> {
    All(Arc<SettledOrganization>),
    /// These of its clusters, and what is on them.
    Some(HashSet<&'a ResourceKey>),
    /// Something changed that all of them may depend on.
    None,
}

impl Unchanged<'_> {
    pub fn has(&self, cluster: &ResourceKey) -> bool {
        match self {
            Unchanged::All(before) => before.left(cluster),
            Unchanged::Some(clusters) => clusters.contains(cluster),
            Unchanged::None => false,
        }
    }

    /// Whether that is so of all that owns something on a fleet, but for the fleet itself.
    pub fn has_all(&self, fleet: &FleetKey, owners: &Arc<BTreeSet<ResourceKey>>) -> bool {
        match self {
            Unchanged::All(before) if is_same(before.roster.owners.get(fleet), Some(owners)) => {
                before.fleets.contains(fleet)
            }
            Unchanged::All(_) | Unchanged::Some(_) => {
                owners.iter().all(|owner| is_common(owner) || self.has(owner))
            }
            Unchanged::None => false,
        }
    }
}

/// The part of a fleet in a plan that left it as it is.
#[derive(Debug)]
pub(super) struct SettledFleet {
    resolved: Option<Arc<ResolvedFleet>>,
    health: Option<FleetHealth>,
    part: FleetPart,
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

/// The values of keys that are asked for in their order, without a search for each of them.
struct InOrder<'a, V, I: Iterator<Item = (&'a ResourceKey, V)>>(Peekable<I>);

impl<'a, V, I: Iterator<Item = (&'a ResourceKey, V)>> InOrder<'a, V, I> {
    fn of(values: impl IntoIterator<IntoIter = I>) -> Self {
        Self(values.into_iter().peekable())
    }

    fn get(&mut self, key: &ResourceKey) -> Option<V> {
        while self.0.next_if(|(its, _)| *its < key).is_some() {}
        self.0.next_if(|(its, _)| *its == key).map(|(_, value)| value)
    }
}

impl Settled {
    /// The digest of the settings that objects are made from; `None` if they changed, or the software.
    pub fn settings(&self, catalog: &Catalog, software: &str) -> Option<Digest> {
        let settings = self.settings.as_ref()?;
        let is_same = Arc::ptr_eq(&settings.config, &catalog.config) && settings.software == software;
        is_same.then(|| settings.digest.clone())
    }

    /// The roster of an organization, and what stayed as it was. `is_steady` says that of the settings.
    pub fn organization<'a>(
        &self,
        (catalog, recorded): (&'a Catalog, &Recorded),
        organization: &Identifier,
        is_steady: bool,
    ) -> (Arc<Roster>, Unchanged<'a>) {
        let before = self.organizations.get(organization);
        let (roster, is_alike) =
            Roster::of((catalog, recorded), organization, before.map(|before| &before.roster));
        let Some(before) = before.filter(|_| is_steady && is_alike) else {
            return (roster, Unchanged::None);
        };
        let clusters = catalog.clusters.of(organization);
        if Arc::ptr_eq(&roster, &before.roster) && is_same(before.clusters.as_ref(), clusters) {
            return (roster, Unchanged::All(Arc::clone(before)));
        }
        let resources = catalog.resources.of(organization).into_iter().flat_map(|part| part.keys());
        let unchanged = before.unchanged(resources, &roster, clusters);
        (roster, Unchanged::Some(unchanged))
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
            && is_same(world.owners(fleet), Some(&part.owners))
            && world.unchanged(&fleet.organization).is_some_and(|it| it.has_all(fleet, &part.owners))
            && !is_postponed(world, fleet);
        is_known.then(|| FleetPart { settled: Some(Arc::clone(settled)), ..part.clone() })
    }

    /// Notes the part that a plan leaves as it is. `parts` are those of fleets that did not have to be observed.
    pub fn of<'p>(
        world: &'p PlanContext,
        changes: impl Iterator<Item = &'p Change>,
        remember: &'p BTreeMap<ResourceKey, RecordedResource>,
        parts: BTreeMap<FleetKey, Arc<SettledFleet>>,
    ) -> Self {
        let mut touched: BTreeSet<&ResourceKey> = changes.map(|change| &change.resource).collect();
        touched.extend(remember.keys().chain(world.policy.announced.keys()));
        let concerned: BTreeSet<&Identifier> = touched.iter().map(|key| &key.organization).collect();
        let organizations = world.organizations().filter_map(|organization| {
            let settled = match world.unchanged(organization)? {
                Unchanged::All(before) if before.is_whole && !concerned.contains(organization) => {
                    Arc::clone(before)
                }
                _ => Arc::new(SettledOrganization::of(world, organization, &touched)?),
            };
            Some((organization.clone(), settled))
        });
        let (config, software) = (Arc::clone(&world.catalog.config), world.policy.software.clone());
        let settings = PlannedSettings { config, software, digest: world.settings.clone() };
        Self { organizations: organizations.collect(), settings: Some(settings), fleets: parts }
    }
}

impl SettledOrganization {
    fn of(world: &PlanContext, organization: &Identifier, touched: &BTreeSet<&ResourceKey>) -> Option<Self> {
        let roster = Arc::clone(world.roster(organization)?);
        let clusters = world.catalog.clusters.of(organization).map(Arc::clone);
        let (mut others, mut is_whole) = (Vec::new(), true);
        for (key, resource) in roster.resources.iter().flat_map(|part| part.iter()) {
            let may_be_left = !is_common(key) && resource.hold.is_none() && world.absence(key).is_none();
            if !may_be_left || touched.contains(key) || world.recorded(key).is_none() {
                is_whole &= !may_be_left;
                others.push(key.clone());
            }
        }
        let mut settled = Self { roster, clusters, others, fleets: BTreeSet::new(), is_whole };
        let is_left = |owner: &ResourceKey| is_common(owner) || settled.left(owner);
        let fleets = settled.roster.owners.iter().filter(|(_, owners)| owners.iter().all(is_left));
        settled.fleets = fleets.map(|(fleet, _)| fleet.clone()).collect();
        Some(settled)
    }

    /// Those of these resources, in order, that the plan left as they are and whose inputs are the same now.
    fn unchanged<'a>(
        &self,
        resources: impl Iterator<Item = &'a ResourceKey>,
        roster: &Roster,
        clusters: Option<&OrganizationPart<Arc<ResolvedCluster>>>,
    ) -> HashSet<&'a ResourceKey> {
        let mut was = inputs_in_order(&self.roster, self.clusters.as_ref());
        let mut is = inputs_in_order(roster, clusters);
        resources.filter(|key| self.left(key) && was(key) == is(key)).collect()
    }

    /// Whether the plan left a cluster, or what is on one, as it is.
    fn left(&self, key: &ResourceKey) -> bool {
        let is_there = self.roster.resources.as_ref().is_some_and(|part| part.contains_key(key));
        is_there && self.others.binary_search(key).is_err()
    }
}

/// The inputs of a resource by their addresses, and the first topic: a cluster is made from the fact that it has topics,
/// which its record shows by that one.
type Inputs<'a> = (
    Option<*const Resource>,
    Option<*const SharedRecord>,
    Option<*const ResolvedCluster>,
    Option<&'a ResourceKey>,
);

/// Returns the inputs of resources that are asked for in the order of their keys.
fn inputs_in_order<'a>(
    roster: &'a Roster,
    clusters: Option<&'a OrganizationPart<Arc<ResolvedCluster>>>,
) -> impl FnMut(&ResourceKey) -> Inputs<'a> {
    let mut resources = InOrder::of(roster.resources.iter().flat_map(|part| part.iter()));
    let mut records = InOrder::of(roster.records.iter().flat_map(|part| part.iter()));
    let mut clusters = InOrder::of(clusters.into_iter().flat_map(|part| part.iter()));
    move |key| {
        let (resource, record, cluster) = (resources.get(key), records.get(key), clusters.get(key));
        let first_topic = roster.first_topics.get(key);
        (resource.map(Arc::as_ptr), record.map(Arc::as_ptr), cluster.map(Arc::as_ptr), first_topic)
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
