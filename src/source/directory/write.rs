//! Writes a file of a tree atomically and durably: readers see the old file or the whole new one, even after
//! a power cut, and what others saved meanwhile is never overwritten.

mod not_written;
#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use tempfile::{NamedTempFile, TempPath};

use super::{Scan, ScanPurpose, UnreadableEntry, is_hidden, stable_bytes, stamp};
use crate::names::SpecPath;
use crate::source::FileEdit;
use crate::source::rules::TEMPORARY;
use crate::spec::SnapshotEntry;

pub use not_written::FileWriteError;

/// How old a temporary file must be to count as left behind by a killed process.
const LEFT: Duration = Duration::from_secs(60);

/// The limit of exchanging two files until the last saved one is in place.
const SWAPS: u32 = 100;

/// The name prefix of a file that was put aside and could not be restored. Only users remove such files.
const KEPT: &str = ".streamfleet-kept-";

/// The permissions of new files, before the umask.
const NEW: u32 = 0o666;

/// Reads the current content of a file; none if it doesn't exist.
///
/// # Errors
/// If it can't be read, or must not be by the rules of the tree.
pub fn read(root: &Utf8Path, path: &SpecPath) -> Result<Option<Vec<u8>>, FileWriteError> {
    let place = FileLocation::find(root, path)?;
    if place.data.is_none() {
        return Ok(None);
    }
    bytes(&place.file, path)
}

/// Makes an edit of a file whose content was `before`, and waits until it is durable.
///
/// # Errors
/// If the file was changed since, or the system refuses the edit. Then the file is unchanged, except with
/// [`FileWriteError::Unsure`] and [`FileWriteError::Kept`].
pub fn write(root: &Utf8Path, edit: &FileEdit, before: Option<&[u8]>) -> Result<(), FileWriteError> {
    write_with(root, edit, before, &sync)
}

type Sync<'a> = &'a dyn Fn(&Utf8Path) -> io::Result<()>;

fn write_with(
    root: &Utf8Path,
    FileEdit { path, content }: &FileEdit,
    before: Option<&[u8]>,
    sync: Sync<'_>,
) -> Result<(), FileWriteError> {
    let place = FileLocation::find(root, path)?;
    let of = FileWrite { path, place: &place, sync };
    of.is_as_before(before)?;
    let folder = place.file.parent().unwrap_or(root);
    clean(folder);
    match content {
        Some(content) => of.put(content, before),
        None => of.remove_durably(before),
    }
}

struct FileLocation {
    /// The path with all links resolved.
    file: Utf8PathBuf,
    /// None if the file doesn't exist.
    data: Option<Metadata>,
    /// The missing folders on its path, outermost first.
    missing: Vec<Utf8PathBuf>,
}

impl FileLocation {
    /// Finds a file by the rules that a scan has for links.
    fn find(root: &Utf8Path, path: &SpecPath) -> Result<Self, FileWriteError> {
        let failed = |error| FileWriteError::System { attempted: "find", path: path.clone(), error };
        let in_the_way = |why| FileWriteError::Place { path: path.clone(), why };
        let real = root.canonicalize_utf8().map_err(failed)?;
        let root_stamp = stamp(&fs::metadata(&real).map_err(failed)?);
        let mut scan = Scan::new(&real, ScanPurpose::List, root_stamp);
        let mut missing: Vec<Utf8PathBuf> = Vec::new();
        let mut names = path.as_str().split('/').peekable();
        while let Some(name) = names.next() {
            let is_last = names.peek().is_none();
            let here = missing.last().or(scan.inside.last()).map_or(real.as_path(), |folder| folder);
            let place = here.join(name);
            if !missing.is_empty() {
                if is_last {
                    return Ok(FileLocation { file: place, data: None, missing });
                }
                missing.push(place);
                continue;
            }
            match scan.resolve(&place) {
                Ok((file, data)) if is_last && data.is_file() => {
                    if is_hidden(file.strip_prefix(&real).unwrap_or(&file)) {
                        return Err(in_the_way("it is mounted from a volume; change the volume's source"));
                    }
                    return Ok(FileLocation { file, data: Some(data), missing });
                }
                Ok(_) if is_last => return Err(in_the_way("it isn't a file")),
                Ok((folder, data)) if data.is_dir() => {
                    if scan.inside.contains(&folder) {
                        return Err(in_the_way("a link on its path leads back"));
                    }
                    scan.inside.push(folder);
                }
                Ok(_) => return Err(in_the_way("a part of its path isn't a folder")),
                Err(UnreadableEntry::Gone) if is_last => {
                    return Ok(FileLocation { file: place, data: None, missing });
                }
                Err(UnreadableEntry::Gone) => missing.push(place),
                Err(UnreadableEntry::Because(entry)) => {
                    let (why, hint) = match *entry {
                        SnapshotEntry::Unreadable { message, hint, .. } => (message, hint),
                        SnapshotEntry::File { .. } => Default::default(),
                    };
                    return Err(FileWriteError::Unreadable { path: path.clone(), why, hint });
                }
            }
        }
        Err(in_the_way("the path has no file name"))
    }
}

