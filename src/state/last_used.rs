//! The settings of the last use of a state, to warn of a forgotten `--config`.

use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::lines::read_whole;
use super::{StateError, folder};
use crate::config::Mode;

pub(super) const FILE: &str = "settings.json";

/// The settings of the last use. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastUsed {
    pub mode: Mode,
    /// The file of settings, if one was named.
    pub config: Option<Utf8PathBuf>,
    pub output_dir: Utf8PathBuf,
}

impl LastUsed {
    /// Reads the record; none if the state was never used.
    ///
    /// # Errors
    /// When the file can't be read. Ignoring that would forget that everything had to be approved.
    pub fn read(dir: &Utf8Path) -> Result<Option<LastUsed>, StateError> {
        let path = dir.join(FILE);
        let Some(bytes) = read_whole(&path)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| StateError::Damaged {
            path,
            line: error.line(),
            reason: "it doesn't say with which settings the state was used last".to_owned(),
        })
    }

    /// Replaces the record. Does nothing if it is the same.
    ///
    /// # Errors
    /// When the file can't be written. It is unchanged then.
    pub fn write(&self, dir: &Utf8Path) -> Result<(), StateError> {
        if LastUsed::read(dir)?.as_ref() == Some(self) {
            return Ok(());
        }
        let path = dir.join(FILE);
        // Only strings, so this can't fail.
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        let replace = || {
            let mut file = NamedTempFile::new_in(dir)?;
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)
        };
        replace().map_err(StateError::io("write", &path))?;
        folder::sync(dir)
    }
}
