//! In which order a fleet's steps are taken.

use crate::plan::{Change, FleetPlan, Step, Verb};
use crate::render::Stage;

/// The steps of everything that doesn't wait: what is made and changed stage by stage, then what is deleted, the other way
/// round.
pub(super) fn ordered_steps(fleet: &FleetPlan) -> Vec<(&Change, &Step)> {
    let ready = fleet.changes.iter().filter(|change| is_ready(change));
    let mut steps: Vec<_> =
        ready.flat_map(|change| change.steps.iter().map(move |step| (change, step))).collect();
    steps.sort_by_key(|(_, step)| position(step));
    steps
}

/// Whether anything of a change is done.
pub(super) fn is_ready(change: &Change) -> bool {
    change.waiting.is_empty() && change.verb != Verb::Keep
}

fn position(step: &Step) -> (bool, u8) {
    let stage = match step.stage {
        Stage::Namespace => 0,
        Stage::Configuration => 1,
        Stage::Operator => 2,
        Stage::Custom => 3,
    };
    let deletes = step.verb == Verb::Delete;
    (deletes, if deletes { 3 - stage } else { stage })
}
