//! What a person has to approve, and what the policy lets run without.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::catalog::{Absence, Approval};
use crate::config::Mode;
use crate::names::{Digest, FleetKey, Json, Kind, ResourceKey};
use crate::plan::fleet::FleetPart;
use crate::plan::world::World;
use crate::plan::{Cause, Change, Guard, Remark, Step, Verb, Verdict, Waiting, given_up};

/// How long a deletion counts against what a fleet may lose.
pub const DELETIONS_WINDOW: SignedDuration = SignedDuration::from_hours(1);

/// How far from now an approval may lie in the future: clocks differ a little, and one that was set back by more would let it
/// hold for longer than it should.
const SLACK: SignedDuration = SignedDuration::from_mins(5);

/// How much of a digest names a guard: 48 bits, for a person to copy.
const ID_LENGTH: usize = 12;

/// Whether a text has the form of what a person gives to approve something.
pub fn is_approval_id(text: &str) -> bool {
    text.len() == ID_LENGTH && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Makes the guarded changes that are more than the policy allows wait for approval, and says which.
///
/// Changes that wait for something else are no part of it: an approval covers exactly what then runs. One for anything else
/// is void: what a person said of a deletion must not hold for the next, after the resource was put back.
pub(super) fn apply(world: &World, fleet: &FleetKey, changes: &mut [Change]) -> Guarded {
    if world.policy.mode == Mode::Approve {
        changes.iter_mut().filter(|change| change.is_ready()).for_each(|change| change.guarded = true);
    }
    let (mut free, mut later) = deletions_left(world, fleet);
    let guarded = changes.iter_mut().filter(|change| change.guarded && change.waiting.is_empty());
    let mut guarded: Vec<(&mut Change, Option<String>)> = guarded
        .map(|change| {
            let why = needs_approval(world, fleet, change, (&mut free, &mut later))
                .or_else(|| asked_for_all(world));
            (change, why)
        })
        .collect();
    let all = id(guarded.iter().map(|(change, _)| &**change));
    guarded.retain(|(_, why)| why.is_some());
    if guarded.is_empty() {
        return Guarded { guard: None, approved: BTreeSet::new(), void: void(world, fleet, &[all]) };
    }
    let needed = id(guarded.iter().map(|(change, _)| &**change));
    // With time the policy allows more, and fewer changes need approval. A word given for all of them still holds.
    let valid = [&needed, &all];
    let approval = valid.into_iter().find_map(|id| approval(world, fleet, id));
    let early = valid.into_iter().find_map(|id| early(world, fleet, id));
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
                        format!("{why}; what {by} approved at {at} doesn't hold, since that is yet to come by the clock of this host")
                    }
                    None => why,
                });
                change.waiting.extend(why.map(|why| Waiting::Approval { id: needed.clone(), why }));
            }
            Guard { id: needed.clone(), approved_by: None, rest: None }
        }
    };
    Guarded { guard: Some(guard), approved, void: void(world, fleet, &[needed, all]) }
}

