//! Plans the resources without a fleet. They have no objects and are only recorded.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::{Identifier, ResourceKey};
use crate::plan::compare::diff::Differences;
use crate::plan::world::PlanContext;
use crate::plan::{Change, OrganizationPlan, change, deletion, guard::pause};

/// Returns the plans of all organizations, by name. Resources in `on_fleets` are planned with their fleet.
pub(super) fn plan(world: &PlanContext, on_fleets: &BTreeSet<ResourceKey>) -> Vec<OrganizationPlan> {
    let mut changes: BTreeMap<&Identifier, Vec<Change>> =
        world.catalog.capacity.keys().map(|organization| (organization, Vec::new())).collect();
    for (key, mut change) in changed(world, on_fleets) {
        pause::of_repetition(world, std::slice::from_mut(&mut change));
        pause::of_mode(world, std::slice::from_mut(&mut change));
        changes.entry(&key.organization).or_default().push(change);
    }
    let plan = |(organization, mut changes): (&Identifier, Vec<Change>)| {
        changes.sort_by(|a, b| a.resource.cmp(&b.resource));
        let capacity = world.catalog.capacity.get(organization).copied().unwrap_or_default();
        OrganizationPlan { organization: organization.clone(), capacity, changes }
    };
    changes.into_iter().map(plan).collect()
}

fn changed<'a>(
    world: &'a PlanContext,
    on_fleets: &'a BTreeSet<ResourceKey>,
) -> impl Iterator<Item = (&'a ResourceKey, Change)> {
    // Settled resources are on a fleet, and have no change.
    let named = world.unsettled().map(|(key, _)| key);
    let keys = named.chain(world.absent().map(|(key, _)| key));
    let keys: BTreeSet<&ResourceKey> = keys.collect();
    keys.into_iter()
        .filter(move |key| !on_fleets.contains(*key))
        .filter_map(|key| Some((key, decide(world, key)?)))
}

fn decide(world: &PlanContext, key: &ResourceKey) -> Option<Change> {
    match world.absence(key) {
        Some(absence) => deletion::resource_deletion(world, key, absence, Differences::default(), None),
        None => {
            let resource = world.catalog.resources.get(key)?;
            change::resource_change(world, resource, Differences::default(), None, None)
                .map(|(change, _)| change)
        }
    }
}
