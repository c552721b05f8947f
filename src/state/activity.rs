//! Journal, audit trail, events and memories of health: what happened and what is happening.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::cache::Table;
use super::{EventIndexEntry, RecordedEvent, State, StateError, text};
use crate::names::{FleetKey, ResourceKey};
use crate::parallel::locked;

/// A step that began and hasn't finished: it is running, or was interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    pub plan: String,
    pub fleet: FleetKey,
    /// The index of the step in the fleet's plan, from 0.
    pub step: u32,
    /// The step in words: `create KafkaNodePool kafka-acme--orders/broker`.
    pub description: String,
    pub at: Timestamp,
}

impl State {
    /// Records that a step begins. A fleet runs one step at a time.
    pub fn journal_begin(&self, entry: &JournalEntry) -> Result<(), StateError> {
        self.cache.put(Table::Journal, entry.fleet.to_string().as_bytes(), entry)
    }

    /// Records that a fleet's running step is done.
    pub fn journal_done(&self, fleet: &FleetKey) -> Result<(), StateError> {
        self.cache.remove(Table::Journal, fleet.to_string().as_bytes())
    }

    /// The unfinished steps, by fleet.
    pub fn journal_unfinished(&self) -> Result<Vec<JournalEntry>, StateError> {
        let (entries, _) = self.cache.scan(Table::Journal, b"")?;
        Ok(entries.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Records events. A failure is logged and stops nothing.
    pub fn record_events(&self, events: Vec<RecordedEvent>) {
        if let Err(error) = locked(&self.events).add(events) {
            tracing::warn!(%error, hint = error.hint(), "cannot record events");
        }
        self.heard.send_replace(());
    }

    /// Tells of each addition of events from now on.
    pub fn hear_events(&self) -> watch::Receiver<()> {
        self.heard.subscribe()
    }

    /// The numbers of the first events from a number on that match, the oldest first, and the number from which
    /// to continue.
    pub fn find_events_from(
        &self,
        number: u64,
        most: usize,
        wanted: impl Fn(&EventIndexEntry) -> bool,
    ) -> (Vec<u64>, u64) {
        let events = locked(&self.events);
        let begin = events.marks().partition_point(|mark| mark.number < number);
        let (mut found, mut next) = (Vec::new(), number);
        for mark in &events.marks()[begin..] {
            if found.len() == most {
                break;
            }
            next = mark.number + 1;
            if wanted(mark) {
                found.push(mark.number);
            }
        }
        (found, next)
    }

    /// The numbers of the events that match, the oldest first. It needs no access to the disk.
    pub fn find_events(&self, wanted: impl Fn(&EventIndexEntry) -> bool) -> Vec<u64> {
        let events = locked(&self.events);
        events.marks().iter().filter(|mark| wanted(mark)).map(|mark| mark.number).collect()
    }

    /// The events with these numbers, in this order. Those that were dropped by now are left out.
    pub fn events(&self, numbers: &[u64]) -> Result<Vec<RecordedEvent>, StateError> {
        let part = locked(&self.events).numbered(numbers)?;
        part.read()
    }

    /// Adds lines to the audit trail, with one sync to disk.
    pub fn audit(&self, events: Vec<RecordedEvent>) -> Result<(), StateError> {
        locked(&self.audit).add(events)
    }

    /// Adds a person's action to the audit trail, waits until it is on disk, and records it as a recent event.
    pub fn audit_person(&self, event: RecordedEvent) -> Result<(), StateError> {
        self.audit(vec![event.clone()])?;
        self.record_events(vec![event]);
        Ok(())
    }

    /// Records what the judgement of a resource leaves to the next one.
    pub fn put_memory(&self, key: &ResourceKey, memory: &impl Serialize) -> Result<(), StateError> {
        // A memory that can't be serialized is dropped; losing it does little harm.
        let memory = serde_json::to_value(memory).unwrap_or_default();
        self.cache.put(Table::Status, text(key.clone()).as_bytes(), &json!({ "memory": memory }))
    }

    /// The memory of the last judgement of a resource; none if there was none, or another version wrote it.
    pub fn memory<T: DeserializeOwned>(&self, key: &ResourceKey) -> Result<Option<T>, StateError> {
        let record: Option<Value> = self.cache.get(Table::Status, text(key.clone()).as_bytes())?;
        let memory = record.and_then(|mut record| Some(record.get_mut("memory")?.take()));
        Ok(memory.and_then(|memory| serde_json::from_value(memory).ok()))
    }
}
