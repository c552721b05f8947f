//! Scale-downs that the operator refuses while brokers hold partitions, and does by itself afterwards.

use super::view::{ClusterObservation, NodePoolView};
use crate::component::health::reading::OperatorCondition;
use crate::component::health::words::quoted;

/// The operator's warning that a scale-down waits until its brokers are empty, and our condition that says
/// what will be removed.
pub const SCALE_DOWN_PREVENTION: &str = "ScaleDownPreventionCheck";

/// A removal that the operator will do by itself, without another change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingDestruction {
    pub pool: String,
    pub from: u32,
    pub to: u32,
    /// The ids of the nodes to be removed: the highest ones.
    pub nodes: Vec<u32>,
}

impl std::fmt::Display for PendingDestruction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pool, from, to, nodes } = self;
        let ids = nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let nodes = if nodes.len() == 1 { format!("node {ids} has") } else { format!("nodes {ids} have") };
        write!(
            f,
            "the operator will shrink pool {} from {from} to {to} nodes as soon as {nodes} no partition; set the number \
             back to {from} to keep it",
            quoted(pool)
        )
    }
}

/// Returns the armed scale-downs: refused while brokers hold partitions, and executed without asking once
/// they don't.
pub(super) fn pending_destructions(seen: &ClusterObservation) -> Vec<PendingDestruction> {
    let armed = warnings(seen).any(|warning| warning.reason == SCALE_DOWN_PREVENTION);
    let shrinks = |(name, pool): (&String, &NodePoolView)| {
        let (to, from) = (pool.replicas?, pool.working_replicas?);
        let kept = pool.node_ids.len().saturating_sub(from.saturating_sub(to) as usize);
        let nodes = pool.node_ids.get(kept..).unwrap_or_default().to_vec();
        (to < from).then(|| PendingDestruction { pool: name.clone(), from, to, nodes })
    };
    seen.pools.iter().filter(|_| armed).filter_map(shrinks).collect()
}

/// The operator's warnings about the cluster and its pools.
pub(super) fn warnings(seen: &ClusterObservation) -> impl Iterator<Item = &OperatorCondition> {
    let of_kafka = seen.kafka.iter().flat_map(|kafka| &kafka.conditions);
    let of_pools = seen.pools.values().flat_map(|pool| &pool.conditions);
    of_kafka.chain(of_pools).filter(|condition| condition.kind == "Warning" && condition.holds)
}
