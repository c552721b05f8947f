//! A file of lines that only grows, each line on disk before its writer goes on.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};

use super::{StateError, folder};

/// A file that lines are appended to.
pub(super) struct Lines {
    path: Utf8PathBuf,
    /// None where the state was opened to be read.
    file: Option<File>,
    /// How much of the file is known to be whole. What lies beyond is left of a write that failed.
    whole: u64,
    /// Whether a write waits for the disk.
    synced: bool,
}

impl Lines {
    /// Opens a file, makes it where it is missing, and gives what it holds. The last part says that others could read or
    /// write it.
    pub(super) fn open(path: Utf8PathBuf) -> Result<(Lines, Vec<u8>, Option<String>), StateError> {
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
        Ok((Lines { path, file: Some(file), whole, synced: true }, bytes, exposed))
    }

    /// The same without the file: nothing can be written to it, and nothing of it is mended.
    pub(super) fn unopened(path: Utf8PathBuf) -> Lines {
        Lines { path, file: None, whole: 0, synced: true }
    }

    /// The file to write to.
    fn file(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| io::Error::other("the state was opened to be read"))
    }

    /// The same of a file that may be lost: nothing waits for the disk.
    pub(super) fn open_unsynced(path: Utf8PathBuf) -> Result<(Lines, Vec<u8>, Option<String>), StateError> {
        let (lines, bytes, exposed) = Lines::open(path)?;
        Ok((Lines { synced: false, ..lines }, bytes, exposed))
    }

    /// The file.
    pub(super) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// How long it is, as far as it is known to be whole.
    pub(super) fn length(&self) -> u64 {
        self.whole
    }

    /// The file to read from, which goes on being what it is when another takes its place.
    pub(super) fn reader(&self) -> Result<File, StateError> {
        self.file().and_then(File::try_clone).map_err(StateError::io("read", &self.path))
    }

    /// Cuts off what lies beyond `length`.
    pub(super) fn truncate(&mut self, length: u64) -> Result<(), StateError> {
        let cut = self.file().and_then(|file| file.set_len(length).and_then(|()| file.sync_data()));
        cut.map_err(StateError::io("repair", &self.path))?;
        self.whole = length;
        Ok(())
    }

    /// Appends lines and waits until all are on disk, where the file isn't one that may be lost. When that fails, none is there.
    pub(super) fn append(&mut self, lines: &[String]) -> Result<(), StateError> {
        let mut text = lines.join("\n");
        text.push('\n');
        self.write(text.as_bytes()).map_err(StateError::io("write", &self.path))
    }

    /// Nobody who [reads][read_whole] the file meets half of what is written here.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file()?.lock()?;
        let written = self.write_locked(bytes);
        written.and(self.file()?.unlock())
    }

    fn write_locked(&mut self, bytes: &[u8]) -> io::Result<()> {
        // An earlier write may have failed half-way, as on a full disk. A line after its rest would be damaged.
        let mut file = self.file()?;
        if file.metadata()?.len() != self.whole {
            file.set_len(self.whole)?;
        }
        let sync = |()| if self.synced { file.sync_data() } else { Ok(()) };
        let written = file.write_all(bytes).and_then(sync);
        match written {
            Ok(()) => self.whole += bytes.len() as u64,
            // Trying again is left to the next write, since the disk may not let us cut now.
            Err(_) => drop(file.set_len(self.whole)),
        }
        written
    }
}

/// The bytes of a file while another process may append to it, and not while it does; none where there is no file.
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

/// How many of the bytes belong to whole lines.
pub(super) fn whole_length(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
}
