//! What happens to one resource that should exist.

use crate::catalog::{Hold, Resource};
use crate::names::ResourceKey;
use crate::plan::diff::{Differences, Found};
use crate::plan::verdict::{Judgement, Refusal, judge};
use crate::plan::world::{Current, World};
use crate::plan::{
    Cause, Change, Step, Verb, Verdict, Waiting, cause, effects, order, record, refusal, waiting,
};
use crate::problem::Origin;

/// A change with what of it is refused.
pub(super) type Decided = (Change, Vec<Refusal>);

/// What happens to a resource that should exist; none where it is as its spec says.
pub(super) fn of(world: &World, resource: &Resource, differences: Differences) -> Option<Decided> {
    let current = world.current.get(&resource.key)?;
    match &resource.hold {
        Some(hold) => Some((held(world, resource, current, hold), Vec::new())),
        None => wanted(world, resource, current, differences),
    }
}

/// A resource that is left as it is, and why.
fn held(world: &World, resource: &Resource, current: &Current, hold: &Hold) -> Change {
    Change {
        fields: current.fields.clone(),
        waiting: vec![Waiting::Held(hold.clone())],
        record: world.recorded(&resource.key).cloned(),
        ..mention(&resource.key, Some(origin(world, resource, current)))
    }
}

/// A resource that stays as it is and is only mentioned. Whoever mentions it says what it waits for.
pub(super) fn mention(key: &ResourceKey, origin: Option<Origin>) -> Change {
    Change {
        resource: key.clone(),
        verb: Verb::Keep,
        origin,
        cause: Cause::Spec,
        fields: Vec::new(),
        verdict: Verdict::NoOp,
        effects: Vec::new(),
        waiting: Vec::new(),
        guarded: false,
        steps: Vec::new(),
        record: None,
    }
}

fn wanted(
    world: &World,
    resource: &Resource,
    current: &Current,
    differences: Differences,
) -> Option<Decided> {
    let Differences { found, foreign } = differences;
    let differs = !found.is_empty() || !current.fields.is_empty();
    let verb = match world.is_made(&resource.key) {
        false => Verb::Create,
        true if differs => Verb::Update,
        true if !foreign.is_empty() => Verb::Keep,
        true => return None,
    };
    let cause = cause::of(world, &resource.key, &found);
    let judgement = judge(found.iter().filter(|found| found.there).map(|found| &found.step));
    let effects = sentences(&judgement, &cause, verb, &found);
    let verdict = judgement.verdict.unwrap_or(Verdict::NoOp);
    let steps = steps(found);
    let mut waits: Vec<Waiting> =
        foreign.into_iter().map(|object| Waiting::ForeignObject { object }).collect();
    waits.extend(judgement.refusals.iter().map(|refusal| Waiting::Refused { why: refusal.why.clone() }));
    waits.extend(waiting::for_secrets(world, &steps));
    let change = Change {
        verb,
        guarded: needs_a_person(&cause, verdict),
        cause,
        fields: current.fields.clone(),
        verdict,
        effects,
        waiting: waits,
        steps,
        record: Some(record::of(world, resource, current)),
        ..mention(&resource.key, Some(origin(world, resource, current)))
    };
    Some((change, judgement.refusals))
}

/// A new version of this software disrupts nothing by itself.
fn needs_a_person(cause: &Cause, verdict: Verdict) -> bool {
    let disrupts = matches!(verdict, Verdict::RollingRestart | Verdict::ServiceLoss | Verdict::DataLoss);
    disrupts && matches!(cause, Cause::Software { .. })
}

fn sentences(judgement: &Judgement, cause: &Cause, verb: Verb, found: &[Found]) -> Vec<String> {
    let steps = || found.iter().map(|found| &found.step);
    let made = (verb == Verb::Create).then(|| effects::created(steps())).flatten();
    let restored = matches!(cause, Cause::Drift { .. }) && steps().any(|step| step.verb == Verb::Create);
    let restored = restored.then(|| "puts back what was deleted from the target".to_owned());
    made.into_iter().chain(restored).chain(judgement.effects.iter().cloned()).collect()
}

fn steps(found: Vec<Found>) -> Vec<Step> {
    let mut steps: Vec<Step> = found.into_iter().map(|found| found.step).collect();
    order::sort(&mut steps);
    steps
}

/// Where the change was made: the first changed field that the document spells out, or the document.
fn origin(world: &World, resource: &Resource, current: &Current) -> Origin {
    let field = current.fields.iter().find_map(|field| refusal::locate(world, &resource.key, field));
    field.map_or_else(|| resource.origin.clone(), |location| location.origin())
}
