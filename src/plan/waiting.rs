//! What keeps a change from being done now.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::names::SecretRef;
use crate::plan::world::World;
use crate::plan::{Change, Reach, Step, Verb, Waiting};
use crate::render::SecretSlot;

/// The secrets that the steps would write and that can't be opened here.
pub(super) fn for_secrets(world: &World, steps: &[Step]) -> Vec<Waiting> {
    let mut needed = BTreeSet::new();
    for manifest in steps.iter().filter_map(|step| step.after.as_ref()) {
        slots(&manifest.body, &mut needed);
    }
    let missing = |reference: &SecretRef| {
        let resource = world.catalog.resources.get(&reference.resource)?;
        resource.secrets.get(&reference.field)?.unavailable.clone()
    };
    let named = |reference: &SecretRef| format!("`{}` of {}", reference.field, reference.resource);
    let waits = needed.iter().filter_map(|reference| {
        Some(Waiting::SecretUnavailable { secret: named(reference), reason: missing(reference)? })
    });
    waits.collect()
}

/// Every secret that stands in a manifest.
fn slots(value: &Value, found: &mut BTreeSet<SecretRef>) {
    if let Some(slot) = SecretSlot::from_value(value) {
        found.insert(slot.reference);
        return;
    }
    match value {
        Value::Object(object) => object.values().for_each(|value| slots(value, found)),
        Value::Array(list) => list.iter().for_each(|value| slots(value, found)),
        _ => {}
    }
}

/// Makes everything that would be done wait where the target can't be reached.
pub(super) fn for_target(reach: &Reach, changes: &mut [Change]) {
    if let Reach::Unreachable { reason, .. } = reach {
        for change in changes.iter_mut().filter(|change| change.verb != Verb::Keep) {
            change.waiting.push(Waiting::Unreachable { reason: reason.clone() });
        }
    }
}
