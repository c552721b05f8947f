//! Everything that can be rebuilt when it is lost, in sled. The cache is disposable by design: sled can lose
//! or damage its file in a power cut. A cache that can't be opened is set aside and replaced by an empty one.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sled::{Db, Tree};
use uuid::Uuid;

use super::StateError;
use super::disk::{check_free_space, damage_mark, is_full, refusal, set_aside};
use super::pieces::{head_key, insert_pieces, join_pieces, remove_batch};
use super::records::VERSION;
use super::snapshot::{CacheSnapshot, Records, SnapshotFiles, SnapshotFreshness, Writer};
use crate::parallel::locked;

/// The cache's folder. The number is that of sled's format, not of our records.
pub(super) const FOLDER: &str = "cache-v1";

/// The memory that sled may use, in bytes. Its default is 1 GiB.
const MEMORY: u64 = 32 * 1024 * 1024;

/// How often and how long to wait until sled's own threads release a file: one second in all.
const LOCK_ATTEMPTS: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The tables of the cache, each a tree in sled.
#[derive(Debug, Clone, Copy)]
pub(super) enum Table {
    Resources,
    Objects,
    Targets,
    Journal,
    Status,
}

impl Table {
    const ALL: [(Table, &'static str); 5] = [
        (Table::Resources, "resources"),
        (Table::Objects, "objects"),
        (Table::Targets, "targets"),
        (Table::Journal, "journal"),
        (Table::Status, "status"),
    ];
}

pub(super) type Key = Vec<u8>;

pub(super) struct Cache {
    path: Utf8PathBuf,
    installation: Uuid,
    /// Serializes all use of sled: concurrent readers and writers can deadlock
    /// (<https://github.com/spacejam/sled/issues/1412>).
    turn: Mutex<CacheState>,
}

struct CacheState {
    /// None while sled could not be reopened.
    sled: Option<Sled>,
    /// A copy in memory that replaces sled's file in a process that only reads.
    copy: Option<CacheSnapshot>,
    /// Whether the snapshot for readers is marked as older than sled's file.
    is_ahead: bool,
    /// Whether the disk refused a write. After that sled accepts no other write until it is reopened, even if
    /// there is room again.
    is_refused: bool,
    /// Whether sled was refused in the middle of a write that reads complete, so that they are refused, too.
    is_half_written: bool,
    /// How often sled was reopened.
    reopened: u64,
}

pub(super) struct Sled {
    db: Db,
    /// In the order of [`Table::ALL`].
    trees: Vec<Tree>,
}

impl Sled {
    fn tree(&self, table: Table) -> &Tree {
        &self.trees[table as usize]
    }

    /// Copies every record that is complete.
    fn copy_to(&self, to: &mut Writer) -> io::Result<()> {
        for (number, tree) in (0_u8..).zip(&self.trees) {
            for pair in tree.scan_prefix(head_key(b"")) {
                let (head_key, head) = pair?;
                let key = &head_key[1..];
                if let Some(bytes) = join_pieces(tree, key, &head)? {
                    to.record(number, key, &bytes)?;
                }
            }
        }
        Ok(())
    }
}

/// Why a cache can't be used.
enum CacheFault {
    /// The disk refused a write, so another cache would fail too.
    Refused(io::Error),
    InUse,
    /// The cache is damaged or from another installation or version. The reason is the end of a sentence.
    SetAside(String),
}

impl Cache {
    /// Opens the cache of a state folder. An unusable one is set aside, which the returned warning says.
    pub(super) fn open(
        dir: &Utf8Path,
        installation: Uuid,
        registry_lines: usize,
    ) -> Result<(Cache, Option<String>), StateError> {
        let path = dir.join(FOLDER);
        let opened = match open_any(&path, installation) {
            Err(StateError::Io { source, .. }) if is_full(&source) => {
                return Cache::on_full_disk(dir, installation, &source);
            }
            opened => opened,
        };
        let (sled, warning) = opened?;
        let turn = CacheState {
            sled: Some(sled),
            copy: None,
            is_ahead: false,
            is_refused: false,
            is_half_written: false,
            reopened: 0,
        };
        let cache = Cache { path, installation, turn: Mutex::new(turn) };
        if SnapshotFreshness::of(dir) != SnapshotFreshness::Same {
            // The last process was killed, or this is the first one.
            cache.write_snapshot(registry_lines);
        }
        Ok((cache, warning))
    }

    /// Loads the cache from its snapshot. Writes stay in memory.
    pub(super) fn read(dir: &Utf8Path, installation: Uuid) -> Result<Cache, StateError> {
        let path = dir.join(FOLDER);
        let copy =
            SnapshotFiles::of(&path).read(installation).map_err(StateError::io("read the cache", &path))?;
        let copy = Some(copy.unwrap_or_default());
        let turn = CacheState {
            sled: None,
            copy,
            is_ahead: false,
            is_refused: false,
            is_half_written: false,
            reopened: 0,
        };
        Ok(Cache { path, installation, turn: Mutex::new(turn) })
    }

