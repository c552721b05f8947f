use serde_json::Value;

use crate::component::health::reading::{annotated, deleting, holds, text};
use crate::names::quantity;

/// A view of a PersistentVolumeClaim.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VolumeClaimView {
    pub class: Option<String>,
    pub created: Option<String>,
    /// Whether it has no volume yet.
    pub pending: bool,
    pub requested: Option<String>,
    pub capacity: Option<String>,
    /// Whether the volume has grown and its file system waits for a restart of the pod.
    pub awaits_restart: bool,
    /// Whether it is deleted with its node, or already being deleted.
    pub deleted_with_node: bool,
}

impl VolumeClaimView {
    pub(super) fn read(object: &Value) -> Self {
        Self {
            class: text(object, &["spec", "storageClassName"]),
            created: text(object, &["metadata", "creationTimestamp"]),
            pending: text(object, &["status", "phase"]).as_deref() == Some("Pending"),
            requested: text(object, &["spec", "resources", "requests", "storage"]),
            capacity: text(object, &["status", "capacity", "storage"]),
            awaits_restart: holds(object, "FileSystemResizePending"),
            deleted_with_node: deleting(object)
                || annotated(object, "strimzi.io/delete-claim").as_deref() == Some("true"),
        }
    }

    /// Whether its volume has yet to reach the requested size. A claim without a volume isn't growing.
    pub fn is_growing(&self) -> bool {
        let size = |text: &Option<String>| text.as_deref().and_then(quantity);
        matches!((size(&self.requested), size(&self.capacity)), (Some(asked), Some(has)) if has < asked)
    }
}
