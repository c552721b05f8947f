use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::names::{Digest, FleetKey, ObjectKey, ResourceKey};

/// Postponements. A process that plans once remembers nothing and postpones nothing.
#[derive(Debug, Clone, Default)]
pub struct Pauses {
    /// Resources that disappeared from the specs, with the time at which the absence counts.
    pub absent: BTreeMap<ResourceKey, Timestamp>,
    pub flapping: BTreeMap<(FleetKey, ObjectKey), Flapping>,
    pub failed: BTreeMap<FleetKey, Retry>,
    /// Resources whose failure holds up nothing else on their fleet.
    pub failed_alone: BTreeMap<ResourceKey, Retry>,
    /// Resources that were changed without lasting effect.
    pub repeated: BTreeMap<ResourceKey, Repeated>,
    /// Clusters that each fleet lost within the hour by elapsed time, independent of changes to the clock.
    pub lost: BTreeMap<FleetKey, u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flapping {
    pub by: Option<String>,
    /// One of the fields, as a JSON pointer; `None` if the object is deleted.
    pub field: Option<String>,
    pub until: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    pub failed: String,
    /// What mends it; empty if that isn't known.
    pub hint: String,
    pub until: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated {
    /// The digest of the change.
    pub done: Digest,
    /// How often it was made.
    pub times: u32,
    pub until: Timestamp,
}
