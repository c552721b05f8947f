//! What targets themselves remember that decides over deletions.

use crate::catalog::RecordedObject;
use crate::names::{Kind, ObjectKey, ResourceKey};
use crate::plan::world::World;
use crate::plan::{ObservedFleet, Waiting};

/// Whether a target remembers that a resource may not be deleted. The record may be older, as after a restored backup.
pub(super) fn is_protected(world: &World, key: &ResourceKey) -> bool {
    world.observed.fleets.values().any(|fleet| fleet.marks.get(key).is_some_and(|mark| mark.protected))
}

/// What of ours a fleet still holds that belongs to no recorded cluster: a namespace that was kept for its disks.
pub(super) fn leftovers(world: &World, key: &ResourceKey) -> Option<Waiting> {
    if key.kind != Kind::Fleet {
        return None;
    }
    let (_, target) = world.observed.fleets.iter().find(|(fleet, _)| fleet.resource() == *key)?;
    let is_left = |(object, known): &(&ObjectKey, &RecordedObject)| {
        world.recorded(&known.owner).is_none() && is_there(target, object)
    };
    let mut left = target.inventory.iter().filter(is_left).map(|(object, _)| object);
    let example = left.next()?.clone();
    Some(Waiting::Leftovers { count: u32::try_from(left.count() + 1).unwrap_or(u32::MAX), example })
}

fn is_there(target: &ObservedFleet, object: &ObjectKey) -> bool {
    target.objects.get(object).is_some_and(|found| found.ours)
}
