//! What is still under way.

use std::fmt;

use super::Wanted;
use super::memory::Memory;
use super::pods::PodCount;
use super::reason::quoted;
use super::view::{Counts, Kafka, Seen};

/// Something that is under way. What it prints follows a comma or stands alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// Another version is wanted than runs.
    Version {
        /// What has the version: `Kafka`, `metadata`.
        what: &'static str,
        /// The version that runs.
        from: String,
        /// The version that is wanted.
        to: String,
    },
    /// A pool isn't on the target as it is wanted.
    NotApplied {
        /// The pool.
        pool: String,
        /// How many nodes it is told to have; none where it doesn't exist.
        told: Option<u32>,
        /// How many are wanted.
        wanted: u32,
    },
    /// A pool gets more pods.
    Growing {
        /// The pool.
        pool: String,
        /// How many are ready.
        ready: u32,
        /// How many are wanted.
        wanted: u32,
    },
    /// A pool gets fewer pods.
    Shrinking {
        /// The pool.
        pool: String,
        /// How many there are.
        pods: u32,
        /// How many are wanted.
        wanted: u32,
    },
    /// The pods of a pool are replaced by those of a new revision.
    Revision {
        /// The pool.
        pool: String,
        /// How many are of the new revision and ready.
        done: u32,
        /// How many there are.
        pods: u32,
    },
    /// Pods are restarted one by one.
    Restarting {
        /// How many have come back.
        restarted: u32,
        /// How many there are; some may not need a restart.
        of: u32,
        /// Those that are away now, where that is known.
        away: Vec<String>,
    },
    /// A volume grows.
    Volume {
        /// Its claim.
        claim: String,
        /// Its present size.
        from: String,
        /// The size that it is to have.
        to: String,
        /// Whether the pod has to be restarted for it.
        awaits_restart: bool,
    },
    /// A listener doesn't show the wanted certificate yet.
    Certificate {
        /// The listener.
        listener: String,
    },
    /// Partitions are moved because brokers come or go.
    Rebalance,
    /// The operator hasn't finished with the last change.
    Change,
}

/// Everything that is under way. Nothing is while the operator is told to leave the cluster alone.
pub(super) fn of(wanted: &Wanted, seen: &Seen, pods: &PodCount, memory: &Memory) -> Vec<Progress> {
    let Some(kafka) = seen.kafka.as_ref().filter(|kafka| !kafka.paused) else { return Vec::new() };
    let mut progress = versions(wanted, kafka);
    progress.extend(pools(wanted, seen, pods, memory));
    let restarts_at = progress.len();
    progress.extend(volumes(seen));
    progress.extend(certificates(wanted, kafka));
    progress.extend(kafka.rebalancing.then_some(Progress::Rebalance));
    let resuming = kafka.conditions.iter().any(|c| c.kind == "ReconciliationPaused" && c.holds);
    let taken_up = seen.pools.values().all(|pool| !pool.is_behind())
        && seen.pod_sets.values().all(|set| !set.behind || set.error);
    progress.extend((kafka.is_behind() || resuming || !taken_up).then_some(Progress::Change));
    let changing = memory.update.is_some() || !progress.is_empty();
    let restarts = changing.then(|| restarts(wanted, seen, pods, memory)).flatten();
    progress.splice(restarts_at..restarts_at, restarts);
    progress
}

fn versions(wanted: &Wanted, kafka: &Kafka) -> Vec<Progress> {
    let pairs = [
        ("Kafka", &kafka.version, &wanted.version),
        ("metadata", &kafka.metadata_version, &wanted.metadata_version),
    ];
    let differs = |(what, from, to): (&'static str, &Option<String>, &Option<String>)| match (from, to) {
        (Some(from), Some(to)) if from != to => {
            Some(Progress::Version { what, from: from.clone(), to: to.clone() })
        }
        _ => None,
    };
    pairs.into_iter().filter_map(differs).collect()
}

