//! In which order a fleet's steps are taken.

use crate::plan::{Change, FleetPlan, Step, Verb};
use crate::render::Stage;

/// Sorts by when a step is taken: what is made and changed stage by stage, then what is deleted, the other way round.
fn position(step: &Step) -> (bool, u8, &crate::names::ObjectKey) {
    let stage = match step.stage {
        Stage::Namespace => 0,
        Stage::Configuration => 1,
        Stage::Operator => 2,
        Stage::Custom => 3,
    };
    let deletes = step.verb == Verb::Delete;
    (deletes, if deletes { 3 - stage } else { stage }, &step.object)
}

/// Puts one resource's steps in the order in which they are taken.
pub(super) fn sort(steps: &mut [Step]) {
    steps.sort_by(|a, b| position(a).cmp(&position(b)));
}

impl FleetPlan {
    /// The steps of everything that doesn't wait, in the order in which they are taken: namespaces, configuration,
    /// operators, what operators act on; then deletions, the other way round.
    pub fn ordered_steps(&self) -> impl Iterator<Item = (&Change, &Step)> {
        let ready = self.changes.iter().filter(|change| change.waiting.is_empty());
        let mut steps: Vec<_> =
            ready.flat_map(|change| change.steps.iter().map(move |step| (change, step))).collect();
        steps.sort_by(|(_, a), (_, b)| position(a).cmp(&position(b)));
        steps.into_iter()
    }
}
