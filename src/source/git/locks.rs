//! Locks of the clone between processes: a command beside a running `serve`, or two commands.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use super::{GitError, clone};

/// The longest wait for another process. What that one fetches is recent enough.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// A lock that the kernel releases when this is dropped or the process ends.
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file isn't enough: a child process that is just starting holds it open for a moment.
        drop(self.0.unlock());
    }
}

/// Locks the clone against changes by others. Readers needn't wait for it.
///
/// # Errors
/// If another process holds the lock for 10 s or half of the timeout, whichever is shorter, or the file can't
/// be locked.
pub(super) fn alone(place: &Utf8Path, url: &str, timeout: Duration) -> Result<Lock, GitError> {
    let path = beside(place, "lock");
    let patience = PATIENCE.min(timeout / 2);
    let failed = |error: io::Error| clone(&path, &error);
    let mut file = open(&path).map_err(failed)?;
    if !take(&file, File::try_lock, Instant::now() + patience).map_err(failed)? {
        let mut text = String::new();
        // The holder may not have written its process id yet.
        let holder = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
        return Err(GitError::Busy { url: url.to_owned(), path: place.to_owned(), holder });
    }
    let write = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    write.map_err(failed)?;
    Ok(Lock(file))
}

/// Locks the clone against being replaced while it is read.
///
/// # Errors
/// If it is being replaced for longer than 10 s, or the file can't be locked.
pub(super) fn reading(place: &Utf8Path) -> io::Result<Lock> {
    in_use(place, File::try_lock_shared)
}

/// Waits until the clone has no readers, and keeps new ones out while it is replaced.
///
/// # Errors
/// If it is being read for longer than 10 s, or the file can't be locked.
pub(super) fn swapping(place: &Utf8Path) -> io::Result<Lock> {
    in_use(place, File::try_lock)
}

fn in_use(place: &Utf8Path, lock: fn(&File) -> Result<(), TryLockError>) -> io::Result<Lock> {
    let file = open(&beside(place, "in-use"))?;
    match take(&file, lock, Instant::now() + PATIENCE)? {
        true => Ok(Lock(file)),
        false => Err(io::Error::new(ErrorKind::TimedOut, "another process is using it")),
    }
}

/// Takes a lock, or returns false if it isn't free in time.
fn take(file: &File, lock: fn(&File) -> Result<(), TryLockError>, until: Instant) -> io::Result<bool> {
    loop {
        match lock(file) {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => return Ok(false),
            Err(TryLockError::WouldBlock) => sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// The lock files are beside the clone, since the clone may be replaced.
fn beside(place: &Utf8Path, name: &str) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{place}.{name}"))
}

fn open(path: &Utf8Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    match options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path) {
        // A process without write permission can still lock an existing file.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            File::open(path)
        }
        opened => opened,
    }
}
