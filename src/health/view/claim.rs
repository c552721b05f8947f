//! A PersistentVolumeClaim.

use serde_json::Value;

use crate::names::quantity;

use super::reading::{annotated, deleting, holds, text};

/// What a claim on a volume says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claim {
    /// Its storage class.
    pub class: Option<String>,
    /// When it was made, as it is written.
    pub created: Option<String>,
    /// Whether it has no volume yet.
    pub pending: bool,
    /// How much it asks for, as it is written.
    pub requested: Option<String>,
    /// How much it has, as it is written.
    pub capacity: Option<String>,
    /// Whether the volume has grown and its file system waits for the pod's restart.
    pub awaits_restart: bool,
    /// Whether it goes when its node goes: it was told so, or its deletion was asked for.
    pub goes: bool,
}

impl Claim {
    pub(super) fn read(object: &Value) -> Self {
        Self {
            class: text(object, &["spec", "storageClassName"]),
            created: text(object, &["metadata", "creationTimestamp"]),
            pending: text(object, &["status", "phase"]).as_deref() == Some("Pending"),
            requested: text(object, &["spec", "resources", "requests", "storage"]),
            capacity: text(object, &["status", "capacity", "storage"]),
            awaits_restart: holds(object, "FileSystemResizePending"),
            goes: deleting(object) || annotated(object, "strimzi.io/delete-claim").as_deref() == Some("true"),
        }
    }

    /// Whether its volume has yet to become as large as it asks for. One without a volume isn't growing.
    pub fn is_growing(&self) -> bool {
        let size = |text: &Option<String>| text.as_deref().and_then(quantity);
        matches!((size(&self.requested), size(&self.capacity)), (Some(asked), Some(has)) if has < asked)
    }
}
