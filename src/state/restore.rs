//! Restores a backup to a folder that is missing or empty: all or nothing.
//!
//! The files are written to a folder beside it, which then takes its place with one rename. A restore that is
//! killed before that has changed nothing.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};

use super::StateError;
use super::archive::{Archive, BACKUP_FILES};
use super::folder::{self, FolderUse};

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error("the folder isn't empty: `{found}` is in it")]
    NotEmpty { dir: Utf8PathBuf, found: String },
}

impl RestoreError {
    /// The suggested next step.
    pub fn hint(&self) -> String {
        match self {
            RestoreError::State(error) => error.hint(),
            RestoreError::NotEmpty { dir, .. } => format!(
                "nothing was changed: a backup may lack ids, protection and keys that were recorded since; move `{dir}` away, \
                 keep it, and restore again; to put back one lost file alone: tar -xf FILE -C {dir} NAME"
            ),
        }
    }
}

/// Restores a backup to a folder that is missing or empty.
///
/// # Errors
/// When the folder is in use, isn't empty or can't be written. It is unchanged then.
pub fn restore(dir: &Utf8Path, archive: &Archive) -> Result<(), RestoreError> {
    // A link to the folder stays.
    let dir = &dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned());
    refuse_used(dir)?;
    let staged = dir.with_file_name(format!("{}.restoring", dir.file_name().unwrap_or("state")));
    let failed = || StateError::io("restore the state in", dir);
    create_private(&staged).map_err(failed())?;
    // With the rename it becomes the lock of the state folder.
    let lock = folder::lock(&staged)?;
    lock.still_there()?;
    if let Err(error) = write(&staged, archive).and_then(|()| fs::rename(&staged, dir)) {
        // The folder holds keys. If it can't be removed, the next restore replaces it.
        drop(fs::remove_dir_all(&staged));
        refuse_used(dir)?;
        return Err(failed()(error).into());
    }
    Ok(folder::sync(dir.parent().unwrap_or(dir))?)
}

fn create_private(folder: &Utf8Path) -> io::Result<()> {
    fs::create_dir_all(folder.parent().unwrap_or(folder))?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn refuse_used(dir: &Utf8Path) -> Result<(), RestoreError> {
    if let FolderUse::Held(holder) = folder::used_by(dir) {
        return Err(StateError::Locked { dir: dir.to_owned(), holder }.into());
    }
    let names = match fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
    };
    match names.map_err(StateError::io("look into", dir))?.into_iter().min() {
        Some(name) => {
            let found = name.to_string_lossy().into_owned();
            Err(RestoreError::NotEmpty { dir: dir.to_owned(), found })
        }
        None => Ok(()),
    }
}

fn write(staged: &Utf8Path, archive: &Archive) -> io::Result<()> {
    // A restore that was killed may have left some.
    for name in BACKUP_FILES {
        match fs::remove_file(staged.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    for (name, bytes) in archive.files() {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(staged.join(name))?;
        file.write_all(bytes)?;
        file.sync_all()?;
    }
    File::open(staged)?.sync_all()
}
