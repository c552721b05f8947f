//! The snapshot of the cache, for processes that only read: one file, replaced by a rename.
//!
//! sled allows one process at a time. The writer of the cache leaves a snapshot when it is done. From its
//! first write until then, a mark beside the snapshot contains its process id. So readers need neither the
//! lock nor write access to the folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Read as _, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;
use uuid::Uuid;

use super::cache::{FOLDER, Key};
use super::records::VERSION;

/// The snapshot's file. It is inside the cache's folder, so that both are moved and removed together.
const FILE: &str = "snapshot";

/// The mark that the cache is ahead of the snapshot. It contains the id of the writing process.
const AHEAD: &str = "snapshot.behind";

/// The header. The number is the version of the format.
const HEAD: &[u8] = b"streamfleet cache snapshot 1\n";

/// The table number that marks the end of the records.
const END: u8 = 0xff;

/// Length of the checksum at the end, in bytes.
const SUM: usize = 32;

pub(super) type Records = BTreeMap<Key, Vec<u8>>;

/// The records of all tables, in the order of the cache's tables.
#[derive(Default)]
pub(super) struct CacheSnapshot {
    pub(super) tables: [Records; 5],
}

/// How the snapshot of a state folder compares to its cache.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SnapshotFreshness {
    /// Up to date, or there is no cache.
    Same,
    /// A process has written the cache since; its id, if the mark has it.
    Behind(Option<u32>),
    /// There is a cache without a snapshot.
    Missing,
}

impl SnapshotFreshness {
    pub(super) fn of(dir: &Utf8Path) -> SnapshotFreshness {
        let folder = dir.join(FOLDER);
        if !folder.is_dir() {
            return SnapshotFreshness::Same;
        }
        match fs::read_to_string(folder.join(AHEAD)) {
            Ok(text) => SnapshotFreshness::Behind(text.trim().parse().ok()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => SnapshotFreshness::Behind(None),
            Err(_) if folder.join(FILE).exists() => SnapshotFreshness::Same,
            Err(_) => SnapshotFreshness::Missing,
        }
    }
}

/// Reads the installation from the snapshot, and the number of lines that the registry had then. A registry
/// with fewer lines has lost some: lines are only added, and compaction removes the snapshot first. None if
/// there is no snapshot.
pub(super) fn registry_lines(dir: &Utf8Path) -> Option<(Uuid, usize)> {
    let mut head = Vec::new();
    let length = HEAD.len() + size_of_val(&VERSION) + size_of::<Uuid>() + size_of::<u64>();
    let file = fs::File::open(dir.join(FOLDER).join(FILE)).ok()?;
    file.take(length as u64).read_to_end(&mut head).ok()?;
    let rest = head.strip_prefix(HEAD)?.strip_prefix(&VERSION.to_le_bytes())?;
    let (installation, rest) = rest.split_first_chunk::<16>()?;
    let (lines, _) = rest.split_first_chunk::<8>()?;
    let lines = usize::try_from(u64::from_le_bytes(*lines)).ok()?;
    Some((Uuid::from_bytes(*installation), lines))
}

/// Removes the snapshot before the registry is compacted, since its line count would be too high.
pub(super) fn forget(dir: &Utf8Path) -> io::Result<()> {
    match fs::remove_file(dir.join(FOLDER).join(FILE)) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

pub(super) struct SnapshotFiles {
    folder: Utf8PathBuf,
}

impl SnapshotFiles {
    pub(super) fn of(folder: &Utf8Path) -> SnapshotFiles {
        SnapshotFiles { folder: folder.to_owned() }
    }

    /// Marks the cache as ahead of the snapshot. Call it before the first write.
    pub(super) fn mark(&self) -> io::Result<()> {
        fs::write(self.folder.join(AHEAD), std::process::id().to_string())
    }

    /// Replaces the snapshot with what `fill` writes, and removes the mark.
    pub(super) fn replace(
        &self,
        installation: Uuid,
        registry_lines: usize,
        fill: impl FnOnce(&mut Writer) -> io::Result<()>,
    ) -> io::Result<()> {
        let file = NamedTempFile::new_in(&self.folder)?;
        let mut writer = Writer { out: BufWriter::new(file), sum: Sha256::new() };
        writer.bytes(HEAD)?;
        writer.bytes(&VERSION.to_le_bytes())?;
        writer.bytes(installation.as_bytes())?;
        writer.bytes(&(registry_lines as u64).to_le_bytes())?;
        fill(&mut writer)?;
        writer.bytes(&[END])?;
        let Writer { mut out, sum } = writer;
        out.write_all(&sum.finalize())?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist(self.folder.join(FILE)).map_err(|error| error.error)?;
        match fs::remove_file(self.folder.join(AHEAD)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Reads the snapshot of an installation; none if it is missing, damaged, or of another installation.
    pub(super) fn read(&self, installation: Uuid) -> io::Result<Option<CacheSnapshot>> {
        match fs::read(self.folder.join(FILE)) {
            Ok(bytes) => Ok(parse(&bytes, installation)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Writes records and computes their checksum.
pub(super) struct Writer {
    out: BufWriter<NamedTempFile>,
    sum: Sha256,
}

impl Writer {
    pub(super) fn record(&mut self, table: u8, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.bytes(&[table])?;
        for part in [key, value] {
            let length = u32::try_from(part.len()).map_err(io::Error::other)?;
            self.bytes(&length.to_le_bytes())?;
            self.bytes(part)?;
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.out.write_all(bytes)
    }
}

fn parse(bytes: &[u8], installation: Uuid) -> Option<CacheSnapshot> {
    let (content, sum) = bytes.split_at_checked(bytes.len().checked_sub(SUM)?)?;
    if Sha256::digest(content).as_slice() != sum {
        return None;
    }
    let rest = content.strip_prefix(HEAD)?.strip_prefix(&VERSION.to_le_bytes())?;
    let (_, mut rest) = rest.strip_prefix(installation.as_bytes())?.split_first_chunk::<8>()?;
    let mut snapshot = CacheSnapshot::default();
    loop {
        let (&table, after) = rest.split_first()?;
        if table == END {
            return Some(snapshot);
        }
        rest = after;
        let (key, value) = (part(&mut rest)?.to_vec(), part(&mut rest)?.to_vec());
        snapshot.tables.get_mut(usize::from(table))?.insert(key, value);
    }
}

/// Reads a length and that many bytes.
fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (part, after) = after.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    *rest = after;
    Some(part)
}
