//! Repairs: drift is restored to what was applied last, though another change of the resource waits.
//!
//! A change runs or waits as a whole, so drift would have to wait together with an edit of the spec. What was
//! applied last is recorded object by object and needs no new decision. So while a change waits, for whatever
//! reason, a second change beside it restores what was applied. Whatever would be refused, would delete
//! something or needs an approval stays with the change that waits. Repairs that disrupt clients wait for
//! their turn.
//!
//! There are no repairs with `policy.mode = "approve"`, where nothing runs without approval, and with
//! `plan-only`.

use std::collections::BTreeMap;

use crate::catalog::{Condition, Hold, RecordedResource};
use crate::component::{self, Manifest, ObjectRole, SecretSlot};
use crate::config::Mode;
use crate::names::{ObjectKey, ResourceKey};
use crate::plan::change::{has_a_single_broker, kept_resource, steps, unreadable};
use crate::plan::compare::diff::{Drifted, ObjectDiff, drifted};
use crate::plan::compare::verdict::{ChangeJudgement, Permits, differences, judge};
use crate::plan::deletion::is_suspended;
use crate::plan::fleet::Observation;
use crate::plan::guard::disruption::may_begin;
use crate::plan::model::part::{FleetPart, Repair};
use crate::plan::model::site::FleetInputs;
use crate::plan::preflight;
use crate::plan::world::PlanContext;
use crate::plan::{
    Cause, Change, DryRun, DryRuns, FleetPlan, Reach, Step, Verb, Verdict, Waiting, compare::effects,
    dry_run, guard::in_use, guard::pause,
};

/// The first effect of every repair.
const WHILE_IT_WAITS: &str = "restores what was applied last, while the other change waits";

/// Returns the possible repairs, and conditions for objects that other programs keep changing.
pub(super) fn of_fleet(
    world: &PlanContext,
    seen: &Observation,
    changes: &[Change],
) -> (Vec<Repair>, Vec<Condition>) {
    let Observation { site, target, facts, dry_runs, .. } = *seen;
    // A resource whose creation is incomplete was never applied as a whole, and one that is being deleted
    // isn't restored. A mistake in the document of a suspended one doesn't end that.
    let is_applied = |key: &ResourceKey| {
        world.recorded(key).is_some_and(|record| !record.durable.creating && !record.durable.deleting)
            && !is_suspended(world, key)
    };
    let changes = changes.iter().filter(|change| is_applied(&change.resource));
    let changes: BTreeMap<&ResourceKey, &Change> = changes.map(|it| (&it.resource, it)).collect();
    if world.policy.mode != Mode::Auto || changes.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let (mut repairs, mut conditions) = (Vec::new(), Vec::new());
    for (resource, drifted) in drifted(target, site.desired, |owner| changes.contains_key(owner)) {
        let Some(change) = changes.get(&resource) else { continue };
        let work = RepairContext { world, site, dry_runs, change };
        let (repair, flapping) = work.repair(drifted);
        repairs.push(repair);
        conditions.extend(flapping);
    }
    if let Some(facts) = facts {
        for Repair { whole, undisruptive: calm, .. } in &mut repairs {
            let mut judged = [whole.clone()];
            preflight::judge(world, site, facts, &Reach::Reached, &mut judged);
            if judged.iter().any(|judged| !judged.waiting.is_empty()) {
                (whole.steps, *calm) = (Vec::new(), None);
            }
        }
    }
    (repairs, conditions)
}

