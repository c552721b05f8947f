//! The change of one resource that should exist.

use crate::catalog::{Hold, Resource};
use crate::component::dns_records::is_record;
use crate::names::ResourceKey;
use crate::plan::compare::diff::{Differences, ObjectDiff};
use crate::plan::compare::upgrade::UpgradeStage;
use crate::plan::compare::verdict::{ChangeJudgement, Permits, RefusedChange, judge};
use crate::plan::world::{PlanContext, SpecDiff};
use crate::plan::{
    BucketOrder, Cause, CertificateOrder, Change, DryRuns, Remark, Step, Verb, Verdict, Waiting, bucket,
    certificate, compare::cause, compare::effects, compare::field_effects, compare::members, dry_run,
    guard::approval, guard::refusal, guard::waiting, model::order, record,
};
use crate::problem::Origin;
use crate::spec::Spec;

pub(super) type ChangeWithRefusals = (Change, Vec<RefusedChange>);

pub(super) fn resource_change(
    world: &PlanContext,
    resource: &Resource,
    differences: Differences,
    runs: Option<&DryRuns>,
    stage: Option<&UpgradeStage>,
) -> Option<ChangeWithRefusals> {
    let current = world.current(&resource.key)?;
    match &resource.hold {
        Some(hold) => Some((held(world, resource, current, hold), Vec::new())),
        None => wanted(world, resource, current, differences, runs, stage),
    }
}

fn held(world: &PlanContext, resource: &Resource, current: &SpecDiff, hold: &Hold) -> Change {
    Change {
        fields: current.fields.clone(),
        waiting: vec![Waiting::Held(hold.clone())],
        record: world.recorded(&resource.key).cloned(),
        ..kept_resource(&resource.key, Some(origin(world, resource, current)))
    }
}

/// Returns a change that leaves a resource as it is. The caller adds what it waits for.
pub(super) fn kept_resource(key: &ResourceKey, origin: Option<Origin>) -> Change {
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
        bucket: None,
        certificate: None,
        steps: Vec::new(),
        remarks: Vec::new(),
        record: None,
        repair: false,
    }
}

fn wanted(
    world: &PlanContext,
    resource: &Resource,
    current: &SpecDiff,
    differences: Differences,
    runs: Option<&DryRuns>,
    stage: Option<&UpgradeStage>,
) -> Option<ChangeWithRefusals> {
    let Differences { mut found, foreign, obstacles, mut strangers, adoptable, contested } = differences;
    let bucket = bucket::of(world, resource);
    let (certificate, early) = certificate::of(world, resource).unzip();
    // Approving what is taken over must not hold up anything else.
    let is_alone = found.is_empty() && current.fields.is_empty() && bucket.is_none();
    match is_alone && foreign.is_empty() {
        true => found.extend(adoptable),
        false => strangers.extend(adoptable.iter().filter_map(ObjectDiff::as_foreign_record)),
    }
    let differs =
        !found.is_empty() || !current.fields.is_empty() || bucket.is_some() || certificate.is_some();
    let later = stage.and_then(UpgradeStage::waiting).filter(|_| !differs);
    let secrets = waiting::for_own_secrets(resource);
    let verb = match world.is_made(&resource.key) {
        false => Verb::Create,
        true if differs => Verb::Update,
        true if !foreign.is_empty() || !obstacles.is_empty() || !strangers.is_empty() => Verb::Keep,
        true if !contested.is_empty() || later.is_some() || !secrets.is_empty() => Verb::Keep,
        true => return None,
    };
    let known_cause = stage.filter(|_| current.fields.is_empty()).and_then(|stage| stage.cause(&found));
    let renewal = certificate.is_some() && world.is_made(&resource.key) && current.fields.is_empty();
    let known_cause = known_cause.or_else(|| renewal.then_some(Cause::Certificate));
    let cause = known_cause.unwrap_or_else(|| cause::change_cause(world, &resource.key, &found));
    let heard = runs.map(|runs| dry_run::apply_dry_runs(runs, &mut found)).unwrap_or_default();
    let permits = permits(resource, current, &cause);
    let mut judgement = judge(found.iter().filter(|found| found.there).map(|found| &found.step), permits);
    found.iter().filter(|found| found.unreadable).for_each(|found| judgement.rewritten(&found.step));
    if let Some(refusal) = stage.and_then(UpgradeStage::refusal).filter(|_| !judgement.refuses()) {
        judgement.refuse(refusal);
    }
    let verdict = judgement.verdict.unwrap_or(Verdict::NoOp);
    if verb == Verb::Update {
        let told = field_effects::told(resource.key.kind, &current.fields, verdict);
        judgement.tell(&told);
    }
    let mut effects = sentences(&judgement, &cause, verb, &found);
    if verb == Verb::Update {
        effects.extend(members::changes(resource.key.kind, &current.fields));
    }
    effects.extend(stage.filter(|_| differs).and_then(UpgradeStage::foresees));
    effects.extend(bucket.as_ref().map(BucketOrder::effect));
    effects.extend(certificate.as_ref().map(CertificateOrder::effect));
    effects.extend(certificate::told(world, resource, &current.fields));
    let mut remarks = unreadable(&found);
    if has_a_single_broker(world, resource) {
        effects::of_a_single_broker(&mut effects);
    }
    effects::drop_repeated_restarts(&mut effects);
    let steps = steps(found);
    let mut waits: Vec<Waiting> =
        foreign.into_iter().map(|object| Waiting::ForeignObject { object }).collect();
    waits.extend(obstacles.into_iter().map(|(object, path)| Waiting::NotAFile { object, path }));
    waits.extend(judgement.refusals.iter().map(|refusal| Waiting::Refused { why: refusal.why.clone() }));
    waits.extend(waiting::for_secrets(world, &steps).into_iter().filter(|wait| !secrets.contains(wait)));
    waits.extend(secrets);
    waits.extend(early.flatten());
    waits.extend(heard.waiting);
    waits.extend(later);
    waits.extend(stage.and_then(UpgradeStage::unknown));
    remarks.extend(heard.remarks);
    for record in strangers {
        match verb {
            Verb::Keep => waits.push(Waiting::ForeignRecord(record)),
            _ => remarks.push(Remark::ForeignRecord(record)),
        }
    }
    for (object, contest) in contested {
        // A field that is left unchanged must not block the rest of the change.
        match verb {
            Verb::Keep => waits.push(Waiting::Contested { object, contest }),
            _ => remarks.push(Remark::Leaves { object, contest }),
        }
    }
    let change = Change {
        verb,
        guarded: requires_approval(&cause, verdict)
            || approval::adopts_records(&steps)
            || approval::changes_gateway_class(&cause, &steps)
            || approval::moves_tiered_storage(&cause, &steps)
            || approval::changes_gateway_infrastructure(&cause, &steps)
            || remarks.iter().any(|remark| remark.unknown().is_some()),
        cause,
        fields: current.fields.clone(),
        verdict,
        effects,
        waiting: waits,
        bucket,
        certificate,
        steps,
        remarks,
        record: Some(record::of(world, resource, current)),
        ..kept_resource(&resource.key, Some(origin(world, resource, current)))
    };
    Some((change, judgement.refusals))
}

