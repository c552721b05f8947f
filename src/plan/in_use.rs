//! A fleet's Gateway outlives what asks for it until no cluster is reached through it any more: clusters change how they are
//! reached one at a time, and one whose document is gone still runs until its deletion is approved.

use std::collections::BTreeSet;

use crate::names::{Json, Kind, ObjectKey, ResourceKey};
use crate::plan::diff::Differences;
use crate::plan::site::Site;
use crate::plan::{Verb, Waiting};
use crate::render::is_routed;

/// Takes the deletion of a Gateway out of what is to be done for a fleet as long as something needs it, and gives what it
/// waits for.
pub(super) fn keep(site: &Site, owner: &ResourceKey, differences: &mut Differences) -> Option<Waiting> {
    let is_deletion = |step: &crate::plan::Step| step.verb == Verb::Delete && step.object.kind == "Gateway";
    let found = differences.found.iter().find(|found| is_deletion(&found.step));
    let object = found.filter(|_| owner.kind == Kind::Fleet)?.step.object.clone();
    let users = users(site);
    let example = (*users.first()?).clone();
    differences.found.retain(|found| !is_deletion(&found.step));
    Some(Waiting::InUse { object, count: u32::try_from(users.len()).unwrap_or(u32::MAX), example })
}

/// The clusters that are reached through a Gateway as they stand, or that nobody knows of how they are reached.
fn users<'a>(site: &Site<'a>) -> BTreeSet<&'a ResourceKey> {
    let observed = site.observed;
    let stands =
        move |key: &ObjectKey| observed?.objects.get(key).filter(|live| live.ours)?.manifest.as_ref();
    let recorded = site.recorded.into_iter().flat_map(|recorded| &recorded.objects);
    let inventory = observed.into_iter().flat_map(|observed| &observed.inventory);
    let kafkas = recorded.chain(inventory).filter(|(key, _)| key.kind == "Kafka");
    let used = kafkas.filter(|(key, known)| {
        let body: Option<&Json> = stands(key).or(known.manifest.as_ref());
        body.is_none_or(is_routed)
    });
    used.map(|(_, known)| &known.owner).collect()
}