    /// Loads the cache from its snapshot until the disk has room: every write tries to open sled again.
    fn on_full_disk(
        dir: &Utf8Path,
        installation: Uuid,
        why: &io::Error,
    ) -> Result<(Cache, Option<String>), StateError> {
        let cache = Cache::read(dir, installation)?;
        locked(&cache.turn).is_refused = true;
        let warning =
            format!("nothing can be recorded in `{}` until its disk has free space: {why}", cache.path);
        Ok((cache, Some(warning)))
    }

    /// Writes a snapshot for readers. If that fails, the next process that opens the cache writes it.
    pub(super) fn write_snapshot(&self, registry_lines: usize) {
        let place = SnapshotFiles::of(&self.path);
        // Keep the lock while the mark is removed and `is_ahead` is reset. A write in between would set no
        // mark and be missing from the snapshot.
        let mut turn = locked(&self.turn);
        let replaced = self.with_locked_sled(&mut turn, "read", |sled| {
            Ok(place.replace(self.installation, registry_lines, |to| sled.copy_to(to)))
        });
        let failed = |why: &dyn std::fmt::Display| {
            tracing::debug!(path = %self.path, %why, "cannot write the snapshot of the cache");
        };
        match replaced {
            Ok(Ok(())) => turn.is_ahead = false,
            Ok(Err(error)) => failed(&error),
            Err(error) => failed(&error),
        }
    }

    /// Whether anything was written since the last snapshot.
    pub(super) fn is_ahead(&self) -> bool {
        locked(&self.turn).is_ahead
    }

    /// Uses the copy; none if sled's file is in use.
    fn in_copy<T>(&self, table: Table, action: impl FnOnce(&mut Records) -> T) -> Option<T> {
        locked(&self.turn).copy.as_mut().map(|copy| action(&mut copy.tables[table as usize]))
    }

    /// Writes to the copy; none if the write has to go to sled's file.
    fn write_in_copy<T>(&self, table: Table, action: impl FnOnce(&mut Records) -> T) -> Option<T> {
        if locked(&self.turn).is_refused { None } else { self.in_copy(table, action) }
    }

    /// A number that changes when the disk refused writes and sled was reopened, which may lose writes.
    pub(super) fn reopened(&self) -> u64 {
        locked(&self.turn).reopened
    }

    pub(super) fn put<T: Serialize>(&self, table: Table, key: &[u8], record: &T) -> Result<(), StateError> {
        let bytes = serde_json::to_vec(record).map_err(|error| self.failed("write", error.to_string()))?;
        if self.write_in_copy(table, |records| records.insert(key.to_vec(), bytes.clone())).is_some() {
            return Ok(());
        }
        self.with_sled("write", |sled| {
            let tree = sled.tree(table);
            let mut batch = remove_batch(tree, key)?;
            insert_pieces(&mut batch, key, &bytes);
            tree.apply_batch(batch)
        })
    }

    pub(super) fn remove(&self, table: Table, key: &[u8]) -> Result<(), StateError> {
        if self.write_in_copy(table, |records| records.remove(key)).is_some() {
            return Ok(());
        }
        self.with_sled("write", |sled| {
            let tree = sled.tree(table);
            tree.apply_batch(remove_batch(tree, key)?)
        })
    }

    /// Returns a record; none if it is missing or unreadable, which is the same for a cache.
    pub(super) fn get<T: DeserializeOwned>(&self, table: Table, key: &[u8]) -> Result<Option<T>, StateError> {
        let of_copy = self.in_copy(table, |records| records.get(key).cloned());
        let bytes = match of_copy {
            Some(bytes) => bytes,
            None => self
                .with_sled("read", |sled| {
                    let tree = sled.tree(table);
                    let head = tree.get(head_key(key))?;
                    head.map(|head| join_pieces(tree, key, &head)).transpose()
                })?
                .flatten(),
        };
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Returns the readable records whose keys have a prefix, in order, and the number of the others.
    pub(super) fn scan<T: DeserializeOwned>(
        &self,
        table: Table,
        prefix: &[u8],
    ) -> Result<(Vec<(Key, T)>, usize), StateError> {
        let of_copy = self.in_copy(table, |records| {
            let found = records.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(prefix));
            found.map(|(key, bytes)| (Some(bytes.clone()), key.clone())).collect::<Vec<_>>()
        });
        let found = match of_copy {
            Some(found) => found,
            None => self.with_sled("read", |sled| {
                let tree = sled.tree(table);
                let pairs = tree.scan_prefix(head_key(prefix)).map(|pair| {
                    let (head_key, head) = pair?;
                    let key = head_key[1..].to_vec();
                    Ok((join_pieces(tree, &key, &head)?, key))
                });
                pairs.collect::<sled::Result<Vec<_>>>()
            })?,
        };
        // The lock is released while the records are parsed.
        let mut records = Vec::new();
        let mut unreadable = 0;
        for (bytes, key) in found {
            match bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
                Some(record) => records.push((key, record)),
                None => unreadable += 1,
            }
        }
        Ok((records, unreadable))
    }