fn pools(wanted: &Wanted, seen: &Seen, pods: &PodCount, memory: &Memory) -> Vec<Progress> {
    let of_pool = |(name, pool): (&String, &super::WantedPool)| {
        let told = seen.pools.get(name).and_then(|pool| pool.replicas);
        if told != Some(pool.replicas) {
            return Some(Progress::NotApplied { pool: name.clone(), told, wanted: pool.replicas });
        }
        let count = pods.pools.get(name).copied().unwrap_or_default();
        let counts = count.counts.unwrap_or_default();
        let working = seen.pools.get(name).and_then(|pool| pool.working_replicas);
        if let Some(ready) =
            count.ready.filter(|ready| *ready < pool.replicas && count.steady < pool.replicas)
        {
            return Some(Progress::Growing { pool: name.clone(), ready, wanted: pool.replicas });
        }
        if counts.pods > pool.replicas && working == Some(pool.replicas) {
            return Some(Progress::Shrinking {
                pool: name.clone(),
                pods: counts.pods,
                wanted: pool.replicas,
            });
        }
        let known = memory.pools.get(name).copied().unwrap_or_default();
        let behind = seen.pod_sets.get(name).is_some_and(|set| set.behind);
        (known.replacing && counts.pods == count.wanted).then(|| Progress::Revision {
            pool: name.clone(),
            done: if behind { 0 } else { replaced(counts, known.restarted) },
            pods: counts.pods,
        })
    };
    wanted.pools.iter().filter_map(of_pool).collect()
}

/// How many pods are of the new revision and ready. While a pod is away, whether it is the newest isn't counted anywhere:
/// those that came back since the change began are ready.
fn replaced(counts: Counts, restarted: u32) -> u32 {
    let all_ready = counts.ready >= counts.pods;
    if all_ready {
        counts.current
    } else {
        counts.current.min(restarted.max(counts.current.saturating_sub(1)))
    }
}

fn restarts(wanted: &Wanted, seen: &Seen, pods: &PodCount, memory: &Memory) -> Option<Progress> {
    let restarted = memory.pools.values().map(|pool| pool.restarted).sum();
    // Only the operator restarts pods, and only those of a pool that exists.
    let possible = !seen.operator.is_down() && wanted.pools.keys().all(|name| seen.pools.contains_key(name));
    let restarting = (possible && pods.lost > 0) || restarted > 0;
    let away = pods.troubles.iter().map(|trouble| trouble.pod.clone()).collect();
    restarting.then(|| Progress::Restarting { restarted, of: pods.wanted(), away })
}

fn volumes(seen: &Seen) -> impl Iterator<Item = Progress> {
    seen.claims.iter().filter(|(_, claim)| claim.is_growing()).map(|(name, claim)| Progress::Volume {
        claim: name.clone(),
        from: claim.capacity.clone().unwrap_or_default(),
        to: claim.requested.clone().unwrap_or_default(),
        awaits_restart: claim.awaits_restart,
    })
}

fn certificates(wanted: &Wanted, kafka: &Kafka) -> impl Iterator<Item = Progress> {
    let differs = |listener: &&super::view::Listener| {
        let wanted = wanted.certificates.get(&listener.name);
        wanted.is_some() && listener.certificate.is_some() && listener.certificate.as_ref() != wanted
    };
    kafka.listeners.iter().filter(differs).map(|l| Progress::Certificate { listener: l.name.clone() })
}

impl Progress {
    /// Whether it is under way at this moment. The count of restarts stays until the change has ended, also while no
    /// pod is away.
    pub(super) fn is_active(&self, pods: &PodCount) -> bool {
        !matches!(self, Progress::Restarting { .. }) || pods.lost > 0
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Version { what, from, to } => write!(f, "{what} {from} → {to}"),
            Progress::NotApplied { pool, told: Some(told), wanted } => {
                write!(f, "pool {} is told to have {told} nodes and should have {wanted}", quoted(pool))
            }
            Progress::NotApplied { pool, told: None, .. } => write!(f, "pool {} is missing", quoted(pool)),
            Progress::Growing { pool, ready, wanted } => {
                write!(f, "pool {} grows: {ready} of {wanted} pods are ready", quoted(pool))
            }
            Progress::Shrinking { pool, pods, wanted } => {
                write!(f, "pool {} shrinks: {pods} pods, {wanted} wanted", quoted(pool))
            }
            Progress::Revision { pool, done, pods } => {
                write!(f, "the pods of pool {} are replaced: {done} of {pods} done", quoted(pool))
            }
            Progress::Restarting { restarted, of, away } => {
                write!(f, "rolling restart: {restarted} of up to {of} pods restarted")?;
                match away.as_slice() {
                    [] => Ok(()),
                    names => write!(f, ", away: {}", names.join(", ")),
                }
            }
            Progress::Volume { claim, from, to, awaits_restart } => {
                let why = if *awaits_restart { ", which waits for a restart of its pod" } else { "" };
                write!(f, "volume {} grows from {from} to {to}{why}", quoted(claim))
            }
            Progress::Certificate { listener } => {
                write!(f, "listener {} doesn't show the new certificate yet", quoted(listener))
            }
            Progress::Rebalance => f.write_str("partitions are being moved"),
            Progress::Change => f.write_str("the operator is applying the last change"),
        }
    }
}