#[derive(Clone, Copy)]
struct FileWrite<'a> {
    path: &'a SpecPath,
    place: &'a FileLocation,
    sync: Sync<'a>,
}

impl FileWrite<'_> {
    fn failed(&self, attempted: &'static str) -> impl Fn(io::Error) -> FileWriteError {
        let path = self.path.clone();
        move |error| FileWriteError::System { attempted, path: path.clone(), error: without_place(error) }
    }

    fn changed(&self) -> FileWriteError {
        FileWriteError::Changed { path: self.path.clone() }
    }

    fn is_as_before(&self, before: Option<&[u8]>) -> Result<(), FileWriteError> {
        let now = match &self.place.data {
            Some(_) => bytes(&self.place.file, self.path)?,
            None => None,
        };
        if now.as_deref() == before { Ok(()) } else { Err(self.changed()) }
    }

    /// Writes a temporary file and moves it into place. If that can't be made durable, it is undone.
    fn put(self, content: &[u8], before: Option<&[u8]>) -> Result<(), FileWriteError> {
        let made = CreatedFolders::make(&self.place.missing).map_err(self.failed("create the folder of"))?;
        let folder = self.folder();
        let prepared = self.prepare(folder, content).map_err(self.failed("write"))?;
        let Some(before) = before else {
            match prepared.persist_noclobber(&self.place.file) {
                Ok(_) => {}
                Err(error) if error.error.kind() == ErrorKind::AlreadyExists => return Err(self.changed()),
                Err(error) => return Err(self.failed("write")(error.error)),
            }
            let kept = (self.sync)(folder).and_then(|()| made.sync(self.sync));
            return match kept {
                Ok(()) => {
                    made.keep();
                    Ok(())
                }
                Err(error) => Err(self.sync_failure(self.remove_new_file(content), made, error)),
            };
        };
        let old = self.replace(prepared, content, before)?;
        let Err(error) = (self.sync)(folder) else { return Ok(()) };
        let back = match old {
            Some(old) => self.swap_back(old, content),
            // The old file is gone, so it is written again.
            None => {
                let old = self.prepare(folder, before);
                old.and_then(|old| Ok(old.persist(&self.place.file).map(drop)?)).map_err(|_| None)
            }
        };
        Err(self.sync_failure(back, made, error))
    }

    /// Returns the error of an edit that couldn't be made durable, by whether it was undone.
    fn sync_failure(
        &self,
        back: Result<(), RestoreFailure>,
        made: CreatedFolders,
        error: io::Error,
    ) -> FileWriteError {
        match back {
            Ok(()) => {
                // The created folders are empty again and are removed.
                drop(made);
                // Best effort.
                let _ = (self.sync)(self.folder());
                self.failed("write")(error)
            }
            Err(kept) => {
                made.keep();
                kept.unwrap_or_else(|| FileWriteError::Unsure { path: self.path.clone(), error })
            }
        }
    }

    /// Removes a new file, unless it was changed meanwhile.
    fn remove_new_file(&self, content: &[u8]) -> Result<(), RestoreFailure> {
        let aside = self.aside().map_err(|_| None)?;
        fs::rename(&self.place.file, &aside).map_err(|_| None)?;
        if fs::read(&aside).is_ok_and(|saved| saved == content) {
            return Ok(());
        }
        self.put_back(aside).map_err(Some)?;
        Err(None)
    }

    /// Exchanges the old and the new file again, unless the new one was changed meanwhile.
    fn swap_back(&self, old: TempPath, content: &[u8]) -> Result<(), RestoreFailure> {
        self.swap(&old).map_err(|_| None)?;
        if fs::read(&old).is_ok_and(|saved| saved == content) {
            return Ok(());
        }
        match self.swap(&old) {
            Ok(()) => Err(None),
            Err(error) => Err(Some(self.keep(old, error.into()))),
        }
    }

    fn swap(&self, aside: &TempPath) -> rustix::io::Result<()> {
        let aside: &Path = aside;
        renameat_with(CWD, aside, CWD, self.place.file.as_std_path(), RenameFlags::EXCHANGE)
    }

    fn aside(&self) -> io::Result<TempPath> {
        let aside = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(self.folder())?;
        Ok(aside.into_temp_path())
    }

    /// Restores a file that was put aside, unless there is a newer one in its place.
    fn put_back(&self, aside: TempPath) -> Result<(), FileWriteError> {
        let back = aside.persist_noclobber(&self.place.file);
        back.map_err(|error| self.keep(error.path, without_place(error.error)))
    }

    /// Renames a file that must not be lost, and reports its new name.
    fn keep(&self, mut aside: TempPath, error: io::Error) -> FileWriteError {
        aside.disable_cleanup(true);
        let name = aside.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let kept = name.replacen(TEMPORARY, KEPT, 1);
        // Files with the temporary prefix are eventually removed.
        let kept = match fs::rename(&aside, self.folder().join(&kept)) {
            Ok(()) => kept,
            Err(_) => name,
        };
        FileWriteError::Kept { path: self.path.clone(), kept, error }
    }

    fn folder(&self) -> &Utf8Path {
        self.place.file.parent().unwrap_or(Utf8Path::new("/"))
    }

    /// Writes a temporary file durably, with the permissions and the owner of the current file.
    fn prepare(&self, folder: &Utf8Path, content: &[u8]) -> io::Result<NamedTempFile> {
        let mut file = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .permissions(Permissions::from_mode(NEW))
            .tempfile_in(folder)?;
        if let Some(data) = &self.place.data {
            let own = file.as_file().metadata()?;
            if (own.uid(), own.gid()) != (data.uid(), data.gid()) {
                // Only root may change the owner. Otherwise this user owns the file now, as with most
                // editors.
                let _ = std::os::unix::fs::fchown(file.as_file(), Some(data.uid()), Some(data.gid()));
            }
            file.as_file().set_permissions(Permissions::from_mode(data.mode() & 0o7777))?;
        }
        file.as_file_mut().write_all(content)?;
        file.as_file().sync_all()?;
        Ok(file)
    }

    /// Replaces a file if its content is still `before`. The two files are exchanged, so that a version saved
    /// at the last moment is not lost and can be restored. Returns the old file if they could be exchanged.
    fn replace(
        &self,
        prepared: NamedTempFile,
        content: &[u8],
        before: &[u8],
    ) -> Result<Option<TempPath>, FileWriteError> {
        self.is_as_before(Some(before))?;
        let prepared = prepared.into_temp_path();
        match self.swap(&prepared) {
            Ok(()) => {}
            // Not every file system can exchange files.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                let placed = prepared.persist(&self.place.file);
                return placed.map(|()| None).map_err(|error| self.failed("write")(error.error));
            }
            Err(Errno::NOENT) => return Err(self.changed()),
            Err(error) => return Err(self.failed("write")(error.into())),
        }
        let mut saved = match fs::read(&prepared) {
            Ok(saved) => saved,
            // A file that can't be read must not be thrown away.
            Err(error) => {
                return Err(match self.swap(&prepared) {
                    Ok(()) => self.failed("write")(error),
                    Err(_) => self.keep(prepared, error),
                });
            }
        };
        if saved == before {
            return Ok(Some(prepared));
        }
        // Until an exchange returns what was put in place, the file is being saved, and the last version must
        // stay.
        let mut put = content.to_vec();
        for _ in 0..SWAPS {
            if let Err(error) = self.swap(&prepared) {
                return Err(self.keep(prepared, error.into()));
            }
            let there = match fs::read(&prepared) {
                Ok(there) => there,
                Err(error) => return Err(self.keep(prepared, error)),
            };
            if there == put {
                break;
            }
            put = std::mem::replace(&mut saved, there);
        }
        Err(self.changed())
    }

    /// Removes the file. It is put aside first, so that a version saved at the last moment can be restored.
    fn remove_durably(self, before: Option<&[u8]>) -> Result<(), FileWriteError> {
        let Some(before) = before else { return Ok(()) };
        let folder = self.folder();
        let aside = self.aside().map_err(self.failed("remove"))?;
        fs::rename(&self.place.file, &aside).map_err(self.failed("remove"))?;
        let saved = fs::read(&aside);
        if !saved.as_ref().is_ok_and(|saved| saved == before) {
            self.put_back(aside)?;
            return Err(match saved {
                Ok(_) => self.changed(),
                Err(error) => self.failed("remove")(error),
            });
        }
        let Err(error) = (self.sync)(folder) else { return Ok(()) };
        match aside.persist_noclobber(&self.place.file) {
            Ok(()) => Err(self.failed("remove")(error)),
            Err(_) => Err(FileWriteError::Unsure { path: self.path.clone(), error }),
        }
    }
}

