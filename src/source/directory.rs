mod scanner;
mod skipped_specs;
#[cfg(test)]
mod tests;
mod watch;
pub mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind, Read};
use std::ops::Bound;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::SourceError;
use super::rules::{
    MAX_BYTES, MAX_FILES, MAX_FOLDERS, ScanTotals, TEMPORARY, file, folder_named_as_file, is_miscased,
    is_spec, miscased, name_not_utf8, too_deep, unreadable,
};
use crate::names::{Digest, SpecPath};
use crate::spec::{Snapshot, SnapshotEntry, SourceId};

pub use scanner::Scanner;
use skipped_specs::SkippedSpecs;
pub use watch::{ChangeCounter, UnfinishedFiles, Watch};

/// How many times a file is read that changes while it is read.
const ATTEMPTS: usize = 3;
/// How many times a tree is scanned that changes while it is scanned.
const SCANS: u32 = 5;
/// The pause before the second scan. It doubles before each further one, to 0.3 s in all, so that a checkout
/// of some files is finished by then.
const PAUSE: Duration = Duration::from_millis(20);

/// Reads all spec files below a folder. What can't be read is in the snapshot as unreadable, since it must
/// not count as absent.
///
/// Names that begin with a dot are skipped. A link is followed if its target is in the same top folder or,
/// for a link outside of the top folders, in the tree. A link into a skipped folder is never followed.
///
/// # Errors
/// If the folder doesn't exist or can't be listed, or if its content keeps changing.
pub fn scan(root: &Utf8Path) -> Result<Snapshot, SourceError> {
    Ok(TreeWalk::of(root, &KnownFiles::new())?.snapshot)
}

fn failed_root(root: &Utf8Path) -> impl Fn(io::Error) -> SourceError {
    let path = root.to_owned();
    move |error| SourceError::Root { path: path.clone(), error }
}

fn real_root(root: &Utf8Path) -> Result<Utf8PathBuf, SourceError> {
    let real = fs::canonicalize(root).map_err(failed_root(root))?;
    Utf8PathBuf::from_path_buf(real).map_err(|_| SourceError::NotUtf8 { path: root.to_owned() })
}

/// A walk through all of a tree.
struct TreeWalk {
    snapshot: Snapshot,
    folders: FolderDigests,
    /// The metadata that reveals later changes; none if some entries kept changing.
    stamp: Option<TreeStamp>,
    /// Whether every file has one path only, so that a change of a file changes one entry.
    is_plain: bool,
    /// Whether there are folders with hidden names, which are searched and not watched.
    has_hidden: bool,
}

impl TreeWalk {
    /// Walks without reading files of known content.
    fn of(root: &Utf8Path, known: &KnownFiles) -> Result<Self, SourceError> {
        let real = real_root(root)?;
        // Searched between the two listings, so that a file moved back from there is seen in one of them.
        let mut skipped = SkippedSpecs::default();
        let found = still_entries(&real, known, &mut || skipped = SkippedSpecs::find(&real))
            .map_err(failed_root(root))?
            .ok_or_else(|| SourceError::Changing { path: root.to_owned() })?;
        let SkippedSpecs { found: skipped, has_hidden } = skipped;
        let StillEntries { entries, stamp, is_plain } = found;
        let mut folders = FolderDigests::new();
        let revision = revision(&entries, &mut folders);
        // The source is the path as given: a link that is switched to another folder remains the same source.
        let source = SourceId(root.to_string());
        let snapshot = Snapshot { source, revision, commit: None, skipped, entries };
        Ok(TreeWalk { snapshot, folders, stamp, is_plain, has_hidden })
    }
}

/// Marks files as unreadable that are still being written.
fn hide_unfinished(files: BTreeSet<PathBuf>, snapshot: &mut Arc<Snapshot>, root: &Utf8Path) {
    let Some(root) = root.canonicalize_utf8().ok().filter(|_| !files.is_empty()) else { return };
    let snapshot = Arc::make_mut(snapshot);
    for file in files {
        let path = file.strip_prefix(&root).ok().and_then(|path| path.to_str()?.parse::<SpecPath>().ok());
        if let Some(entry @ SnapshotEntry::File { .. }) =
            path.and_then(|path| snapshot.entries.get_mut(&path))
        {
            let hint = "finish writing it, or write another file and rename it";
            *entry = unreadable("unfinished-file", "this file is still being written".to_owned(), hint);
        }
    }
    snapshot.revision = revision(&snapshot.entries, &mut FolderDigests::new());
}

/// The metadata of a tree, which changes when a file or folder does. It is collected without opening files.
#[derive(Debug, PartialEq, Eq)]
pub struct TreeStamp {
    root: MetadataStamp,
    seen: ListedStamps,
}

