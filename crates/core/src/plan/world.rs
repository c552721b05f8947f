use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use crate::catalog::{
    Absence, Catalog, Hold, INFRASTRUCTURE, Recorded, RecordedResource, RecordedSpec, Resource,
};
use crate::names::{FleetKey, Identifier, Kind, ResourceKey};
use crate::parallel;
use crate::plan::compare::origins::Origins;
use crate::plan::memory::{Settled, Unchanged};
use crate::plan::{FieldChange, Policy, compare::fields};
use crate::spec::{InfraType, Spec};

/// The inputs of planning that all fleets share, and what follows from them for every resource.
pub(super) struct PlanContext<'a> {
    pub catalog: &'a Catalog,
    pub recorded: &'a Recorded,
    pub policy: &'a Policy,
    /// The targets' own memory of protection. The record may be older, as after restoring a backup.
    pub protected: BTreeSet<ResourceKey>,
    /// Compared when it is first asked for.
    current: BTreeMap<&'a ResourceKey, OnceLock<SpecDiff>>,
    /// `None` if anything may be another by what all depends on.
    settled: Option<Unchanged<'a>>,
    /// The resources that are on each fleet by their spec, or were by their record.
    pub owners: BTreeMap<FleetKey, BTreeSet<&'a ResourceKey>>,
    /// The first topic of each cluster that has some, in the tree or recorded.
    pub first_topics: BTreeMap<ResourceKey, &'a ResourceKey>,
    pub origins: Arc<Origins>,
}

/// A resource that should exist, compared with its record.
pub(super) struct SpecDiff {
    /// The fields that changed since it was created; empty while its creation is incomplete.
    pub fields: Vec<FieldChange>,
    /// Its spec as it would be recorded.
    pub now: RecordedSpec,
}

impl<'a> PlanContext<'a> {
    pub fn new(
        catalog: &'a Catalog,
        recorded: &'a Recorded,
        protected: BTreeSet<ResourceKey>,
        policy: &'a Policy,
        before: &Settled,
    ) -> Self {
        let first_topics = first_topics(catalog, recorded);
        let unchanged = before.unchanged(catalog, recorded, &policy.software, &first_topics);
        let (origins, settled) = unchanged.unzip();
        let origins = origins.unwrap_or_else(|| Arc::new(Origins::of(catalog)));
        let owners = owners(catalog, recorded);
        let current = catalog.resources.keys().map(|key| (key, OnceLock::new())).collect();
        Self { catalog, recorded, policy, protected, current, settled, owners, first_topics, origins }
    }

    /// Compares all resources that may have changed, on all processors.
    pub fn compare_all(&self) {
        let resources = self.catalog.resources.keys().filter(|key| !self.is_settled(key));
        parallel::map(&resources.collect::<Vec<_>>(), |key| self.current(key).is_some());
    }

    /// A resource that should exist, compared with its record.
    pub fn current(&self, key: &ResourceKey) -> Option<&SpecDiff> {
        let known = self.current.get(key)?;
        let resource = self.catalog.resources.get(key)?;
        Some(known.get_or_init(|| compare(resource, self.recorded)))
    }

    /// Whether the last plan left a cluster, topic or user as it is, and nothing changed since that it depends on.
    pub fn is_settled(&self, key: &ResourceKey) -> bool {
        self.settled.as_ref().is_some_and(|settled| settled.has(key))
    }

    /// Whether nothing but clusters, and what is on them, can have changed of an organization since the last plan.
    pub fn is_steady(&self, organization: &Identifier) -> bool {
        self.settled.as_ref().is_some_and(|settled| settled.is_steady(organization))
    }

