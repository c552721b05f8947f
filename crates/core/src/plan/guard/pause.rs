//! Postponements by what a running process remembers. Each is a wait in the plan.

use crate::catalog::Condition;
use crate::config::Mode;
use crate::names::{FleetKey, ObjectKey, ResourceKey};
use crate::plan::compare::verdict::differences;
use crate::plan::model::{Flapping, Repeated, Retry};
use crate::plan::world::PlanContext;
use crate::plan::{Cause, Change, Step, Verb, Waiting};

impl Step {
    /// Returns the first field that the step changes, as a JSON pointer; `None` unless it changes an object.
    pub fn changed_field(&self) -> Option<String> {
        let (before, after) = (self.before.as_ref()?.value(), self.after.as_ref()?.body.value());
        differences(&before, &after).into_iter().next().map(|difference| difference.pointer)
    }
}

/// Makes the deletion of a resource wait at first, since saving a file may remove it for a moment.
pub(in crate::plan) fn of_absence(world: &PlanContext, key: &ResourceKey) -> Option<Waiting> {
    let until = *world.policy.pauses.absent.get(key)?;
    (until > world.policy.now).then_some(Waiting::Absence { until })
}

pub(in crate::plan) fn of_failure(world: &PlanContext, fleet: &FleetKey, changes: &mut [Change]) {
    let pauses = &world.policy.pauses;
    for change in changes.iter_mut().filter(|change| change.verb != Verb::Keep) {
        let retries = [pauses.failed.get(fleet), pauses.failed_alone.get(&change.resource)];
        let retries = retries.into_iter().flatten().filter(|it| it.until > world.policy.now).cloned();
        let waits = retries.map(|Retry { failed, hint, until }| Waiting::Retry { failed, hint, until });
        change.waiting.extend(waits);
    }
}

pub(in crate::plan) fn is_paused(world: &PlanContext, fleet: &FleetKey) -> bool {
    world.policy.pauses.failed.get(fleet).is_some_and(|retry| retry.until > world.policy.now)
}

/// Makes a change wait if it was just made: repeating it at once would have the same result.
pub(in crate::plan) fn of_repetition(world: &PlanContext, changes: &mut [Change]) {
    let repeated = &world.policy.pauses.repeated;
    for change in changes.iter_mut().filter(|change| change.is_ready()) {
        let before = repeated.get(&change.resource).filter(|before| before.until > world.policy.now);
        if let Some(Repeated { times, until, .. }) =
            before.filter(|before| before.done == change.effect_digest())
        {
            change.waiting.push(Waiting::Repeated { times: *times, until: *until });
        }
    }
}

pub(in crate::plan) fn of_mode(world: &PlanContext, changes: &mut [Change]) {
    if world.policy.mode == Mode::PlanOnly {
        let changes = changes.iter_mut().filter(|change| change.verb != Verb::Keep);
        changes.for_each(|change| change.waiting.push(Waiting::PlanOnly));
    }
}

/// Leaves objects unchanged that another program keeps changing back, and reports them. Other drift is corrected.
pub(in crate::plan) fn of_flapping(
    world: &PlanContext,
    fleet: &FleetKey,
    changes: &mut [Change],
) -> Vec<Condition> {
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
