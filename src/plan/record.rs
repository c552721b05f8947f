//! What is remembered of a resource once it is as its spec says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::catalog::{LastGood, MadeFrom, RecordedResource, Resource, immutable_fields};
use crate::names::ResourceKey;
use crate::plan::world::World;
use crate::plan::{FleetPlan, OrganizationPlan};
use crate::spec::Spec;

/// The record that a resource gets. Its id, its birth and the fields that can't change are kept from the one before.
pub(super) fn of(
    world: &World,
    resource: &Resource,
    spec: Value,
    before: Option<&RecordedResource>,
    changed: bool,
    made_from: Option<MadeFrom>,
) -> RecordedResource {
    let now = world.policy.now;
    let immutable = match before {
        Some(before) if !before.immutable.is_empty() => before.immutable.clone(),
        _ => immutable_fields(&resource.spec),
    };
    RecordedResource {
        id: world.recorded.id_of(&resource.key),
        created_at: before.map_or(now, |before| before.created_at),
        updated_at: before.filter(|_| !changed).map_or(now, |before| before.updated_at),
        protected: protection(&resource.spec),
        immutable,
        last_good: Some(LastGood { spec, origin: resource.origin.clone() }),
        path: Some(resource.origin.path.clone()),
        suspended: false,
        secrets: resource
            .secrets
            .iter()
            .map(|(field, secret)| (field.clone(), secret.mark.clone()))
            .collect(),
        made_from,
        creating: false,
        deleting: false,
    }
}

/// Whether a spec protects its resource from deletion. Only fleets and clusters can say so.
fn protection(spec: &Spec) -> bool {
    match spec {
        Spec::Fleet(fleet) => fleet.deletion_protection,
        Spec::Cluster(cluster) => cluster.deletion_protection,
        _ => false,
    }
}

/// The records that are out of date though nothing visible changes: the cache was lost, a document moved in its file.
pub(super) fn stale(
    world: &World,
    organizations: &[OrganizationPlan],
    fleets: &[FleetPlan],
) -> BTreeMap<ResourceKey, RecordedResource> {
    let shown = organizations.iter().flat_map(|plan| &plan.changes);
    let shown: BTreeSet<&ResourceKey> =
        shown.chain(fleets.iter().flat_map(|plan| &plan.changes)).map(|change| &change.resource).collect();
    let steady = world.catalog.resources.values().filter(|resource| resource.hold.is_none());
    let steady = steady.filter(|resource| !shown.contains(&resource.key));
    let record = |resource: &Resource| world.current.get(&resource.key).map(|now| now.record.clone());
    let stale = steady.filter_map(|resource| Some((resource.key.clone(), record(resource)?)));
    stale.filter(|(key, record)| world.recorded(key) != Some(record)).collect()
}
