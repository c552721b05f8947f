//! What a running process puts off by what it remembers: it is in the plan like everything else that waits.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::catalog::Condition;
use crate::config::Mode;
use crate::names::{Digest, FleetKey, ObjectKey, ResourceKey};
use crate::plan::verdict::differences;
use crate::plan::world::World;
use crate::plan::{Cause, Change, Step, Verb, Waiting};

/// What is put off. A process that plans once remembers nothing and puts nothing off.
#[derive(Debug, Clone, Default)]
pub struct Pauses {
    /// The resources that went missing from the specs, each until when that has to last before it counts.
    pub absent: BTreeMap<ResourceKey, Timestamp>,
    /// The objects that somebody else keeps changing back.
    pub flapping: BTreeMap<(FleetKey, ObjectKey), Flapping>,
    /// The fleets on which something failed.
    pub failed: BTreeMap<FleetKey, Retry>,
    /// The resources that were changed and are not as they should be all the same.
    pub repeated: BTreeMap<ResourceKey, Repeated>,
    /// How many clusters fleets lost within the hour by the time that passed, whatever the clock was set to meanwhile.
    pub lost: BTreeMap<FleetKey, u32>,
}

/// Somebody else keeps changing an object back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flapping {
    /// Who, where that is known.
    pub by: Option<String>,
    /// One of the fields, as a JSON pointer.
    pub field: String,
    /// Until when it is left as it is.
    pub until: Timestamp,
}

/// When a fleet on which something failed is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// What failed.
    pub failed: String,
    /// When it is tried again.
    pub until: Timestamp,
}

/// When the same is done to a resource again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated {
    /// What was done ([`Change::done`]).
    pub done: Digest,
    /// How often.
    pub times: u32,
    /// When it may be done again.
    pub until: Timestamp,
}

impl Step {
    /// The first field that the step changes, as a JSON pointer; none where it makes or deletes the object.
    pub fn changed_field(&self) -> Option<String> {
        let (before, after) = (self.before.as_ref()?.value(), self.after.as_ref()?.body.value());
        differences(&before, &after).into_iter().next().map(|difference| difference.pointer)
    }
}

/// Lets a resource wait that is missing for a moment only, as far as anybody knows: whoever saves a file may remove it
/// first.
pub(super) fn of_absence(world: &World, key: &ResourceKey) -> Option<Waiting> {
    let until = *world.policy.pauses.absent.get(key)?;
    (until > world.policy.now).then_some(Waiting::Absence { until })
}

/// Lets everything wait that would be done on a fleet on which something failed a moment ago.
pub(super) fn of_failure(world: &World, fleet: &FleetKey, changes: &mut [Change]) {
    let retry = world.policy.pauses.failed.get(fleet).filter(|retry| retry.until > world.policy.now);
    let Some(Retry { failed, until }) = retry else { return };
    for change in changes.iter_mut().filter(|change| change.verb != Verb::Keep) {
        change.waiting.push(Waiting::Retry { failed: failed.clone(), until: *until });
    }
}

/// Whether something failed on a fleet a moment ago.
pub(super) fn is_paused(world: &World, fleet: &FleetKey) -> bool {
    world.policy.pauses.failed.get(fleet).is_some_and(|retry| retry.until > world.policy.now)
}

/// Lets wait what was done just like this a moment ago: to do it at once again would only bring the same about. Everything else
/// goes on.
pub(super) fn of_repetition(world: &World, changes: &mut [Change]) {
    let repeated = &world.policy.pauses.repeated;
    for change in changes.iter_mut().filter(|change| change.is_ready()) {
        let before = repeated.get(&change.resource).filter(|before| before.until > world.policy.now);
        if let Some(Repeated { times, until, .. }) = before.filter(|before| before.done == change.done()) {
            change.waiting.push(Waiting::Repeated { times: *times, until: *until });
        }
    }
}

/// Lets everything wait where the settings want nothing to be changed.
pub(super) fn of_mode(world: &World, changes: &mut [Change]) {
    if world.policy.mode == Mode::PlanOnly {
        let changes = changes.iter_mut().filter(|change| change.verb != Verb::Keep);
        changes.for_each(|change| change.waiting.push(Waiting::PlanOnly));
    }
}

/// Leaves objects as they are that somebody else keeps changing back, and says so of the fleet. What else drifted is
/// corrected first.
pub(super) fn of_flapping(world: &World, fleet: &FleetKey, changes: &mut [Change]) -> Vec<Condition> {
    let is_left = |step: &Step| {
        let flapping = world.policy.pauses.flapping.get(&(fleet.clone(), step.object.clone()))?;
        (flapping.until > world.policy.now).then_some((step.object.clone(), flapping.clone()))
    };
    let mut conditions = Vec::new();
    let drifted = changes.iter_mut().filter(|change| matches!(change.cause, Cause::Drift { .. }));
    for change in drifted {
        let flapping: Vec<(ObjectKey, Flapping)> = change.steps.iter().filter_map(is_left).collect();
        let waits = flapping.into_iter().map(|(object, Flapping { by, field, until })| Waiting::Flapping {
            object,
            by,
            field,
            until,
        });
        let waits: Vec<Waiting> = waits.collect();
        let message = |wait: &Waiting| format!("{}: {wait}", change.resource);
        conditions.extend(waits.iter().map(|wait| Condition {
            kind: "Flapping".to_owned(),
            degraded: true,
            message: message(wait),
        }));
        if waits.len() == change.steps.len() {
            change.waiting.extend(waits);
        } else {
            change.steps.retain(|step| is_left(step).is_none());
        }
    }
    conditions
}
