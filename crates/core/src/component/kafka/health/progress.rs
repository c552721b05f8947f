//! Changes that are still under way.

use std::fmt;

use super::applied_manifests::{AppliedCluster, WantedPool};
use super::memory::HealthMemory;
use super::pods::PodCount;
use super::view::{ClusterObservation, Counts, KafkaView};
use crate::component::health::words::quoted;

/// A process that is under way. The printed form follows a comma or stands alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum HealthProgress {
    /// Another version is wanted than runs.
    Version {
        /// `Kafka` or `metadata`.
        what: &'static str,
        from: String,
        to: String,
    },
    /// A pool on the target isn't as it was applied.
    NotApplied {
        pool: String,
        /// The number of nodes in its spec; `None` if the pool doesn't exist.
        told: Option<u32>,
        wanted: u32,
    },
    Growing {
        pool: String,
        ready: u32,
        wanted: u32,
    },
    Shrinking {
        pool: String,
        pods: u32,
        wanted: u32,
    },
    /// The pods of a pool are being replaced by a new revision.
    Revision {
        pool: String,
        /// Pods of the new revision that are ready.
        done: u32,
        pods: u32,
    },
    /// Pods are restarted one by one.
    Restarting {
        restarted: u32,
        /// All pods; some may not need a restart.
        of: u32,
        /// The pods that are away now, if known.
        away: Vec<String>,
    },
    Volume {
        claim: String,
        from: String,
        to: String,
        /// Whether the pod has to restart first.
        awaits_restart: bool,
    },
    /// A listener doesn't present the applied certificate yet.
    Certificate {
        listener: String,
    },
    /// Partitions are moved because brokers were added or are being removed.
    Rebalance,
    /// The operator hasn't finished the last change.
    Change,
}

/// Returns everything that is under way; nothing while the cluster is paused.
pub(super) fn of(
    wanted: &AppliedCluster,
    seen: &ClusterObservation,
    pods: &PodCount,
    memory: &HealthMemory,
) -> Vec<HealthProgress> {
    let Some(kafka) = seen.kafka.as_ref().filter(|kafka| !kafka.paused) else { return Vec::new() };
    let mut progress = versions(wanted, kafka);
    progress.extend(pools(wanted, seen, pods, memory));
    let restarts_at = progress.len();
    progress.extend(volumes(seen));
    progress.extend(certificates(wanted, kafka));
    progress.extend(kafka.rebalancing.then_some(HealthProgress::Rebalance));
    let resuming = kafka.conditions.iter().any(|c| c.kind == "ReconciliationPaused" && c.holds);
    let taken_up = seen.pools.values().all(|pool| !pool.is_behind())
        && seen.pod_sets.values().all(|set| !set.behind || set.error);
    progress.extend((kafka.is_behind() || resuming || !taken_up).then_some(HealthProgress::Change));
    let changing = memory.update.is_some() || !progress.is_empty();
    let restarts = changing.then(|| restarts(wanted, seen, pods, memory)).flatten();
    progress.splice(restarts_at..restarts_at, restarts);
    progress
}

fn versions(wanted: &AppliedCluster, kafka: &KafkaView) -> Vec<HealthProgress> {
    let pairs = [
        ("Kafka", &kafka.version, &wanted.version),
        ("metadata", &kafka.metadata_version, &wanted.metadata_version),
    ];
    let differs = |(what, from, to): (&'static str, &Option<String>, &Option<String>)| match (from, to) {
        (Some(from), Some(to)) if from != to => {
            Some(HealthProgress::Version { what, from: from.clone(), to: to.clone() })
        }
        _ => None,
    };
    pairs.into_iter().filter_map(differs).collect()
}

fn pools(
    wanted: &AppliedCluster,
    seen: &ClusterObservation,
    pods: &PodCount,
    memory: &HealthMemory,
) -> Vec<HealthProgress> {
    let of_pool = |(name, pool): (&String, &WantedPool)| {
        let told = seen.pools.get(name).and_then(|pool| pool.replicas);
        if told != Some(pool.replicas) {
            return Some(HealthProgress::NotApplied { pool: name.clone(), told, wanted: pool.replicas });
        }
        let count = pods.pools.get(name).copied().unwrap_or_default();
        let counts = count.counts.unwrap_or_default();
        let working = seen.pools.get(name).and_then(|pool| pool.working_replicas);
        if let Some(ready) =
            count.ready.filter(|ready| *ready < pool.replicas && count.steady < pool.replicas)
        {
            return Some(HealthProgress::Growing { pool: name.clone(), ready, wanted: pool.replicas });
        }
        if counts.pods > pool.replicas && working == Some(pool.replicas) {
            return Some(HealthProgress::Shrinking {
                pool: name.clone(),
                pods: counts.pods,
                wanted: pool.replicas,
            });
        }
        let known = memory.pools.get(name).copied().unwrap_or_default();
        let behind = seen.pod_sets.get(name).is_some_and(|set| set.behind);
        (known.replacing && counts.pods == count.wanted).then(|| HealthProgress::Revision {
            pool: name.clone(),
            done: if behind { 0 } else { replaced(counts, known.restarted) },
            pods: counts.pods,
        })
    };
    wanted.pools.iter().filter_map(of_pool).collect()
}