/// Why the old state was not restored: the error if a file was kept beside it; none if the file was changed
/// meanwhile or its state is unknown.
type RestoreFailure = Option<FileWriteError>;

/// Removes the path of the temporary file from an error: callers don't know this host's paths.
fn without_place(error: io::Error) -> io::Error {
    if error.get_ref().is_some() { error.kind().into() } else { error }
}

fn bytes(file: &Utf8Path, path: &SpecPath) -> Result<Option<Vec<u8>>, FileWriteError> {
    match stable_bytes(file) {
        Ok(Some(bytes)) => Ok(Some(bytes)),
        Ok(None) => Err(FileWriteError::Changed { path: path.clone() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileWriteError::System { attempted: "read", path: path.clone(), error }),
    }
}

/// Folders that were created for a file. They are removed again unless `keep` is called.
struct CreatedFolders(Vec<Utf8PathBuf>);

impl CreatedFolders {
    fn make(missing: &[Utf8PathBuf]) -> io::Result<Self> {
        let mut made = CreatedFolders(Vec::new());
        for folder in missing {
            match DirBuilder::new().create(folder) {
                Ok(()) => made.0.push(folder.clone()),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(made)
    }

    fn sync(&self, sync: Sync<'_>) -> io::Result<()> {
        self.0.iter().filter_map(|folder| folder.parent()).try_for_each(sync)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        // A folder that is in use by now isn't empty, and stays.
        self.0.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    }
}

fn sync(folder: &Utf8Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes temporary files that killed processes left behind.
fn clean(folder: &Utf8Path) {
    for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
        let is_old = || {
            let changed = entry.metadata().and_then(|data| data.modified()).ok();
            changed.and_then(|changed| changed.elapsed().ok()).is_some_and(|age| age > LEFT)
        };
        if entry.file_name().starts_with(TEMPORARY) && is_old() {
            // The next call tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}
