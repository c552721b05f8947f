//! What happened and what is happening: entries of the journal, the audit trail, and how things are.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::cache::Table;
use super::records::StatusRecord;
use super::{Event, EventMark, State, StateError, text};
use crate::catalog::ResourceStatus;
use crate::names::{FleetKey, ResourceKey};
use crate::parallel::locked;
use crate::spec::Commit;

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
    /// The commit that asked for it, where the specs come from a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// The resource that it was done to; none where it is about the installation, and in lines of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceKey>,
    /// Whether a super user did it, who need not be a member of the resource's organization.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_super_user: bool,
}

impl AuditEntry {
    /// What somebody did that is about no plan, no commit and no single resource.
    pub fn new(at: Timestamp, who: impl Into<String>, what: impl Into<String>) -> Self {
        let (plan, commit, resource, by_super_user) = (None, None, None, false);
        Self { at, who: who.into(), what: what.into(), plan, commit, resource, by_super_user }
    }
}

impl State {
    /// Records that a step begins. A fleet does one at a time.
    ///
    /// # Errors
    /// When the cache can't be written.
    pub fn journal_begin(&self, entry: &JournalEntry) -> Result<(), StateError> {
        self.cache.put(Table::Journal, entry.fleet.to_string().as_bytes(), entry)
    }

    /// Records that a fleet's running step is done.
    ///
    /// # Errors
    /// When the cache can't be written.
    pub fn journal_done(&self, fleet: &FleetKey) -> Result<(), StateError> {
        self.cache.remove(Table::Journal, fleet.to_string().as_bytes())
    }

    /// The steps that were begun and not finished, by fleet.
    ///
    /// # Errors
    /// When the cache can't be read.
    pub fn journal_unfinished(&self) -> Result<Vec<JournalEntry>, StateError> {
        let (entries, _) = self.cache.scan(Table::Journal, b"")?;
        Ok(entries.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Records decisions and outcomes, for whoever wants to know what happened lately. That this can't be done stops nothing.
    pub fn record_events(&self, events: Vec<Event>) {
        if let Err(error) = locked(&self.events).add(events) {
            tracing::warn!(%error, "could not record what happened");
        }
    }

    /// The events from this number on, the oldest first.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn events_from(&self, number: u64) -> Result<Vec<Event>, StateError> {
        let part = locked(&self.events).from(number)?;
        part.read()
    }

    /// The numbers of the events that are wanted, the oldest first. None is read for that.
    pub fn find_events(&self, wanted: impl Fn(&EventMark) -> bool) -> Vec<u64> {
        let events = locked(&self.events);
        events.marks().iter().filter(|mark| wanted(mark)).map(|mark| mark.number).collect()
    }

    /// The events of these numbers, in this order; those that are gone by now are left out.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn events(&self, numbers: &[u64]) -> Result<Vec<Event>, StateError> {
        let part = locked(&self.events).numbered(numbers)?;
        part.read()
    }

    /// Adds what a person did to the audit trail, waits until it is on disk, and records it among the events.
    ///
    /// # Errors
    /// When the audit trail can't be written.
    pub fn audit_person(&self, entry: &AuditEntry) -> Result<(), StateError> {
        self.audit(entry)?;
        self.record_events(vec![entry.into()]);
        Ok(())
    }

    /// Records how a resource is, with what the next judgement has to remember of it. While the word stays the same, so does
    /// the time since when.
    ///
    /// # Errors
    /// When the cache can't be written.
    pub fn put_status(
        &self,
        key: &ResourceKey,
        status: &ResourceStatus,
        memory: &impl Serialize,
    ) -> Result<(), StateError> {
        let mut status = status.clone();
        if let Some(before) = self.status(key)?.filter(|before| before.status == status.status) {
            status.since = before.since;
        }
        let record = StatusRecord::of(&status, memory);
        self.cache.put(Table::Status, text(key.clone()).as_bytes(), &record)
    }

    /// What the last judgement of a resource remembered; none where there was none, or an older version wrote it.
    ///
    /// # Errors
    /// When the cache can't be read.
    pub fn memory<T: DeserializeOwned>(&self, key: &ResourceKey) -> Result<Option<T>, StateError> {
        let record: Option<StatusRecord> = self.cache.get(Table::Status, text(key.clone()).as_bytes())?;
        Ok(record.and_then(StatusRecord::memory))
    }

    /// How a resource was when that was last recorded.
    ///
    /// # Errors
    /// When the cache can't be read.
    pub fn status(&self, key: &ResourceKey) -> Result<Option<ResourceStatus>, StateError> {
        let record: Option<StatusRecord> = self.cache.get(Table::Status, text(key.clone()).as_bytes())?;
        Ok(record.and_then(|record| record.try_into().ok()))
    }
}
