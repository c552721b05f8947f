//! Looks at a fleet's folder. What a look found is kept, so that the next one reads only what changed since.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, open, statat};

use super::inventory::{self, Inventory};
use super::{DirectoryTarget, files};
use crate::names::Digest;
use crate::target::TargetError;

/// How old a file's last change must be for the next change to get another timestamp. The coarsest clock of
/// common file systems has a resolution of two seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// The largest manifest that is read, in bytes. Kubernetes accepts no object of that size.
const MAX_SIZE: u64 = 4 * 1024 * 1024;

pub(super) enum PathContent {
    Absent,
    /// A link, a folder or anything else that we never create, at the path or on the way to it. `path` is its
    /// full path, and `expected` is "file" or "folder".
    NotPlain {
        path: Utf8PathBuf,
        expected: &'static str,
    },
    /// A regular file. `bytes` is none when the file is larger than [`MAX_SIZE`], or was read by an earlier look.
    File {
        digest: Digest,
        bytes: Option<Vec<u8>>,
    },
}

impl PathContent {
    pub(super) fn has(&self, content: &Digest) -> bool {
        matches!(self, PathContent::File { digest, .. } if digest == content)
    }
}

/// The files and folders of ours as a look found them. Paths are relative to the output folder. They are text, and in
/// no order: they have long beginnings in common, so comparing them takes longer than hashing them.
pub struct FolderView {
    target: DirectoryTarget,
    /// By folder and name.
    pub(super) files: SeenFiles,
    /// The folders, and files that the look had no need to read.
    others: HashMap<String, FileStamp>,
    /// Whether each path of the inventory was there.
    is_whole: bool,
}

type SeenFiles = HashMap<String, BTreeMap<String, SeenFile>>;

pub(super) struct SeenFile {
    stamp: FileStamp,
    pub(super) digest: Digest,
    /// Not set while it is so young that a later change may not show in its metadata. Until then, it is read again.
    is_settled: AtomicBool,
}

/// Device, inode and mode; for a file also its size in bytes and its mtime and ctime. A program can set the
/// mtime, but not the ctime.
#[derive(Clone, PartialEq, Eq)]
struct FileStamp {
    place: (u64, u64, u32),
    content: Option<(u64, Time, Time)>,
}

/// Seconds and nanoseconds since 1970.
type Time = (i64, i64);

/// Only the output folder itself may be a link.
pub struct FolderLook<'t> {
    target: &'t DirectoryTarget,
    last: Option<Arc<FolderView>>,
    now: SystemTime,
    files: SeenFiles,
    folders: HashMap<String, FileStamp>,
}

impl FileStamp {
    fn of(data: &Metadata) -> Self {
        let content = (data.size(), (data.mtime(), data.mtime_nsec()), (data.ctime(), data.ctime_nsec()));
        Self::with((data.dev(), data.ino(), data.mode()), content)
    }

    fn of_stat(data: &Stat) -> Self {
        let nanoseconds = |part| i64::try_from(part).unwrap_or_default();
        let mtime = (data.st_mtime, nanoseconds(data.st_mtime_nsec));
        let ctime = (data.st_ctime, nanoseconds(data.st_ctime_nsec));
        let size = u64::try_from(data.st_size).unwrap_or_default();
        Self::with((data.st_dev, data.st_ino, data.st_mode), (size, mtime, ctime))
    }

    fn with(place: (u64, u64, u32), content: (u64, Time, Time)) -> Self {
        // A folder's times also change with files that aren't ours.
        let is_folder = FileType::from_raw_mode(place.2) == FileType::Directory;
        Self { place, content: (!is_folder).then_some(content) }
    }

    /// Whether a later change would show. One in the same tick of the file system's clock may not.
    fn is_settled(&self, now: SystemTime) -> bool {
        let Some((_, _, (seconds, nanoseconds))) = self.content else { return true };
        let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(seconds), u32::try_from(nanoseconds)) else {
            return false;
        };
        let changed = SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds));
        let age = changed.and_then(|changed| now.duration_since(changed).ok());
        age.is_some_and(|age| age > SETTLED)
    }
}

impl<'t> FolderLook<'t> {
    /// `last` spares reading the files that it has. `now` is a time at or before the look.
    pub(in crate::target) fn after(
        target: &'t DirectoryTarget,
        last: Option<Arc<FolderView>>,
        now: SystemTime,
    ) -> Self {
        let last = last.filter(|last| last.is_of(target));
        Self { target, last, now, files: HashMap::new(), folders: HashMap::new() }
    }

