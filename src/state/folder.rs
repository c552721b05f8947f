//! The state folder: for its owner only, kept out of git, used by one process at a time.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};

use camino::Utf8Path;

use super::StateError;

/// The file whose lock says that a process uses the folder. It holds the process's number.
const LOCK: &str = "lock";

/// Makes the folder where it is missing, and sees that nobody else can read it and git leaves it alone.
pub(super) fn prepare(dir: &Utf8Path) -> Result<(), StateError> {
    let failed = || StateError::io("create the state folder", dir);
    if let Some(parent) = dir.parent().filter(|parent| !parent.as_str().is_empty()) {
        fs::create_dir_all(parent).map_err(failed())?;
    }
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed()(error)),
        _ => {}
    }
    let mode = fs::metadata(dir).map_err(failed())?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(dir, Permissions::from_mode(0o700))
            .map_err(StateError::io("close to other users the state folder", dir))?;
    }
    let ignore = dir.join(".gitignore");
    if !ignore.exists() {
        fs::write(&ignore, "*\n").map_err(StateError::io("write", &ignore))?;
    }
    Ok(())
}

/// The folder is this process's until this is dropped.
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file isn't enough: a process that is just being started still has it, for a moment.
        drop(self.0.unlock());
    }
}

/// Takes the folder for this process.
pub(super) fn lock(dir: &Utf8Path) -> Result<Lock, StateError> {
    let path = dir.join(LOCK);
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
            let mut text = String::new();
            // The holder may not have written its number yet; then it stays unnamed.
            let holder = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(StateError::Locked { dir: dir.to_owned(), holder });
        }
        Err(TryLockError::Error(error)) => return Err(StateError::io("lock", &path)(error)),
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(StateError::io("write", &path))?;
    Ok(Lock(file))
}

/// Makes renames and new files in a folder outlast a power cut.
pub(super) fn sync(dir: &Utf8Path) -> Result<(), StateError> {
    File::open(dir).and_then(|folder| folder.sync_all()).map_err(StateError::io("write to disk", dir))
}
