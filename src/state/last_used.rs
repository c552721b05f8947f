//! The settings of the last use of a state, to warn of a forgotten `--config`.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

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
    /// When the file can't be read. Without the record, a mode that requires approvals would be lost.
    pub fn read(dir: &Utf8Path) -> Result<Option<LastUsed>, StateError> {
        let path = dir.join(FILE);
        let Some(bytes) = read_whole(&path)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| StateError::Damaged {
            path,
            line: error.line(),
            reason: "it doesn't contain the last settings of the state".to_owned(),
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
        // The record contains only strings, so serializing can't fail.
        folder::replace_file(&dir.join(FILE), &serde_json::to_vec_pretty(self).unwrap_or_default())
    }
}
