//! What can be built anew when it is lost, in sled. It is disposable by design: sled can lose or damage its file in a
//! power cut, so a cache that can't be opened is set aside and an empty one takes its place.

use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sled::{Batch, Db, Tree};
use uuid::Uuid;

use super::StateError;
use super::records::VERSION;
use crate::parallel::locked;

/// The cache's folder. The number is sled's format, not that of our records.
pub(super) const FOLDER: &str = "cache-v1";

/// What sled may keep in memory. Its own default is a gigabyte.
const MEMORY: u64 = 32 * 1024 * 1024;

/// How much room sled has to have before it is opened again, in bytes: several of its segments.
const ROOM: u64 = 2 * 1024 * 1024;

/// The largest value that is stored in one piece. sled never frees the space of values over 128 KiB.
const PIECE: usize = 64 * 1024;

/// How often and how long to wait for sled's own threads to let go of a file: a second in all.
const LOCK_ATTEMPTS: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The tables of the cache, each a tree of sled's.
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

/// The key of a record in its table.
pub(super) type Key = Vec<u8>;

/// An open cache.
pub(super) struct Cache {
    path: Utf8PathBuf,
    installation: Uuid,
    /// Held while anything is asked of sled: threads that read and write at the same time can wait for each other for ever
    /// (<https://github.com/spacejam/sled/issues/1412>).
    turn: Mutex<Turn>,
}

/// What whoever has a turn at sled works with.
struct Turn {
    /// None while it could not be opened again.
    sled: Option<Sled>,
    /// Whether the disk refused a write, after which sled takes no other one, though there is room again.
    is_refused: bool,
    /// How often it was opened again.
    reopened: u64,
}

/// sled's file, open.
pub(super) struct Sled {
    db: Db,
    /// In the order of [`Table::ALL`].
    trees: Vec<Tree>,
}

impl Sled {
    fn tree(&self, table: Table) -> &Tree {
        &self.trees[table as usize]
    }
}

/// Why a cache can't be used.
enum Unusable {
    /// The disk refuses; another cache wouldn't fare better.
    Refused(io::Error),
    /// Another process has it open.
    InUse,
    /// It is damaged or not ours: the reason, as the end of a sentence.
    SetAside(String),
}

impl Cache {
    /// Opens the cache of a state folder. One that can't be used is set aside, and the second part says so.
    pub(super) fn open(dir: &Utf8Path, installation: Uuid) -> Result<(Cache, Option<String>), StateError> {
        let path = dir.join(FOLDER);
        let (sled, warning) = open_any(&path, installation)?;
        let turn = Turn { sled: Some(sled), is_refused: false, reopened: 0 };
        Ok((Cache { path, installation, turn: Mutex::new(turn) }, warning))
    }

    /// A number that is another one when what was stored last may be lost, since the disk refused it.
    pub(super) fn reopened(&self) -> u64 {
        locked(&self.turn).reopened
    }

    /// Stores a record.
    pub(super) fn put<T: Serialize>(&self, table: Table, key: &[u8], record: &T) -> Result<(), StateError> {
        let bytes = serde_json::to_vec(record).map_err(|error| self.failed("write", error.to_string()))?;
        self.guarded("write", |sled| {
            let tree = sled.tree(table);
            let mut batch = remove_batch(tree, key)?;
            insert_pieces(&mut batch, key, &bytes);
            tree.apply_batch(batch)
        })
    }

    /// Removes a record, where there is one.
    pub(super) fn remove(&self, table: Table, key: &[u8]) -> Result<(), StateError> {
        self.guarded("write", |sled| {
            let tree = sled.tree(table);
            tree.apply_batch(remove_batch(tree, key)?)
        })
    }