/// Collects the metadata of a tree. If it is unchanged, [`scan`] most likely returns the same. Two changes of
/// a file within one tick of the file system's clock may go unnoticed, so scan now and then in any case.
///
/// # Errors
/// If the folder doesn't exist or can't be listed.
pub fn read_tree_stamp(root: &Utf8Path) -> Result<TreeStamp, SourceError> {
    Ok(Scan::of(root, ScanPurpose::List).map_err(failed_root(root))?.stamp())
}

struct StillEntries {
    entries: BTreeMap<SpecPath, SnapshotEntry>,
    stamp: Option<TreeStamp>,
    is_plain: bool,
}

/// Returns the entries of a tree if a second listing finds the same files. Otherwise a file moved from a
/// folder not yet read to one already read would be missed and count as removed. Returns none if the root
/// folder keeps changing; entries below it that keep changing are unreadable.
fn still_entries(
    root: &Utf8Path,
    known: &KnownFiles,
    between: &mut dyn FnMut(),
) -> io::Result<Option<StillEntries>> {
    for attempt in 0..SCANS {
        if attempt > 0 {
            std::thread::sleep(PAUSE * 2_u32.pow(attempt - 1));
        }
        let mut first = Scan::of(root, ScanPurpose::Read(known))?;
        between();
        let second = Scan::of(root, ScanPurpose::List)?;
        let is_plain = first.is_plain && second.is_plain;
        if first.root_stamp == second.root_stamp && first.seen == second.seen {
            let stamp = Some(second.stamp());
            return Ok(Some(StillEntries { entries: first.found.entries, stamp, is_plain }));
        }
        if attempt + 1 == SCANS && first.root_stamp == second.root_stamp {
            first.mark_unstable(&second);
            return Ok(Some(StillEntries { entries: first.found.entries, stamp: None, is_plain }));
        }
    }
    Ok(None)
}

/// The digests of top folders, by name.
type FolderDigests = BTreeMap<String, Digest>;

/// Returns the digest of all paths and contents, made of those of the top folders. Unknown ones are added.
fn revision(entries: &BTreeMap<SpecPath, SnapshotEntry>, known: &mut FolderDigests) -> String {
    let mut lines = String::new();
    let mut next = entries.iter().next();
    while let Some((path, entry)) = next {
        let (end, bound);
        match path.top_folder() {
            Some(folder) => {
                let begin = format!("{folder}/");
                // The character after the slash: all paths in the folder are before this.
                end = format!("{folder}0");
                bound = Bound::Included(end.as_str());
                if !known.contains_key(folder) {
                    let mut inner = String::new();
                    let range = (Bound::Included(begin.as_str()), Bound::Excluded(end.as_str()));
                    entries
                        .range::<str, _>(range)
                        .for_each(|(path, entry)| line(&mut inner, path.as_str(), content(entry)));
                    known.insert(folder.to_owned(), Digest::of(inner));
                }
                line(&mut lines, &begin, known.get(folder).map_or("", Digest::as_str));
            }
            None => {
                bound = Bound::Excluded(path.as_str());
                line(&mut lines, path.as_str(), content(entry));
            }
        }
        next = entries.range::<str, _>((bound, Bound::Unbounded)).next();
    }
    Digest::of(lines).to_string()
}

/// Unreadable entries count with their error code.
fn content(entry: &SnapshotEntry) -> &str {
    match entry {
        SnapshotEntry::File { digest, .. } => digest.as_str(),
        SnapshotEntry::Unreadable { code, .. } => code,
    }
}

/// Adds a line. A path may contain a line break; its length makes the list unambiguous.
fn line(lines: &mut String, path: &str, content: &str) {
    lines.extend([&path.len().to_string(), " ", path, " ", content, "\n"]);
}

/// The sorted names in a folder, and whether each is UTF-8. Other names are in their lossy form.
type Names = BTreeSet<(String, bool)>;

fn list(folder: &Utf8Path) -> io::Result<Names> {
    let mut names = Names::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        names.insert((name.to_string_lossy().into_owned(), name.to_str().is_some()));
    }
    Ok(names)
}

#[derive(Clone, Copy)]
enum ScanPurpose<'a> {
    Read(&'a KnownFiles),
    List,
}

/// The metadata that changes with a file or folder: device, inode, size in bytes, and the modification and
/// change times in seconds and nanoseconds.
type MetadataStamp = (u64, u64, u64, i64, i64, i64, i64);

fn stamp(data: &Metadata) -> MetadataStamp {
    let (changed, placed) = ((data.mtime(), data.mtime_nsec()), (data.ctime(), data.ctime_nsec()));
    (data.dev(), data.ino(), data.size(), changed.0, changed.1, placed.0, placed.1)
}

/// All spec files and folders; without a stamp if the metadata can't be read.
type ListedStamps = BTreeMap<SpecPath, Option<MetadataStamp>>;

