//! A target's answers to dry runs of a plan's steps.

use std::collections::{BTreeMap, BTreeSet};

use crate::component::dns_records;
use crate::names::{ObjectKey, ResourceKey};
use crate::plan::compare::diff::ObjectDiff;
use crate::plan::model::part::{FleetPart, Repair};
use crate::plan::model::site::{DryRun, DryRuns};
use crate::plan::{Change, Remark, Step, Verb, Waiting};

/// How many new Namespaces of a fleet with the same pod security have a dry run of their own. A policy or webhook may
/// refuse a Namespace for its name, but most refuse all or none: they are alike except for names and ids.
const NAMESPACES: usize = 8;

/// The label of the pod security that is enforced in a namespace.
const ENFORCED: &str = "/metadata/labels/pod-security.kubernetes.io~1enforce";

/// The dry runs that a fleet's part of a plan needs.
#[derive(Debug, Default)]
pub struct DryRunRequests<'a> {
    pub steps: Vec<&'a Step>,
    /// Further new Namespaces, which are like those in `steps`. They need a dry run only if one of those is refused.
    pub alike: Vec<&'a Step>,
    /// Objects that can't be tried, with the reason.
    pub foregone: DryRuns,
    /// The API version and kind of those objects of `foregone` whose kind should already exist on the target.
    pub kinds: BTreeSet<(&'a str, &'a str)>,
}

impl FleetPart {
    /// Returns the dry runs to make before this part of the plan is shown. Changes that wait only for
    /// approval or for their turn are included, since nothing may be planned again before they run.
    pub fn dry_run_requests(&self) -> DryRunRequests<'_> {
        let may_run = |waiting: &Waiting| {
            matches!(
                waiting,
                Waiting::Approval { .. }
                    | Waiting::OneDisruption { .. }
                    | Waiting::Renewal { .. }
                    | Waiting::Unsettled
                    | Waiting::Unconfirmed { .. }
                    | Waiting::Unseen { .. }
            )
        };
        let all = self.plan.iter().flat_map(|plan| &plan.changes);
        let waits = |resource: &ResourceKey| all.clone().any(|it| it.resource == *resource && !it.is_ready());
        let changes: Vec<&Change> = all.clone().filter(|change| change.waiting.iter().all(may_run)).collect();
        let repairs: Vec<&Change> =
            self.repairs.iter().map(|it: &Repair| &it.whole).filter(|it| waits(&it.resource)).collect();
        let written = || {
            let steps = || changes.iter().flat_map(|change| &change.steps);
            // One answer per object. A repair's manifest was accepted before, so the other change is tried.
            let is_asked = move |step: &Step| steps().any(|asked| asked.object == step.object);
            let repaired = repairs.iter().flat_map(|it| &it.steps).filter(move |step| !is_asked(step));
            // A DNS server has no dry runs.
            let has_one = |step: &&Step| step.after.is_some() && !dns_records::is_record(&step.object);
            steps().chain(repaired).filter(has_one)
        };
        let made = written().filter(|step| is_new_namespace(step));
        let made: BTreeMap<&str, &ObjectKey> =
            made.map(|step| (step.object.name.as_str(), &step.object)).collect();
        let definitions: Vec<_> = written().filter_map(defined).collect();
        let mut questions = DryRunRequests::default();
        let mut namespaces: BTreeMap<_, usize> = BTreeMap::new();
        for step in written() {
            let object = &step.object;
            if is_new_namespace(step) {
                let body = step.after.as_ref().map(|manifest| manifest.body.value());
                let enforced = body.and_then(|body| Some(body.pointer(ENFORCED)?.to_string()));
                let alike = namespaces.entry(enforced).or_default();
                *alike += 1;
                if *alike > NAMESPACES {
                    questions.alike.push(step);
                    continue;
                }
            }
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
            questions.foregone.insert(object.clone(), unverified_until(missing));
        }
        questions
    }
}

impl DryRunRequests<'_> {
    /// Decides on `alike` by the answers to `steps`. Once a Namespace is refused, each of the others may be,
    /// and has to wait with its own reason.
    pub fn of_alike(&self, runs: &DryRuns) -> AlikeDryRuns<'_> {
        let namespaces = self.steps.iter().filter(|step| is_new_namespace(step));
        let answers: Vec<&DryRun> = namespaces.filter_map(|step| runs.get(&step.object)).collect();
        if answers.iter().any(|run| matches!(run, DryRun::Refused { .. })) {
            return AlikeDryRuns::Asked(&self.alike);
        }
        let unverified = answers.into_iter().find(|run| matches!(run, DryRun::Unverified { .. }));
        let run = |step: &Step| unverified.cloned().unwrap_or_else(|| unverified_until(&step.object));
        AlikeDryRuns::Foregone(self.alike.iter().map(|step| (step.object.clone(), run(step))).collect())
    }
}

#[derive(Debug)]
pub enum AlikeDryRuns<'a> {
    Asked(&'a [&'a Step]),
    Foregone(DryRuns),
}

fn is_new_namespace(step: &Step) -> bool {
    step.verb == Verb::Create && step.object.kind == "Namespace"
}

fn unverified_until(missing: &ObjectKey) -> DryRun {
    DryRun::Unverified { why: format!("until {missing} exists") }
}

fn defined(step: &Step) -> Option<(String, String, &ObjectKey)> {
    if step.object.kind != "CustomResourceDefinition" || step.verb != Verb::Create {
        return None;
    }
    let body = step.after.as_ref()?.body.value();
    let text = |pointer: &str| Some(body.pointer(pointer)?.as_str()?.to_owned());
    Some((text("/spec/group")?, text("/spec/names/kind")?, &step.object))
}

#[derive(Debug, Default)]
pub(super) struct DryRunEffects {
    pub waiting: Vec<Waiting>,
    pub remarks: Vec<Remark>,
}

/// Applies the answers to a resource's steps. Changes of immutable fields become [`Verb::Recreate`].
pub(super) fn apply_dry_runs(runs: &DryRuns, found: &mut [ObjectDiff]) -> DryRunEffects {
    let mut heard = DryRunEffects::default();
    let mut unverified: BTreeMap<&str, u32> = BTreeMap::new();
    for ObjectDiff { step, .. } in found {
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