    /// Gives a record; none where there is none or it can't be read, which is the same for a cache.
    pub(super) fn get<T: DeserializeOwned>(&self, table: Table, key: &[u8]) -> Result<Option<T>, StateError> {
        let bytes = self.guarded("read", |sled| {
            let tree = sled.tree(table);
            let head = tree.get(head_key(key))?;
            head.map(|head| join_pieces(tree, key, &head)).transpose()
        })?;
        Ok(bytes.flatten().and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Gives the records whose keys begin so, in the order of the keys. Those that can't be read are left out and
    /// counted in the second part.
    pub(super) fn scan<T: DeserializeOwned>(
        &self,
        table: Table,
        prefix: &[u8],
    ) -> Result<(Vec<(Key, T)>, usize), StateError> {
        self.scan_if(table, prefix, |_| true)
    }

    /// The same of those with a key that is wanted; the others aren't even read.
    pub(super) fn scan_if<T: DeserializeOwned>(
        &self,
        table: Table,
        prefix: &[u8],
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<(Vec<(Key, T)>, usize), StateError> {
        let found = self.guarded("read", |sled| {
            let tree = sled.tree(table);
            let pairs = tree.scan_prefix(head_key(prefix)).filter_map(|pair| {
                let (head_key, head) = match pair {
                    Ok(pair) => pair,
                    Err(error) => return Some(Err(error)),
                };
                let key = head_key[1..].to_vec();
                is_wanted(&key).then(|| Ok((join_pieces(tree, &key, &head)?, key)))
            });
            pairs.collect::<sled::Result<Vec<_>>>()
        })?;
        // Others have their turn while this is read.
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

    /// What the keys of a table begin with, up to a byte; each beginning once.
    pub(super) fn groups(&self, table: Table, end: u8) -> Result<Vec<Key>, StateError> {
        self.guarded("read", |sled| {
            let tree = sled.tree(table);
            let (mut groups, mut from) = (Vec::new(), head_key(b""));
            // One look a group: from the end of each, the next key is the first of another.
            while let Some((found, _)) = tree.range(from..head_key(&[0xff])).next().transpose()? {
                let group = found[1..].split(|byte| *byte == end).next().unwrap_or_default().to_vec();
                from = head_key(&[&group[..], &[end + 1]].concat());
                groups.push(group);
            }
            Ok(groups)
        })
    }

    /// Whether there is a record whose key begins so.
    pub(super) fn has_any(&self, table: Table, prefix: &[u8]) -> Result<bool, StateError> {
        self.guarded("read", |sled| {
            let mut keys = sled.tree(table).scan_prefix(head_key(prefix)).keys();
            Ok(keys.next().transpose()?.is_some())
        })
    }

    /// Waits until everything is on disk.
    pub(super) fn flush(&self) -> Result<(), StateError> {
        self.guarded("write", |sled| sled.db.flush().map(drop))
    }

    /// Runs something on sled, which panics on some kinds of damage. After a failure that isn't the disk's, the cache is
    /// marked so that the next start sets it aside.
    pub(super) fn guarded<T>(
        &self,
        attempted: &'static str,
        action: impl FnOnce(&Sled) -> sled::Result<T>,
    ) -> Result<T, StateError> {
        // Nothing of ours is behind this lock that is ever half done, though somebody panicked.
        let mut turn = locked(&self.turn);
        if turn.sled.is_none() || (turn.is_refused && attempted == "write") {
            self.open_again(&mut turn)?;
        }
        let Some(sled) = &turn.sled else { return Err(self.failed(attempted, "it is not open".to_owned())) };
        match unwound(|| action(sled)) {
            Ok(value) => Ok(value),
            Err(Unusable::Refused(source)) => {
                turn.is_refused = true;
                let attempted = if attempted == "read" { "read the cache" } else { "write the cache" };
                Err(StateError::Io { attempted, path: self.path.clone(), source })
            }
            Err(Unusable::InUse) => Err(in_use(&self.path)),
            Err(Unusable::SetAside(reason)) => Err(self.failed(attempted, reason)),
        }
    }

    /// Opens sled's file once more, after the disk refused something. What was stored and not on disk by then is lost, as
    /// in a power cut.
    fn open_again(&self, turn: &mut Turn) -> Result<(), StateError> {
        if turn.sled.is_some() {
            // As long as the disk still refuses, what is open can at least be read.
            room(&self.path).map_err(StateError::io("write the cache", &self.path))?;
        }
        let before = turn.sled.take();
        // It may give up on what it can't write.
        drop(unwound(|| {
            drop(before);
            Ok(())
        }));
        let (sled, warning) = open_any(&self.path, self.installation)?;
        if let Some(warning) = warning {
            tracing::warn!("{warning}");
        }
        *turn = Turn { sled: Some(sled), is_refused: false, reopened: turn.reopened + 1 };
        Ok(())
    }

    fn failed(&self, attempted: &'static str, reason: String) -> StateError {
        // When even the mark can't be made, the next start meets the damage itself.
        drop(File::create(damage_mark(&self.path)));
        StateError::Cache { attempted, path: self.path.clone(), reason }
    }
}

/// Opens a cache. One that can't be used is set aside, and the second part says so.
fn open_any(path: &Utf8Path, installation: Uuid) -> Result<(Sled, Option<String>), StateError> {
    let reason = match open_checked(path, installation) {
        Ok(sled) => return Ok((sled, None)),
        Err(Unusable::Refused(error)) => return Err(StateError::io("open the cache", path)(error)),
        Err(Unusable::InUse) => return Err(in_use(path)),
        Err(Unusable::SetAside(reason)) => reason,
    };
    let aside = set_aside(path)?;
    let reason = reason.trim_start_matches("it ");
    let warning = format!(
        "the cache in `{path}` {reason}; it was set aside as `{aside}` and is built anew, nothing else is lost"
    );
    match open_checked(path, installation) {
        Ok(sled) => Ok((sled, Some(warning))),
        Err(Unusable::Refused(error)) => Err(StateError::io("open the cache", path)(error)),
        Err(Unusable::InUse) => Err(in_use(path)),
        Err(Unusable::SetAside(reason)) => {
            Err(StateError::Cache { attempted: "open", path: path.to_owned(), reason })
        }
    }
}

/// Opens a cache and sees that it is whole, of this version and of this installation.
fn open_checked(path: &Utf8Path, installation: Uuid) -> Result<Sled, Unusable> {
    if damage_mark(path).exists() {
        return Err(Unusable::SetAside("it failed while it was in use".to_owned()));
    }
    if path.is_symlink() {
        return Err(Unusable::SetAside("it is a link".to_owned()));
    }
    let sled = unwound(|| {
        let db = open_when_closed(path)?;
        let trees = Table::ALL.iter().map(|(_, name)| db.open_tree(name)).collect::<sled::Result<_>>()?;
        Ok(Sled { db, trees })
    })?;
    let expected = [("version", VERSION.to_string()), ("installation", installation.to_string())];
    for (key, value) in expected {
        let found = unwound(|| sled.db.get(key))?;
        match found {
            None => drop(unwound(|| sled.db.insert(key, value.as_bytes()))?),
            Some(found) if found == value.as_bytes() => {}
            Some(_) if key == "version" => {
                return Err(Unusable::SetAside(
                    "it was written by another version of streamfleet".to_owned(),
                ));
            }
            Some(_) => return Err(Unusable::SetAside("it belongs to another installation".to_owned())),
        }
    }
    Ok(sled)
}

/// Somebody took the folder's lock file away while a process used it, which sled's own lock tells.
fn in_use(path: &Utf8Path) -> StateError {
    StateError::Locked { dir: path.parent().unwrap_or(path).to_owned(), holder: None }
}

/// Opens sled's file. One that this process closed a moment ago may still be locked by sled's own threads.
fn open_when_closed(path: &Utf8Path) -> sled::Result<Db> {
    // No thread of sled's writes by itself: whoever writes says when that has to be on disk.
    let config = sled::Config::new().path(path).cache_capacity(MEMORY).flush_every_ms(None);
    for _ in 0..LOCK_ATTEMPTS {
        match config.open() {
            Err(sled::Error::Io(error)) if is_held(&error) => std::thread::sleep(LOCK_PAUSE),
            result => return result,
        }
    }
    config.open()
}

/// Whether sled's file is locked. What the system said is in sled's words alone.
fn is_held(error: &io::Error) -> bool {
    let words = error.to_string();
    words.contains("could not acquire lock") && words.contains("WouldBlock")
}

/// Runs something on sled and turns panics and damage into values.
fn unwound<T>(action: impl FnOnce() -> sled::Result<T>) -> Result<T, Unusable> {
    let damaged = |reason: String| Unusable::SetAside(format!("it is damaged ({reason})"));
    match catch_unwind(AssertUnwindSafe(action)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(sled::Error::Io(error))) if is_held(&error) => Err(Unusable::InUse),
        Ok(Err(sled::Error::Io(error))) => match refusal(error.kind()) {
            Some(error) => Err(Unusable::Refused(error.into())),
            None => Err(damaged(error.to_string())),
        },
        Ok(Err(error)) => Err(damaged(error.to_string())),
        Err(_) => Err(damaged("sled gave up on it".to_owned())),
    }
}

/// The error, if it is the disk's and not the file's. sled itself keeps no more of it than the kind.
fn refusal(kind: io::ErrorKind) -> Option<Errno> {
    match kind {
        io::ErrorKind::PermissionDenied => Some(Errno::ACCESS),
        io::ErrorKind::QuotaExceeded => Some(Errno::DQUOT),
        io::ErrorKind::ReadOnlyFilesystem => Some(Errno::ROFS),
        io::ErrorKind::StorageFull => Some(Errno::NOSPC),
        _ => None,
    }
}

/// Sees whether the disk takes what sled writes when it is opened.
fn room(path: &Utf8Path) -> io::Result<()> {
    let file = tempfile::tempfile_in(path)?;
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, ROOM) {
        // Not every file system can be asked; then it is tried.
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The file that says that a cache failed while it was in use.
fn damage_mark(path: &Utf8Path) -> Utf8PathBuf {
    path.with_extension("failed")
}

/// Renames a cache to the first free `cache-v1.damaged-N`.
fn set_aside(path: &Utf8Path) -> Result<Utf8PathBuf, StateError> {
    let failed = || StateError::io("set aside the cache", path);
    let free = |number: &u32| !path.with_extension(format!("damaged-{number}")).exists();
    let number = (1..).find(free).unwrap_or(u32::MAX);
    let aside = path.with_extension(format!("damaged-{number}"));
    for result in [fs::rename(path, &aside), fs::remove_file(damage_mark(path))] {
        match result {
            // Somebody may have removed the cache by hand, and there is no mark when opening found the damage.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed()(error)),
            _ => {}
        }
    }
    Ok(aside)
}

/// The key of a record's first piece. Other pieces have keys of their own kind, so that a scan meets heads only.
fn head_key(key: &[u8]) -> Vec<u8> {
    [b"h", key].concat()
}

fn piece_key(key: &[u8], index: u32) -> Vec<u8> {
    [b"p", key, &[0], &index.to_be_bytes()].concat()
}

/// How many further pieces a record has. Its head begins with that number.
fn further_pieces(head: &[u8]) -> Option<(u32, &[u8])> {
    let (count, rest) = head.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*count), rest))
}

fn insert_pieces(batch: &mut Batch, key: &[u8], bytes: &[u8]) {
    let (first, rest) = bytes.split_at(bytes.len().min(PIECE));
    let mut count = 0_u32;
    for piece in rest.chunks(PIECE) {
        batch.insert(piece_key(key, count), piece);
        count += 1;
    }
    batch.insert(head_key(key), [&count.to_be_bytes(), first].concat());
}

/// The removal of a record with all its pieces.
fn remove_batch(tree: &Tree, key: &[u8]) -> sled::Result<Batch> {
    let mut batch = Batch::default();
    if let Some(head) = tree.get(head_key(key))? {
        let count = further_pieces(&head).map_or(0, |(count, _)| count);
        (0..count).for_each(|index| batch.remove(piece_key(key, index)));
        batch.remove(head_key(key));
    }
    Ok(batch)
}

/// A record's bytes; none where pieces are missing.
fn join_pieces(tree: &Tree, key: &[u8], head: &[u8]) -> sled::Result<Option<Vec<u8>>> {
    let Some((count, first)) = further_pieces(head) else { return Ok(None) };
    let mut bytes = first.to_vec();
    for index in 0..count {
        match tree.get(piece_key(key, index))? {
            Some(piece) => bytes.extend_from_slice(&piece),
            None => return Ok(None),
        }
    }
    Ok(Some(bytes))
}
