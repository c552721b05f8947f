//! The sizes of clusters over time, from which their costs follow: an append-only file. A line says that an object of
//! a cluster has another size since a time; an object that is gone has none.
//!
//! There is no file before the first cluster. Writes don't wait for the disk before the next flush, as those to the
//! cache: after a crash, the next run compares the recorded objects with the file again.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::lines::{AppendFile, read_whole, whole_length};
use super::{State, StateError, entries, folder};
use crate::catalog::RecordedObject;
use crate::component::{self, Size};
use crate::names::{FleetKey, Kind, ObjectKey, ResourceKey};
use crate::parallel::locked;

pub(super) const FILE: &str = "sizes.jsonl";

/// The size of an object since a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SizeLine {
    at: Timestamp,
    fleet: FleetKey,
    cluster: ResourceKey,
    /// The cluster's id. A cluster that was deleted and created again has another one.
    id: Uuid,
    object: ObjectKey,
    #[serde(default)]
    size: RecordedSize,
}

impl entries::Record for SizeLine {
    const IS_SUMMED: bool = true;
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct RecordedSize {
    brokers: u64,
    controllers: u64,
    cpu_millis: u64,
    memory_mib: u64,
    disk_gib: u64,
    balanced_listeners: u64,
    other_load_balancers: u64,
    pods: u64,
}

impl From<Size> for RecordedSize {
    fn from(size: Size) -> Self {
        let Size {
            brokers,
            controllers,
            cpu_millis,
            memory_mib,
            disk_gib,
            balanced_listeners,
            other_load_balancers,
            pods,
        } = size;
        Self {
            brokers,
            controllers,
            cpu_millis,
            memory_mib,
            disk_gib,
            balanced_listeners,
            other_load_balancers,
            pods,
        }
    }
}

impl From<RecordedSize> for Size {
    fn from(size: RecordedSize) -> Self {
        let RecordedSize {
            brokers,
            controllers,
            cpu_millis,
            memory_mib,
            disk_gib,
            balanced_listeners,
            other_load_balancers,
            pods,
        } = size;
        Self {
            brokers,
            controllers,
            cpu_millis,
            memory_mib,
            disk_gib,
            balanced_listeners,
            other_load_balancers,
            pods,
        }
    }
}

/// The recorded sizes of one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSizes {
    pub id: Uuid,
    pub cluster: ResourceKey,
    pub fleet: FleetKey,
    /// In the order in which they were recorded.
    pub changes: Vec<ObjectSize>,
}

/// The size of an object since a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectSize {
    pub at: Timestamp,
    pub object: ObjectKey,
    pub size: Size,
}

/// An object of a cluster with its size.
struct SizedObject<'a> {
    cluster: &'a ResourceKey,
    id: Uuid,
    object: &'a ObjectKey,
    size: Size,
}

impl State {
    /// Records the size that an object has since a time, as it was applied.
    pub fn record_size(
        &self,
        fleet: &FleetKey,
        key: &ObjectKey,
        object: &RecordedObject,
        at: Timestamp,
    ) -> Result<(), StateError> {
        let Some(size) = size_of(key, object) else { return Ok(()) };
        let Some((id, _)) = self.identity(&object.owner) else { return Ok(()) };
        locked(&self.sizes).put(fleet, &SizedObject { cluster: &object.owner, id, object: key, size }, at)
    }

    /// Records that an object has no size any more, since it is gone.
    pub fn record_no_size(&self, fleet: &FleetKey, key: &ObjectKey, at: Timestamp) -> Result<(), StateError> {
        locked(&self.sizes).end(fleet, at, |object, _| object == key)
    }

