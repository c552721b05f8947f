//! Counts pods against what was applied.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::applied_manifests::AppliedCluster;
use super::memory::{HealthMemory, TroubleSign, Voters};
use super::scale_down::pending_destructions;
use super::trouble::{self, PodTrouble, TroubleKind};
use super::view::{ClusterObservation, Counts, NodePoolView};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PodCount {
    pub pools: BTreeMap<String, PoolCount>,
    /// How many of the wanted pods were ready and no longer are.
    pub lost: u32,
    /// Why pods aren't ready, the worst first. Empty if pods aren't watched.
    pub troubles: Vec<PodTrouble>,
    /// Why other pods aren't ready: those of the entity operator, Cruise Control and Kafka Exporter.
    pub helpers: Vec<PodTrouble>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PoolCount {
    /// Includes pods that can't be removed yet.
    pub wanted: u32,
    pub ready: Option<u32>,
    /// How many were ready when the cluster was last well.
    pub steady: u32,
    /// The pod set's counts; `None` if unknown.
    pub counts: Option<Counts>,
    pub controller: bool,
}

pub(super) fn count(
    wanted: &AppliedCluster,
    seen: &ClusterObservation,
    memory: &mut HealthMemory,
    now: Timestamp,
) -> PodCount {
    memory.note(TroubleSign::PodSetError, seen.pod_sets.values().any(|set| set.error), now);
    let mut pods = PodCount::default();
    let held_back = pending_destructions(seen);
    for (name, pool) in &wanted.pools {
        // While a scale-down waits for brokers to be empty, the brokers that it would remove are still
        // needed.
        let needed = held_back.iter().find(|held| held.pool == *name).map_or(pool.replicas, |held| held.from);
        let counts = counts(seen, memory, name, now);
        let ready = ready(seen, name, counts);
        let steady = memory.pools.get(name).map_or_else(|| at_first_look(seen, memory, name), |m| m.steady);
        let missing = steady.min(needed).saturating_sub(ready.unwrap_or(steady));
        pods.lost += missing;
        if ready.is_some_and(|ready| ready < needed) {
            pods.troubles.extend(trouble::of_pool(wanted, seen, name));
        }
        let count = PoolCount { wanted: needed, ready, steady, counts, controller: pool.controller };
        pods.pools.insert(name.clone(), count);
    }
    pods.troubles.sort();
    let helpers = seen.pods.iter().flatten().filter(|(_, pod)| pod.helper && !pod.ready);
    pods.helpers = helpers.map(|(name, pod)| trouble::of_pod(wanted, seen, name, pod)).collect();
    pods.helpers.sort();
    note_signs(&pods, memory, now);
    pods
}

/// Returns the number of ready pods of a pool. Pods themselves take precedence over the pod set's counts.
fn ready(seen: &ClusterObservation, pool: &str, counts: Option<Counts>) -> Option<u32> {
    let Some(pods) = &seen.pods else { return counts.map(|counts| counts.ready) };
    let ready = pods.values().filter(|pod| pod.pool.as_deref() == Some(pool) && pod.ready).count();
    u32::try_from(ready).ok()
}

/// Returns the counts of a pod set. The operator does the counting, so nothing is known while it is down. If
/// the pod set reports an error, all its counts are 0, and the previous counts are used until the error has
/// lasted.
fn counts(seen: &ClusterObservation, memory: &HealthMemory, pool: &str, now: Timestamp) -> Option<Counts> {
    if seen.operator.is_down() {
        return None;
    }
    let Some(set) = seen.pod_sets.get(pool) else { return Some(Counts::default()) };
    if set.error && !memory.has_lasted_debounce(TroubleSign::PodSetError, now) {
        return memory.pools.get(pool).and_then(|known| known.counts);
    }
    Some(set.counts.unwrap_or_default())
}

/// Returns how many pods of a pool must have been ready before it was first observed: for a cluster that has
/// worked, the number that the operator works towards.
fn at_first_look(seen: &ClusterObservation, memory: &HealthMemory, pool: &str) -> u32 {
    let is_first = memory.succeeded.is_some() && memory.pools.is_empty();
    let working = |pool: &NodePoolView| pool.working_replicas;
    seen.pools.get(pool).and_then(working).filter(|_| is_first).unwrap_or_default()
}

fn note_signs(pods: &PodCount, memory: &mut HealthMemory, now: Timestamp) {
    let has = |test: fn(TroubleKind) -> bool| pods.troubles.iter().any(|trouble| test(trouble.kind));
    memory.note(TroubleSign::Lost, pods.lost > 0, now);
    memory.note(TroubleSign::LostMany, pods.lost > 1, now);
    memory.note(TroubleSign::Stuck, has(TroubleKind::is_stuck), now);
    memory.note(TroubleSign::Broken, has(TroubleKind::is_broken), now);
    memory.note(TroubleSign::StuckHelper, pods.helpers.iter().any(|trouble| trouble.kind.is_stuck()), now);
    memory.note(TroubleSign::Unschedulable, pods.unschedulable().is_some(), now);
    let no_quorum = memory.voters.is_some_and(|voters| pods.lost_quorum(voters));
    memory.note(TroubleSign::NoQuorum, no_quorum, now);
}

impl PodCount {
    pub(super) fn wanted(&self) -> u32 {
        self.pools.values().map(|pool| pool.wanted).sum()
    }

    pub(super) fn ready(&self) -> u32 {
        self.pools.values().map(|pool| pool.ready.unwrap_or_default().min(pool.wanted)).sum()
    }

    /// Whether every wanted pod is known to be ready.
    pub(super) fn is_complete(&self) -> bool {
        self.pools.values().all(|pool| pool.ready.is_some_and(|ready| ready >= pool.wanted))
    }

    pub(super) fn unschedulable(&self) -> Option<&PodTrouble> {
        let mut all = self.troubles.iter().chain(&self.helpers);
        all.find(|trouble| trouble.kind == TroubleKind::Unschedulable)
    }

    /// The number of ready controllers; `None` if unknown.
    pub(super) fn controllers(&self) -> Option<u32> {
        self.pools.values().filter(|pool| pool.controller).map(|pool| pool.ready).sum()
    }

    /// Whether too few controllers are ready for a majority. A single controller restarts like any other pod.
    fn lost_quorum(&self, voters: Voters) -> bool {
        voters.count > 1 && self.controllers().is_some_and(|ready| ready <= voters.count / 2)
    }
}
