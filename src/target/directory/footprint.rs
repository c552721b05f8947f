//! What changes in a folder when a file of ours does, so that the next look can be spared.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};

use super::{DirectoryTarget, files, inventory};

/// How long a file must have been left alone for a later change to give it another time: the coarsest clock of common file
/// systems counts two seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// What a look at a folder looks at, as the file system tells it without opening a file.
pub(in crate::target) struct Footprint {
    target: DirectoryTarget,
    stamps: BTreeMap<Utf8PathBuf, Stamp>,
}

/// Device, number and mode; of a file also its size in bytes and when it and its place last changed, in seconds and
/// nanoseconds. A program can set the first of these times, but not the second.
#[derive(PartialEq, Eq)]
struct Stamp {
    place: (u64, u64, u32),
    content: Option<(u64, Time, Time)>,
}

/// Seconds and nanoseconds since 1970.
type Time = (i64, i64);

impl Stamp {
    fn of(data: &Metadata) -> Self {
        let content = (data.size(), (data.mtime(), data.mtime_nsec()), (data.ctime(), data.ctime_nsec()));
        Self {
            place: (data.dev(), data.ino(), data.mode()),
            // Other files come and go in our folders.
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
    /// The footprint of a look that begins afterwards; none where something of ours is not there or was changed only now.
    pub(in crate::target) fn footprint(&self, now: SystemTime) -> Option<Footprint> {
        let mut stamps = BTreeMap::new();
        let mut add = |path: &Utf8Path| -> Option<()> {
            let places = files::folders(path).into_iter().chain([path]);
            for place in places {
                let full = self.output.join(place);
                if let Entry::Vacant(vacant) = stamps.entry(full) {
                    let stamp = stamp(vacant.key()).filter(|stamp| stamp.is_settled(now))?;
                    vacant.insert(stamp);
                }
            }
            Some(())
        };
        // Before it is read, so that a later one is seen to be another.
        add(&self.folder().join(inventory::FILE))?;
        let inventory = self.load().ok()?;
        inventory.paths().try_for_each(|path| add(&self.folder().join(path)))?;
        Some(Footprint { target: self.clone(), stamps })
    }
}

impl Footprint {
    /// Whether it is one of this target.
    pub(in crate::target) fn is_of(&self, target: &DirectoryTarget) -> bool {
        self.target == *target
    }

    /// Whether a look would look at the same files.
    pub(in crate::target) fn holds(&self) -> bool {
        self.stamps.iter().all(|(path, was)| stamp(path).as_ref() == Some(was))
    }
}

fn stamp(path: &Utf8Path) -> Option<Stamp> {
    fs::symlink_metadata(path).ok().map(|data| Stamp::of(&data))
}
