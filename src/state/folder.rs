//! The state folder: readable only by its owner, ignored by git, locked by one process at a time.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::NamedTempFile;

use super::StateError;

/// The lock file. It contains the id of the process that holds the lock.
const LOCK: &str = "lock";

/// The words for removing the permissions of other users.
pub(super) const CLOSE: &str = "close to other users";

/// Creates the folder if it is missing, closes it to other users and makes git ignore it. Returns a warning
/// if other users could access it.
pub(super) fn prepare(dir: &Utf8Path) -> Result<Option<String>, StateError> {
    let failed = || StateError::io("create the state folder", dir);
    if let Some(parent) = dir.parent().filter(|parent| !parent.as_str().is_empty()) {
        fs::create_dir_all(parent).map_err(failed())?;
    }
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed()(error)),
        _ => {}
    }
    let found = fs::metadata(dir).map_err(failed())?;
    if !found.is_dir() {
        return Err(StateError::WrongFileType {
            path: dir.to_owned(),
            found: "a file",
            expected: "a folder",
        });
    }
    if found.uid() != 0 && rustix::process::geteuid().is_root() {
        return Err(StateError::Foreign { dir: dir.to_owned(), owner: found.uid() });
    }
    let exposed = close_to_others(dir, &found)?;
    let ignore = dir.join(".gitignore");
    if !ignore.exists() {
        fs::write(&ignore, "*\n").map_err(StateError::io("write", &ignore))?;
    }
    Ok(exposed)
}

/// The metadata of a file in the folder; none if it is missing. A link is refused: replacing the file would
/// replace the link and leave its target behind. Folders and special files are refused too.
pub(super) fn plain_file(path: &Utf8Path) -> Result<Option<Metadata>, StateError> {
    let found = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => return Ok(Some(metadata)),
        Ok(metadata) if metadata.is_symlink() => "a link",
        Ok(metadata) if metadata.is_dir() => "a folder",
        Ok(_) => "a device, pipe or socket",
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(match path.parent().filter(|_| error.kind() == io::ErrorKind::NotADirectory) {
                Some(dir) => {
                    StateError::WrongFileType { path: dir.to_owned(), found: "a file", expected: "a folder" }
                }
                None => StateError::io("look for", path)(error),
            });
        }
    };
    Err(StateError::WrongFileType { path: path.to_owned(), found, expected: "a file" })
}

/// Removes the permissions of other users. Returns a warning if they had any.
pub(super) fn close_to_others(path: &Utf8Path, found: &Metadata) -> Result<Option<String>, StateError> {
    if found.permissions().mode() & 0o077 == 0 {
        return Ok(None);
    }
    let (mode, advice) = match found.is_dir() {
        true => {
            (0o700, "; rotate its keys if other users may have read them: streamfleet secret rotate TREE")
        }
        false => (0o600, ""),
    };
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(StateError::io(CLOSE, path))?;
    Ok(Some(format!(
        "`{path}` was readable or writable by other users of this host; it no longer is{advice}"
    )))
}

pub(super) struct FolderLock {
    dir: Utf8PathBuf,
    file: File,
}

impl FolderLock {
    /// Checks that the locked file is still the one in the folder.
    pub(super) fn still_there(&self) -> Result<(), StateError> {
        let path = self.dir.join(LOCK);
        let ours = self.file.metadata().map_err(StateError::io("inspect", &path))?;
        let same = |there: &Metadata| (there.dev(), there.ino()) == (ours.dev(), ours.ino());
        match fs::symlink_metadata(&path) {
            Ok(there) if same(&there) => Ok(()),
            Ok(_) => Err(StateError::Gone { dir: self.dir.clone() }),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Err(StateError::Gone { dir: self.dir.clone() })
            }
            Err(error) => Err(StateError::io("inspect", &path)(error)),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing the file isn't enough: a child process that is just being started still has a copy of it.
        drop(self.file.unlock());
    }
}

/// How long to wait for another process that uses the folder, and whom to notify.
pub struct LockWait<'a> {
    pub at_most: Duration,
    /// Called once, before the wait, with the id of the other process if it is known.
    pub tell: &'a mut dyn FnMut(Option<u32>),
}

/// The polling interval.
const AGAIN: Duration = Duration::from_millis(20);

impl LockWait<'_> {
    /// Repeats an operation until the folder is free, for at most `at_most`.
    pub(super) fn retry_while_locked<T>(
        &mut self,
        mut attempt: impl FnMut() -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let (begin, mut is_told) = (Instant::now(), false);
        loop {
            match attempt() {
                Err(StateError::Locked { holder, .. }) if begin.elapsed() < self.at_most => {
                    if !std::mem::replace(&mut is_told, true) {
                        (self.tell)(holder);
                    }
                    std::thread::sleep(AGAIN);
                }
                done => return done,
            }
        }
    }
}

/// The process id in a lock file. The holder may not have written it yet.
fn holder(mut file: &File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok())
}

pub(super) enum FolderUse {
    /// Free, or the lock file can't be read.
    Free,
    /// In use by another process, with its id if known.
    Held(Option<u32>),
}

/// Tests whether another process uses the folder. This takes a shared lock for a moment, so another process
/// may find the folder locked.
pub(super) fn used_by(dir: &Utf8Path) -> FolderUse {
    let Ok(file) = File::open(dir.join(LOCK)) else { return FolderUse::Free };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => FolderUse::Held(holder(&file)),
        Ok(()) | Err(TryLockError::Error(_)) => {
            drop(file.unlock());
            FolderUse::Free
        }
    }
}

/// Locks the folder for this process.
pub(super) fn lock(dir: &Utf8Path) -> Result<FolderLock, StateError> {
    let path = dir.join(LOCK);
    plain_file(&path)?;
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(StateError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(StateError::Locked { dir: dir.to_owned(), holder: holder(&file) });
        }
        Err(TryLockError::Error(error)) => return Err(StateError::io("lock", &path)(error)),
    }
    // The lock is valid without the process id, which can't be written to a full disk. Other processes then
    // report an unknown holder.
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(FolderLock { dir: dir.to_owned(), file })
}

/// Replaces a file by one that only its owner can read, and waits for the disk.
pub(super) fn replace_file(path: &Utf8Path, bytes: &[u8]) -> Result<(), StateError> {
    let dir = path.parent().unwrap_or(Utf8Path::new("."));
    let replace = || {
        let mut file = NamedTempFile::new_in(dir)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)
    };
    replace().map_err(StateError::io("write", path))?;
    sync(dir)
}

/// Syncs a folder, so that renames and new files in it survive a power cut.
pub(super) fn sync(dir: &Utf8Path) -> Result<(), StateError> {
    File::open(dir).and_then(|folder| folder.sync_all()).map_err(StateError::io("write to disk", dir))
}
