//! Scans a tree repeatedly without reading unchanged files again.

use std::time::{Duration, Instant, SystemTime};

use camino::Utf8Path;

use super::{KnownFiles, MetadataStamp, UnfinishedFiles, hide_unfinished, scan_anew};
use crate::source::SourceError;
use crate::spec::{Snapshot, SnapshotEntry};

/// How long a file must be unchanged before its timestamp is trusted: the coarsest clock of common file
/// systems has ticks of two seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// How long contents are cached. On a network file system, a change may show late in the metadata.
const KNOWN: Duration = Duration::from_secs(300);

pub struct Scanner {
    known: KnownFiles,
    /// When the cache was last emptied.
    since: Instant,
    settled: Duration,
    unfinished: UnfinishedFiles,
}

impl Default for Scanner {
    fn default() -> Self {
        let unfinished = UnfinishedFiles::default();
        Self { known: KnownFiles::new(), since: Instant::now(), settled: SETTLED, unfinished }
    }
}

impl Scanner {
    /// Creates a scanner of a watched tree. Files that are still being written are unreadable.
    pub fn of(unfinished: UnfinishedFiles) -> Self {
        Self { unfinished, ..Self::default() }
    }

    /// Scans the tree like [`scan`](super::scan), with files that are still being written as unreadable.
    ///
    /// # Errors
    /// Those of [`scan`](super::scan).
    pub fn scan(&mut self, root: &Utf8Path) -> Result<Snapshot, SourceError> {
        let mut snapshot = self.scan_all(root)?;
        hide_unfinished(&self.unfinished, &mut snapshot, root);
        Ok(snapshot)
    }

    /// Scans the tree with the current content of files that are still being written.
    ///
    /// # Errors
    /// Those of [`scan`](super::scan).
    pub fn scan_all(&mut self, root: &Utf8Path) -> Result<Snapshot, SourceError> {
        if self.since.elapsed() > KNOWN {
            (self.known, self.since) = (KnownFiles::new(), Instant::now());
        }
        // Taken before anything is read: later changes have later timestamps.
        let begun = SystemTime::now();
        let (snapshot, seen) = scan_anew(root, &self.known)?;
        let settled = seen.into_iter().filter_map(|(path, stamp)| {
            let stamp = stamp.filter(|stamp| age(stamp, begun).is_some_and(|age| age > self.settled))?;
            let entry =
                snapshot.entries.get(&path).filter(|entry| matches!(entry, SnapshotEntry::File { .. }))?;
            Some((path, (stamp, entry.clone())))
        });
        self.known = settled.collect();
        Ok(snapshot)
    }
}

fn age((.., seconds, nanoseconds): &MetadataStamp, now: SystemTime) -> Option<Duration> {
    let since = Duration::new(u64::try_from(*seconds).ok()?, u32::try_from(*nanoseconds).ok()?);
    now.duration_since(SystemTime::UNIX_EPOCH.checked_add(since)?).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use camino::Utf8PathBuf;

    use super::super::scan;
    use super::*;
    use crate::names::SpecPath;

    #[test]
    fn a_file_that_was_left_alone_is_not_read_again_and_one_that_changed_is() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        // Each save makes a new file, so that the test needn't wait for the clock.
        let save = |file: &str, text: &str| {
            fs::write(root.join("beside"), text).unwrap();
            fs::rename(root.join("beside"), root.join(file)).unwrap();
        };
        let same = |scanner: &mut Scanner| {
            let (found, expected) = (scanner.scan(&root).unwrap(), scan(&root).unwrap());
            assert_eq!(found.revision, expected.revision);
            assert_eq!(found.entries.len(), expected.entries.len());
        };
        save("a.yaml", "a: 1");
        save("b.yaml", "b: 1");
        let mut scanner = Scanner { settled: Duration::ZERO, ..Scanner::default() };
        same(&mut scanner);
        assert_eq!(scanner.known.len(), 2);

        let path: SpecPath = "b.yaml".to_owned().try_into().unwrap();
        let other = scanner.known.values().next().unwrap().1.clone();
        scanner.known.get_mut(&path).unwrap().1 = other;
        let found = scanner.scan(&root).unwrap();
        let bytes = |entry: &SnapshotEntry| match entry {
            SnapshotEntry::File { bytes, .. } => String::from_utf8(bytes.to_vec()).unwrap(),
            SnapshotEntry::Unreadable { message, .. } => message.clone(),
        };
        assert_eq!(bytes(&found.entries[&path]), "a: 1");
        save("b.yaml", "b: 2");
        same(&mut scanner);
        fs::rename(root.join("a.yaml"), root.join("b.yaml")).unwrap();
        same(&mut scanner);
        fs::remove_file(root.join("b.yaml")).unwrap();
        same(&mut scanner);
        // A file that was changed just now may change again without a new timestamp, so it isn't cached.
        save("a.yaml", "a: 1");
        let mut scanner = Scanner::default();
        same(&mut scanner);
        assert!(scanner.known.is_empty());
    }
}