/// The files read before, with their metadata at that time.
type KnownFiles = BTreeMap<SpecPath, (MetadataStamp, SnapshotEntry)>;

struct Scan<'a> {
    root: &'a Utf8Path,
    look: ScanPurpose<'a>,
    root_stamp: MetadataStamp,
    found: ScanTotals,
    seen: ListedStamps,
    /// The real paths of the folders that are being scanned, to detect links back to one of them. The first
    /// is the root, the second the top folder.
    inside: Vec<Utf8PathBuf>,
    /// Whether there was no link, neither a symbolic one nor a second name of a spec file.
    is_plain: bool,
}

impl<'a> Scan<'a> {
    fn of(root: &'a Utf8Path, look: ScanPurpose<'a>) -> io::Result<Self> {
        let root_stamp = stamp(&fs::metadata(root)?);
        let names = list(root)?;
        let mut scan = Scan::new(root, look, root_stamp);
        scan.folder("", names);
        Ok(scan)
    }

    fn new(root: &'a Utf8Path, look: ScanPurpose<'a>, root_stamp: MetadataStamp) -> Self {
        let (found, seen) = (ScanTotals::default(), ListedStamps::new());
        Scan { root, look, root_stamp, found, seen, inside: vec![root.to_owned()], is_plain: true }
    }

    fn stamp(self) -> TreeStamp {
        TreeStamp { root: self.root_stamp, seen: self.seen }
    }

    /// Marks as unreadable what differs in the second listing.
    fn mark_unstable(&mut self, second: &Scan<'_>) {
        let paths: BTreeSet<_> = self.seen.keys().chain(second.seen.keys()).cloned().collect();
        for path in paths.into_iter().filter(|path| self.seen.get(path) != second.seen.get(path)) {
            let message = "this changes while the tree is read".to_owned();
            let hint = "finish writing it, or write it outside the tree and move it";
            self.found.entries.insert(path, unreadable("unstable-tree", message, hint));
        }
    }

    fn folder(&mut self, folder: &str, names: Names) {
        for (name, readable) in names.into_iter().filter(|(name, _)| !name.starts_with('.')) {
            if self.found.count > MAX_FILES {
                return;
            }
            let place = self.inside.last().map_or(self.root, |real| real).join(&name);
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            // Names from a listing contain no slash and are not `.` or `..`.
            let Ok(path) = SpecPath::try_from(path) else { continue };
            if readable {
                self.visit(path, place);
            } else {
                self.found.add(path, name_not_utf8());
            }
        }
    }

    /// Adds one name. `place` is within its folder's real path, so that a link back to a folder is detected.
    fn visit(&mut self, path: SpecPath, place: Utf8PathBuf) {
        let resolved = self.resolve(&place);
        let is_plain = match &resolved {
            Ok((real, data)) => *real == place && (data.nlink() == 1 || !data.is_file()),
            Err(UnreadableEntry::Gone) => true,
            Err(UnreadableEntry::Because(_)) => false,
        };
        self.is_plain &= is_plain;
        let (real, data) = match resolved {
            Ok(real) => real,
            // A file removed since the folder was listed is ignored; a broken link is an error.
            Err(UnreadableEntry::Gone) => return,
            // The entry may be a folder full of specs, whatever its name is.
            Err(UnreadableEntry::Because(entry)) => {
                self.seen.insert(path.clone(), None);
                self.found.add(path, *entry);
                return;
            }
        };
        if data.is_dir() || is_spec(path.as_str()) {
            self.seen.insert(path.clone(), Some(stamp(&data)));
        }
        match (data.is_dir(), is_spec(path.as_str())) {
            (true, true) => self.found.add(path, folder_named_as_file()),
            (true, false) => self.enter(path, real),
            (false, true) if data.is_file() => {
                let ScanPurpose::Read(known) = self.look else { return };
                let known = known.get(&path).filter(|(was, _)| *was == stamp(&data));
                if let Some(entry) = known.map(|(_, entry)| entry.clone()).or_else(|| read_file(&real)) {
                    self.found.add(path, entry);
                }
            }
            (false, true) => {
                let message = "this is neither a file nor a folder".to_owned();
                self.found.add(path, unreadable("unreadable-file", message, "remove it from the spec tree"));
            }
            (false, false) if is_miscased(&path) => self.found.add(path, miscased()),
            (false, false) => {}
        }
    }

    fn enter(&mut self, path: SpecPath, real: Utf8PathBuf) {
        if self.inside.contains(&real) {
            let message = format!("the link leads back to {}, which contains it", self.shown(&real));
            self.found.add(path, unreadable("link-cycle", message, "remove the link"));
        } else if self.inside.len() > MAX_FOLDERS {
            self.found.add(path, too_deep());
        } else if self.found.counts(&path) {
            match list(&real) {
                Ok(names) => {
                    let beside = self.found.count;
                    let top = self.inside.len() == 1;
                    if top {
                        self.found.count = 0;
                    }
                    self.inside.push(real);
                    self.folder(path.as_str(), names);
                    self.inside.pop();
                    if top {
                        self.found.count = beside;
                    }
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    self.found.add(path, failed("unreadable-folder", "cannot list the folder", &error))
                }
            }
        }
    }

