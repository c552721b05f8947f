use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::component::health::reading::{count, holds, number};

/// A view of a StrimziPodSet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PodSet {
    pub generation: Option<u64>,
    /// Whether the operator has yet to take up its present spec.
    pub behind: bool,
    /// `None` before they are first written.
    pub counts: Option<Counts>,
    /// Whether a reconciliation failed. All counts are 0 then and mean nothing.
    pub error: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Pods that the set should have or still has.
    pub pods: u32,
    pub ready: u32,
    /// Pods of the present revision.
    pub current: u32,
}

impl PodSet {
    pub(super) fn read(object: &Value) -> Self {
        let counted = |key| count(object, &["status", key]);
        let generation: Option<u64> = number(object, &["metadata", "generation"]);
        let observed: Option<u64> = number(object, &["status", "observedGeneration"]);
        Self {
            generation,
            behind: matches!((generation, observed), (Some(new), Some(old)) if old < new),
            counts: counted("pods").map(|pods| Counts {
                pods,
                ready: counted("readyPods").unwrap_or_default(),
                current: counted("currentPods").unwrap_or_default(),
            }),
            error: holds(object, "Error"),
        }
    }
}
