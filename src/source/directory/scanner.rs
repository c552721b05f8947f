//! A tree that is scanned again and again: a file that is as it was isn't read again.

use std::time::{Duration, Instant, SystemTime};

use camino::Utf8Path;

use super::{Known, Stamp, Unfinished, hide, scan_anew};
use crate::source::SourceError;
use crate::spec::{Entry, Snapshot};

/// How long a file must have been left alone for a later change to give it another time: the coarsest clock of common file
/// systems counts two seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// How long files are known. On a network file system, a file may have changed long before it looks like that.
const KNOWN: Duration = Duration::from_secs(300);

/// What scans one tree.
pub struct Scanner {
    known: Known,
    /// Since when.
    since: Instant,
    settled: Duration,
    unfinished: Unfinished,
}

impl Default for Scanner {
    fn default() -> Self {
        let unfinished = Unfinished::default();
        Self { known: Known::new(), since: Instant::now(), settled: SETTLED, unfinished }
    }
}

impl Scanner {
    /// Of a tree that is watched: a file that somebody still writes can't be read.
    pub fn of(unfinished: Unfinished) -> Self {
        Self { unfinished, ..Self::default() }
    }

    /// Gives what [`scan`](super::scan) gives, but for files that somebody still writes.
    ///
    /// # Errors
    /// As that.
    pub fn scan(&mut self, root: &Utf8Path) -> Result<Snapshot, SourceError> {
        let mut snapshot = self.scan_all(root)?;
        hide(&self.unfinished, &mut snapshot, root);
        Ok(snapshot)
    }

    /// The same with files that somebody still writes, as far as they are written.
    ///
    /// # Errors
    /// As [`Scanner::scan`].
    pub fn scan_all(&mut self, root: &Utf8Path) -> Result<Snapshot, SourceError> {
        if self.since.elapsed() > KNOWN {
            (self.known, self.since) = (Known::new(), Instant::now());
        }
        // Before anything is read: what changes afterwards is younger.
        let begun = SystemTime::now();
        let (snapshot, seen) = scan_anew(root, &self.known)?;
        let settled = seen.into_iter().filter_map(|(path, stamp)| {
            let stamp = stamp.filter(|stamp| age(stamp, begun).is_some_and(|age| age > self.settled))?;
            let entry = snapshot.entries.get(&path).filter(|entry| matches!(entry, Entry::File { .. }))?;
            Some((path, (stamp, entry.clone())))
        });
        self.known = settled.collect();
        Ok(snapshot)
    }
}

/// How long ago a file or its place last changed; none where that is to come.
fn age((.., seconds, nanoseconds): &Stamp, now: SystemTime) -> Option<Duration> {
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
        // Each is another file, so that nobody has to wait for the clock.
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

        // What is known is taken for what is there.
        let path: SpecPath = "b.yaml".to_owned().try_into().unwrap();
        let other = scanner.known.values().next().unwrap().1.clone();
        scanner.known.get_mut(&path).unwrap().1 = other;
        let found = scanner.scan(&root).unwrap();
        let bytes = |entry: &Entry| match entry {
            Entry::File { bytes, .. } => String::from_utf8(bytes.to_vec()).unwrap(),
            Entry::Unreadable { message, .. } => message.clone(),
        };
        assert_eq!(bytes(&found.entries[&path]), "a: 1");
        save("b.yaml", "b: 2");
        same(&mut scanner);
        fs::rename(root.join("a.yaml"), root.join("b.yaml")).unwrap();
        same(&mut scanner);
        fs::remove_file(root.join("b.yaml")).unwrap();
        same(&mut scanner);
        // A file that was changed only now may change again without looking like that.
        save("a.yaml", "a: 1");
        let mut scanner = Scanner::default();
        same(&mut scanner);
        assert!(scanner.known.is_empty());
    }
}
