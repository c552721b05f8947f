//! What a target says of a plan's steps when it is asked beforehand, without anything being stored.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::{ObjectKey, ResourceKey};
use crate::plan::contest::Contest;
use crate::plan::diff::Found;
use crate::plan::fleet::FleetPart;
use crate::plan::repair::Repair;
use crate::plan::{Change, Remark, Step, Verb, Waiting};

/// What a target says of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DryRun {
    /// It would take the object.
    Accepted {
        /// What people's tools set otherwise, and what will be as the manifest says.
        overwritten: Vec<Contest>,
        /// What other controllers manage, and what stays as they have it.
        left: Vec<Contest>,
    },
    /// It would take the object only where none of its name was before, since some of its fields never change.
    Immutable,
    /// It would not take the object.
    Refused {
        /// Why, in the target's words.
        reason: String,
        /// What to do next.
        hint: String,
    },
    /// Nobody can say yet.
    Unverified {
        /// Why, as the end of a sentence: `until Namespace a exists`.
        why: String,
    },
}

/// What targets say, by object.
pub type DryRuns = BTreeMap<ObjectKey, DryRun>;

/// What a fleet's target should be asked about its part of a plan.
#[derive(Debug, Default)]
pub struct Questions<'a> {
    /// The steps that it can be asked about now.
    pub steps: Vec<&'a Step>,
    /// What it can't be asked about, with the reason.
    pub foregone: DryRuns,
    /// The kinds of the foregone objects that it should have already: API version and kind.
    pub kinds: BTreeSet<(&'a str, &'a str)>,
}

impl FleetPart {
    /// What the fleet's target should be asked before this part of the plan is shown; nothing where nothing differs.
    ///
    /// A change that only waits for a person or for its turn is asked about too, since nobody may look again before it runs.
    pub fn questions(&self) -> Questions<'_> {
        let may_run = |waiting: &Waiting| {
            matches!(
                waiting,
                Waiting::Approval { .. }
                    | Waiting::OneDisruption { .. }
                    | Waiting::Renewal { .. }
                    | Waiting::Unsettled
                    | Waiting::Unseen { .. }
            )
        };
        let all = self.plan.iter().flat_map(|plan| &plan.changes);
        let waits = |resource: &ResourceKey| all.clone().any(|it| it.resource == *resource && !it.is_ready());
        let changes: Vec<&Change> = all.clone().filter(|change| change.waiting.iter().all(may_run)).collect();
        let repairs: Vec<&Change> =
            self.repairs.iter().map(Repair::whole).filter(|it| waits(&it.resource)).collect();
        let written = || {
            let steps = || changes.iter().flat_map(|change| &change.steps);
            // One answer an object. What a repair writes was taken before, so that the other change is what is asked about.
            let is_asked = move |step: &Step| steps().any(|asked| asked.object == step.object);
            let repaired = repairs.iter().flat_map(|it| &it.steps).filter(move |step| !is_asked(step));
            steps().chain(repaired).filter(|step| step.after.is_some())
        };
        let made = written().filter(|step| step.verb == Verb::Create && step.object.kind == "Namespace");
        let made: BTreeMap<&str, &ObjectKey> =
            made.map(|step| (step.object.name.as_str(), &step.object)).collect();
        let definitions: Vec<_> = written().filter_map(defined).collect();
        let mut questions = Questions::default();
        for step in written() {
            let object = &step.object;
            let defines =
                definitions.iter().find(|(group, kind, _)| *group == object.group() && *kind == object.kind);
            let missing = match defines {
                Some((_, _, definition)) => Some(*definition),
                None => object.namespace.as_deref().and_then(|namespace| made.get(namespace).copied()),
            };
            let Some(missing) = missing else {
                questions.steps.push(step);
                continue;
            };
            if defines.is_none() {
                questions.kinds.insert((&object.api_version, &object.kind));
            }
            let why = format!("until {missing} exists");
            questions.foregone.insert(object.clone(), DryRun::Unverified { why });
        }
        questions
    }
}

/// The group and kind that a step defines, with the definition.
fn defined(step: &Step) -> Option<(String, String, &ObjectKey)> {
    if step.object.kind != "CustomResourceDefinition" || step.verb != Verb::Create {
        return None;
    }
    let body = step.after.as_ref()?.body.value();
    let text = |pointer: &str| Some(body.pointer(pointer)?.as_str()?.to_owned());
    Some((text("/spec/group")?, text("/spec/names/kind")?, &step.object))
}

/// What dry runs say of one resource's steps.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub waiting: Vec<Waiting>,
    pub remarks: Vec<Remark>,
}

/// Hears what was said of a resource's steps. What can only be made anew becomes so.
pub(super) fn hear(runs: &DryRuns, found: &mut [Found]) -> Heard {
    let mut heard = Heard::default();
    let mut unverified: BTreeMap<&str, u32> = BTreeMap::new();
    for Found { step, .. } in found {
        let object = || step.object.clone();
        match runs.get(&step.object) {
            None => {}
            Some(DryRun::Immutable) => step.verb = Verb::Recreate,
            Some(DryRun::Refused { reason, hint }) => {
                let (reason, hint) = (reason.clone(), hint.clone());
                heard.waiting.push(Waiting::RefusedByTarget { object: object(), reason, hint });
            }
            Some(DryRun::Unverified { why }) => *unverified.entry(why).or_default() += 1,
            Some(DryRun::Accepted { overwritten, left }) => {
                let overwrites = overwritten.iter();
                let overwrites =
                    overwrites.map(|it| Remark::Overwrites { object: object(), contest: it.clone() });
                let leaves = left.iter().map(|it| Remark::Leaves { object: object(), contest: it.clone() });
                heard.remarks.extend(overwrites.chain(leaves));
            }
        }
    }
    let unverified = unverified.into_iter();
    heard
        .remarks
        .extend(unverified.map(|(why, objects)| Remark::Unverified { objects, why: why.to_owned() }));
    heard
}