/// Makes a change of a fleet that would be done at once wait for approval of it alone. While others of the fleet ask, or are
/// approved, it holds as if nobody could say so: an approval covers exactly what was shown with it. What is approved
/// already, as all is that runs with `approve`, is told why it might not be.
pub(super) fn ask(world: &World, part: &mut FleetPart, resource: &ResourceKey, why: &str, hold: &Waiting) {
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

/// Lets what is approved and has to wait for its turn stay approved when the others use the approval.
pub(super) fn keep_word(parts: &mut [FleetPart]) {
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

/// What becomes of a fleet's approvals.
pub(super) struct Guarded {
    /// The approval that is needed or given.
    pub guard: Option<Guard>,
    /// The resources whose changes are approved.
    pub approved: BTreeSet<ResourceKey>,
    /// Those that were given for something else than what would be done now.
    pub void: Vec<String>,
}

fn void(world: &World, fleet: &FleetKey, valid: &[String]) -> Vec<String> {
    let given = world.recorded.approvals.iter().filter(|approval| approval.fleet == *fleet);
    let is_void =
        |approval: &&Approval| !valid.contains(&approval.id) || age(world.policy.now, approval.at) < -SLACK;
    given.filter(is_void).map(|approval| approval.id.clone()).collect()
}

/// How many clusters the fleet may still lose within the hour, and when it may lose another one each, as far as that is known.
/// A deletion that seems to lie in the future counts: a clock that was set back allows nothing more. One that was set ahead neither,
/// where somebody knows how long ago it really was.
fn deletions_left(world: &World, fleet: &FleetKey) -> (u32, impl Iterator<Item = Timestamp> + use<>) {
    let now = world.policy.now;
    let recent = world.recorded.deletions.iter();
    let recent =
        recent.filter(|deletion| deletion.fleet == *fleet && age(now, deletion.at) < DELETIONS_WINDOW);
    let mut recent: Vec<Timestamp> = recent.map(|deletion| deletion.at).collect();
    recent.sort_unstable();
    let allowed = world.policy.cluster_deletions_per_hour;
    let lost = world.policy.pauses.lost.get(fleet).copied().unwrap_or_default();
    let count = u32::try_from(recent.len()).unwrap_or(u32::MAX).max(lost);
    let too_many = usize::try_from(count.saturating_sub(allowed)).unwrap_or(usize::MAX);
    let over = recent.into_iter().skip(too_many).filter_map(|at| at.checked_add(DELETIONS_WINDOW).ok());
    (allowed.saturating_sub(count), over)
}

fn age(now: Timestamp, then: Timestamp) -> SignedDuration {
    now.duration_since(then)
}

/// Why each change needs a person, as the end of a sentence; none where not each does.
fn asked_for_all(world: &World) -> Option<String> {
    let asked = world.policy.mode == Mode::Approve;
    asked.then(|| "the settings want each plan approved: `policy.mode` is `approve`".to_owned())
}

/// Why a guarded change needs a person, as the end of a sentence; none where the policy allows it.
fn needs_approval(
    world: &World,
    fleet: &FleetKey,
    change: &Change,
    (free, later): (&mut u32, &mut impl Iterator<Item = Timestamp>),
) -> Option<String> {
    if change.verb != Verb::Delete {
        if cuts_off(&change.cause, &change.steps) {
            let why = "clients outside of Kubernetes are cut off from every cluster of the fleet until the Gateway of the other \
                       class has an address";
            return Some(why.to_owned());
        }
        if moves_the_log(&change.cause, &change.steps) {
            let why = "brokers look for the older part of the log in another place, and can't read it unless it is there already";
            return Some(why.to_owned());
        }
        if given_up::leave(world, fleet, change) {
            let why = "Secrets leave the folder, and brokers can't start without them unless somebody keeps them in Kubernetes";
            return Some(why.to_owned());
        }
        if let Some(object) = change.remarks.iter().find_map(Remark::unknown) {
            return Some(format!(
                "{object} can't be read, and nobody knows what it was, so that data may go by what it becomes"
            ));
        }
        if change.remarks.iter().any(|remark| matches!(remark, Remark::KeptDisks { .. })) {
            return Some("it would be made over the disks of an earlier cluster of its name".to_owned());
        }
        return match &change.cause {
            Cause::Software { version } => {
                Some(format!("streamfleet {version} causes it, and no edit of a spec"))
            }
            Cause::Upgrade { version, unseen: true } => Some(format!(
                "whether all brokers run Kafka {version} can't be seen from here, and its metadata can't go back"
            )),
            _ if change.verdict == Verdict::DataLoss => {
                Some("it deletes what the cluster keeps now, for good".to_owned())
            }
            _ => None,
        };
    }
    if let Some(Absence::Suspicious { why }) = world.catalog.absent.get(&change.resource) {
        return Some(why.clone());
    }
    let record = world.recorded(&change.resource);
    if record.is_some_and(|record| record.deleting) {
        return None;
    }
    let was_made = change.resource.kind == Kind::Cluster && record.is_some_and(|record| !record.creating);
    if was_made && change.steps.is_empty() {
        // What a lost inventory doesn't know may still be there, and would be nobody's.
        return Some("its fleet's target knows nothing of it, so that it would only be forgotten".to_owned());
    }
    if *free > 0 {
        *free -= 1;
        return None;
    }
    let allowed = world.policy.cluster_deletions_per_hour;
    let clusters = crate::plan::effects::count(allowed.into(), "cluster");
    // To the minute, and never before it is so.
    let minute = |at: Timestamp| {
        at.checked_add(SignedDuration::from_secs(59)).unwrap_or(at).strftime("%H:%M UTC").to_string()
    };
    let until = match (allowed, later.next()) {
        (0, _) => String::new(),
        (_, Some(at)) => {
            format!(", and it is deleted at {} unless it is put back or approved earlier", minute(at))
        }
        (_, None) => {
            ", and it is deleted when the hour is over unless it is put back or approved earlier".to_owned()
        }
    };
    Some(format!("a fleet may lose {clusters} an hour without it{until}"))
}

/// Whether another implementation takes a Gateway over, which nobody can make up for by restarting one thing after another.
/// To put a class back that somebody changed by hand is what the spec says already.
pub(super) fn cuts_off(cause: &Cause, steps: &[Step]) -> bool {
    let class = |gateway: &Json| gateway.value().pointer("/spec/gatewayClassName").cloned();
    let changes = |step: &Step| {
        let (before, after) = (step.before.as_ref(), step.after.as_ref());
        before.zip(after).is_some_and(|(before, after)| class(before) != class(&after.body))
    };
    let drifted = matches!(cause, Cause::Drift { .. });
    !drifted && steps.iter().any(|step| step.object.kind == "Gateway" && changes(step))
}

/// Whether brokers look for what they moved to a bucket in another place, which nobody here can see into.
/// To put back what somebody changed by hand is what the spec says already.
pub(super) fn moves_the_log(cause: &Cause, steps: &[Step]) -> bool {
    let place = |kafka: &Json| {
        let config =
            kafka.value().pointer("/spec/kafka/tieredStorage/remoteStorageManager/config").cloned()?;
        let mut config = config.as_object()?.clone();
        config.retain(|option, _| option.starts_with("storage.") || option == "key.prefix");
        Some(config)
    };
    let changes = |step: &Step| {
        let (before, after) = (step.before.as_ref(), step.after.as_ref());
        let places = before.zip(after).and_then(|(before, after)| place(before).zip(place(&after.body)));
        places.is_some_and(|(before, after)| before != after)
    };
    let drifted = matches!(cause, Cause::Drift { .. });
    !drifted && steps.iter().any(|step| step.object.kind == "Kafka" && changes(step))
}

/// Whether this software by itself asks for another load balancer of a Gateway, by which every cluster behind it is found.
pub(super) fn asks_otherwise(cause: &Cause, steps: &[Step]) -> bool {
    let balancer = |gateway: &Json| gateway.value().pointer("/spec/infrastructure").cloned();
    let changes = |step: &Step| {
        let (before, after) = (step.before.as_ref(), step.after.as_ref());
        before.zip(after).is_some_and(|(before, after)| balancer(before) != balancer(&after.body))
    };
    let by_itself = matches!(cause, Cause::Software { .. });
    by_itself && steps.iter().any(|step| step.object.kind == "Gateway" && changes(step))
}

/// An approval that still holds. One from the future was given before the clock was set back, and ends, too.
fn approval<'a>(world: &World<'a>, fleet: &FleetKey, id: &str) -> Option<&'a Approval> {
    let holds = |approval: &&Approval| {
        let age = age(world.policy.now, approval.at);
        (-SLACK..=world.policy.approval_lifetime).contains(&age)
    };
    given(world, fleet, id).find(holds)
}

