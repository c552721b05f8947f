//! File metadata of a fleet's folder, compared to skip an observation when nothing changed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};

use super::{DirectoryTarget, files, inventory};

/// How old a file's last change must be for the next change to get another timestamp. The coarsest clock of
/// common file systems has a resolution of two seconds.
const SETTLED: Duration = Duration::from_secs(2);

pub(in crate::target) struct FolderFootprint {
    target: DirectoryTarget,
    stamps: BTreeMap<Utf8PathBuf, FileStamp>,
    /// Whether a later change of any file would show.
    is_settled: bool,
}

/// Device, inode and mode; for a file also its size in bytes and its mtime and ctime. A program can set the
/// mtime, but not the ctime.
#[derive(PartialEq, Eq)]
struct FileStamp {
    place: (u64, u64, u32),
    content: Option<(u64, Time, Time)>,
}

/// Seconds and nanoseconds since 1970.
type Time = (i64, i64);

impl FileStamp {
    fn of(data: &Metadata) -> Self {
        let content = (data.size(), (data.mtime(), data.mtime_nsec()), (data.ctime(), data.ctime_nsec()));
        Self {
            place: (data.dev(), data.ino(), data.mode()),
            // A folder's times also change with files that aren't ours.
            content: (!data.is_dir()).then_some(content),
        }
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

impl DirectoryTarget {
    /// The footprint for an observation that begins afterwards. None when a file of ours is missing.
    pub(in crate::target) fn footprint(&self, now: SystemTime) -> Option<FolderFootprint> {
        let (mut stamps, mut is_settled) = (BTreeMap::new(), true);
        let mut add = |path: &Utf8Path| -> Option<()> {
            let places = files::folders(path).into_iter().chain([path]);
            for place in places {
                let full = self.output.join(place);
                if let Entry::Vacant(vacant) = stamps.entry(full) {
                    let stamp = stamp(vacant.key())?;
                    is_settled &= stamp.is_settled(now);
                    vacant.insert(stamp);
                }
            }
            Some(())
        };
        // Taken before the inventory is read, so that a later version of it is noticed.
        add(&self.folder().join(inventory::FILE))?;
        let inventory = self.load().ok()?;
        inventory.paths().try_for_each(|path| add(&self.folder().join(path)))?;
        Some(FolderFootprint { target: self.clone(), stamps, is_settled })
    }
}

impl FolderFootprint {
    pub(in crate::target) fn is_of(&self, target: &DirectoryTarget) -> bool {
        self.target == *target
    }

    pub(in crate::target) fn holds(&self) -> bool {
        self.is_settled && self.stamps.iter().all(|(path, was)| stamp(path).as_ref() == Some(was))
    }
}

fn stamp(path: &Utf8Path) -> Option<FileStamp> {
    fs::symlink_metadata(path).ok().map(|data| FileStamp::of(&data))
}