    /// A look that reads everything and of which nothing is kept.
    pub(super) fn once(target: &'t DirectoryTarget) -> Self {
        Self::after(target, None, SystemTime::UNIX_EPOCH)
    }

    pub(super) fn target(&self) -> &'t DirectoryTarget {
        self.target
    }

    /// The folder of the manifests in the fleet's folder.
    pub(super) fn place(&self) -> &'t Utf8Path {
        &self.target.path
    }

    /// Looks at a path in the fleet's folder.
    pub(super) fn at(&mut self, path: &Utf8Path) -> Result<PathContent, TargetError> {
        let last = self.last.clone();
        self.inspect(path, last.as_deref())
    }

    /// Like [`Self::at`], with the file's bytes.
    pub(super) fn read(&mut self, path: &Utf8Path) -> Result<PathContent, TargetError> {
        self.inspect(path, None)
    }

    pub(super) fn with_bytes(
        &mut self,
        path: &Utf8Path,
        found: PathContent,
    ) -> Result<PathContent, TargetError> {
        match found {
            PathContent::File { bytes: None, .. } => self.read(path),
            _ => Ok(found),
        }
    }

    pub(super) fn inventory(&mut self) -> Result<Inventory, TargetError> {
        let path = Utf8Path::new(inventory::FILE);
        let DirectoryTarget { fleet, installation, .. } = self.target;
        match self.read(path)? {
            PathContent::Absent => Ok(Inventory::empty(fleet)),
            PathContent::NotPlain { path, expected } => Err(TargetError::NotPlain { path, expected }),
            PathContent::File { bytes, .. } => {
                Inventory::parse(&bytes.unwrap_or_default(), self.target.full(path), fleet, *installation)
            }
        }
    }

    fn inspect(&mut self, path: &Utf8Path, last: Option<&FolderView>) -> Result<PathContent, TargetError> {
        let limit = if path == inventory::FILE { u64::MAX } else { MAX_SIZE };
        let path = self.target.folder().join(path);
        let is_new = path.parent().is_none_or(|folder| !self.folders.contains_key(folder.as_str()));
        for folder in if is_new { files::folders(&path) } else { Vec::new() } {
            let full = self.target.output.join(folder);
            match metadata(&full)? {
                Some(data) if data.is_dir() => {
                    self.folders.insert(folder.to_string(), FileStamp::of(&data));
                }
                Some(_) => return Ok(PathContent::NotPlain { path: full, expected: "folder" }),
                None => return Ok(PathContent::Absent),
            }
        }
        let full = self.target.output.join(&path);
        // Read before the bytes, so that a later change shows.
        let Some(data) = metadata(&full)? else { return Ok(PathContent::Absent) };
        if !data.is_file() {
            return Ok(PathContent::NotPlain { path: full, expected: "file" });
        }
        let (stamp, (folder, name)) = (FileStamp::of(&data), split(path.as_str()));
        let (digest, bytes) = match last.and_then(|last| last.digest(path.as_str(), &stamp)) {
            Some(digest) => (digest, None),
            None if data.len() > limit => {
                // We never write a file this large. The digest only has to change when the file does.
                (Digest::of(format!("{} bytes, {:?}", data.len(), data.modified().ok())), None)
            }
            None => {
                let bytes = fs::read(&full).map_err(TargetError::io("read", &full))?;
                (Digest::of(&bytes), Some(bytes))
            }
        };
        let is_settled = stamp.is_settled(self.now).into();
        let file = SeenFile { stamp, digest: digest.clone(), is_settled };
        match self.files.get_mut(folder) {
            Some(files) => drop(files.insert(name.to_owned(), file)),
            None => drop(self.files.insert(folder.to_owned(), BTreeMap::from([(name.to_owned(), file)]))),
        }
        Ok(PathContent::File { digest, bytes })
    }

    /// Ends a look that saw all of the inventory's objects.
    pub(super) fn end(self, inventory: &Inventory) -> FolderView {
        let Self { target, last: _, now, files, folders: mut others } = self;
        let mut is_whole = true;
        for path in inventory.paths() {
            let path = target.folder().join(path);
            if seen(&files, path.as_str()).is_some() || others.contains_key(path.as_str()) {
                continue;
            }
            // A young file that wasn't read can't be trusted later.
            match metadata(&target.output.join(&path)).ok().flatten().map(|data| FileStamp::of(&data)) {
                Some(stamp) if stamp.is_settled(now) => {
                    others.insert(path.into_string(), stamp);
                }
                _ => is_whole = false,
            }
        }
        FolderView { target: target.clone(), files, others, is_whole }
    }
}

