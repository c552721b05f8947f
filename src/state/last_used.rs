//! With which settings a state was used last, so that whoever forgets to name them is told.

use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::lines::read_whole;
use super::{StateError, folder};
use crate::config::Mode;

/// The file.
pub(super) const FILE: &str = "settings.json";

/// What held when something was last done with a state. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastUsed {
    /// What was done without anybody saying so.
    pub mode: Mode,
    /// The file of the settings; none where none was named.
    pub config: Option<Utf8PathBuf>,
    /// The folder that directory fleets were written to.
    pub output_dir: Utf8PathBuf,
}

impl LastUsed {
    /// What a state folder remembers; none where nothing was done with it yet.
    ///
    /// # Errors
    /// When the file can't be read: to take it for none would forget that everything had to be approved.
    pub fn read(dir: &Utf8Path) -> Result<Option<LastUsed>, StateError> {
        let path = dir.join(FILE);
        let Some(bytes) = read_whole(&path)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| StateError::Damaged {
            path,
            line: error.line(),
            reason: "it doesn't say with which settings the state was used last".to_owned(),
        })
    }

    /// Remembers this in the place of what was. Nothing is written where it is the same.
    ///
    /// # Errors
    /// When the file can't be written. It is as it was then.
    pub fn write(&self, dir: &Utf8Path) -> Result<(), StateError> {
        if LastUsed::read(dir)?.as_ref() == Some(self) {
            return Ok(());
        }
        let path = dir.join(FILE);
        // Strings alone, so there is no error to pass on.
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        let replace = || {
            // A temporary file is its owner's alone.
            let mut file = NamedTempFile::new_in(dir)?;
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)
        };
        replace().map_err(StateError::io("write", &path))?;
        folder::sync(dir)
    }
}
