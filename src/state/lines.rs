//! An append-only file of lines. Each line is on disk before its writer continues.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};

use super::{StateError, folder};

pub(super) struct AppendFile {
    path: Utf8PathBuf,
    /// None if the state is only read.
    file: Option<File>,
    /// The length known to be complete, in bytes. Anything beyond is the rest of a failed write.
    whole: u64,
    /// Whether a write waits for the disk.
    synced: bool,
}

impl AppendFile {
    /// Opens a file, creates it if it is missing, and returns its content. The last value warns if other
    /// users could access it.
    pub(super) fn open(path: Utf8PathBuf) -> Result<(AppendFile, Vec<u8>, Option<String>), StateError> {
        let found = folder::plain_file(&path)?;
        let is_new = found.is_none();
        let exposed = found.map(|found| folder::close_to_others(&path, &found)).transpose()?.flatten();
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(StateError::io("open", &path))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(StateError::io("read", &path))?;
        if let (true, Some(dir)) = (is_new, path.parent()) {
            folder::sync(dir)?;
        }
        let whole = bytes.len() as u64;
        Ok((AppendFile { path, file: Some(file), whole, synced: true }, bytes, exposed))
    }

    /// A file that only another process writes: writing fails, and nothing is repaired.
    pub(super) fn unopened(path: Utf8PathBuf) -> AppendFile {
        AppendFile { path, file: None, whole: 0, synced: true }
    }

    fn file(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| io::Error::other("the state was opened read-only"))
    }

    /// As [`Self::open`], for a file that may be lost: writes don't wait for the disk.
    pub(super) fn open_unsynced(
        path: Utf8PathBuf,
    ) -> Result<(AppendFile, Vec<u8>, Option<String>), StateError> {
        let (lines, bytes, exposed) = AppendFile::open(path)?;
        Ok((AppendFile { synced: false, ..lines }, bytes, exposed))
    }

    pub(super) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The length that is known to be complete, in bytes.
    pub(super) fn length(&self) -> u64 {
        self.whole
    }

    /// A handle for reading. It stays on this file when another one replaces it.
    pub(super) fn reader(&self) -> Result<File, StateError> {
        self.file().and_then(File::try_clone).map_err(StateError::io("read", &self.path))
    }

    pub(super) fn truncate(&mut self, length: u64) -> Result<(), StateError> {
        let cut = self.file().and_then(|file| file.set_len(length).and_then(|()| file.sync_data()));
        cut.map_err(StateError::io("repair", &self.path))?;
        self.whole = length;
        Ok(())
    }

    /// Waits until everything that was written is on disk.
    pub(super) fn sync(&self) -> Result<(), StateError> {
        self.file().and_then(File::sync_data).map_err(StateError::io("write to disk", &self.path))
    }

    /// Appends lines, and waits for the disk unless the file is unsynced. On an error, none is added.
    pub(super) fn append(&mut self, lines: &[String]) -> Result<(), StateError> {
        let mut text = lines.join("\n");
        text.push('\n');
        self.write(text.as_bytes()).map_err(StateError::io("write", &self.path))
    }

    /// The exclusive lock keeps [`read_whole`] from reading half of a write.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file()?.lock()?;
        let written = self.write_locked(bytes);
        written.and(self.file()?.unlock())
    }

    fn write_locked(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Appending to the rest of a failed write, as on a full disk, would damage a line.
        let mut file = self.file()?;
        if file.metadata()?.len() != self.whole {
            file.set_len(self.whole)?;
        }
        let sync = |()| if self.synced { file.sync_data() } else { Ok(()) };
        let written = file.write_all(bytes).and_then(sync);
        match written {
            Ok(()) => self.whole += bytes.len() as u64,
            // Truncating may fail too, since the disk has errors; the next write tries again.
            Err(_) => drop(file.set_len(self.whole)),
        }
        written
    }
}

/// Reads a file between two writes of another process; none if there is no file.
pub(super) fn read_whole(path: &Utf8Path) -> Result<Option<Vec<u8>>, StateError> {
    if folder::plain_file(path)?.is_none() {
        return Ok(None);
    }
    let read = || {
        let mut file = File::open(path)?;
        let mut bytes = Vec::new();
        file.lock_shared()?;
        file.read_to_end(&mut bytes)?;
        file.unlock()?;
        Ok(bytes)
    };
    read().map(Some).map_err(StateError::io("read", path))
}

/// The length of all complete lines, in bytes.
pub(super) fn whole_length(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
}
