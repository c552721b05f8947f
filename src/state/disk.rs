//! Disk errors of the cache, and setting a damaged cache aside.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::StateError;

/// Free space required before sled is reopened, in bytes: several of its segments.
const ROOM: u64 = 2 * 1024 * 1024;

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns the error if the disk refused and the file isn't damaged. sled keeps nothing of it but the kind.
pub(super) fn refusal(kind: io::ErrorKind) -> Option<Errno> {
    match kind {
        io::ErrorKind::PermissionDenied => Some(Errno::ACCESS),
        io::ErrorKind::QuotaExceeded => Some(Errno::DQUOT),
        io::ErrorKind::ReadOnlyFilesystem => Some(Errno::ROFS),
        io::ErrorKind::StorageFull => Some(Errno::NOSPC),
        _ => None,
    }
}

/// Checks that the disk has room for what sled writes when it is opened.
pub(super) fn check_free_space(path: &Utf8Path) -> io::Result<()> {
    let file = tempfile::tempfile_in(path)?;
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, ROOM) {
        // Some file systems can't reserve space; then opening sled is the test.
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The file that marks a cache as failed while in use.
pub(super) fn damage_mark(path: &Utf8Path) -> Utf8PathBuf {
    path.with_extension("failed")
}

/// Renames a cache to the first free `cache-v1.damaged-N`.
pub(super) fn set_aside(path: &Utf8Path) -> Result<Utf8PathBuf, StateError> {
    let failed = || StateError::io("set aside the cache", path);
    let free = |number: &u32| !path.with_extension(format!("damaged-{number}")).exists();
    let number = (1..).find(free).unwrap_or(u32::MAX);
    let aside = path.with_extension(format!("damaged-{number}"));
    for result in [fs::rename(path, &aside), fs::remove_file(damage_mark(path))] {
        match result {
            // Either may be missing: a person may have removed the cache, and damage found while opening leaves
            // no mark.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed()(error)),
            _ => {}
        }
    }
    Ok(aside)
}