    pub fn recorded(&self, key: &ResourceKey) -> Option<&'a RecordedResource> {
        self.recorded.resources.get(key)
    }

    /// Whether a resource's creation was ever completed.
    pub fn is_made(&self, key: &ResourceKey) -> bool {
        self.recorded(key).is_some_and(|record| !record.durable.creating)
    }

    /// Returns the resource's current spec, or the one applied last if no document names it any more.
    pub fn spec(&self, key: &ResourceKey) -> Option<&'a Spec> {
        match self.catalog.resources.get(key) {
            Some(resource) => Some(&resource.spec),
            None => self.recorded(key)?.applied_spec(key.kind),
        }
    }

    /// Returns the recorded resources that no spec names any more, each with the known reason.
    pub fn absent(&self) -> impl Iterator<Item = (&'a ResourceKey, &'a Absence)> {
        self.catalog.absent.keys().filter_map(|key| Some((key, self.absence(key)?)))
    }

    /// Returns why no spec names a resource any more; `None` if one does. A resource that may be missing by
    /// mistake is in the catalog, too, so that references to it still resolve, but its own change follows
    /// from its absence.
    pub fn absence(&self, key: &ResourceKey) -> Option<&'a Absence> {
        let named =
            |resource: &Resource| !matches!(resource.hold, Some(Hold::Absent | Hold::Unreadable { .. }));
        let absence = self.catalog.absent.get(key)?;
        (!self.catalog.resources.get(key).is_some_and(|it| named(it))).then_some(absence)
    }

    /// Whether pods, disks and health of a fleet are observed; `None` if its target isn't known.
    pub fn observes(&self, fleet: &FleetKey) -> Option<bool> {
        self.infra_type(fleet).map(|target| target.capabilities().observes)
    }

    pub fn infra_type(&self, key: &FleetKey) -> Option<InfraType> {
        let resource = key.resource();
        let resolved = self.catalog.fleets.get(key).map(|fleet| fleet.spec.infra_type);
        let recorded = || self.recorded(&resource);
        let applied = || match recorded()?.applied_spec(resource.kind)? {
            Spec::Fleet(fleet) => Some(fleet.infra_type),
            _ => None,
        };
        let immutable =
            || serde_json::from_value(recorded()?.durable.immutable.get("/infra_type")?.clone()).ok();
        resolved.or_else(applied).or_else(immutable)
    }
}

/// Returns the fields that changed since a resource was created; empty while its creation is incomplete.
pub fn changed_fields(resource: &Resource, recorded: &Recorded) -> Vec<FieldChange> {
    compare(resource, recorded).fields
}

fn compare(resource: &Resource, recorded: &Recorded) -> SpecDiff {
    let before = recorded.resources.get(&resource.key);
    let mut now = RecordedSpec::of(&resource.key, &resource.spec, before);
    if let Some(on) = &resource.cluster_fleet {
        let fields = Arc::make_mut(&mut now.immutable);
        fields.insert(INFRASTRUCTURE.to_owned(), on.fleet.as_str().into());
    }
    let made = before.filter(|before| !before.durable.creating);
    let fields = made.map(|made| fields::changes(made, &now.spec, resource)).unwrap_or_default();
    SpecDiff { fields, now }
}

fn first_topics<'a>(catalog: &'a Catalog, recorded: &'a Recorded) -> BTreeMap<ResourceKey, &'a ResourceKey> {
    let mut first: BTreeMap<ResourceKey, &ResourceKey> = BTreeMap::new();
    let topics = catalog.resources.keys().chain(recorded.resources.keys());
    for topic in topics.filter(|key| key.kind == Kind::Topic) {
        let Some((cluster, _)) = topic.within_cluster() else { continue };
        first.entry(cluster).and_modify(|first| *first = topic.min(first)).or_insert(topic);
    }
    first
}

/// Returns the resources on each fleet, by specs and by records.
fn owners<'a>(catalog: &'a Catalog, recorded: &'a Recorded) -> BTreeMap<FleetKey, BTreeSet<&'a ResourceKey>> {
    let mut owners: BTreeMap<FleetKey, BTreeSet<&ResourceKey>> = BTreeMap::new();
    let on_fleets = catalog.resources.iter().filter_map(|(key, resource)| Some((resource.fleet()?, key)));
    // Those of a fleet mostly follow each other.
    for group in on_fleets.collect::<Vec<_>>().chunk_by(|(one, _), (other, _)| one == other) {
        let Some((fleet, _)) = group.first() else { continue };
        owners.entry(fleet.clone()).or_default().extend(group.iter().map(|(_, key)| key));
    }
    for key in catalog.absent.keys() {
        if let Some(fleet) = recorded.resources.get(key).and_then(|record| record.fleet(key)) {
            owners.entry(fleet).or_default().insert(key);
        }
    }
    owners
}