pub(super) fn has_a_single_broker(world: &PlanContext, resource: &Resource) -> bool {
    let Spec::Cluster(cluster) = &resource.spec else { return false };
    let sizes = world.catalog.config.units.sizes(cluster.advanced_config.profile);
    sizes.brokers(cluster.kafka_units) == 1
}

/// `scale_down_to` confirms only the edit that lowers the units, and not what somebody changes by hand later.
fn permits(resource: &Resource, current: &SpecDiff, cause: &Cause) -> Permits {
    let confirmed = matches!(&resource.spec, Spec::Cluster(cluster) if cluster.may_scale_down());
    let units = current.fields.iter().find(|change| change.field == "kafka_units");
    let lowered = units.is_some_and(|units| units.after.as_u64() < units.before.as_u64());
    Permits { fewer_brokers: confirmed && lowered && *cause == Cause::Spec }
}

/// A new version of Streamfleet disrupts nothing by itself. Irreversible changes wait while the cluster's
/// health is unknown. Records are deleted only after approval.
fn requires_approval(cause: &Cause, verdict: Verdict) -> bool {
    if verdict == Verdict::DataLoss || matches!(cause, Cause::Upgrade { unseen: true, .. }) {
        return true;
    }
    let disrupts =
        verdict.restarts_brokers() || matches!(verdict, Verdict::BrokerRemoval | Verdict::ServiceLoss);
    disrupts && matches!(cause, Cause::Software { .. })
}

pub(super) fn unreadable(found: &[ObjectDiff]) -> Vec<Remark> {
    let unreadable = found.iter().filter(|found| found.unreadable).map(|found| &found.step);
    let remark =
        |step: &Step| Remark::Unreadable { object: step.object.clone(), known: step.before.is_some() };
    unreadable.map(remark).collect()
}

fn sentences(judgement: &ChangeJudgement, cause: &Cause, verb: Verb, found: &[ObjectDiff]) -> Vec<String> {
    let steps = || found.iter().map(|found| &found.step);
    let made = match verb {
        Verb::Create => effects::created(steps()),
        _ => effects::created(steps().filter(|step| is_record(&step.object))),
    };
    let restored = matches!(cause, Cause::Drift { .. }) && steps().any(|step| step.verb == Verb::Create);
    let restored = restored.then(|| "restores what was deleted from the target".to_owned());
    let adopted = steps().filter(|step| step.verb == Verb::Adopt);
    let adopted = adopted.map(|step| format!("takes over {}, which streamfleet didn't make", step.object));
    let pulled = effects::pulled(steps());
    made.into_iter()
        .chain(pulled)
        .chain(restored)
        .chain(adopted)
        .chain(judgement.effects.iter().cloned())
        .collect()
}

pub(super) fn steps(found: Vec<ObjectDiff>) -> Vec<Step> {
    let mut steps: Vec<Step> = found.into_iter().map(|found| found.step).collect();
    order::sort(&mut steps);
    steps
}

/// Returns the position of the first changed field that the document spells out, or else of the document.
fn origin(world: &PlanContext, resource: &Resource, current: &SpecDiff) -> Origin {
    let field = current.fields.iter().find_map(|field| refusal::locate(world, &resource.key, field));
    field.map_or_else(|| resource.origin.clone(), |location| location.origin())
}