    /// Records the sizes of objects that were applied without a line: by an earlier version, or shortly before a
    /// crash. Each process does so once for a fleet, after each line that couldn't be written, and whenever `again` is
    /// set.
    pub fn complete_sizes(&self, fleet: &FleetKey, again: bool, at: Timestamp) -> Result<(), StateError> {
        if locked(&self.sizes).compared.contains(fleet) && !again {
            return Ok(());
        }
        let objects = self.objects(fleet)?;
        for (key, object) in &objects {
            self.record_size(fleet, key, object, at)?;
        }
        let mut sizes = locked(&self.sizes);
        sizes.end(fleet, at, |object, _| !objects.contains_key(object))?;
        sizes.compared.insert(fleet.clone());
        Ok(())
    }

    /// Records that a cluster, or everything on a fleet, has no size any more.
    pub(super) fn end_sizes(&self, of: &ResourceKey, at: Timestamp) -> Result<(), StateError> {
        let mut sizes = locked(&self.sizes);
        if let Some(fleet) = of.as_fleet() {
            return sizes.end(&fleet, at, |_, _| true);
        }
        if of.kind != Kind::Cluster {
            return Ok(());
        }
        let ids = sizes.ids_of(of);
        for fleet in sizes.fleets_of(&ids) {
            sizes.end(&fleet, at, |_, id| ids.contains(&id))?;
        }
        Ok(())
    }

    /// The recorded sizes of a cluster; `None` if there are none.
    pub fn sizes_of_cluster(&self, id: Uuid) -> Option<ClusterSizes> {
        locked(&self.sizes).clusters.get(&id).cloned()
    }

    /// The recorded sizes of all clusters that are or were on a fleet.
    pub fn sizes_on_fleet(&self, fleet: &FleetKey) -> Vec<ClusterSizes> {
        let sizes = locked(&self.sizes);
        sizes.clusters.values().filter(|sizes| sizes.fleet == *fleet).cloned().collect()
    }
}

pub(super) struct SizeLog {
    path: Utf8PathBuf,
    /// None if there is no file yet, or the state is only read.
    lines: Option<AppendFile>,
    clusters: BTreeMap<Uuid, ClusterSizes>,
    /// The objects that have a size now, with the ids of their clusters.
    present: BTreeMap<FleetKey, BTreeMap<ObjectKey, (Uuid, Size)>>,
    /// The fleets whose recorded objects were compared with the file since the folder was opened, and whose lines
    /// were all written since.
    compared: BTreeSet<FleetKey>,
}

impl SizeLog {
    /// Reads the sizes of a state folder, and repairs the damage of a crash. Also returns warnings.
    pub(super) fn open(dir: &Utf8Path) -> Result<(SizeLog, Vec<String>), StateError> {
        let path = dir.join(FILE);
        let mut log = SizeLog::empty(path.clone());
        if folder::plain_file(&path)?.is_none() {
            return Ok((log, Vec::new()));
        }
        let (mut lines, bytes, exposed) = AppendFile::open_unsynced(path.clone())?;
        entries::read(&path, &bytes, |line| log.apply(line))?;
        let mended = entries::repair::<SizeLine>(&mut lines, &bytes)?;
        log.lines = Some(lines);
        Ok((log, exposed.into_iter().chain(mended).collect()))
    }

    /// Reads the sizes without opening their file for writing: nothing is repaired.
    pub(super) fn read(dir: &Utf8Path) -> Result<SizeLog, StateError> {
        let path = dir.join(FILE);
        let mut log = SizeLog::empty(path.clone());
        if let Some(bytes) = read_whole(&path)? {
            entries::read(&path, &bytes, |line| log.apply(line))?;
        }
        Ok(log)
    }

    fn empty(path: Utf8PathBuf) -> SizeLog {
        let (clusters, present, compared) = Default::default();
        SizeLog { path, lines: None, clusters, present, compared }
    }

    fn apply(&mut self, line: SizeLine) {
        let SizeLine { at, fleet, cluster, id, object, size } = line;
        let size = Size::from(size);
        let present = self.present.entry(fleet.clone()).or_default();
        match size == Size::default() {
            true => drop(present.remove(&object)),
            false => drop(present.insert(object.clone(), (id, size))),
        }
        let none = || ClusterSizes { id, cluster, fleet, changes: Vec::new() };
        self.clusters.entry(id).or_insert_with(none).changes.push(ObjectSize { at, object, size });
    }

