use serde_json::Value;

use crate::component::health::reading::OperatorCondition;
use crate::component::health::reading::{conditions, count, items, number};

/// A view of a KafkaNodePool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodePoolView {
    pub generation: Option<u64>,
    /// The generation that the operator last took up. Written before any pod is restarted.
    pub observed_generation: Option<u64>,
    pub replicas: Option<u32>,
    /// The number of nodes that the operator works towards; more than `replicas` while a scale-down is
    /// refused.
    pub working_replicas: Option<u32>,
    pub node_ids: Vec<u32>,
    pub conditions: Vec<OperatorCondition>,
}

impl NodePoolView {
    pub(super) fn read(object: &Value) -> Self {
        let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
        let mut node_ids: Vec<u32> = items(object, &["status", "nodeIds"]).filter_map(id).collect();
        node_ids.sort_unstable();
        Self {
            generation: number(object, &["metadata", "generation"]),
            observed_generation: number(object, &["status", "observedGeneration"]),
            replicas: count(object, &["spec", "replicas"]),
            working_replicas: count(object, &["status", "replicas"]),
            node_ids,
            conditions: conditions(object),
        }
    }

    /// Whether the operator has yet to take up the present spec.
    pub fn is_behind(&self) -> bool {
        matches!((self.generation, self.observed_generation), (Some(new), Some(old)) if old < new)
    }
}
