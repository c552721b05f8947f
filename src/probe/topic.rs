//! The topic of the probe: which partition shows that a broker can write, and what is missing.
//!
//! Its partitions follow the brokers of the plan. Which brokers are alive now decides nothing but when a partition
//! is added, and no partition is ever moved: a probe that does so makes a broker's restart worse.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep};

use super::conversation::Conversation;
use super::requests::{ClusterMetadata, CreatePartitions, CreateTopic, Metadata, Partition};
use crate::component::probe::{ProbeFailure, ProbeOrder};

/// Error codes of Kafka (`org.apache.kafka.common.protocol.Errors`).
const UNKNOWN_TOPIC: i16 = 3;
const NO_LEADER: i16 = 5;
const TIMED_OUT: i16 = 7;
const NOT_CONTROLLER: i16 = 41;
const EXISTS: i16 = 36;

/// The pause before metadata is asked for again.
const PAUSE: Duration = Duration::from_millis(100);

/// Which partition belongs to which broker of the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// The partition of each broker and the broker that leads it; the latter is negative if there is none.
    pub assigned: BTreeMap<u32, Assignment>,
    /// Every partition with its leader.
    pub leaders: BTreeMap<i32, i32>,
    /// Why a broker without a partition wasn't given one.
    pub refused: BTreeMap<u32, ProbeFailure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment {
    pub partition: i32,
    pub leader: i32,
}

impl Layout {
    /// A broker's partition is the one that it is the first replica of, which is where Kafka returns its
    /// leadership to; otherwise one that it leads.
    pub fn new(order: &ProbeOrder, partitions: &[Partition]) -> Layout {
        let mut assigned = BTreeMap::new();
        for id in order.brokers.keys() {
            let is = |number: i32| u32::try_from(number) == Ok(*id);
            let own = |it: &&Partition| it.replicas.first().is_some_and(|first| is(*first));
            let leads = |it: &&Partition| is(it.leader);
            let mut own = partitions.iter().filter(own).collect::<Vec<_>>();
            own.sort_by_key(|it| (!leads(it), it.index));
            let found =
                own.first().copied().or_else(|| partitions.iter().filter(leads).min_by_key(|it| it.index));
            if let Some(Partition { index, leader, .. }) = found {
                assigned.insert(*id, Assignment { partition: *index, leader: *leader });
            }
        }
        let leaders = partitions.iter().map(|it| (it.index, it.leader)).collect();
        Layout { assigned, leaders, refused: BTreeMap::new() }
    }

    /// The most partitions that the topic gets. Kafka can't remove one, so brokers that come and go must not add
    /// to them for ever.
    fn most(order: &ProbeOrder) -> usize {
        3 * order.brokers.len() + 8
    }

    /// The brokers of the plan without a partition. Those that the cluster doesn't list can't be given one: they
    /// are still to come.
    fn without_partition(&self, order: &ProbeOrder, metadata: &ClusterMetadata) -> Vec<u32> {
        let is_listed = |id: u32| metadata.brokers.iter().any(|it| u32::try_from(it.id) == Ok(id));
        let missing = order.brokers.keys().copied().filter(|id| !self.assigned.contains_key(id));
        missing.filter(|id| is_listed(*id)).collect()
    }
}

/// Reads the topic's layout. If the topic is missing, it is created; if a broker has no partition, one is added.
///
/// # Errors
/// With Kafka's refusal, or what ended the conversation.
pub async fn ensure<S: AsyncRead + AsyncWrite + Unpin>(
    broker: &mut Conversation<S>,
    order: &ProbeOrder,
    deadline: Instant,
) -> Result<Layout, ProbeFailure> {
    let (mut created, mut added) = (false, false);
    let mut refused = BTreeMap::new();
    loop {
        let metadata = broker.ask(&Metadata { with_topic: true }).await?;
        let is_over = Instant::now() >= deadline;
        match &metadata.topic {
            Some((UNKNOWN_TOPIC, _)) if !created => match create(broker, order).await? {
                0 | EXISTS => created = true,
                NOT_CONTROLLER | TIMED_OUT if !is_over => {}
                code => return Err(ProbeFailure::Topic { attempted: "create the probe's topic", code }),
            },
            // The answering broker may hear of the topic a moment later than the controller.
            Some((UNKNOWN_TOPIC | NO_LEADER, _)) if !is_over => {}
            Some((0 | NO_LEADER, partitions)) => {
                let layout = Layout { refused: refused.clone(), ..Layout::new(order, partitions) };
                let missing = layout.without_partition(order, &metadata);
                let room = Layout::most(order).saturating_sub(partitions.len());
                if !missing.is_empty() && !added && missing.len() <= room {
                    added = true;
                    if let Some(failure) = add(broker, order, (partitions, &missing)).await? {
                        refused = missing.into_iter().map(|id| (id, failure.clone())).collect();
                    }
                } else if is_over || !((created || added) && layout.is_young(&missing)) {
                    return Ok(layout);
                }
            }
            Some((code, _)) => {
                return Err(ProbeFailure::Topic { attempted: "read the probe's topic", code: *code });
            }
            None => return Err(ProbeFailure::Garbled),
        }
        sleep(PAUSE).await;
    }
}

impl Layout {
    /// Whether something that was just created isn't there yet.
    fn is_young(&self, missing: &[u32]) -> bool {
        let is_coming = missing.iter().any(|id| !self.refused.contains_key(id));
        is_coming || self.leaders.values().any(|leader| *leader < 0)
    }
}

async fn create<S: AsyncRead + AsyncWrite + Unpin>(
    broker: &mut Conversation<S>,
    order: &ProbeOrder,
) -> Result<i16, ProbeFailure> {
    let replicas = |id: &u32| order.replicas(*id, order.replication());
    let replicas: Vec<_> = order.brokers.keys().map(replicas).collect();
    Ok(broker.ask(&CreateTopic { replicas: &replicas, timeout_ms: broker.patience_ms() }).await?)
}

/// Adds a partition for each of these brokers, with as many replicas as the others have: Kafka wants it so.
async fn add<S: AsyncRead + AsyncWrite + Unpin>(
    broker: &mut Conversation<S>,
    order: &ProbeOrder,
    (partitions, missing): (&[Partition], &[u32]),
) -> Result<Option<ProbeFailure>, ProbeFailure> {
    let count = partitions.first().map_or(order.replication(), |it| it.replicas.len());
    let replicas: Vec<_> = missing.iter().map(|id| order.replicas(*id, count)).collect();
    let count = i32::try_from(partitions.len() + missing.len()).unwrap_or(i32::MAX);
    let request = CreatePartitions { count, replicas: &replicas, timeout_ms: broker.patience_ms() };
    Ok(match broker.ask(&request).await? {
        0 => None,
        code => Some(ProbeFailure::Topic { attempted: "add a partition to the probe's topic", code }),
    })
}

#[cfg(test)]
mod tests;
