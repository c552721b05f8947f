//! Reads records for planning: all resources at once, and the objects of a fleet on demand.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::IgnoredAny;

use super::cache::Table;
use super::records::TargetRecord;
use super::registry::RegistryContents;
use super::{State, StateError, object_prefix, parse_object_key, text};
use crate::catalog::{
    CachedRecord, DurableRecord, Recorded, RecordedFleet, RecordedObject, RecordedResource, Records,
};
use crate::names::{FleetKey, ObjectKey, ResourceKey};
use crate::parallel::locked;
use crate::spec::SourceId;

/// The resource records of the last read.
#[derive(Default)]
pub(super) struct ResourceRecordCache {
    /// None if all have to be read.
    records: Option<Records>,
    /// The resources that were written since.
    touched: BTreeSet<ResourceKey>,
    /// The cache's count of reopenings at the last read. Everything is read again when it has changed.
    reopened: u64,
}

impl State {
    /// Reads everything that planning needs from earlier rounds.
    pub fn recorded(&self) -> Result<Recorded, StateError> {
        let mut recorded = self.recorded_resources()?;
        for fleet in self.fleets()? {
            let objects = self.recorded_fleet(&fleet)?;
            recorded.fleets.insert(fleet, objects);
        }
        Ok(recorded)
    }

    /// As [`State::recorded`] without the objects of fleets, which are nearly all of it.
    /// [`State::recorded_fleet`] reads those.
    pub fn recorded_resources(&self) -> Result<Recorded, StateError> {
        // Lock order: the registry before `recalled`.
        let registry = locked(&self.registry);
        let facts = &registry.facts;
        Ok(Recorded {
            installation: facts.installation.unwrap_or_default(),
            source: facts.source.clone().map(SourceId),
            resources: self.records(facts)?,
            generations: facts.generations.clone(),
            remembered_ids: BTreeMap::new(),
            removed: BTreeSet::new(),
            fleets: BTreeMap::new(),
            approvals: facts.approvals.clone(),
            deletions: facts.deletions.clone(),
        })
    }

    pub fn recorded_resource(&self, key: &ResourceKey) -> Result<Option<RecordedResource>, StateError> {
        let cached = self.cache.get(Table::Resources, text(key.clone()).as_bytes())?;
        let registry = locked(&self.registry);
        Ok(registry.facts.resources.get(key).map(|durable| whole(durable, cached)))
    }

    /// Returns the records of all resources. Later calls read only what was written since.
    fn records(&self, facts: &RegistryContents) -> Result<Records, StateError> {
        let mut recalled = locked(&self.recalled);
        let reopened = self.cache.reopened();
        // Reopening the cache may have lost writes.
        let known = recalled.records.take().filter(|_| recalled.reopened == reopened);
        let touched = std::mem::take(&mut recalled.touched);
        let records = match known {
            Some(mut records) => {
                for key in touched {
                    match facts.resources.get(&key) {
                        Some(durable) => {
                            let cached = self.cache.get(Table::Resources, text(key.clone()).as_bytes())?;
                            let record = whole(durable, cached);
                            // Unchanged records stay shared.
                            if records.get(&key) != Some(&record) {
                                records.insert(key, record);
                            }
                        }
                        None if records.contains_key(&key) => drop(records.remove(&key)),
                        None => {}
                    }
                }
                records
            }
            None => self.read_records(facts)?,
        };
        *recalled =
            ResourceRecordCache { records: Some(records.clone()), touched: BTreeSet::new(), reopened };
        Ok(records)
    }

    fn read_records(&self, facts: &RegistryContents) -> Result<Records, StateError> {
        let (cached, unreadable) = self.cache.scan::<CachedRecord>(Table::Resources, b"")?;
        let mut cached: BTreeMap<Vec<u8>, CachedRecord> = cached.into_iter().collect();
        self.warn_unreadable(unreadable);
        let records = facts.resources.iter().map(|(key, durable)| {
            let cached = cached.remove(text(key.clone()).as_bytes());
            (key.clone(), whole(durable, cached))
        });
        Ok(records.collect())
    }

    /// Marks resources to be read again. Call it after a write, even one that failed.
    pub(super) fn touched(&self, keys: impl IntoIterator<Item = ResourceKey>) {
        locked(&self.recalled).touched.extend(keys);
    }

    /// The fleets with any record about their target.
    pub fn fleets(&self) -> Result<BTreeSet<FleetKey>, StateError> {
        let (targets, _) = self.cache.scan::<IgnoredAny>(Table::Targets, b"")?;
        let seen = targets.into_iter().map(|(key, _)| key);
        let objects = self.cache.groups(Table::Objects, 0)?;
        let keys = seen.chain(objects).filter_map(|key| String::from_utf8(key).ok());
        Ok(keys.filter_map(|key| FleetKey::try_from(key).ok()).collect())
    }

    pub fn recorded_fleet(&self, fleet: &FleetKey) -> Result<RecordedFleet, StateError> {
        let seen: Option<TargetRecord> = self.cache.get(Table::Targets, fleet.to_string().as_bytes())?;
        let (found, unreadable) = self.cache.scan::<RecordedObject>(Table::Objects, &object_prefix(fleet))?;
        let count = found.len();
        let objects: BTreeMap<_, _> =
            found.into_iter().filter_map(|(key, it)| Some((parse_object_key(&key)?.1, it))).collect();
        self.warn_unreadable(unreadable + count - objects.len());
        Ok(RecordedFleet { observed_at: seen.map(|seen| seen.observed_at), objects })
    }

    fn warn_unreadable(&self, count: usize) {
        let warning = format!("cannot read {count} records of the cache; the next rounds write them again");
        let mut warnings = locked(&self.warnings);
        if count > 0 && !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    pub fn has_objects(&self, fleet: &FleetKey) -> Result<bool, StateError> {
        self.cache.has_any(Table::Objects, &object_prefix(fleet))
    }

    /// The recorded objects of a fleet. Unreadable ones are left out.
    pub fn objects(&self, fleet: &FleetKey) -> Result<BTreeMap<ObjectKey, RecordedObject>, StateError> {
        Ok(self.recorded_fleet(fleet)?.objects)
    }
}

/// Joins the two parts of a record. Without the cache's part, its content is unknown.
fn whole(durable: &DurableRecord, cached: Option<CachedRecord>) -> RecordedResource {
    let cached = cached.unwrap_or_else(|| CachedRecord::lost(durable.created_at));
    RecordedResource { durable: durable.clone(), cached }
}
