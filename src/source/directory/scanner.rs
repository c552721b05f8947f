//! Scans a tree repeatedly. Only files that events name are read, if the tree is watched. The metadata of all
//! files is compared now and then, to find changes without an event.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};

use super::{
    ChangeCounter, FolderDigests, KnownFiles, MAX_FILES, MAX_FOLDERS, MetadataStamp, SCANS, SkippedSpecs,
    TreeStamp, TreeWalk, UnfinishedFiles, Watch, hide_unfinished, is_miscased, is_spec, read_file,
    read_tree_stamp, real_root, revision, stamp,
};
use crate::names::SpecPath;
use crate::source::SourceError;
use crate::spec::{Snapshot, SnapshotEntry};

/// How long a file must be unchanged before its timestamp is trusted: the coarsest clock of common file
/// systems has ticks of two seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// How long contents are cached. On a network file system, a change may show late in the metadata.
const KNOWN: Duration = Duration::from_secs(300);

/// How long events are trusted without a walk. Some changes cause none: those of a new mount, of other hosts,
/// and through mapped memory.
const WALK_INTERVAL: Duration = Duration::from_secs(30);

pub struct Scanner {
    known: KnownFiles,
    /// When the cache was last emptied.
    since: Instant,
    settled: Duration,
    heard: Heard,
    last: Option<LastScan>,
}

/// The names in events of a watched tree.
#[derive(Default)]
struct Heard {
    changes: ChangeCounter,
    unfinished: UnfinishedFiles,
    /// The files that were being written when names were last taken. One that is finished later is named again, but
    /// may have been read before that.
    being_written: BTreeSet<PathBuf>,
}

impl Heard {
    fn take_named(&mut self) -> Option<BTreeSet<PathBuf>> {
        self.being_written = self.unfinished.files().into_iter().collect();
        self.changes.take_named()
    }
}

/// The last scan, which is brought up to date with what changed since.
struct LastScan {
    snapshot: Arc<Snapshot>,
    folders: FolderDigests,
    /// The root's real path, and its identity.
    root: Utf8PathBuf,
    root_file: (u64, u64),
    /// When the last walk began.
    walked: Instant,
    /// The metadata in the last walk; none if the snapshot has later changes.
    stamp: Option<TreeStamp>,
    /// The upper bound of entries that count for the limit of files, by top folder.
    counts: HashMap<String, usize>,
    is_plain: bool,
    has_hidden: bool,
}

impl Default for Scanner {
    fn default() -> Self {
        Self {
            known: KnownFiles::new(),
            since: Instant::now(),
            settled: SETTLED,
            heard: Heard::default(),
            last: None,
        }
    }
}

impl Scanner {
    /// Creates the only scanner of a watched tree, since it takes the names in events. Files that are still
    /// being written are unreadable.
    pub fn of(watch: &Watch) -> Self {
        let (changes, unfinished) = (watch.heard(), watch.unfinished());
        Self { heard: Heard { changes, unfinished, ..Heard::default() }, ..Self::default() }
    }

    /// Scans the tree like [`scan`](super::scan), with files that are still being written as unreadable.
    ///
    /// # Errors
    /// Those of [`scan`](super::scan).
    pub fn scan(&mut self, root: &Utf8Path) -> Result<Arc<Snapshot>, SourceError> {
        let mut snapshot = self.scan_all(root)?;
        let mut unfinished = std::mem::take(&mut self.heard.being_written);
        unfinished.extend(self.heard.unfinished.files());
        hide_unfinished(unfinished, &mut snapshot, root);
        Ok(snapshot)
    }

    /// Has the next scan walk all of the tree, whatever events say.
    pub fn doubt(&mut self) {
        self.last = None;
    }

    /// Scans the tree with the current content of files that are still being written.
    ///
    /// # Errors
    /// Those of [`scan`](super::scan).
    pub fn scan_all(&mut self, root: &Utf8Path) -> Result<Arc<Snapshot>, SourceError> {
        let named = self.heard.take_named();
        // Without the last scan, as after an error, all of the tree is walked.
        let mut last = self.last.take();
        let is_current = match (&mut last, named) {
            (Some(last), Some(named)) if last.walked.elapsed() < WALK_INTERVAL => {
                last.read_named(root, named, &mut self.heard, &mut self.known).is_some()
            }
            _ => false,
        };
        let last = match last {
            Some(last) if is_current => last,
            last => self.walk_to_the_end(root, last)?,
        };
        Ok(Arc::clone(&self.last.insert(last).snapshot))
    }

    /// Walks, and reads again what was finished since it was read.
    fn walk_to_the_end(&mut self, root: &Utf8Path, last: Option<LastScan>) -> Result<LastScan, SourceError> {
        let mut last = self.walk(root, last)?;
        let Some(named) = self.heard.take_named().filter(|named| !named.is_empty()) else { return Ok(last) };
        match last.read_named(root, named, &mut self.heard, &mut self.known) {
            Some(()) => Ok(last),
            None => self.walk(root, None),
        }
    }

