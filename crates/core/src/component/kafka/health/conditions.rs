//! Conditions: facts about a cluster beside its status.

use jiff::Timestamp;

use super::applied_manifests::AppliedCluster;
use super::memory::{HealthMemory, TroubleSign};
use super::scale_down::{PendingDestruction, SCALE_DOWN_PREVENTION, pending_destructions, warnings};
use super::trouble;
use super::view::{ClusterObservation, VolumeClaimView};
use crate::catalog::Condition;
use crate::component::health::reading::OperatorCondition;
use crate::component::health::timing::{DEADLINE, DEBOUNCE};
use crate::component::health::words::{brief, quoted};
use crate::component::strimzi::health::OperatorState;
use crate::names::quantity;

/// The operator's warnings that mean that the spec isn't what runs, and our explanation of each. All other
/// warnings are only informative and shown in the operator's words.
const MEANT: [(&str, &str); 3] = [
    (
        "KafkaStorage",
        "the operator ignores every change of storage, because one of them isn't allowed (volumes only grow, and keep \
         their class): revert it",
    ),
    ("PvcResizingWarning", "a volume can't grow"),
    ("MetadataUpdateFailed", "the metadata keeps its version"),
];

/// Returns the conditions of a cluster. A warning makes it Degraded once it has lasted since the last change
/// of the spec; before that, the operator may not have seen the change.
pub(super) fn of(
    wanted: &AppliedCluster,
    seen: &ClusterObservation,
    memory: &mut HealthMemory,
    now: Timestamp,
) -> Vec<Condition> {
    let armed = !pending_destructions(seen).is_empty();
    let warned = armed || warnings(seen).any(|warning| meaning(warning).is_some());
    memory.note(TroubleSign::Warned, warned, now);
    let current = memory.verdict_is_fresh() || memory.since_change(now) >= DEBOUNCE;
    let tell = memory.has_lasted_debounce(TroubleSign::Warned, now) && current;
    let rebalancing = seen.kafka.as_ref().is_some_and(|kafka| kafka.rebalancing);
    let mut conditions = scale_downs(seen, tell && !rebalancing);
    conditions.extend(warnings(seen).filter(|warning| warning.reason != SCALE_DOWN_PREVENTION).map(
        |warning| Condition {
            kind: warning.reason.clone(),
            degraded: tell && meaning(warning).is_some(),
            message: match meaning(warning) {
                Some(meaning) => format!("{meaning} ({})", brief(first_sentence(&warning.message))),
                None => brief(&warning.message),
            },
        },
    ));
    conditions.extend(entity_operator(wanted, seen, memory, now));
    conditions.extend(users(seen, memory));
    conditions.extend(kept_disks(wanted, seen, memory, now));
    conditions.extend(of_the_operator(seen, memory, now));
    conditions.extend(of_components(seen, memory, now));
    conditions.sort_by(|a, b| (&a.kind, &a.message).cmp(&(&b.kind, &b.message)));
    conditions.dedup();
    conditions
}

/// The second sentence of the operator's message is about its log.
fn first_sentence(message: &str) -> &str {
    message.split(". ").next().unwrap_or(message)
}

/// The explanation of a warning, if the warning needs a person.
fn meaning(warning: &OperatorCondition) -> Option<&'static str> {
    MEANT.iter().find(|(reason, _)| *reason == warning.reason).map(|(_, meaning)| *meaning)
}

/// The armed scale-downs. The operator's warning stays for some seconds after the scale-down has begun, so
/// the caller decides whether they are `degraded`.
fn scale_downs(seen: &ClusterObservation, degraded: bool) -> Vec<Condition> {
    let condition = |pending: PendingDestruction| Condition {
        kind: SCALE_DOWN_PREVENTION.to_owned(),
        degraded,
        message: pending.to_string(),
    };
    pending_destructions(seen).into_iter().map(condition).collect()
}

/// The condition of an entity operator that isn't ready. It restarts during a change, as the plan says, so it
/// needs a person only if it can't start or doesn't return in time.
fn entity_operator(
    wanted: &AppliedCluster,
    seen: &ClusterObservation,
    memory: &mut HealthMemory,
    now: Timestamp,
) -> Option<Condition> {
    let asked = seen.kafka.as_ref().is_some_and(|kafka| kafka.entity_operator) && memory.succeeded.is_some();
    let pods = seen.pods.as_ref().filter(|_| asked)?;
    let found = || pods.iter().filter(|(_, pod)| pod.entity_operator);
    let ready = found().any(|(_, pod)| pod.ready);
    memory.note(TroubleSign::NoEntityOperator, !ready, now);
    if ready {
        return None;
    }
    let trouble = found().map(|(name, pod)| trouble::of_pod(wanted, seen, name, pod)).min();
    let is_stuck = trouble.as_ref().is_some_and(|trouble| trouble.kind.is_stuck());
    let is_stuck = is_stuck && memory.has_lasted_debounce(TroubleSign::StuckHelper, now);
    let overdue = memory.lasted(TroubleSign::NoEntityOperator, now).is_some_and(|lasted| lasted >= DEADLINE);
    let restarts = memory.update.is_some() && !is_stuck && !overdue;
    let why = trouble.map_or("it has no pod".to_owned(), |t| format!("pod {} {}", quoted(&t.pod), t.why));
    Some(Condition {
        kind: "EntityOperatorNotReady".to_owned(),
        degraded: memory.has_lasted_debounce(TroubleSign::NoEntityOperator, now) && !restarts,
        message: format!("users and topics aren't synchronized: {why}"),
    })
}

