//! Decides which changes need approval, and which the policy allows without.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::catalog::{Absence, Approval};
use crate::component::{self, dns_records::is_record};
use crate::config::{CertificateRenewal, Mode};
use crate::names::{Digest, FleetKey, Json, Kind, ResourceKey};
use crate::plan::model::part::FleetPart;
use crate::plan::world::PlanContext;
use crate::plan::{
    Cause, Change, Guard, Remark, Step, Verb, Verdict, Waiting, guard::maintenance, guard::withdrawn_secrets,
};

/// How long a deletion counts towards a fleet's limit.
pub const DELETIONS_WINDOW: SignedDuration = SignedDuration::from_hours(1);

/// How far in the future an approval may be. Clocks differ a little; a clock that was set back by more would
/// extend the approval's lifetime.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// The length of a guard's id in hex digits: 48 bits, short enough to copy.
const ID_LENGTH: usize = 12;

/// Whether a text has the form of an id that can be approved.
pub fn is_approval_id(text: &str) -> bool {
    text.len() == ID_LENGTH && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Makes the guarded changes beyond the policy's limit wait for approval, and returns which.
///
/// Changes that wait for something else are not included: an approval covers exactly what then runs. An
/// approval for anything else is void: it must not approve the next deletion after the resource was restored.
pub(in crate::plan) fn apply(
    world: &PlanContext,
    fleet: &FleetKey,
    changes: &mut [Change],
) -> FleetApprovals {
    if world.policy.mode == Mode::Approve {
        changes.iter_mut().filter(|change| change.is_ready()).for_each(|change| change.guarded = true);
    }
    let mut left = DeletionsLeft::of(world, fleet);
    let guarded = changes.iter_mut().filter(|change| change.guarded && change.waiting.is_empty());
    let mut guarded: Vec<(&mut Change, Option<String>)> = guarded
        .map(|change| {
            let why = needs_approval(world, fleet, change, &mut left).or_else(|| asked_for_all(world));
            (change, why)
        })
        .collect();
    let all = id(guarded.iter().map(|(change, _)| &**change));
    guarded.retain(|(_, why)| why.is_some());
    if guarded.is_empty() {
        return FleetApprovals { guard: None, approved: BTreeSet::new(), void: void(world, fleet, &[all]) };
    }
    let needed = id(guarded.iter().map(|(change, _)| &**change));
    // With time the policy allows more. An approval of all changes stays valid when fewer need it.
    let valid = [&needed, &all];
    let approval = valid.into_iter().find_map(|id| approval(world, fleet, id));
    let early = valid.into_iter().find_map(|id| future_approval(world, fleet, id));
    let mut approved = BTreeSet::new();
    let guard = match approval {
        Some(approval) => {
            approved.extend(guarded.iter().map(|(change, _)| change.resource.clone()));
            Guard { id: approval.id.clone(), approved_by: Some(approval.by.clone()), rest: None }
        }
        None => {
            for (change, why) in guarded {
                let why = why.map(|why| match early {
                    Some(Approval { by, at, .. }) => {
                        format!("{why}; the approval by {by} at {at} is not valid, because it lies in the future by \
                            this host's clock")
                    }
                    None => why,
                });
                change.waiting.extend(why.map(|why| Waiting::Approval { id: needed.clone(), why }));
            }
            Guard { id: needed.clone(), approved_by: None, rest: None }
        }
    };
    FleetApprovals { guard: Some(guard), approved, void: void(world, fleet, &[needed, all]) }
}

/// Makes a ready change wait for approval of it alone. While other changes of the fleet need or have an
/// approval, the change waits with `hold` instead: an approval covers exactly what was shown with it. If the
/// change is approved already, as everything that runs with `approve` is, `why` is added to its effects.
pub(in crate::plan) fn require_approval(
    world: &PlanContext,
    part: &mut FleetPart,
    resource: &ResourceKey,
    why: &str,
    hold: &Waiting,
) {
    let Some(plan) = part.plan.as_mut() else { return };
    let ready = |change: &&mut Change| change.resource == *resource && change.waiting.is_empty();
    let Some(change) = plan.changes.iter_mut().find(ready) else { return };
    if part.approved.contains(resource) {
        return change.effects.push(why.to_owned());
    }
    if plan.guard.is_some() {
        return change.waiting.push(hold.clone());
    }
    change.guarded = true;
    let id = id([&*change].into_iter());
    let approved = approval(world, &plan.fleet, &id);
    match approved {
        Some(_) => drop(part.approved.insert(resource.clone())),
        None => change.waiting.push(Waiting::Approval { id: id.clone(), why: why.to_owned() }),
    }
    plan.void_approvals.retain(|void| *void != id);
    let approved_by = approved.map(|approval| approval.by.clone());
    plan.guard = Some(Guard { id, approved_by, rest: None });
}

/// Keeps approved changes that still wait for their turn approved after the others have used the approval.
pub(in crate::plan) fn keep_approvals(parts: &mut [FleetPart]) {
    for part in parts {
        let Some(plan) = part.plan.as_mut() else { continue };
        let later = |change: &&Change| part.approved.contains(&change.resource) && !change.waiting.is_empty();
        let mut later = plan.changes.iter().filter(later).peekable();
        let rest = later.peek().is_some().then(|| id(later));
        if let Some(guard) = plan.guard.as_mut() {
            guard.rest = rest;
        }
    }
}

pub(in crate::plan) struct FleetApprovals {
    pub guard: Option<Guard>,
    pub approved: BTreeSet<ResourceKey>,
    /// Approvals of steps that are no longer planned.
    pub void: Vec<String>,
}

fn void(world: &PlanContext, fleet: &FleetKey, valid: &[String]) -> Vec<String> {
    let given = world.recorded.approvals.iter().filter(|approval| approval.fleet == *fleet);
    let is_void = |approval: &&Approval| {
        !valid.contains(&approval.id) || age(world.policy.now, approval.at) < -CLOCK_TOLERANCE
    };
    given.filter(is_void).map(|approval| approval.id.clone()).collect()
}

/// The deletions that a fleet may still have within the hour.
struct DeletionsLeft {
    clusters: DeletionBudget,
    topics: DeletionBudget,
}

struct DeletionBudget {
    allowed: u32,
    free: u32,
    /// When it may lose each further one, if known.
    later: std::vec::IntoIter<Timestamp>,
}

impl DeletionsLeft {
    fn of(world: &PlanContext, fleet: &FleetKey) -> Self {
        let lost = world.policy.pauses.lost.get(fleet).copied().unwrap_or_default();
        let budget = |kind, allowed, lost| DeletionBudget::of(world, fleet, kind, allowed, lost);
        Self {
            clusters: budget(Kind::Cluster, world.policy.cluster_deletions_per_hour, lost),
            topics: budget(Kind::Topic, world.policy.topic_deletions_per_hour, 0),
        }
    }
}

impl DeletionBudget {
    /// A deletion in the future counts, so a clock that was set back allows nothing more; nor does one that was
    /// set ahead, if a running process counted the deletions (`Pauses::lost`).
    fn of(world: &PlanContext, fleet: &FleetKey, kind: Kind, allowed: u32, lost: u32) -> Self {
        let now = world.policy.now;
        let recent = world.recorded.deletions.iter().filter(|deletion| {
            deletion.fleet == *fleet
                && deletion.cluster.kind == kind
                && age(now, deletion.at) < DELETIONS_WINDOW
        });
        let mut recent: Vec<Timestamp> = recent.map(|deletion| deletion.at).collect();
        recent.sort_unstable();
        let count = u32::try_from(recent.len()).unwrap_or(u32::MAX).max(lost);
        let too_many = usize::try_from(count.saturating_sub(allowed)).unwrap_or(usize::MAX);
        let later = recent.into_iter().skip(too_many).filter_map(|at| at.checked_add(DELETIONS_WINDOW).ok());
        let later: Vec<Timestamp> = later.collect();
        Self { allowed, free: allowed.saturating_sub(count), later: later.into_iter() }
    }
}

fn age(now: Timestamp, then: Timestamp) -> SignedDuration {
    now.duration_since(then)
}

/// Whether DNS records that somebody made by hand are taken over.
pub(in crate::plan) fn adopts_records(steps: &[Step]) -> bool {
    steps.iter().any(|step| step.verb == Verb::Adopt && is_record(&step.object))
}

/// Returns why every change needs approval, as the end of a sentence.
fn asked_for_all(world: &PlanContext) -> Option<String> {
    let asked = world.policy.mode == Mode::Approve;
    asked.then(|| "the settings require approval for every plan: `policy.mode` is `approve`".to_owned())
}

/// Returns why a guarded change needs approval, as the end of a sentence.
fn needs_approval(
    world: &PlanContext,
    fleet: &FleetKey,
    change: &Change,
    left: &mut DeletionsLeft,
) -> Option<String> {
    // The first step of letting a topic go is a change, and as much of a deletion as the second.
    if change.verb != Verb::Delete
        && change.resource.kind.is_on_cluster()
        && let Some(Absence::Suspicious { why }) = world.absence(&change.resource)
    {
        return Some(why.clone());
    }
    if change.verb != Verb::Delete {
        if changes_gateway_class(&change.cause, &change.steps) {
            let why = "clients outside of Kubernetes are cut off from every cluster of the fleet until the Gateway of \
                the other class has an address";
            return Some(why.to_owned());
        }
        if moves_tiered_storage(&change.cause, &change.steps) {
            let why = "brokers look for the older part of the log in another place, and can't read it unless it is \
                there already";
            return Some(why.to_owned());
        }
        if adopts_records(&change.steps) {
            let why = "somebody made a DNS record by hand, and it would lead to the cluster instead";
            return Some(why.to_owned());
        }
        if withdrawn_secrets::leave(world, fleet, change) {
            let why = "Secrets are removed from the folder, and brokers can't start without them unless you keep them \
                in Kubernetes";
            return Some(why.to_owned());
        }
        if let Some(object) = change.remarks.iter().find_map(Remark::unknown) {
            return Some(format!(
                "{object} can't be read and its earlier content is unknown, so the change may delete data"
            ));
        }
        if change.remarks.iter().any(|remark| matches!(remark, Remark::KeptDisks { .. })) {
            return Some(
                "it would be created over the disks of an earlier cluster with this name".to_owned(),
            );
        }
        return match &change.cause {
            // Brokers need the new certificate, whatever else the change brings.
            Cause::Software { .. } if maintenance::is_urgent(world, change) => None,
            Cause::Software { version } => {
                Some(format!("the cause is streamfleet {version}, not an edit of a spec"))
            }
            Cause::Upgrade { version, unseen: true } => Some(format!(
                "streamfleet can't see whether all brokers run Kafka {version}, and the metadata version can't go back"
            )),
            _ if change.verdict == Verdict::DataLoss => {
                Some("it permanently deletes data that the cluster keeps now".to_owned())
            }
            _ if world.policy.certificate_renewal == CertificateRenewal::Approve
                    && maintenance::is_deferred(world, change) =>
            {
                Some(
                    "brokers restart for a new certificate, and `policy.certificate_renewal` of the settings is \
                     `approve`"
                        .to_owned(),
                )
            }
            _ => None,
        };
    }
    if let Some(Absence::Suspicious { why }) = world.catalog.absent.get(&change.resource) {
        return Some(why.clone());
    }
    let record = world.recorded(&change.resource);
    if record.is_some_and(|record| record.durable.deleting) {
        return None;
    }
    let was_made =
        change.resource.kind == Kind::Cluster && record.is_some_and(|record| !record.durable.creating);
    if was_made && change.steps.is_empty() {
        // Objects that a lost inventory doesn't have may still exist, and would be orphaned.
        return Some(
            "the fleet's target has no objects of it, so streamfleet would only forget it".to_owned(),
        );
    }
    let is_topic = change.resource.kind == Kind::Topic;
    let budget = if is_topic { &mut left.topics } else { &mut left.clusters };
    if budget.free > 0 {
        budget.free -= 1;
        return None;
    }
    let allowed = budget.allowed;
    let noun = if is_topic { "topic deletion" } else { "cluster deletion" };
    let deletions = crate::plan::compare::effects::count(allowed.into(), noun);
    // Rounded up to the minute, so that the time is never too early.
    let minute = |at: Timestamp| {
        at.checked_add(SignedDuration::from_secs(59)).unwrap_or(at).strftime("%H:%M UTC").to_string()
    };
    let until = match (allowed, budget.later.next()) {
        (0, _) => String::new(),
        (_, Some(at)) => {
            format!(". Deletes at {}; restore the file to keep it, approve to delete now", minute(at))
        }
        (_, None) => {
            ". Deletes when the hour is over; restore the file to keep it, approve to delete now".to_owned()
        }
    };
    Some(format!("limit of {deletions} per fleet and hour{until}"))
}

/// Whether a Gateway changes to another implementation, which cuts off clients in whatever order it is done.
/// Undoing a manual change of the class doesn't count: the spec already has it.
pub(in crate::plan) fn changes_gateway_class(cause: &Cause, steps: &[Step]) -> bool {
    let class = |gateway: &Json| gateway.at("/spec/gatewayClassName");
    let changes = |step: &Step| {
        let (before, after) = (step.before.as_ref(), step.after.as_ref());
        before.zip(after).is_some_and(|(before, after)| class(before) != class(&after.body))
    };
    let drifted = matches!(cause, Cause::Drift { .. });
    !drifted && steps.iter().any(|step| step.object.kind == "Gateway" && changes(step))
}

/// Whether brokers will look for their data in another bucket, whose content is unknown here. Undoing a
/// manual change doesn't count: the spec already has that value.
pub(in crate::plan) fn moves_tiered_storage(cause: &Cause, steps: &[Step]) -> bool {
    let changes = |step: &Step| {
        let place = component::facts(&step.object.kind).remote_data;
        let (before, after) = (step.before.as_ref(), step.after.as_ref());
        let places = before.zip(after).and_then(|(before, after)| place(before).zip(place(&after.body)));
        places.is_some_and(|(before, after)| before != after)
    };
    let drifted = matches!(cause, Cause::Drift { .. });
    !drifted && steps.iter().any(changes)
}

/// Whether the software itself requests another load balancer for a Gateway that clusters share.
pub(in crate::plan) fn changes_gateway_infrastructure(cause: &Cause, steps: &[Step]) -> bool {
    let balancer = |gateway: &Json| gateway.at("/spec/infrastructure");
    let changes = |step: &Step| {
        let (before, after) = (step.before.as_ref(), step.after.as_ref());
        before.zip(after).is_some_and(|(before, after)| balancer(before) != balancer(&after.body))
    };
    let by_itself = matches!(cause, Cause::Software { .. });
    by_itself && steps.iter().any(|step| step.object.kind == "Gateway" && changes(step))
}

/// Finds a valid approval. One too far in the future was given before the clock was set back.
fn approval<'a>(world: &PlanContext<'a>, fleet: &FleetKey, id: &str) -> Option<&'a Approval> {
    let holds = |approval: &&Approval| {
        let age = age(world.policy.now, approval.at);
        (-CLOCK_TOLERANCE..=world.policy.approval_lifetime).contains(&age)
    };
    given(world, fleet, id).find(holds)
}

