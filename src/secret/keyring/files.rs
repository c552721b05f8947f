//! Private files, written atomically.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufRead as _, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};

use camino::Utf8Path;
use zeroize::Zeroizing;

use crate::secret::SecretError;

const LOCK: &str = "keys.lock";
const UNFINISHED: &str = ".keys-";
/// The append-only registry of the installation. Its first line is the installation's id.
const REGISTRY: &str = "registry.jsonl";

/// The exclusive right to write keys, until this is dropped.
#[must_use = "the keys are free for others to write as soon as this is dropped"]
#[derive(Debug)]
pub struct KeyLock(Option<File>);

impl KeyLock {
    /// Waits for the lock, then removes temporary files of killed processes.
    pub(super) fn take(dir: &Utf8Path) -> Result<KeyLock, SecretError> {
        let path = dir.join(LOCK);
        let take = || -> io::Result<File> {
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            file.lock()?;
            remove_unfinished(dir)?;
            Ok(file)
        };
        take().map(Some).map(KeyLock).map_err(|error| not_written(&path, &error))
    }

    /// A lock for ephemeral keys, which no other process has.
    pub(super) fn ephemeral_lock() -> KeyLock {
        KeyLock(None)
    }
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        // Closing the file isn't enough: a child process that is just starting holds it open for a moment.
        drop(self.0.as_ref().map(File::unlock));
    }
}

fn remove_unfinished(dir: &Utf8Path) -> io::Result<()> {
    for entry in dir.read_dir_utf8()? {
        let entry = entry?;
        if entry.file_name().starts_with(UNFINISHED) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Returns whether the installation of a state folder has recorded anything beside its own id.
pub(super) fn was_used(dir: &Utf8Path) -> Result<bool, SecretError> {
    let path = dir.join(REGISTRY);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(not_read(&path, &error)),
    };
    let lines: io::Result<Vec<Vec<u8>>> = io::BufReader::new(file).split(b'\n').take(2).collect();
    lines.map(|lines| lines.len() > 1).map_err(|error| not_read(&path, &error))
}

/// Returns whether a folder exists. Refuses one that other users can read or write.
pub(super) fn require_private(dir: &Utf8Path) -> Result<bool, SecretError> {
    match found(dir, std::fs::metadata(dir))? {
        Some(metadata) => require_mode(dir, &metadata, "state folder", "700").map(|()| true),
        None => Ok(false),
    }
}

/// Returns whether a key file exists. Refuses one that other users can read or write, and anything but a
/// regular file. A link is refused too: adding keys would replace it, and its target would lack them.
///
/// The folder was found private, so a permission of the group alone exposed nothing and is removed: Kubernetes
/// gives it to the `fsGroup` of a pod.
fn require_private_file(path: &Utf8Path) -> Result<bool, SecretError> {
    let Some(metadata) = found(path, std::fs::symlink_metadata(path))? else { return Ok(false) };
    if metadata.is_file() {
        let is_open_to_group_only =
            metadata.permissions().mode() & 0o077 != 0 && metadata.permissions().mode() & 0o007 == 0;
        if is_open_to_group_only && std::fs::set_permissions(path, Permissions::from_mode(0o600)).is_ok() {
            return Ok(true);
        }
        return require_mode(path, &metadata, "key file", "600").map(|()| true);
    }
    let (what, hint) = match metadata.is_symlink() {
        true => ("a link", "put the file itself there: a link would be replaced when keys are added"),
        false => ("not a file", "move it away and take the key file from a backup, which is a tar archive"),
    };
    Err(SecretError::new("key-file-strange", format!("the key file {path} is {what}"), hint))
}

fn found(path: &Utf8Path, looked: io::Result<Metadata>) -> Result<Option<Metadata>, SecretError> {
    match looked {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(not_read(path, &error)),
    }
}

fn require_mode(path: &Utf8Path, metadata: &Metadata, what: &str, mode: &str) -> Result<(), SecretError> {
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(SecretError::new(
        "keys-readable-by-others",
        format!("other users of this host can read or write the {what} {path}"),
        format!("run `chmod {mode} {path}`, and rotate the keys if other users may have read them"),
    ))
}

pub(super) fn make_private_dir(dir: &Utf8Path) -> Result<(), SecretError> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|error| not_written(dir, &error))?;
    require_private(dir).map(|_| ())
}

pub(super) fn read_private(path: &Utf8Path) -> Result<Option<Zeroizing<String>>, SecretError> {
    if !require_private_file(path)? {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => super::damaged(path, "it is not text"),
        _ => not_read(path, &error),
    })?;
    Ok(Some(Zeroizing::new(text)))
}

/// Writes a file that only its owner can read. After a crash it has either the old or the new content.
pub(super) fn write_private(dir: &Utf8Path, name: &str, text: &str) -> Result<(), SecretError> {
    let path = dir.join(name);
    let write = || -> io::Result<()> {
        // Temporary files are created with mode 0600.
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(dir)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&path)?;
        File::open(dir)?.sync_all()
    };
    write().map_err(|error| not_written(&path, &error))
}

fn not_read(path: &Utf8Path, error: &io::Error) -> SecretError {
    SecretError::new(
        "keys-unreadable",
        format!("cannot read the keys from {path}: {error}"),
        "run as the user that owns the state folder",
    )
}

fn not_written(path: &Utf8Path, error: &io::Error) -> SecretError {
    SecretError::new(
        "keys-unwritable",
        format!("cannot write the keys to {path}: {error}"),
        "make the state folder writable for the user that runs streamfleet, and check that the disk has free space",
    )
}
