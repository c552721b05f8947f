//! What will be done and what waits, decided here and only here: the executor obeys.

mod cause;
mod change;
mod deletion;
mod diff;
mod display;
mod disruption;
mod effects;
mod fields;
mod fleet;
mod guard;
mod inputs;
mod json;
mod made_from;
mod model;
mod observed;
mod on_target;
mod order;
mod organization;
mod record;
mod refusal;
mod summary;
#[cfg(test)]
mod tests;
mod verdict;
mod waiting;
mod world;

use crate::catalog::{Catalog, Recorded};
use crate::names::Digest;
use crate::render::{Desired, Manifest};

pub use display::{Reader, display};
pub use json::{InvalidPlan, schema};
pub use model::{
    Cause, Change, FORMAT, FieldChange, FleetPlan, Guard, Inputs, OrganizationPlan, Plan, Policy, Step,
    Summary, Verb, Verdict, Waiting,
};
pub use observed::{Observed, ObservedFleet, ObservedObject, Reach, ResourceMark};

/// Compares what should be with what was recorded and what is there, and decides everything that will be done.
///
/// Pure and total: the same arguments give the same plan, to the byte, and every mistake becomes a problem or a
/// [`Waiting`] in it.
pub fn plan(
    catalog: &Catalog,
    desired: &Desired,
    recorded: &Recorded,
    observed: &Observed,
    policy: &Policy,
) -> Plan {
    let world = world::World::new(catalog, desired, recorded, observed, policy);
    let mut problems = catalog.problems.clone();
    let mut fleets = Vec::new();
    for key in world.fleets() {
        let (fleet, refusals) = fleet::plan(&world, &key);
        fleets.extend(fleet);
        problems.extend(refusals);
    }
    let organizations = organization::plan(&world);
    let remember = record::stale(&world, &organizations, &fleets);
    let summary = summary::of(&world, &organizations, &fleets, &problems);
    let inputs = inputs::of(&world);
    let mut plan = Plan {
        format: FORMAT,
        id: String::new(),
        created_at: policy.now,
        inputs,
        organizations,
        fleets,
        remember,
        problems,
        summary,
    };
    plan.id = inputs::id(&plan);
    plan
}

/// The digest by which a manifest is known again: that of its body, with secrets as slots.
pub fn manifest_digest(manifest: &Manifest) -> Digest {
    Digest::of_json(&manifest.body)
}
