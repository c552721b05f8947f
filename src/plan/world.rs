//! Everything that planning looks at, with what more than one part of it needs worked out once.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Absence, Catalog, Hold, Recorded, RecordedResource, Resource};
use crate::names::{FleetKey, Kind, ObjectKey, ResourceKey};
use crate::plan::made_from::Origins;
use crate::plan::{FieldChange, Observed, Policy, fields, record};
use crate::render::Desired;
use crate::spec::Spec;

/// The arguments of planning, and what follows from them for every resource.
pub(super) struct World<'a> {
    pub catalog: &'a Catalog,
    pub desired: &'a Desired,
    pub recorded: &'a Recorded,
    pub observed: &'a Observed,
    pub policy: &'a Policy,
    /// Every resource that should exist, compared with its record.
    pub current: BTreeMap<&'a ResourceKey, Current>,
    /// Who has, or had, something on each fleet. Fleets and clusters only.
    pub owners: BTreeMap<FleetKey, BTreeSet<&'a ResourceKey>>,
}

/// A resource that should exist, compared with its record.
pub(super) struct Current {
    /// What of its spec changed since it was made; empty while it is still being made.
    pub fields: Vec<FieldChange>,
    /// What is remembered of it once it is as its spec says.
    pub record: RecordedResource,
}

impl<'a> World<'a> {
    pub fn new(
        catalog: &'a Catalog,
        desired: &'a Desired,
        recorded: &'a Recorded,
        observed: &'a Observed,
        policy: &'a Policy,
    ) -> Self {
        let owners = owners(catalog, recorded, observed);
        let current = BTreeMap::new();
        let mut world = Self { catalog, desired, recorded, observed, policy, current, owners };
        world.current = current_of(&world);
        world
    }

    /// Every fleet that should exist, that something is left on, or that something was ever applied to.
    pub fn fleets(&self) -> BTreeSet<FleetKey> {
        let known = self.catalog.fleets.keys().chain(self.desired.fleets.keys()).chain(self.owners.keys());
        known.chain(self.recorded.fleets.keys()).chain(self.observed.fleets.keys()).cloned().collect()
    }

    /// What was last applied of a resource.
    pub fn recorded(&self, key: &ResourceKey) -> Option<&'a RecordedResource> {
        self.recorded.resources.get(key)
    }

    /// Whether a resource was ever made as a whole.
    pub fn is_made(&self, key: &ResourceKey) -> bool {
        self.recorded(key).is_some_and(|record| !record.creating)
    }

    /// What the resource says now or, where the specs no longer name it, what it said when it was last applied.
    pub fn spec(&self, key: &ResourceKey) -> Option<Spec> {
        match self.catalog.resources.get(key) {
            Some(resource) => Some(resource.spec.clone()),
            None => recorded_spec(self.recorded(key)?, key.kind),
        }
    }

    /// The recorded resources that no spec names any more, with what is known of why.
    pub fn absent(&self) -> impl Iterator<Item = (&'a ResourceKey, &'a Absence)> {
        self.catalog.absent.keys().filter_map(|key| Some((key, self.absence(key)?)))
    }

    /// Why no spec names a resource any more; none for one that is named. One that may be missing by mistake is in the
    /// catalog too, so that what refers to it goes on, but what happens to it is a matter of its absence.
    pub fn absence(&self, key: &ResourceKey) -> Option<&'a Absence> {
        let named =
            |resource: &Resource| !matches!(resource.hold, Some(Hold::Absent | Hold::Unreadable { .. }));
        let absence = self.catalog.absent.get(key)?;
        (!self.catalog.resources.get(key).is_some_and(named)).then_some(absence)
    }
}

