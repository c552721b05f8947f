//! What happened and what is happening: entries of the journal, events and the audit trail.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::names::{FleetKey, ResourceKey};

/// A step that was begun and not finished: something is doing it now, or was interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// The plan's id.
    pub plan: String,
    /// The fleet that the step is done on.
    pub fleet: FleetKey,
    /// Which of the fleet's steps it is, counted from 0.
    pub step: u32,
    /// What it does, for a person: `create KafkaNodePool kafka-acme--orders/broker`.
    pub description: String,
    /// When it was begun.
    pub at: Timestamp,
}

/// A decision or an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// Who made it happen.
    pub actor: String,
    /// The plan's id, where there was one.
    #[serde(default)]
    pub plan: Option<String>,
    /// The resource that it is about; none where it is about the installation.
    #[serde(default)]
    pub resource: Option<ResourceKey>,
    /// What happened: `created`.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A line of the audit trail, which is kept for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// Who did it.
    pub who: String,
    /// What was done: `created cluster acme/orders`.
    pub what: String,
    /// The plan's id, where there was one.
    #[serde(default)]
    pub plan: Option<String>,
}
