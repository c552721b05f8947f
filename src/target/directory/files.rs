//! Reading and writing files of a fleet's folder: links aren't followed, replacement is atomic and durable.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::NamedTempFile;

use super::layout;
use crate::target::TargetError;

const TEMPORARY: &str = ".streamfleet-tmp-";

pub(super) fn folders(path: &Utf8Path) -> Vec<&Utf8Path> {
    let mut folders: Vec<&Utf8Path> =
        path.ancestors().skip(1).filter(|folder| !folder.as_str().is_empty()).collect();
    folders.reverse();
    folders
}

/// Creates the folders on the way to a path below `root`, and `root` itself. They are durable only after
/// [`sync_file_system`] or [`sync_folders`].
pub(super) fn make_folders(root: &Utf8Path, path: &Utf8Path) -> Result<(), TargetError> {
    fs::create_dir_all(root).map_err(TargetError::io("create", root))?;
    for folder in folders(path) {
        let secrets = folder.file_name() == Some(layout::SECRETS);
        let folder = root.join(folder);
        let mode = if secrets { 0o700 } else { 0o777 };
        match DirBuilder::new().mode(mode).create(&folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(TargetError::io("create", &folder)(error)),
        }
        if !fs::symlink_metadata(&folder).map_err(TargetError::io("read", &folder))?.is_dir() {
            return Err(TargetError::NotPlain { path: folder, expected: "folder" });
        }
        if secrets {
            restrict_to_owner(&folder)?;
        }
    }
    Ok(())
}

/// Makes a folder readable by its owner only and ignored by git.
fn restrict_to_owner(folder: &Utf8Path) -> Result<(), TargetError> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))
        .map_err(TargetError::io("close to other users", folder))?;
    let ignore = folder.join(IGNORE);
    match fs::symlink_metadata(&ignore) {
        // A power cut may have left an empty file.
        Ok(metadata) if metadata.len() > 0 => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Ok(()),
        _ => prepare(&ignore, IGNORE_ALL, 0o600)?.put_in_place(),
    }
}

const IGNORE: &str = ".gitignore";
const IGNORE_ALL: &str = "*\n";

/// Creates or replaces a file, atomically and durably, even across a power cut. A link at the path is
/// replaced, not followed.
pub(super) fn replace(path: &Utf8Path, text: &str, mode: u32) -> Result<(), TargetError> {
    let prepared = prepare(path, text, mode)?;
    prepared.file.as_file().sync_all().map_err(TargetError::io("write", path))?;
    prepared.put_in_place()?;
    sync(path.parent().unwrap_or(Utf8Path::new(".")))
}

/// A file that was written under a temporary name beside its path. Dropping it removes the file.
pub(super) struct Prepared {
    file: NamedTempFile,
    path: Utf8PathBuf,
}

/// Writes a file under a temporary name beside its path. It is not durable yet.
pub(super) fn prepare(path: &Utf8Path, text: &str, mode: u32) -> Result<Prepared, TargetError> {
    let folder = path.parent().unwrap_or(Utf8Path::new("."));
    let write = || {
        let mut file = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        Ok(Prepared { file, path: path.to_owned() })
    };
    write().map_err(TargetError::io("write", path))
}

impl Prepared {
    pub(super) fn put_in_place(self) -> Result<(), TargetError> {
        let Prepared { file, path } = self;
        file.persist(&path).map(drop).map_err(|error| TargetError::io("write", &path)(error.error))
    }
}

/// Makes everything written to a folder's file system durable: one wait for any number of files.
#[cfg(target_os = "linux")]
pub(super) fn sync_file_system(folder: &Utf8Path) -> Result<(), TargetError> {
    let failed = || TargetError::io("write to disk", folder);
    let folder = File::open(folder).map_err(failed())?;
    rustix::fs::syncfs(folder).map_err(|error| failed()(error.into()))
}

/// Other systems can only sync all file systems at once.
#[cfg(not(target_os = "linux"))]
pub(super) fn sync_file_system(_folder: &Utf8Path) -> Result<(), TargetError> {
    rustix::fs::sync();
    Ok(())
}

pub(super) fn sync_folders(root: &Utf8Path, path: &Utf8Path) -> Result<(), TargetError> {
    folders(path).into_iter().try_for_each(|folder| sync(root.join(folder).parent().unwrap_or(root)))
}

pub(super) fn remove(path: &Utf8Path) -> Result<(), TargetError> {
    fs::remove_file(path).map_err(TargetError::io("remove", path))?;
    sync(path.parent().unwrap_or(Utf8Path::new(".")))
}

/// Removes one of our folders if it is empty. Returns whether it is gone.
pub(super) fn remove_folder(folder: &Utf8Path) -> Result<bool, TargetError> {
    let failed = || TargetError::io("remove", folder);
    if folder.file_name() == Some(layout::SECRETS) && only_holds_ignore(folder) {
        remove(&folder.join(IGNORE))?;
    }
    match fs::remove_dir(folder) {
        Ok(()) => sync(folder.parent().unwrap_or(folder)).map(|()| true),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Ok(true),
            // Foreign content, or a folder that we didn't create.
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => Ok(false),
            _ => Err(failed()(error)),
        },
    }
}

fn only_holds_ignore(folder: &Utf8Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names == [IGNORE] && fs::read_to_string(folder.join(IGNORE)).is_ok_and(|text| text == IGNORE_ALL)
}

pub(super) fn remove_temporary(folder: &Utf8Path) -> Result<(), TargetError> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(TEMPORARY)) else { continue };
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            remove(&folder.join(name))?;
        }
    }
    Ok(())
}

/// Makes renames, new files and removals in a folder durable.
fn sync(folder: &Utf8Path) -> Result<(), TargetError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(TargetError::io("write to disk", folder))
}