/// The number of ready pods of the new revision. While a pod is away, no counter says whether it is a new
/// one; the pods that restarted since the change began are ready.
fn replaced(counts: Counts, restarted: u32) -> u32 {
    let all_ready = counts.ready >= counts.pods;
    if all_ready {
        counts.current
    } else {
        counts.current.min(restarted.max(counts.current.saturating_sub(1)))
    }
}

fn restarts(
    wanted: &AppliedCluster,
    seen: &ClusterObservation,
    pods: &PodCount,
    memory: &HealthMemory,
) -> Option<HealthProgress> {
    let restarted = memory.pools.values().map(|pool| pool.restarted).sum();
    // Only the operator restarts pods, and only those of a pool that exists.
    let possible = !seen.operator.is_down() && wanted.pools.keys().all(|name| seen.pools.contains_key(name));
    let restarting = (possible && pods.lost > 0) || restarted > 0;
    let away = pods.troubles.iter().map(|trouble| trouble.pod.clone()).collect();
    restarting.then(|| HealthProgress::Restarting { restarted, of: pods.wanted(), away })
}

fn volumes(seen: &ClusterObservation) -> impl Iterator<Item = HealthProgress> {
    seen.claims.iter().filter(|(_, claim)| claim.is_growing()).map(|(name, claim)| HealthProgress::Volume {
        claim: name.clone(),
        from: claim.capacity.clone().unwrap_or_default(),
        to: claim.requested.clone().unwrap_or_default(),
        awaits_restart: claim.awaits_restart,
    })
}

fn certificates(wanted: &AppliedCluster, kafka: &KafkaView) -> impl Iterator<Item = HealthProgress> {
    let differs = |listener: &&super::view::Listener| {
        let wanted = wanted.certificates.get(&listener.name);
        wanted.is_some() && listener.certificate.is_some() && listener.certificate.as_ref() != wanted
    };
    kafka.listeners.iter().filter(differs).map(|l| HealthProgress::Certificate { listener: l.name.clone() })
}

impl HealthProgress {
    /// Whether it is under way at this moment. The count of restarts stays until the change has ended, even
    /// while no pod is away.
    pub(super) fn is_active(&self, pods: &PodCount) -> bool {
        !matches!(self, HealthProgress::Restarting { .. }) || pods.lost > 0
    }
}

impl fmt::Display for HealthProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HealthProgress::Version { what, from, to } => write!(f, "{what} {from} → {to}"),
            HealthProgress::NotApplied { pool, told: Some(told), wanted } => {
                write!(f, "pool {} is set to {told} nodes and should have {wanted}", quoted(pool))
            }
            HealthProgress::NotApplied { pool, told: None, .. } => {
                write!(f, "pool {} is missing", quoted(pool))
            }
            HealthProgress::Growing { pool, ready, wanted } => {
                write!(f, "pool {} grows: {ready} of {wanted} pods are ready", quoted(pool))
            }
            HealthProgress::Shrinking { pool, pods, wanted } => {
                write!(f, "pool {} shrinks: {pods} pods, {wanted} wanted", quoted(pool))
            }
            HealthProgress::Revision { pool, done, pods } => {
                write!(f, "the pods of pool {} are replaced: {done} of {pods} done", quoted(pool))
            }
            HealthProgress::Restarting { restarted, of, away } => {
                write!(f, "rolling restart: {restarted} of up to {of} pods restarted")?;
                match away.as_slice() {
                    [] => Ok(()),
                    names => write!(f, ", away: {}", names.join(", ")),
                }
            }
            HealthProgress::Volume { claim, from, to, awaits_restart } => {
                let why = if *awaits_restart { ", which waits for a restart of its pod" } else { "" };
                write!(f, "volume {} grows from {from} to {to}{why}", quoted(claim))
            }
            HealthProgress::Certificate { listener } => {
                write!(f, "listener {} doesn't use the new certificate yet", quoted(listener))
            }
            HealthProgress::Rebalance => f.write_str("partitions are being moved"),
            HealthProgress::Change => f.write_str("the operator is applying the last change"),
        }
    }
}