/// Inserts the repair of each resource whose change waits after that change.
pub(super) fn insert_repairs(parts: &mut [FleetPart]) {
    for part in parts {
        let repairs = std::mem::take(&mut part.repairs);
        let Some(plan) = part.plan.as_mut().filter(|plan| plan.reach == Reach::Reached) else { continue };
        for Repair { whole, undisruptive: calm, left } in repairs {
            let Some(at) = plan.changes.iter().position(|it| it.resource == whole.resource) else { continue };
            let Some(waits) = plan.changes.get_mut(at).filter(|it| !it.waiting.is_empty()) else { continue };
            let is_agreed = waits.verb == Verb::Delete && part.approved.contains(&waits.resource);
            if is_agreed || waits.waiting.iter().any(is_left_alone) {
                continue;
            }
            waits.effects.extend(left);
            let whole = Some(whole).filter(|whole| may_begin(whole, plan, &part.troubles));
            let Some(repair) = whole.or(calm).filter(|repair| !repair.steps.is_empty()) else { continue };
            if let Some(waits) = plan.changes.get_mut(at) {
                // Each remark appears once, at the change that applies it.
                waits.remarks.retain(|remark| !repair.remarks.contains(remark));
            }
            let asks = |waits: &Change| waits.waiting.iter().any(|it| matches!(it, Waiting::Approval { .. }));
            if plan.changes.get(at).is_some_and(asks) {
                // Approvals hash the existing objects, which the repair is about to restore.
                plan.void_approvals.clear();
            }
            plan.changes.insert(at + 1, repair);
        }
    }
}

/// Makes repairs keep the records of their resources.
pub(super) fn keep_records(
    world: &PlanContext,
    remember: &BTreeMap<ResourceKey, RecordedResource>,
    fleets: &mut [FleetPlan],
) {
    for change in fleets.iter_mut().flat_map(|plan| &mut plan.changes).filter(|change| change.repair) {
        let record = remember.get(&change.resource).or_else(|| world.recorded(&change.resource));
        change.record = record.cloned();
    }
}

/// Whether no repair should run: the resource is suspended, or the same was just done without effect.
fn is_left_alone(waiting: &Waiting) -> bool {
    matches!(waiting, Waiting::Held(Hold::Suspended { .. }) | Waiting::Repeated { .. })
}

struct RepairContext<'a> {
    world: &'a PlanContext<'a>,
    site: &'a FleetInputs<'a>,
    dry_runs: Option<&'a DryRuns>,
    change: &'a Change,
}

impl RepairContext<'_> {
    fn repair(&self, Drifted { mut found, unknown }: Drifted) -> (Repair, Vec<Condition>) {
        let mut left: Vec<String> = left(&unknown, "what was applied last is unknown").collect();
        let lost: Vec<ObjectKey> = found.extract_if(.., |it| self.lacks_secret(it)).map(object).collect();
        left.extend(self::left(&lost, "its secret is no longer available"));
        found.retain(|it| !is_for_a_person(it) && !self.is_refused(it));
        let mut flapping = [self.with(found.clone())];
        let conditions = pause::of_flapping(self.world, self.site.fleet, &mut flapping);
        let [Change { steps, waiting, .. }] = &flapping;
        found.retain(|it| waiting.is_empty() && steps.iter().any(|step| step.object == it.step.object));
        if self.with(found.clone()).guarded || self.may_find_disks() {
            // Creating a cluster over kept disks needs approval.
            found.retain(|it| !component::facts(&it.step.object.kind).holds_data());
        }
        let calm: Vec<ObjectDiff> =
            found.iter().filter(|it| verdict(it) <= Verdict::InPlace).cloned().collect();
        let calm = (calm.len() < found.len() && !calm.is_empty()).then(|| self.with(calm));
        (Repair { whole: self.with(found), undisruptive: calm, left }, conditions)
    }

    fn with(&self, mut found: Vec<ObjectDiff>) -> Change {
        let RepairContext { world, site, change, .. } = *self;
        let by = found.iter().filter_map(|found| found.drift.as_ref()).find_map(|drift| drift.by.clone());
        let cause = Cause::Drift { by };
        let said = |found: &ObjectDiff| Some((found.step.object.clone(), self.said(&found.step)?.clone()));
        let runs = found.iter().filter_map(said).collect();
        let heard = dry_run::apply_dry_runs(&runs, &mut found);
        let judgement = judgement(&found);
        let mut effects = vec![WHILE_IT_WAITS.to_owned()];
        effects.extend(judgement.effects.iter().cloned());
        let resource = world.catalog.resources.get(&change.resource);
        if resource.is_some_and(|resource| has_a_single_broker(world, resource)) {
            effects::of_a_single_broker(&mut effects);
        }
        let mut remarks = unreadable(&found);
        remarks.extend(heard.remarks);
        let mut repair = Change {
            verb: Verb::Update,
            cause,
            verdict: judgement.verdict.unwrap_or(Verdict::NoOp),
            effects,
            remarks,
            steps: steps(found),
            repair: true,
            ..kept_resource(&change.resource, change.origin.clone())
        };
        in_use::judge(world, site, &mut repair);
        repair
    }

    /// Whether a secret changed or can't be opened, so that what was applied can't be written again.
    fn lacks_secret(&self, found: &ObjectDiff) -> bool {
        let known = |slot: &SecretSlot| {
            let resource = self.world.catalog.resources.get(&slot.reference.resource)?;
            let secret = resource.secrets.get(&slot.reference.field)?;
            (secret.unavailable.is_none() && secret.mark.fingerprint.as_ref() == Some(&slot.fingerprint))
                .then_some(())
        };
        let body =
            |manifest: &Manifest| SecretSlot::all_in(&manifest.body).any(|slot| known(&slot).is_none());
        found.step.after.as_ref().is_some_and(body)
    }

    /// Whether a recreated Kafka may find unknown disks: they aren't observed for a cluster that is to be
    /// deleted, and can't be identified without a node pool.
    fn may_find_disks(&self) -> bool {
        let is_seen = self.world.observes(self.site.fleet) == Some(true);
        let objects = self.site.observed.into_iter().flat_map(|observed| observed.objects.keys());
        let mine = |key: &&ObjectKey| {
            let known = self.site.observed.and_then(|observed| observed.inventory.get(*key));
            known.is_some_and(|known| known.owner == self.change.resource)
        };
        let mut pools =
            objects.filter(|key| component::facts(&key.kind).role == ObjectRole::Nodes).filter(mine);
        is_seen && self.change.verb == Verb::Delete && pools.next().is_none()
    }

    fn is_refused(&self, found: &ObjectDiff) -> bool {
        matches!(self.said(&found.step), Some(DryRun::Refused { .. }))
    }

    /// Returns the dry run of a step, unless it was made for another change of the same object.
    fn said(&self, step: &Step) -> Option<&DryRun> {
        let other = self.change.steps.iter().find(|other| other.object == step.object);
        let body = |step: &Step| step.after.as_ref().map(|after| after.body.clone());
        if other.is_some_and(|other| body(other) != body(step)) {
            return None;
        }
        self.dry_runs?.get(&step.object)
    }
}