/// Finds an approval that seems to be from the future. It is void.
fn future_approval<'a>(world: &PlanContext<'a>, fleet: &FleetKey, id: &str) -> Option<&'a Approval> {
    given(world, fleet, id).find(|approval| age(world.policy.now, approval.at) < -CLOCK_TOLERANCE)
}

fn given<'a>(world: &PlanContext<'a>, fleet: &FleetKey, id: &str) -> impl Iterator<Item = &'a Approval> {
    let approvals = world.recorded.approvals.iter();
    approvals.filter(move |approval| approval.fleet == *fleet && approval.id == id)
}

/// Returns the hash of what is approved: the resources, what is done to which objects by UID, and what they
/// become; also the rest of their specs, some of which no object shows.
fn id<'a>(changes: impl Iterator<Item = &'a Change>) -> String {
    let step = |step: &Step| {
        let before = step.before.as_ref().map(Json::digest);
        let after = step.after.as_ref().map(|manifest| manifest.body.digest());
        serde_json::json!([step.verb, step.object, step.uid, before, after])
    };
    let change = |change: &Change| {
        let steps: Vec<_> = change.steps.iter().map(step).collect();
        let spec =
            change.record.as_ref().and_then(|record| Some(record.cached.last_good.as_ref()?.spec().digest()));
        // Changes of recorded secrets are among the fields.
        let new = change.record.as_ref().filter(|_| change.verb == Verb::Create);
        let sealed: Vec<_> =
            new.iter().flat_map(|new| new.cached.secrets.values()).map(|mark| &mark.sealed).collect();
        serde_json::json!([change.resource, change.verb, steps, change.fields, spec, sealed])
    };
    let digest = Digest::of_json(&changes.map(change).collect());
    digest.as_str().chars().take(ID_LENGTH).collect()
}