    fn walk(&mut self, root: &Utf8Path, last: Option<LastScan>) -> Result<LastScan, SourceError> {
        if self.since.elapsed() > KNOWN {
            (self.known, self.since) = (KnownFiles::new(), Instant::now());
        }
        // Taken before anything is read: later changes have later timestamps.
        let (walked, begun) = (Instant::now(), SystemTime::now());
        let real = real_root(root)?;
        if let Some(mut last) = last
            && last.is_of(root, &real)
            && last.stamp.is_some()
            && last.snapshot.entries.len() == self.known.len()
        {
            // Searched before the listing, so that a file moved back from there is seen in one of them.
            last.search_skipped();
            if Some(read_tree_stamp(&real)?) == last.stamp {
                return Ok(LastScan { walked, ..last });
            }
        }
        let root_file = file_number(&real).ok_or_else(|| SourceError::Changing { path: root.to_owned() })?;
        let TreeWalk { snapshot, folders, stamp, is_plain, has_hidden } = TreeWalk::of(root, &self.known)?;
        let seen = stamp.iter().flat_map(|stamp| &stamp.seen);
        let settled = seen.filter_map(|(path, stamp)| {
            let stamp = stamp.filter(|stamp| age(*stamp, begun).is_some_and(|age| age > self.settled))?;
            let entry =
                snapshot.entries.get(path).filter(|entry| matches!(entry, SnapshotEntry::File { .. }))?;
            Some((path.clone(), (stamp, entry.clone())))
        });
        self.known = settled.collect();
        let mut counts: HashMap<String, usize> = HashMap::new();
        for path in snapshot.entries.keys().chain(stamp.iter().flat_map(|stamp| stamp.seen.keys())) {
            counted(&mut counts, path);
        }
        let snapshot = Arc::new(snapshot);
        Ok(LastScan { snapshot, folders, root: real, root_file, walked, stamp, counts, is_plain, has_hidden })
    }
}

impl LastScan {
    fn is_of(&self, root: &Utf8Path, real: &Utf8Path) -> bool {
        self.snapshot.source.0 == root.as_str()
            && self.root == real
            && file_number(real) == Some(self.root_file)
    }

    /// Reads the files that changed, until no more change meanwhile: of two files that were saved in turn,
    /// the later one is never read alone. Returns none if the tree has to be walked. That includes every file
    /// that is gone, since it may be elsewhere by now.
    fn read_named(
        &mut self,
        root: &Utf8Path,
        mut named: BTreeSet<PathBuf>,
        heard: &mut Heard,
        known: &mut KnownFiles,
    ) -> Option<()> {
        let real = real_root(root).ok()?;
        if !self.is_plain || !self.is_of(root, &real) {
            return None;
        }
        for _ in 0..SCANS {
            let mut has_others = self.has_hidden;
            if !named.is_empty() {
                self.stamp = None;
                for place in &named {
                    has_others |= !self.read_spec(place, known)?;
                }
                let snapshot = Arc::make_mut(&mut self.snapshot);
                snapshot.revision = revision(&snapshot.entries, &mut self.folders);
            }
            if has_others {
                self.search_skipped();
            }
            named = heard.take_named()?;
            if named.is_empty() {
                return Some(());
            }
        }
        None
    }

    /// Reads a file. Returns false for one that isn't read as a spec, and none if more than this file may have
    /// changed.
    fn read_spec(&mut self, place: &Path, known: &mut KnownFiles) -> Option<bool> {
        if place.file_name()?.as_bytes().starts_with(b".") {
            return Some(false);
        }
        let path: SpecPath = place.strip_prefix(&self.root).ok()?.to_str()?.parse().ok()?;
        let data = match fs::symlink_metadata(place) {
            Ok(data) => data,
            Err(_) if is_spec(path.as_str()) || is_miscased(&path) => return None,
            Err(_) => return Some(false),
        };
        if !data.is_file() || data.nlink() > 1 || is_miscased(&path) {
            return None;
        }
        if !is_spec(path.as_str()) {
            return Some(false);
        }
        // A folder with the name of a spec isn't entered, nor one that is too deep.
        let mut folders = path.as_str().split('/').rev().skip(1);
        let count = counted(&mut self.counts, &path);
        if folders.any(is_spec) || path.as_str().split('/').count() > MAX_FOLDERS || count > MAX_FILES {
            return None;
        }
        let entry = read_file(Utf8Path::from_path(place)?)?;
        known.remove(&path);
        path.top_folder().and_then(|folder| self.folders.remove(folder));
        Arc::make_mut(&mut self.snapshot).entries.insert(path, entry);
        Some(true)
    }

    fn search_skipped(&mut self) {
        let SkippedSpecs { found, has_hidden } = SkippedSpecs::find(&self.root);
        if self.snapshot.skipped != found {
            Arc::make_mut(&mut self.snapshot).skipped = found;
        }
        self.has_hidden = has_hidden;
    }
}

/// Counts one more entry, and returns how many its top folder has.
fn counted(counts: &mut HashMap<String, usize>, path: &SpecPath) -> usize {
    let count = counts.entry(path.top_folder().unwrap_or_default().to_owned()).or_default();
    *count += 1;
    *count
}

/// The identity of a file or folder, whatever its name is.
fn file_number(path: &Utf8Path) -> Option<(u64, u64)> {
    let (device, number, ..) = stamp(&fs::metadata(path).ok()?);
    Some((device, number))
}

fn age((.., seconds, nanoseconds): MetadataStamp, now: SystemTime) -> Option<Duration> {
    let since = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?);
    now.duration_since(SystemTime::UNIX_EPOCH.checked_add(since)?).ok()
}