fn object(found: ObjectDiff) -> ObjectKey {
    found.step.object
}

fn left(objects: &[ObjectKey], why: &str) -> impl Iterator<Item = String> {
    let told = objects.first().map(|object| match objects.len() - 1 {
        0 => format!("{object} differs from what was applied, and {why}, so its repair waits too"),
        more => format!(
            "{object} and {} differ from what was applied, and {why}, so their repair waits too",
            effects::count(u64::try_from(more).unwrap_or(u64::MAX), "more object")
        ),
    });
    told.into_iter()
}

fn judgement(found: &[ObjectDiff]) -> ChangeJudgement {
    let mut judgement = judge(found.iter().map(|found| &found.step), Permits::default());
    found.iter().filter(|found| found.unreadable).for_each(|found| judgement.rewritten(&found.step));
    judgement
}

fn verdict(found: &ObjectDiff) -> Verdict {
    judgement(std::slice::from_ref(found)).verdict.unwrap_or(Verdict::NoOp)
}

/// Whether it needs approval: it is refused, or data may be lost by it, now or when the cluster is deleted.
fn is_for_a_person(found: &ObjectDiff) -> bool {
    let harmless = [
        Verdict::NoOp,
        Verdict::InPlace,
        Verdict::StorageGrowth,
        Verdict::RollingRestart,
        Verdict::ClientsReconnect,
    ];
    !harmless.contains(&verdict(found)) || gives_up_data(&found.step)
}

/// Whether deleting the cluster would delete its disks from then on.
fn gives_up_data(step: &Step) -> bool {
    let both = step.before.as_ref().zip(step.after.as_ref());
    both.is_some_and(|(before, after)| {
        let (before, after) = (before.value(), after.body.value());
        let mut changed = differences(&before, &after).into_iter();
        changed.any(|it| it.pointer.ends_with("/deleteClaim") && *it.after == true)
    })
}