    /// The distinct beginnings of a table's keys, up to the byte `end`.
    pub(super) fn groups(&self, table: Table, end: u8) -> Result<Vec<Key>, StateError> {
        let (mut groups, mut from) = (Vec::new(), Vec::new());
        // One lookup for each group: the next key after a group is the first of another.
        while let Some(found) = self.next_key(table, &from)? {
            let group = found.split(|byte| *byte == end).next().unwrap_or_default();
            from = [group, &[end + 1]].concat();
            groups.push(group.to_vec());
        }
        Ok(groups)
    }

    pub(super) fn has_any(&self, table: Table, prefix: &[u8]) -> Result<bool, StateError> {
        Ok(self.next_key(table, prefix)?.is_some_and(|key| key.starts_with(prefix)))
    }

    /// The first key that is `from` or comes after it.
    fn next_key(&self, table: Table, from: &[u8]) -> Result<Option<Key>, StateError> {
        let of_copy =
            self.in_copy(table, |records| records.range(from.to_vec()..).next().map(|it| it.0.clone()));
        if let Some(found) = of_copy {
            return Ok(found);
        }
        self.with_sled("read", |sled| {
            let found = sled.tree(table).range(head_key(from)..head_key(&[0xff])).next().transpose()?;
            Ok(found.map(|(head_key, _)| head_key[1..].to_vec()))
        })
    }

    pub(super) fn flush(&self) -> Result<(), StateError> {
        if !locked(&self.turn).is_ahead {
            return Ok(());
        }
        self.with_sled("write", |sled| sled.db.flush().map(drop))
    }

    /// Runs an operation on sled, which panics on some kinds of damage. If it fails for another reason than
    /// the disk's, the cache is marked, and the next start sets it aside.
    pub(super) fn with_sled<T>(
        &self,
        attempted: &'static str,
        action: impl FnOnce(&Sled) -> sled::Result<T>,
    ) -> Result<T, StateError> {
        // A panic inside sled leaves none of our own data behind this lock half-written.
        self.with_locked_sled(&mut locked(&self.turn), attempted, action)
    }

    /// As `Self::guarded`, for a caller that already holds the lock.
    fn with_locked_sled<T>(
        &self,
        turn: &mut CacheState,
        attempted: &'static str,
        action: impl FnOnce(&Sled) -> sled::Result<T>,
    ) -> Result<T, StateError> {
        // Until there is room, reads of other records go on with the open file.
        let reads_need_it = || turn.is_half_written && check_free_space(&self.path).is_ok();
        if turn.sled.is_none() || (turn.is_refused && attempted == "write") || reads_need_it() {
            self.open_again(turn)?;
        }
        if attempted == "write" && !turn.is_ahead {
            SnapshotFiles::of(&self.path).mark().map_err(StateError::io("write the cache", &self.path))?;
            turn.is_ahead = true;
        }
        let Some(sled) = &turn.sled else { return Err(self.failed(attempted, "it is not open".to_owned())) };
        match catch_sled_panic(|| action(sled)) {
            Ok(value) => Ok(value),
            Err(CacheFault::Refused(source)) => {
                turn.is_refused = true;
                turn.is_half_written |= attempted == "read";
                let attempted = if attempted == "read" { "read the cache" } else { "write the cache" };
                Err(StateError::Io { attempted, path: self.path.clone(), source })
            }
            Err(CacheFault::InUse) => Err(in_use(&self.path)),
            Err(CacheFault::SetAside(reason)) => Err(self.failed(attempted, reason)),
        }
    }

    /// Reopens sled's file after the disk refused something. Unsynced writes are lost, as in a power cut.
    fn open_again(&self, turn: &mut CacheState) -> Result<(), StateError> {
        if turn.sled.is_some() || turn.copy.is_some() {
            // While the disk still refuses writes, keep the open cache: it can be read.
            check_free_space(&self.path).map_err(StateError::io("write the cache", &self.path))?;
        }
        let before = turn.sled.take();
        // sled may panic when a write fails.
        drop(catch_sled_panic(|| {
            drop(before);
            Ok(())
        }));
        let (sled, warning) = open_any(&self.path, self.installation)?;
        if let Some(warning) = warning {
            tracing::warn!("{warning}");
        }
        turn.sled = Some(sled);
        turn.copy = None;
        turn.is_refused = false;
        turn.is_half_written = false;
        turn.reopened += 1;
        Ok(())
    }

