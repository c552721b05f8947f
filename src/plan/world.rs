//! Everything that planning looks at, with what more than one part of it needs worked out once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::catalog::{Absence, Catalog, Hold, MadeFrom, Recorded, RecordedResource, Resource, Written};
use crate::names::{FleetKey, Json, Kind, ObjectKey, ResourceKey};
use crate::parallel;
use crate::plan::made_from::Origins;
use crate::plan::{FieldChange, Policy, fields};
use crate::spec::Spec;

/// What planning looks at whatever the fleet, and what follows from it for every resource.
pub(super) struct World<'a> {
    pub catalog: &'a Catalog,
    pub recorded: &'a Recorded,
    pub policy: &'a Policy,
    /// What targets themselves remember as protected. The record may be older, as after a restored backup.
    pub protected: BTreeSet<ResourceKey>,
    /// Every resource that should exist, compared with its record.
    pub current: BTreeMap<&'a ResourceKey, Current>,
    /// Who has something on each fleet by its spec, or had by its record. Fleets and clusters only.
    pub owners: BTreeMap<FleetKey, BTreeSet<&'a ResourceKey>>,
    origins: Origins<'a>,
}

/// A resource that should exist, compared with its record.
pub(super) struct Current {
    /// What of its spec changed since it was made; empty while it is still being made.
    pub fields: Vec<FieldChange>,
    /// Its spec as a record has it.
    pub spec: Json,
    /// What it says in the fields that can't change.
    pub immutable: Arc<BTreeMap<String, Value>>,
}

impl<'a> World<'a> {
    pub fn new(
        catalog: &'a Catalog,
        recorded: &'a Recorded,
        protected: BTreeSet<ResourceKey>,
        policy: &'a Policy,
    ) -> Self {
        let resources: Vec<&Resource> = catalog.resources.values().collect();
        let current = parallel::map(&resources, |resource| (&resource.key, compare(resource, recorded)));
        let current = current.into_iter().collect();
        let (owners, origins) = (owners(catalog, recorded), Origins::of(catalog));
        Self { catalog, recorded, policy, protected, current, owners, origins }
    }

    /// The same, with what is on one fleet alone, or with one resource of it.
    pub fn of_fleet(
        catalog: &'a Catalog,
        recorded: &'a Recorded,
        policy: &'a Policy,
        (fleet, only): (&FleetKey, Option<&'a ResourceKey>),
    ) -> Self {
        let owners = match only {
            Some(key) => BTreeMap::from([(fleet.clone(), BTreeSet::from([key]))]),
            None => {
                let mut owners = owners(catalog, recorded);
                owners.retain(|key, _| key == fleet);
                owners
            }
        };
        let there = owners.values().flatten().filter_map(|key| catalog.resources.get(*key));
        let current = there.map(|resource| (&resource.key, compare(resource, recorded))).collect();
        let (protected, origins) = (BTreeSet::new(), Origins::of(catalog));
        Self { catalog, recorded, policy, protected, current, owners, origins }
    }

    /// What the objects of a resource follow from beside its own spec, as it is now.
    pub fn made_from(&self, key: &ResourceKey) -> Option<MadeFrom> {
        self.origins.made_from(self, key)
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

/// What of a resource's spec changed since it was made; nothing while it is still being made.
pub(super) fn fields(resource: &Resource, recorded: &Recorded) -> Vec<FieldChange> {
    compare(resource, recorded).fields
}

fn compare(resource: &Resource, recorded: &Recorded) -> Current {
    let before = recorded.resources.get(&resource.key);
    let Written { spec, immutable } = Written::of(&resource.key, &resource.spec, before);
    let made = before.filter(|before| !before.creating);
    let fields = made.map(|made| fields::changes(made, &spec, resource)).unwrap_or_default();
    Current { fields, spec, immutable }
}

/// Who has, or had, something on each fleet, by their specs and by their records.
fn owners<'a>(catalog: &'a Catalog, recorded: &'a Recorded) -> BTreeMap<FleetKey, BTreeSet<&'a ResourceKey>> {
    let mut owners: BTreeMap<FleetKey, BTreeSet<&ResourceKey>> = BTreeMap::new();
    for (key, resource) in &catalog.resources {
        if let Some(fleet) = resource.fleet() {
            owners.entry(fleet).or_default().insert(key);
        }
    }
    for key in catalog.absent.keys() {
        if let Some(fleet) = recorded.resources.get(key).and_then(|record| record.fleet(key)) {
            owners.entry(fleet).or_default().insert(key);
        }
    }
    owners
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
