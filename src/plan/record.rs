//! What is remembered of a resource once it is as its spec says.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{LastGood, RecordedResource, Resource, Safeguards, immutable_fields};
use crate::names::ResourceKey;
use crate::plan::world::{Current, World};
use crate::plan::{FleetPlan, OrganizationPlan};

/// The record that a resource gets. Its id, its birth and the fields that can't change are kept from the one before.
pub(super) fn of(world: &World, resource: &Resource, current: &Current) -> RecordedResource {
    let (now, before) = (world.policy.now, world.recorded(&resource.key));
    let changed = !current.fields.is_empty();
    // What was first applied stays; a field that an older version didn't know as one of them is added.
    let mut immutable = immutable_fields(resource.key.kind, &current.spec.value());
    immutable.extend(before.into_iter().flat_map(|before| before.immutable.clone()));
    RecordedResource {
        id: world.recorded.id_of(&resource.key),
        created_at: before.map_or(now, |before| before.created_at),
        updated_at: before.filter(|_| !changed).map_or(now, |before| before.updated_at),
        protected: Safeguards::of(&resource.spec).protected,
        immutable,
        last_good: Some(LastGood { spec: current.spec.clone(), origin: resource.origin.clone() }),
        path: Some(resource.origin.path.clone()),
        suspended: resource.safeguards.suspended,
        secrets: resource
            .secrets
            .iter()
            .map(|(field, secret)| (field.clone(), secret.mark.clone()))
            .collect(),
        made_from: world.made_from(&resource.key),
        creating: false,
        deleting: false,
    }
}

/// The records that are out of date though nothing visible changes: the cache was lost, a document moved in its file, or
/// a document that waits asks not to be deleted.
pub(super) fn stale(
    world: &World,
    organizations: &[OrganizationPlan],
    fleets: &[FleetPlan],
) -> BTreeMap<ResourceKey, RecordedResource> {
    let shown = organizations.iter().flat_map(|plan| &plan.changes);
    let shown: BTreeSet<&ResourceKey> =
        shown.chain(fleets.iter().flat_map(|plan| &plan.changes)).map(|change| &change.resource).collect();
    let record = |resource: &Resource| {
        if resource.hold.is_none() && !shown.contains(&resource.key) {
            return world.current.get(&resource.key).map(|current| of(world, resource, current));
        }
        Some(safeguarded(world.recorded(&resource.key)?, resource.safeguards))
    };
    let resources = world.catalog.resources.values();
    let stale = resources.filter_map(|resource| Some((resource.key.clone(), record(resource)?)));
    stale.filter(|(key, record)| world.recorded(key) != Some(record)).collect()
}

/// A record with what guards against deletion turned on, which can't wait. It is turned off when all of the document is
/// applied.
fn safeguarded(before: &RecordedResource, safeguards: Safeguards) -> RecordedResource {
    RecordedResource {
        protected: before.protected || safeguards.protected,
        suspended: before.suspended || safeguards.suspended,
        ..before.clone()
    }
}