/// The disks of removed nodes, which keep their data and their cost. Debounced, since the disk of an added
/// node appears a moment before the operator lists the node.
fn kept_disks(
    wanted: &AppliedCluster,
    seen: &ClusterObservation,
    memory: &mut HealthMemory,
    now: Timestamp,
) -> Option<Condition> {
    let is_kept = |name: &str, claim: &VolumeClaimView| {
        let (pool, id) = name.rsplit_once('-')?;
        let id: u32 = id.parse().ok()?;
        let of_pool = |pool_name: &String| pool.ends_with(&format!("-{}-{pool_name}", wanted.cluster));
        let (_, pool) = seen.pools.iter().find(|(pool_name, _)| of_pool(pool_name))?;
        let is_removed = !pool.node_ids.is_empty() && !pool.node_ids.contains(&id);
        let has_pod =
            seen.pods.iter().flatten().any(|(pod, _)| seen.claims_of(pod).any(|(it, _)| it == name));
        Some(is_removed && !has_pod && !claim.deleted_with_node)
    };
    let kept = seen.claims.iter().filter(|(name, claim)| is_kept(name, claim).unwrap_or_default());
    let kept: Vec<(&String, &VolumeClaimView)> = kept.filter(|_| !wanted.deleting).collect();
    memory.note(TroubleSign::KeptDisks, !kept.is_empty(), now);
    let (first, _) = kept.first().filter(|_| memory.has_lasted_debounce(TroubleSign::KeptDisks, now))?;
    let size =
        |claim: &VolumeClaimView| claim.capacity.as_deref().or(claim.requested.as_deref()).and_then(quantity);
    let bytes: f64 = kept.iter().filter_map(|(_, claim)| size(claim)).sum();
    let gib = (bytes / f64::from(1 << 30)).ceil();
    let (first, namespace) = (quoted(first), &wanted.namespace);
    let which = match kept.len() {
        1 => format!("disk {first} of a removed node is kept, with {gib} GiB"),
        many => format!("{many} disks of removed nodes are kept, such as {first}, with {gib} GiB in all"),
    };
    let message = format!(
        "{which}; a node that is added again reuses its disk; delete unneeded disks by hand in namespace {namespace}"
    );
    Some(Condition { kind: "DisksKept".to_owned(), degraded: false, message })
}

/// Users without credentials. Only one that the operator failed to create needs a person.
fn users(seen: &ClusterObservation, memory: &HealthMemory) -> Vec<Condition> {
    let waiting = seen.users.iter().filter(|(_, user)| !user.ready);
    let condition = |(name, user): (&String, &super::view::User)| Condition {
        kind: "UserNotReady".to_owned(),
        degraded: user.failure.is_some() && memory.succeeded.is_some(),
        message: match &user.failure {
            Some(failure) => format!(
                "user {} can't be created: {}: {}",
                quoted(name),
                failure.reason,
                brief(&failure.message)
            ),
            None => format!("user {} has no credentials yet", quoted(name)),
        },
    };
    waiting.map(condition).collect()
}

/// The operator is down. This is the fleet's trouble: the cluster keeps running, but nothing changes.
fn of_the_operator(
    seen: &ClusterObservation,
    memory: &mut HealthMemory,
    now: Timestamp,
) -> Option<Condition> {
    memory.note(TroubleSign::NoOperator, seen.operator.is_down(), now);
    if !memory.has_lasted_debounce(TroubleSign::NoOperator, now) {
        return None;
    }
    let name = match &seen.operator {
        OperatorState::Missing => "it has no Deployment".to_owned(),
        OperatorState::Found { name, ready: 0, .. } => format!("{} has no ready pod", quoted(name)),
        _ => return None,
    };
    let message = format!("changes and lost pods wait for the Strimzi operator: {name}");
    Some(Condition { kind: "OperatorDown".to_owned(), degraded: false, message })
}

/// The troubles of the components beside Kafka. One that degrades does so once it has lasted, as Kafka's own,
/// and not before the cluster has worked: a new one starts with all of its components.
fn of_components(seen: &ClusterObservation, memory: &mut HealthMemory, now: Timestamp) -> Vec<Condition> {
    memory.note_troubles(&seen.troubles, now);
    let condition = |trouble: &Condition| {
        let lasted = memory.succeeded.is_some() && memory.trouble_has_lasted(&trouble.kind, now);
        Condition { degraded: trouble.degraded && lasted, ..trouble.clone() }
    };
    seen.troubles.iter().map(condition).collect()
}
