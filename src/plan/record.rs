//! What is remembered of a resource once it is as its spec says.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use crate::catalog::{LastGood, Recorded, RecordedResource, Resource, immutable_fields};
use crate::names::ResourceKey;
use crate::plan::cause::references;
use crate::plan::world::World;
use crate::plan::{Change, FleetPlan, OrganizationPlan, Verb};
use crate::spec::Spec;

/// The record that a resource gets. Its id, its birth and the fields that can't change are kept from the one before.
pub(super) fn of(
    resource: &Resource,
    spec: Value,
    before: Option<&RecordedResource>,
    changed: bool,
    recorded: &Recorded,
    now: Timestamp,
) -> RecordedResource {
    let immutable = match before {
        Some(before) if !before.immutable.is_empty() => before.immutable.clone(),
        _ => immutable_fields(&resource.spec),
    };
    RecordedResource {
        id: recorded.id_of(&resource.key),
        created_at: before.map_or(now, |before| before.created_at),
        updated_at: before.filter(|_| !changed).map_or(now, |before| before.updated_at),
        protected: protection(&resource.spec),
        immutable,
        last_good: Some(LastGood { spec, origin: resource.origin.clone() }),
        secrets: resource
            .secrets
            .iter()
            .map(|(field, secret)| (field.clone(), secret.mark.clone()))
            .collect(),
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

/// Keeps the old spec and secrets in the record of what others refer to, as long as one of those others waits.
///
/// Otherwise the next round would find the reference unchanged, and take what still has to be done for the work of a
/// new version of this software, which needs approval.
pub(super) fn hold_back(world: &World, organizations: &mut [OrganizationPlan], fleets: &mut [FleetPlan]) {
    let waiting = fleets.iter().flat_map(|plan| &plan.changes).filter(|change| !change.waiting.is_empty());
    let waiting = waiting.filter(|change| !change.steps.is_empty() && change.verb != Verb::Delete);
    let needed: BTreeSet<ResourceKey> =
        waiting.flat_map(|change| references(world, &change.resource)).collect();
    let organizations = organizations.iter_mut().flat_map(|plan| &mut plan.changes);
    for change in organizations.chain(fleets.iter_mut().flat_map(|plan| &mut plan.changes)) {
        if needed.contains(&change.resource) {
            keep_old(change, world.recorded(&change.resource));
        }
    }
}

fn keep_old(change: &mut Change, before: Option<&RecordedResource>) {
    if let (Some(record), Some(before)) = (&mut change.record, before) {
        record.last_good = before.last_good.clone();
        record.secrets = before.secrets.clone();
    }
}
