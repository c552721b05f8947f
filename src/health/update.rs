//! Following a change from its first sign until all is still again.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::memory::{Memory, PoolMemory, Sign, Voters};
use super::pods::{PodCount, PoolCount};
use super::progress::Progress;
use super::report::{Meaning, Report};
use super::view::{Pod, Seen};
use super::{SETTLE, Wanted};

/// A change that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Update {
    /// When it began.
    pub began: Timestamp,
    /// When something was last under way.
    pub last: Timestamp,
    /// Whether the operator will say when it has finished: its status was behind, or not `Ready`.
    pub announced: bool,
}

/// Brings the memory of the change and of the voters up to date.
pub(super) fn follow(
    memory: &mut Memory,
    wanted: &Wanted,
    seen: &Seen,
    pods: &PodCount,
    report: &Report,
    progress: &[Progress],
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
            Some(Update { began, last: now, announced: behind || report.meaning != Meaning::Ready })
        }
        Some(update) if !has_ended(update, report, now) && !memory.restarts_nothing(wanted) => Some(update),
        _ => None,
    };
    if memory.update.is_none() {
        forget_restarts(memory, seen);
        memory.settle(wanted);
    }
    if pods.lost == 0 && memory.lasted(Sign::NoQuorum, now).is_none() {
        memory.loss_told = false;
    }
    learn_voters(memory, seen, pods, report);
}

fn has_ended(update: Update, report: &Report, now: Timestamp) -> bool {
    let announced = update.announced && (report.meaning == Meaning::Ready || report.says(Meaning::Refused));
    announced || now.duration_since(update.last) >= SETTLE
}

/// Brings the memory of each pool up to date: what was ready, what has come back since the change began, and whether its
/// pods are being replaced. What comes back from a loss that a person was told of is no restart.
pub(super) fn count_restarts(memory: &mut Memory, seen: &Seen, pods: &PodCount, now: Timestamp) {
    let old = |pool: &PoolCount| pool.counts.is_some_and(|counts| counts.current < counts.pods);
    memory.note(Sign::OldRevision, pods.pools.values().any(old), now);
    let lasting = memory.lasts(Sign::OldRevision, now);
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
        // Whether another spec of a pod set replaces pods shows when it has been taken up.
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

/// How many pods of each pool are ready that took the place of another one of their name, since that was last counted; none where
/// pods aren't watched. Whoever looks for the first time goes by when pods were made: those of the change that is under way are
/// younger than what the operator last said.
fn replaced_pods(memory: &mut Memory, seen: &Seen) -> Option<BTreeMap<String, u32>> {
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

/// What a pod is told from another one of its name by.
fn identity(pod: &Pod) -> String {
    pod.uid.clone().unwrap_or_default()
}

/// Forgets what was counted when no change is under way: what pods there are then is what the next one begins with.
fn forget_restarts(memory: &mut Memory, seen: &Seen) {
    for pool in memory.pools.values_mut() {
        pool.restarted = 0;
    }
    if let Some(pods) = &seen.pods {
        let of_pools = pods.iter().filter(|(_, pod)| pod.pool.is_some());
        memory.pods = Some(of_pools.map(|(name, pod)| (name.clone(), identity(pod))).collect());
    }
}

/// Learns how many controllers vote when all is well. More may be believed at once; fewer only when the operator has
/// finished with a later change since, for which it needs a quorum.
fn learn_voters(memory: &mut Memory, seen: &Seen, pods: &PodCount, report: &Report) {
    let well = memory.update.is_none() && memory.succeeded.is_some() && pods.is_complete();
    let Some(count) = pods.controllers().filter(|_| well && report.meaning == Meaning::Ready) else { return };
    let learnt_at = seen.kafka.as_ref().and_then(|kafka| kafka.observed_generation);
    let believed = memory.voters.is_none_or(|known| count >= known.count || learnt_at > known.learnt_at);
    if believed {
        memory.voters = Some(Voters { count, learnt_at });
    }
}
