//! Following a change from its first sign until all is still again.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::SETTLE;
use super::memory::{Memory, PoolMemory, Sign, Voters};
use super::pods::{PodCount, PoolCount};
use super::progress::Progress;
use super::report::{Meaning, Report};
use super::view::Seen;

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
        Some(update) if !has_ended(update, report, now) => Some(update),
        _ => None,
    };
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
    let restarting = updating && !memory.loss_told;
    memory.pools.retain(|name, _| pods.pools.contains_key(name));
    for (name, pool) in &pods.pools {
        let Some(ready) = pool.ready else { continue };
        let known = memory.pools.entry(name.clone()).or_insert(PoolMemory {
            ready,
            steady: pool.steady,
            ..PoolMemory::default()
        });
        let back = if restarting { ready.min(known.steady).saturating_sub(known.ready) } else { 0 };
        known.restarted = if updating { known.restarted.saturating_add(back) } else { 0 };
        let behind = seen.pod_sets.get(name).is_some_and(|set| set.behind);
        let unfinished = old(pool) || ready < pool.wanted;
        known.replacing = behind || (unfinished && (known.replacing || (lasting && old(pool))));
        known.counts = pool.counts;
        known.steady = if ready >= pool.wanted { ready } else { known.steady.max(ready) };
        known.ready = ready;
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