/// Every resource that should exist, compared with its record.
fn current_of<'a>(world: &World<'a>) -> BTreeMap<&'a ResourceKey, Current> {
    let origins = Origins::of(world);
    let compare = |(key, resource): (&'a ResourceKey, &'a Resource)| {
        let before = world.recorded(key);
        let spec = resource.spec.redacted();
        let made = before.filter(|before| !before.creating);
        let fields = made.map(|made| fields::changes(made, &spec, resource)).unwrap_or_default();
        let made_from = origins.made_from(world, key);
        let record = record::of(world, resource, spec, before, !fields.is_empty(), made_from);
        (key, Current { fields, record })
    };
    world.catalog.resources.iter().map(compare).collect()
}

/// Who has, or had, something on each fleet: by their specs, by their records, and by what lies on the targets.
fn owners<'a>(
    catalog: &'a Catalog,
    recorded: &'a Recorded,
    observed: &'a Observed,
) -> BTreeMap<FleetKey, BTreeSet<&'a ResourceKey>> {
    let mut owners: BTreeMap<FleetKey, BTreeSet<&ResourceKey>> = BTreeMap::new();
    for (key, resource) in &catalog.resources {
        if let Some(fleet) = fleet_of_spec(key, &resource.spec) {
            owners.entry(fleet).or_default().insert(key);
        }
    }
    for key in catalog.absent.keys() {
        if let Some(fleet) = recorded.resources.get(key).and_then(|record| fleet_of_record(key, record)) {
            owners.entry(fleet).or_default().insert(key);
        }
    }
    let inventories = recorded.fleets.iter().map(|(fleet, target)| (fleet, &target.objects));
    let inventories =
        inventories.chain(observed.fleets.iter().map(|(fleet, target)| (fleet, &target.inventory)));
    for (fleet, inventory) in inventories {
        let known = inventory.values().map(|object| &object.owner).filter(|owner| {
            matches!(owner.kind, Kind::Fleet | Kind::Cluster)
                && (catalog.resources.contains_key(*owner) || catalog.absent.contains_key(*owner))
        });
        let known: BTreeSet<&ResourceKey> = known.collect();
        if !known.is_empty() {
            owners.entry(fleet.clone()).or_default().extend(known);
        }
    }
    owners
}

fn fleet_of_spec(key: &ResourceKey, spec: &Spec) -> Option<FleetKey> {
    match spec {
        Spec::Fleet(fleet) => {
            Some(FleetKey { organization: key.organization.clone(), fleet: fleet.identifier.clone() })
        }
        Spec::Cluster(cluster) => {
            Some(FleetKey { organization: key.organization.clone(), fleet: cluster.infrastructure.clone() })
        }
        _ => None,
    }
}

/// The fleet that a recorded fleet is or a recorded cluster is on. The fields that can't change outlive a lost cache,
/// so they are asked first.
pub(super) fn fleet_of_record(key: &ResourceKey, record: &RecordedResource) -> Option<FleetKey> {
    let name = match key.kind {
        Kind::Fleet => Some(key.name.as_str()),
        Kind::Cluster => {
            record.immutable.get("/infrastructure").and_then(|value| value.as_str()).or_else(|| {
                record
                    .last_good
                    .as_ref()
                    .and_then(|good| good.spec.get("infrastructure"))
                    .and_then(|v| v.as_str())
            })
        }
        _ => None,
    };
    Some(FleetKey { organization: key.organization.clone(), fleet: name?.parse().ok()? })
}

/// The spec that a record holds; none when the cache was lost or this version can't read it.
pub(super) fn recorded_spec(record: &RecordedResource, kind: Kind) -> Option<Spec> {
    Spec::from_record(kind, &record.last_good.as_ref()?.spec).ok()
}

/// What identifies an object whatever version of its API it was written in: group, kind, namespace, name.
pub(super) type Identity<'a> = (&'a str, &'a str, Option<&'a str>, &'a str);

/// The identity of an object.
pub(super) fn identity(key: &ObjectKey) -> Identity<'_> {
    (key.group(), &key.kind, key.namespace.as_deref(), &key.name)
}