impl FolderView {
    fn is_of(&self, target: &DirectoryTarget) -> bool {
        self.target == *target
    }

    /// The digest of a file that is still as it was.
    fn digest(&self, path: &str, stamp: &FileStamp) -> Option<Digest> {
        let file = seen(&self.files, path).filter(|file| file.stamp == *stamp)?;
        file.is_settled.load(Ordering::Relaxed).then(|| file.digest.clone())
    }

    #[cfg(test)]
    pub(super) fn kept(&self, path: &str) -> Option<Digest> {
        self.digest(path, &seen(&self.files, path)?.stamp)
    }

    /// Whether another look would find the same; with `is_trusted`, without looking at the files.
    pub(in crate::target) fn holds(
        &self,
        target: &DirectoryTarget,
        is_trusted: bool,
        now: SystemTime,
    ) -> bool {
        self.is_of(target) && self.is_whole && (is_trusted || self.is_unchanged(now))
    }

    fn is_unchanged(&self, now: SystemTime) -> bool {
        let others = self.others.iter().filter(|(path, _)| !self.files.contains_key(path.as_str()));
        let mut others = others.map(|(path, was)| (metadata(&self.target.output.join(path)), was));
        let is_same = |(found, was): (Result<Option<Metadata>, TargetError>, &FileStamp)| {
            found.ok().flatten().is_some_and(|data| FileStamp::of(&data) == *was)
        };
        let mut folders = self.files.iter();
        others.all(is_same)
            && folders.all(|(folder, files)| self.are_unchanged(folder, files).unwrap_or_default())
            && self.are_young_the_same(now)
    }

    /// Whether a folder and files in it are as they were. They are looked at from the folder: the kernel would walk their
    /// whole paths for each.
    fn are_unchanged(&self, folder: &str, files: &BTreeMap<String, SeenFile>) -> rustix::io::Result<bool> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = open(self.target.output.join(folder).as_std_path(), flags, Mode::empty())?;
        if let Some(was) = self.others.get(folder)
            && FileStamp::of_stat(&fstat(&opened)?) != *was
        {
            return Ok(false);
        }
        for (name, was) in files {
            if FileStamp::of_stat(&statat(&opened, name.as_str(), AtFlags::SYMLINK_NOFOLLOW)?) != was.stamp {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the young files again, and notes those that are old enough now.
    fn are_young_the_same(&self, now: SystemTime) -> bool {
        // Copies of a memory share the view, and a plan may be asked for as of a later time.
        let now = now.min(SystemTime::now());
        let mut look = FolderLook::after(&self.target, None, now);
        let own = self.target.folder();
        let mut is_same = |(folder, name, was): (&String, &String, &SeenFile)| {
            let path = Utf8Path::new(folder).join(name);
            look.read(path.strip_prefix(&own).ok()?).ok()?;
            let file = seen(&look.files, path.as_str())?;
            let file = Some(file).filter(|it| it.stamp == was.stamp && it.digest == was.digest)?;
            was.is_settled.store(file.is_settled.load(Ordering::Relaxed), Ordering::Relaxed);
            Some(())
        };
        let files = self
            .files
            .iter()
            .flat_map(|(folder, files)| files.iter().map(move |(name, file)| (folder, name, file)));
        let mut young = files.filter(|(.., file)| !file.is_settled.load(Ordering::Relaxed));
        young.all(|file| is_same(file).is_some())
    }
}

/// The folder and the name of a file.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn seen<'a>(files: &'a SeenFiles, path: &str) -> Option<&'a SeenFile> {
    let (folder, name) = split(path);
    files.get(folder)?.get(name)
}

fn metadata(path: &Utf8Path) -> Result<Option<Metadata>, TargetError> {
    match fs::symlink_metadata(path) {
        Ok(data) => Ok(Some(data)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TargetError::io("read", path)(error)),
    }
}
