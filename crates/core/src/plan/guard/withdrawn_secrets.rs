//! Secrets in a folder that the settings no longer allow there.

use crate::names::FleetKey;
use crate::plan::world::PlanContext;
use crate::plan::{Change, Step, Verb};

/// Requires approval if Secrets leave a folder though their cluster stays: a tool that prunes what is no
/// longer in the folder would take them away from running brokers.
pub(in crate::plan) fn tell(world: &PlanContext, fleet: &FleetKey, change: &mut Change) {
    let names: Vec<String> = secrets(world, fleet, change).map(|step| step.object.to_string()).collect();
    if names.is_empty() {
        return;
    }
    change.effects.push(format!(
        "{} removed from the folder, because `secrets.write_to_output` is false. Keep them in Kubernetes first, by \
            other means: the tool that deletes what the folder no longer contains deletes them too, and then brokers \
            can't start",
        match names.as_slice() {
            [name] => format!("{name} is"),
            several => format!("{} have", several.join(", ")),
        }
    ));
    change.guarded = true;
}

pub(in crate::plan) fn leave(world: &PlanContext, fleet: &FleetKey, change: &Change) -> bool {
    secrets(world, fleet, change).next().is_some()
}

fn secrets<'a>(world: &PlanContext, fleet: &FleetKey, change: &'a Change) -> impl Iterator<Item = &'a Step> {
    let kept_out = !world.catalog.config.secrets.write_to_output
        && change.verb != Verb::Delete
        && world.infra_type(fleet).is_some_and(|target| !target.capabilities().holds_secrets);
    let leaves = |step: &&Step| step.verb == Verb::Delete && step.object.kind == "Secret";
    change.steps.iter().filter(move |_| kept_out).filter(leaves)
}