/// An approval that seems to have been given in the future. It is void.
fn early<'a>(world: &World<'a>, fleet: &FleetKey, id: &str) -> Option<&'a Approval> {
    given(world, fleet, id).find(|approval| age(world.policy.now, approval.at) < -SLACK)
}

fn given<'a>(world: &World<'a>, fleet: &FleetKey, id: &str) -> impl Iterator<Item = &'a Approval> {
    let approvals = world.recorded.approvals.iter();
    approvals.filter(move |approval| approval.fleet == *fleet && approval.id == id)
}

/// The hash of what is approved: whose objects, what is done to them, which very objects, and what becomes of them; and what
/// else the specs say of the resource, some of which no object shows.
fn id<'a>(changes: impl Iterator<Item = &'a Change>) -> String {
    let step = |step: &Step| {
        let before = step.before.as_ref().map(Json::digest);
        let after = step.after.as_ref().map(|manifest| manifest.body.digest());
        serde_json::json!([step.verb, step.object, step.uid, before, after])
    };
    let change = |change: &Change| {
        let steps: Vec<_> = change.steps.iter().map(step).collect();
        let spec = change.record.as_ref().and_then(|record| Some(record.last_good.as_ref()?.spec.digest()));
        // What became of secrets that were recorded is among the fields.
        let new = change.record.as_ref().filter(|_| change.verb == Verb::Create);
        let sealed: Vec<_> =
            new.iter().flat_map(|new| new.secrets.values()).map(|mark| &mark.sealed).collect();
        serde_json::json!([change.resource, change.verb, steps, change.fields, spec, sealed])
    };
    let digest = Digest::of_json(&changes.map(change).collect());
    digest.as_str().chars().take(ID_LENGTH).collect()
}
