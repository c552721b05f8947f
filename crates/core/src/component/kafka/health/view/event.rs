use serde_json::Value;

use crate::component::health::reading::text;

/// A view of an Event. Ordered by time.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesEvent {
    /// When it was last seen, as written: RFC 3339, which sorts as text.
    pub last: String,
    pub kind: String,
    pub name: String,
    pub warning: bool,
    /// One word: `ProvisioningFailed`.
    pub reason: String,
    pub message: String,
}

impl KubernetesEvent {
    pub(super) fn read(object: &Value) -> Option<Self> {
        let word = |key| text(object, &[key]).unwrap_or_default();
        let times = ["lastTimestamp", "eventTime", "firstTimestamp"];
        Some(Self {
            last: times.iter().find_map(|key| text(object, &[key])).unwrap_or_default(),
            kind: text(object, &["involvedObject", "kind"])?,
            name: text(object, &["involvedObject", "name"])?,
            warning: word("type") == "Warning",
            reason: word("reason"),
            message: word("message"),
        })
    }
}
