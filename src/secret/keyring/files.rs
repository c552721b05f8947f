//! Files that nobody else may read, written whole or not at all.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};

use camino::Utf8Path;
use zeroize::Zeroizing;

use crate::secret::SecretError;

/// What becomes of a file that is there already.
#[derive(Clone, Copy)]
pub(super) enum Existing {
    /// It stays, and writing fails.
    Kept,
    /// It is replaced.
    Replaced,
}

/// Whether a file or folder is there, and refuses one that others can read or write.
pub(super) fn require_private(path: &Utf8Path) -> Result<bool, SecretError> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(not_read(path, &error)),
    };
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(true);
    }
    let (what, mode) = if metadata.is_dir() { ("state folder", "700") } else { ("key file", "600") };
    Err(SecretError::new(
        "keys-readable-by-others",
        format!("the {what} {path} can be read or written by other users of this host"),
        format!("run `chmod {mode} {path}`, and rotate the keys if somebody may have read them"),
    ))
}

/// Makes a folder that only its owner can enter, where there is none.
pub(super) fn make_private_dir(dir: &Utf8Path) -> Result<(), SecretError> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|error| not_written(dir, &error))?;
    require_private(dir).map(|_| ())
}

/// The text of a file that only its owner can read; none where there is no file.
pub(super) fn read_private(path: &Utf8Path) -> Result<Option<Zeroizing<String>>, SecretError> {
    if !require_private(path)? {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).map_err(|error| not_read(path, &error))?;
    Ok(Some(Zeroizing::new(text)))
}

/// Writes a file that only its owner can read. After a crash there is the whole of it or nothing new.
pub(super) fn write_private(
    dir: &Utf8Path,
    name: &str,
    text: &str,
    existing: Existing,
) -> Result<(), SecretError> {
    let path = dir.join(name);
    let write = || -> io::Result<()> {
        // Temporary files are made with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        match existing {
            Existing::Kept => file.persist_noclobber(&path)?,
            Existing::Replaced => file.persist(&path)?,
        };
        File::open(dir)?.sync_all()
    };
    write().map_err(|error| not_written(&path, &error))
}

fn not_read(path: &Utf8Path, error: &io::Error) -> SecretError {
    SecretError::new(
        "keys-unreadable",
        format!("the keys can't be read from {path}: {error}"),
        "run as the user that owns the state folder",
    )
}

fn not_written(path: &Utf8Path, error: &io::Error) -> SecretError {
    SecretError::new(
        "keys-unwritable",
        format!("the keys can't be written to {path}: {error}"),
        "make the state folder writable for the user that runs streamfleet, and see that the disk has room",
    )
}
