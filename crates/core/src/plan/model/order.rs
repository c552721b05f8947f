use crate::plan::{Change, FleetPlan, Step, Verb};
use crate::render::Stage;

/// Returns the sort key of a step: creations and changes stage by stage, then deletions in reverse order.
fn position(step: &Step) -> (bool, u8, &crate::names::ObjectKey) {
    let stage = match step.stage {
        Stage::Namespace => 0,
        Stage::Configuration => 1,
        Stage::Operator => 2,
        Stage::Custom => 3,
        Stage::Name => 4,
    };
    let deletes = step.verb == Verb::Delete;
    (deletes, if deletes { 4 - stage } else { stage }, &step.object)
}

pub(in crate::plan) fn sort(steps: &mut [Step]) {
    steps.sort_by(|a, b| position(a).cmp(&position(b)));
}

impl FleetPlan {
    /// Returns the steps of all changes that don't wait, in the order in which they run: namespaces,
    /// configuration, operators, the operators' custom resources; then deletions in reverse order.
    pub fn ordered_steps(&self) -> impl Iterator<Item = (&Change, &Step)> {
        let ready = self.changes.iter().filter(|change| change.waiting.is_empty());
        let mut steps: Vec<_> =
            ready.flat_map(|change| change.steps.iter().map(move |step| (change, step))).collect();
        steps.sort_by(|(_, a), (_, b)| position(a).cmp(&position(b)));
        steps.into_iter()
    }
}
