use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{
    Absence, CachedRecord, DurableRecord, Hold, LastGood, RecordedResource, Resource, SecretMark,
};
use crate::names::ResourceKey;
use crate::plan::compare::cause::made_from;
use crate::plan::world::{PlanContext, SpecDiff};
use crate::plan::{FleetPlan, OrganizationPlan};
use crate::spec::Safeguards;

/// Returns the new record, with the id, the time of creation and the immutable fields of the one before.
pub(super) fn of(world: &PlanContext, resource: &Resource, current: &SpecDiff) -> RecordedResource {
    let (now, before) = (world.policy.now, world.recorded(&resource.key));
    let changed = !current.fields.is_empty();
    // The time was reported when it was created, so later reads must return the same one.
    let announced = world.policy.announced.get(&resource.key).copied().unwrap_or_default();
    let born = announced.made.unwrap_or(now);
    let changed_at = match before {
        Some(before) if !changed => before.cached.updated_at,
        Some(_) => now,
        None => born,
    };
    // A write that didn't change the document is no update.
    let is_as_before = || before.is_some_and(|before| is_current(world, resource, current, before));
    let told = announced.changed.filter(|_| !is_as_before());
    // The values applied first stay. A field that became immutable in a later version is added.
    let mut immutable = BTreeMap::clone(&current.now.immutable);
    immutable.extend(before.into_iter().flat_map(|before| before.durable.immutable.clone()));
    RecordedResource {
        durable: DurableRecord {
            id: world.recorded.id_of(&resource.key),
            created_at: before.map_or(born, |before| before.durable.created_at),
            protected: Safeguards::of(&resource.spec).protected,
            immutable,
            path: Some(resource.origin.path.clone()),
            suspended: resource.safeguards.suspended,
            creating: false,
            deleting: false,
            suspicion: None,
        },
        cached: CachedRecord {
            updated_at: told.unwrap_or(changed_at),
            last_good: Some(LastGood::new(current.now.spec.clone(), resource.origin.clone())),
            secrets: secret_marks(resource).map(|(field, mark)| (field.clone(), mark.clone())).collect(),
            made_from: made_from(world, &resource.key),
        },
    }
}

fn secret_marks(resource: &Resource) -> impl Iterator<Item = (&String, &SecretMark)> {
    resource.secrets.iter().map(|(field, secret)| (field, &secret.mark))
}

/// Whether a record equals the result of [`of`] but for its times, without building one: nearly all records
/// do. [`stale`] checks this in debug builds.
fn is_current(
    world: &PlanContext,
    resource: &Resource,
    current: &SpecDiff,
    before: &RecordedResource,
) -> bool {
    let RecordedResource { durable, cached } = before;
    let is_good = |good: &LastGood| *good.spec() == current.now.spec && good.origin == resource.origin;
    current.fields.is_empty()
        && !(durable.creating || durable.deleting)
        && durable.suspicion.is_none()
        && durable.protected == Safeguards::of(&resource.spec).protected
        && durable.suspended == resource.safeguards.suspended
        && durable.path.as_ref() == Some(&resource.origin.path)
        && cached.last_good.as_ref().is_some_and(is_good)
        && current.now.immutable.keys().all(|pointer| durable.immutable.contains_key(pointer))
        && cached.secrets.iter().eq(secret_marks(resource))
        && cached.made_from == made_from(world, &resource.key)
}

/// Returns the records that are out of date though nothing visible changes: the cache was lost, a document
/// moved, the document of a waiting change turned on protection, or one may be missing by mistake.
pub(super) fn stale(
    world: &PlanContext,
    organizations: &[OrganizationPlan],
    fleets: &[FleetPlan],
) -> BTreeMap<ResourceKey, RecordedResource> {
    let shown = organizations.iter().flat_map(|plan| &plan.changes);
    let shown: BTreeSet<&ResourceKey> =
        shown.chain(fleets.iter().flat_map(|plan| &plan.changes)).map(|change| &change.resource).collect();
    let record = |resource: &Resource| {
        if resource.hold.is_none() && !shown.contains(&resource.key) {
            let current = world.current(&resource.key)?;
            let before = world.recorded(&resource.key);
            let is_current = before.is_some_and(|before| is_current(world, resource, current, before));
            debug_assert_eq!(is_current, before == Some(&of(world, resource, current)), "{}", resource.key);
            return (!is_current).then(|| of(world, resource, current));
        }
        Some(waiting(world.recorded(&resource.key)?, resource))
    };
    // Settled resources were compared before.
    let named = world.unsettled().filter(|(key, _)| world.absence(key).is_none());
    let named = named.filter_map(|(key, resource)| Some((key.clone(), record(resource)?)));
    let missing =
        world.absent().filter_map(|(key, absence)| Some((key.clone(), suspected(world, key, absence)?)));
    let stale = named.chain(missing);
    stale.filter(|(key, record)| world.recorded(key) != Some(record)).collect()
}

/// Returns the record of a resource that waits: with the current position of its document, and with
/// protection and suspension turned on at once. They are turned off only when the whole document is applied.
fn waiting(before: &RecordedResource, resource: &Resource) -> RecordedResource {
    // The resource is named, so decisions about its absence are void. An earlier suspicion stays only if its
    // document is invalid, since that may yet turn out to be another resource.
    let invalid = matches!(resource.hold, Some(Hold::Invalid { .. }));
    let durable = DurableRecord {
        protected: before.durable.protected || resource.safeguards.protected,
        suspended: before.durable.suspended || resource.safeguards.suspended,
        path: resource.current_file.clone().or_else(|| before.durable.path.clone()),
        suspicion: before.durable.suspicion.clone().filter(|_| invalid),
        deleting: false,
        ..before.durable.clone()
    };
    RecordedResource { durable, ..before.clone() }
}

/// Records why a resource may be missing by mistake, since later rounds may no longer see the reason.
/// Resources without a fleet lose nothing, and their deletion can't be approved.
fn suspected(world: &PlanContext, key: &ResourceKey, absence: &Absence) -> Option<RecordedResource> {
    let before = world.recorded(key).filter(|_| key.kind.is_on_fleet())?;
    let why = match absence {
        Absence::Suspicious { why } => why.clone(),
        Absence::Renamed { to } => format!("{to}, which isn't applied yet, may be its new name"),
        Absence::Unknown { unreadable } => format!("{unreadable}, which can't be read, may contain it"),
        Absence::Removed => return None,
    };
    // The first reason is kept: later ones are consequences of it or of what was done about it.
    let suspicion = before.durable.suspicion.clone().or(Some(why));
    let durable = DurableRecord { suspicion, ..before.durable.clone() };
    Some(RecordedResource { durable, ..before.clone() })
}