    fn shown(&self, real: &Utf8Path) -> String {
        match real.strip_prefix(self.root) {
            Ok(inner) if inner.as_str().is_empty() => "the root of the tree".to_owned(),
            Ok(inner) => inner.to_string(),
            Err(_) => real.to_string(),
        }
    }

    /// Returns whether a link's target is in a Kubernetes volume beside the link. Kubernetes mounts a
    /// ConfigMap as a link to `..data/NAME`, where `..data` is a link to a folder such as
    /// `..2026_01_31_00_00_00.1`.
    fn is_mounted(&self, real: &Utf8Path) -> bool {
        let beside = self.inside.last().and_then(|folder| real.strip_prefix(folder).ok());
        let mut names = beside.into_iter().flat_map(Utf8Path::components).map(|name| name.as_str());
        names.next().is_some_and(|volume| volume.starts_with(".."))
            && !names.any(|name| name.starts_with('.'))
    }

    fn resolve(&self, place: &Utf8Path) -> Result<(Utf8PathBuf, Metadata), UnreadableEntry> {
        let refuse = |entry| UnreadableEntry::Because(Box::new(entry));
        let link = match fs::symlink_metadata(place) {
            Ok(data) => data,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(UnreadableEntry::Gone),
            Err(error) => {
                return Err(refuse(failed(
                    "unreadable-file",
                    "cannot tell whether this is a file or a folder",
                    &error,
                )));
            }
        };
        if !link.is_symlink() {
            return Ok((place.to_owned(), link));
        }
        let real = fs::canonicalize(place).map_err(|error| {
            refuse(unreadable(
                "broken-link",
                format!("cannot follow the link: {error}"),
                "fix the link; removing it removes what it described",
            ))
        })?;
        let stray = |code, where_to: &str| {
            let hint = "put a copy in place of the link";
            refuse(unreadable(code, format!("the link leads {where_to}"), hint))
        };
        let outside = || stray("link-out-of-tree", "out of the spec tree");
        let real = Utf8PathBuf::from_path_buf(real).map_err(|_| outside())?;
        let top = self.inside.get(1).map_or(self.root, |top| top);
        match real.strip_prefix(top) {
            Ok(inner) if is_hidden(inner) && !self.is_mounted(&real) => {
                return Err(stray(
                    "link-to-hidden",
                    "to a name that begins with a dot, where specs aren't read",
                ));
            }
            Ok(_) => {}
            Err(_) if real.starts_with(self.root) => {
                return Err(stray(
                    "link-out-of-folder",
                    "out of its top folder, possibly to another organization's files",
                ));
            }
            Err(_) => return Err(outside()),
        }
        let data = fs::metadata(&real)
            .map_err(|error| refuse(failed("unreadable-file", "cannot read the link's target", &error)))?;
        Ok((real, data))
    }
}

fn is_hidden(path: &Utf8Path) -> bool {
    path.components().any(|name| name.as_str().starts_with('.'))
}

enum UnreadableEntry {
    Gone,
    Because(Box<SnapshotEntry>),
}

/// Reads a file; none if it was removed since it was listed.
fn read_file(place: &Utf8Path) -> Option<SnapshotEntry> {
    match stable_bytes(place) {
        Ok(Some(bytes)) => Some(file(Arc::from(bytes))),
        Ok(None) => {
            let message = "the file keeps changing while it is read".to_owned();
            Some(unreadable(
                "unstable-file",
                message,
                "finish writing it, or write another file and rename it",
            ))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(failed("unreadable-file", "cannot read the file", &error)),
    }
}

/// Reads a file; none if it keeps changing meanwhile.
fn stable_bytes(place: &Utf8Path) -> io::Result<Option<Vec<u8>>> {
    for _ in 0..ATTEMPTS {
        let mut file = fs::File::open(place)?;
        let before = file.metadata()?;
        let mut bytes = Vec::new();
        (&mut file).take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        let after = file.metadata()?;
        let whole = bytes.len() as u64 == after.len().min(MAX_BYTES + 1);
        if whole && before.len() == after.len() && before.modified()? == after.modified()? {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

fn failed(code: &'static str, what: &str, error: &io::Error) -> SnapshotEntry {
    let hint = match error.kind() {
        ErrorKind::PermissionDenied => "make it readable for the user that runs streamfleet",
        _ => "check the disk, and try again",
    };
    unreadable(code, format!("{what}: {error}"), hint)
}