    /// Records the size of an object, if it has another one than before.
    fn put(&mut self, fleet: &FleetKey, of: &SizedObject<'_>, at: Timestamp) -> Result<(), StateError> {
        let known = self.present.get(fleet).and_then(|objects| objects.get(of.object)).copied();
        if known == Some((of.id, of.size)) || known.is_none() && of.size == Size::default() {
            return Ok(());
        }
        if known.is_some_and(|(id, _)| id != of.id) {
            self.end(fleet, at, |object, _| object == of.object)?;
        }
        let SizedObject { cluster, id, object, size } = of;
        let at = self.not_before_last(*id, at);
        let (fleet, cluster, object) = (fleet.clone(), (*cluster).clone(), (*object).clone());
        self.add(vec![SizeLine { at, fleet, cluster, id: *id, object, size: (*size).into() }])
    }

    /// Records that objects of a fleet are gone.
    fn end(
        &mut self,
        fleet: &FleetKey,
        at: Timestamp,
        is_gone: impl Fn(&ObjectKey, Uuid) -> bool,
    ) -> Result<(), StateError> {
        let present = self.present.get(fleet).into_iter().flatten();
        let gone = present.filter(|(object, (id, _))| is_gone(object, *id));
        let line = |(object, (id, _)): (&ObjectKey, &(Uuid, Size))| {
            let cluster = self.clusters.get(id)?.cluster.clone();
            let at = self.not_before_last(*id, at);
            let (fleet, object) = (fleet.clone(), object.clone());
            Some(SizeLine { at, fleet, cluster, id: *id, object, size: RecordedSize::default() })
        };
        let lines = gone.filter_map(line).collect();
        self.add(lines)
    }

    /// If the clock was set back, a cluster's next size counts from its last one, since sizes are put in the order of
    /// their times.
    fn not_before_last(&self, id: Uuid, at: Timestamp) -> Timestamp {
        let last =
            self.clusters.get(&id).and_then(|sizes| sizes.changes.iter().map(|change| change.at).max());
        last.map_or(at, |last| at.max(last))
    }

    fn add(&mut self, added: Vec<SizeLine>) -> Result<(), StateError> {
        if added.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.append(&added) {
            added.iter().for_each(|line| _ = self.compared.remove(&line.fleet));
            return Err(error);
        }
        added.into_iter().for_each(|line| self.apply(line));
        Ok(())
    }

    fn append(&mut self, added: &[SizeLine]) -> Result<(), StateError> {
        let lines = match &mut self.lines {
            Some(lines) => lines,
            none => none.insert(AppendFile::open_unsynced(self.path.clone())?.0),
        };
        lines.append(&added.iter().map(entries::line).collect::<Vec<_>>())
    }

    pub(super) fn sync(&self) -> Result<(), StateError> {
        self.lines.as_ref().map_or(Ok(()), AppendFile::sync)
    }

    /// The ids that a cluster has had.
    fn ids_of(&self, cluster: &ResourceKey) -> BTreeSet<Uuid> {
        self.clusters.values().filter(|sizes| sizes.cluster == *cluster).map(|sizes| sizes.id).collect()
    }

    fn fleets_of(&self, ids: &BTreeSet<Uuid>) -> BTreeSet<FleetKey> {
        ids.iter().filter_map(|id| self.clusters.get(id)).map(|sizes| sizes.fleet.clone()).collect()
    }
}

/// The size of an object of a cluster; `None` for objects of others, and if its manifest is unknown.
fn size_of(key: &ObjectKey, object: &RecordedObject) -> Option<Size> {
    let manifest = object.manifest.as_ref().filter(|_| object.owner.kind == Kind::Cluster)?;
    Some((component::facts(&key.kind).size)(manifest))
}

/// The complete lines of the file.
pub(super) fn whole_records(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(whole_length(&bytes));
    bytes
}
