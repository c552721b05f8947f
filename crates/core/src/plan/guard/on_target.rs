//! The targets' own memory, which affects deletions.

use crate::catalog::RecordedObject;
use crate::component::PROMETHEUS_NAMESPACE;
use crate::names::{Kind, ObjectKey, ResourceKey};
use crate::plan::model::site::FleetInputs;
use crate::plan::world::PlanContext;
use crate::plan::{ObservedFleet, Waiting};

/// Whether a target remembers protection. The record may be older, as after restoring a backup.
pub(in crate::plan) fn is_protected(
    world: &PlanContext,
    site: Option<&FleetInputs>,
    key: &ResourceKey,
) -> bool {
    let here = site.and_then(|site| site.observed?.marks.get(key));
    here.is_some_and(|mark| mark.protected) || world.protected.contains(key)
}

/// Returns a wait for what only a person may remove from a fleet: objects of no recorded cluster, such as a namespace kept
/// for its disks, and the namespace of Prometheus, which has a disk, too.
pub(in crate::plan) fn leftovers(
    world: &PlanContext,
    site: &FleetInputs,
    key: &ResourceKey,
) -> Option<Waiting> {
    if key.kind != Kind::Fleet || site.fleet.resource() != *key {
        return None;
    }
    let target = site.observed?;
    let is_left = |(object, known): &(&ObjectKey, &RecordedObject)| {
        let has_disk = object.kind == "Namespace" && object.name == PROMETHEUS_NAMESPACE;
        (has_disk || world.recorded(&known.owner).is_none()) && is_there(target, object)
    };
    let mut left = target.inventory.iter().filter(is_left).map(|(object, _)| object);
    let example = left.next()?.clone();
    Some(Waiting::Leftovers { count: u32::try_from(left.count() + 1).unwrap_or(u32::MAX), example })
}

fn is_there(target: &ObservedFleet, object: &ObjectKey) -> bool {
    target.objects.get(object).is_some_and(|found| found.ours)
}
