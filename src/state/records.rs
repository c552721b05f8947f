//! The records on disk. Those of resources and objects are the core's types, serialized as they are.
//!
//! Unknown fields are ignored, so a field whose loss does no harm can be added without a new version.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::accounts::BoundAccount;
use crate::catalog::{Approval, Deletion, DurableRecord};
use crate::names::{FleetKey, ResourceKey};

/// The version of the records in `registry.jsonl` and `audit.jsonl`, and of the cache.
pub(super) const VERSION: u32 = 1;

/// The version of a line, which is parsed before anything else.
#[derive(Deserialize)]
pub(super) struct LineVersion {
    pub(super) v: u32,
}

/// A line of `registry.jsonl`: a fact that can't be derived from anything else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub(super) enum RegistryLine {
    Installation { id: Uuid },
    Source { source: String },
    Resource { key: ResourceKey, resource: DurableRecord },
    Removed { key: ResourceKey, at: Timestamp, generation: u32 },
    Deletion { fleet: FleetKey, cluster: ResourceKey, at: Timestamp },
    Approval { fleet: FleetKey, id: String, by: String, at: Timestamp },
    ApprovalUsed { id: String, at: Timestamp },
    TokensMade,
    AccountBound(BoundAccount),
    AccountsReleased { email: String, at: Timestamp },
}

impl RegistryLine {
    /// The resource whose record this line changes.
    pub(super) fn resource(&self) -> Option<&ResourceKey> {
        match self {
            RegistryLine::Resource { key, .. } | RegistryLine::Removed { key, .. } => Some(key),
            RegistryLine::Deletion { cluster, .. } => Some(cluster),
            RegistryLine::Installation { .. }
            | RegistryLine::Source { .. }
            | RegistryLine::Approval { .. }
            | RegistryLine::ApprovalUsed { .. }
            | RegistryLine::TokensMade
            | RegistryLine::AccountBound(_)
            | RegistryLine::AccountsReleased { .. } => None,
        }
    }
}

/// Serializes a record with its version as one line of JSON.
pub(super) fn with_version<T: Serialize>(record: &T) -> String {
    // Records consist of strings, numbers and maps with string keys, so this can't fail.
    let mut value = serde_json::to_value(record).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("v".to_owned(), VERSION.into());
    }
    value.to_string()
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TargetRecord {
    pub(super) observed_at: Timestamp,
}

impl From<Approval> for RegistryLine {
    fn from(Approval { fleet, id, by, at }: Approval) -> RegistryLine {
        RegistryLine::Approval { fleet, id, by, at }
    }
}

impl From<Deletion> for RegistryLine {
    fn from(Deletion { fleet, cluster, at }: Deletion) -> RegistryLine {
        RegistryLine::Deletion { fleet, cluster, at }
    }
}