    fn failed(&self, attempted: &'static str, reason: String) -> StateError {
        // If even the mark can't be written, the next start finds the damage itself.
        drop(File::create(damage_mark(&self.path)));
        StateError::Cache { attempted, path: self.path.clone(), reason }
    }
}

/// Opens a cache. An unusable one is set aside, which the returned warning says.
fn open_any(path: &Utf8Path, installation: Uuid) -> Result<(Sled, Option<String>), StateError> {
    let reason = match open_checked(path, installation) {
        Ok(sled) => return Ok((sled, None)),
        Err(CacheFault::Refused(error)) => return Err(StateError::io("open the cache", path)(error)),
        Err(CacheFault::InUse) => return Err(in_use(path)),
        Err(CacheFault::SetAside(reason)) => reason,
    };
    let aside = set_aside(path)?;
    let reason = reason.trim_start_matches("it ");
    let warning = format!(
        "the cache in `{path}` {reason}; it was set aside as `{aside}` and is being rebuilt, nothing else is lost"
    );
    match open_checked(path, installation) {
        Ok(sled) => Ok((sled, Some(warning))),
        Err(CacheFault::Refused(error)) => Err(StateError::io("open the cache", path)(error)),
        Err(CacheFault::InUse) => Err(in_use(path)),
        Err(CacheFault::SetAside(reason)) => {
            Err(StateError::Cache { attempted: "open", path: path.to_owned(), reason })
        }
    }
}

/// Opens a cache, and checks its version and installation.
fn open_checked(path: &Utf8Path, installation: Uuid) -> Result<Sled, CacheFault> {
    if damage_mark(path).exists() {
        return Err(CacheFault::SetAside("it failed while it was in use".to_owned()));
    }
    if path.is_symlink() {
        return Err(CacheFault::SetAside("it is a link".to_owned()));
    }
    let sled = catch_sled_panic(|| {
        let db = open_when_closed(path)?;
        let trees = Table::ALL.iter().map(|(_, name)| db.open_tree(name)).collect::<sled::Result<_>>()?;
        Ok(Sled { db, trees })
    })?;
    let expected = [("version", VERSION.to_string()), ("installation", installation.to_string())];
    for (key, value) in expected {
        let found = catch_sled_panic(|| sled.db.get(key))?;
        match found {
            None => drop(catch_sled_panic(|| sled.db.insert(key, value.as_bytes()))?),
            Some(found) if found == value.as_bytes() => {}
            Some(_) if key == "version" => {
                return Err(CacheFault::SetAside(
                    "it was written by another version of streamfleet".to_owned(),
                ));
            }
            Some(_) => return Err(CacheFault::SetAside("it belongs to another installation".to_owned())),
        }
    }
    Ok(sled)
}

/// sled's own lock is held: the folder's lock file was deleted while another process used it.
fn in_use(path: &Utf8Path) -> StateError {
    StateError::Locked { dir: path.parent().unwrap_or(path).to_owned(), holder: None }
}

/// Opens sled's file, and retries while it is locked: its threads may still hold a closed file.
pub(super) fn open_when_closed(path: &Utf8Path) -> sled::Result<Db> {
    // sled doesn't flush in the background: callers decide when their writes have to be on disk.
    let config = sled::Config::new().path(path).cache_capacity(MEMORY).flush_every_ms(None);
    for _ in 0..LOCK_ATTEMPTS {
        match config.open() {
            Err(sled::Error::Io(error)) if is_held(&error) => std::thread::sleep(LOCK_PAUSE),
            result => return result,
        }
    }
    config.open()
}

/// Whether sled's file is locked. sled puts the system's error only into its own message.
fn is_held(error: &io::Error) -> bool {
    let words = error.to_string();
    words.contains("could not acquire lock") && words.contains("WouldBlock")
}

/// Runs an operation on sled, and turns panics and damage into errors.
fn catch_sled_panic<T>(action: impl FnOnce() -> sled::Result<T>) -> Result<T, CacheFault> {
    let damaged = |reason: String| CacheFault::SetAside(format!("it is damaged ({reason})"));
    match catch_unwind(AssertUnwindSafe(action)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(sled::Error::Io(error))) if is_held(&error) => Err(CacheFault::InUse),
        Ok(Err(sled::Error::Io(error))) => match refusal(error.kind()) {
            Some(error) => Err(CacheFault::Refused(error.into())),
            None => Err(damaged(error.to_string())),
        },
        Ok(Err(error)) => Err(damaged(error.to_string())),
        Err(_) => Err(damaged("sled stopped using it".to_owned())),
    }
}
