//! Follows a change from its first sign until everything is quiet again.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::applied_manifests::AppliedCluster;
use super::memory::{HealthMemory, OngoingChange, PoolMemory, TroubleSign, Voters};
use super::pods::{PodCount, PoolCount};
use super::progress::HealthProgress;
use super::report::{OperatorReport, ReportMeaning};
use super::view::{ClusterObservation, Pod};
use crate::component::health::timing::QUIET_PERIOD;

pub(super) fn follow(
    memory: &mut HealthMemory,
    wanted: &AppliedCluster,
    seen: &ClusterObservation,
    pods: &PodCount,
    report: &OperatorReport,
    progress: &[HealthProgress],
    now: Timestamp,
) {
    let kafka = seen.kafka.as_ref();
    let follows = memory.succeeded.is_some() && kafka.is_some_and(|kafka| !kafka.paused);
    let active = progress.iter().any(|p| p.is_active(pods));
    memory.update = match memory.update {
        _ if !follows => None,
        _ if active => {
            let behind = kafka.is_some_and(|kafka| kafka.is_behind());
            let began = memory.update.map_or(now, |update| update.began);
            Some(OngoingChange {
                began,
                last: now,
                announced: behind || report.meaning != ReportMeaning::Ready,
            })
        }
        Some(update) if !has_ended(update, report, now) && !memory.restarts_nothing(wanted) => Some(update),
        _ => None,
    };
    if memory.update.is_none() {
        forget_restarts(memory, seen);
        memory.settle(wanted);
    }
    if pods.lost == 0 && memory.lasted(TroubleSign::NoQuorum, now).is_none() {
        memory.loss_told = false;
    }
    learn_voters(memory, seen, pods, report);
}

fn has_ended(update: OngoingChange, report: &OperatorReport, now: Timestamp) -> bool {
    let announced =
        update.announced && (report.meaning == ReportMeaning::Ready || report.says(ReportMeaning::Refused));
    announced || now.duration_since(update.last) >= QUIET_PERIOD
}

/// Updates the memory of each pool: ready pods, pods restarted since the change began, and whether pods are
/// being replaced. Pods that return from a reported loss don't count as restarts.
pub(super) fn count_restarts(
    memory: &mut HealthMemory,
    seen: &ClusterObservation,
    pods: &PodCount,
    now: Timestamp,
) {
    let old = |pool: &PoolCount| pool.counts.is_some_and(|counts| counts.current < counts.pods);
    memory.note(TroubleSign::OldRevision, pods.pools.values().any(old), now);
    let lasting = memory.has_lasted_debounce(TroubleSign::OldRevision, now);
    let updating = memory.update.is_some();
    let replaced = replaced_pods(memory, seen);
    let told = memory.loss_told;
    memory.pools.retain(|name, _| pods.pools.contains_key(name));
    for (name, pool) in &pods.pools {
        let Some(ready) = pool.ready else { continue };
        let known = memory.pools.entry(name.clone()).or_insert(PoolMemory {
            ready,
            steady: pool.steady,
            ..PoolMemory::default()
        });
        let back = match &replaced {
            Some(replaced) => replaced.get(name).copied().unwrap_or_default(),
            None if updating => ready.min(known.steady).saturating_sub(known.ready),
            None => 0,
        };
        known.restarted = known.restarted.saturating_add(if told { 0 } else { back });
        // Only once the operator has taken up a new spec of a pod set do its counts show whether the spec
        // replaces pods.
        let taken_up = seen.pod_sets.get(name).filter(|set| !set.behind && !set.error);
        let generation = taken_up.and_then(|set| set.generation);
        let changed = generation.is_some() && known.generation.is_some() && generation != known.generation;
        let unfinished = old(pool) || ready < pool.wanted;
        known.replacing = unfinished && (known.replacing || (old(pool) && (lasting || changed)));
        known.generation = generation.or(known.generation);
        known.counts = pool.counts;
        known.steady = if ready >= pool.wanted { ready } else { known.steady.max(ready) };
        known.ready = ready;
    }
}

/// Counts the ready pods of each pool that replaced a pod of the same name since the last count; `None` if
/// pods aren't watched. Without an earlier observation, creation times decide: pods of the change that is
/// under way are younger than the operator's last report.
fn replaced_pods(memory: &mut HealthMemory, seen: &ClusterObservation) -> Option<BTreeMap<String, u32>> {
    let pods = seen.pods.as_ref()?;
    let known = memory.pods.take();
    let said = seen.kafka.iter().flat_map(|kafka| &kafka.conditions).map(|condition| &condition.written);
    let said = said.filter_map(|written| written.parse::<Timestamp>().ok()).max();
    let is_younger = |pod: &Pod| {
        let created = pod.created.as_ref().and_then(|created| created.parse().ok());
        created.zip(said).map(|(created, said): (Timestamp, Timestamp)| created > said)
    };
    let is_another = |name: &str, pod: &Pod| match &known {
        Some(known) => {
            known.get(name).is_some_and(|uid| *uid != identity(pod)) && is_younger(pod) != Some(false)
        }
        None => is_younger(pod) == Some(true),
    };
    let mut counted = BTreeMap::new();
    let mut next = known.clone().unwrap_or_default();
    next.retain(|name, _| pods.contains_key(name) || memory.update.is_some());
    for (name, pod) in pods.iter().filter(|(_, pod)| pod.ready) {
        let Some(pool) = &pod.pool else { continue };
        if is_another(name, pod) {
            *counted.entry(pool.clone()).or_default() += 1;
        }
        next.insert(name.clone(), identity(pod));
    }
    memory.pods = Some(next);
    Some(counted)
}

/// Distinguishes a pod from its predecessor of the same name.
fn identity(pod: &Pod) -> String {
    pod.uid.clone().unwrap_or_default()
}

/// Resets the counts when no change is under way; the next change starts from the pods that exist now.
fn forget_restarts(memory: &mut HealthMemory, seen: &ClusterObservation) {
    for pool in memory.pools.values_mut() {
        pool.restarted = 0;
    }
    if let Some(pods) = &seen.pods {
        let of_pools = pods.iter().filter(|(_, pod)| pod.pool.is_some());
        memory.pods = Some(of_pools.map(|(name, pod)| (name.clone(), identity(pod))).collect());
    }
}

/// Learns the number of voting controllers while all is well. A higher number is believed at once. A lower
/// one is believed only after the operator has finished a later change, for which it needs a quorum.
fn learn_voters(
    memory: &mut HealthMemory,
    seen: &ClusterObservation,
    pods: &PodCount,
    report: &OperatorReport,
) {
    let well = memory.update.is_none() && memory.succeeded.is_some() && pods.is_complete();
    let Some(count) = pods.controllers().filter(|_| well && report.meaning == ReportMeaning::Ready) else {
        return;
    };
    let learnt_at = seen.kafka.as_ref().and_then(|kafka| kafka.observed_generation);
    let believed = memory.voters.is_none_or(|known| count >= known.count || learnt_at > known.learnt_at);
    if believed {
        memory.voters = Some(Voters { count, learnt_at });
    }
}
