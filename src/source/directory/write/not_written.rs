use std::io::{self, ErrorKind};

use crate::names::SpecPath;

/// Why a file was not written. It is unchanged, except after [`NotWritten::Unsure`] and [`NotWritten::Kept`].
#[derive(Debug, thiserror::Error)]
pub enum FileWriteError {
    #[error("`{path}` is left as it is: {why}")]
    Unreadable { path: SpecPath, why: String, hint: String },
    #[error("`{path}` can't be written: {why}")]
    Place { path: SpecPath, why: &'static str },
    #[error("`{path}` is left as it is: somebody else keeps changing it")]
    Changed { path: SpecPath },
    #[error("cannot {attempted} `{path}` in the specs: {error}")]
    System {
        /// As a verb.
        attempted: &'static str,
        path: SpecPath,
        error: io::Error,
    },
    /// It was changed, but not durably, and the old file could not be restored.
    #[error("`{path}` was changed, and it is not known whether that outlasts a power cut: {error}")]
    Unsure { path: SpecPath, error: io::Error },
    /// A version saved meanwhile was put aside and could not be restored.
    #[error("what somebody saved as `{path}` could not be put back, and is beside it as `{kept}`: {error}")]
    Kept { path: SpecPath, kept: String, error: io::Error },
}

impl FileWriteError {
    pub fn hint(&self) -> String {
        match self {
            FileWriteError::Unreadable { hint, .. } => hint.clone(),
            FileWriteError::Place { .. } => {
                "move what stands there, or make the change in the file".to_owned()
            }
            FileWriteError::Changed { .. } => "try again when nobody writes to it any more".to_owned(),
            FileWriteError::Unsure { .. } => {
                "look at the disk of the specs, and read the file again before it is written once more"
                    .to_owned()
            }
            FileWriteError::Kept { .. } => {
                "rename it back, unless what stands in its place is newer, and remove it then".to_owned()
            }
            FileWriteError::System { .. } if self.is_full() => {
                "free some space on the disk of the specs, and try again".to_owned()
            }
            FileWriteError::System { .. } => {
                "let the user that runs streamfleet write the files and folders of the specs, and try again"
                    .to_owned()
            }
        }
    }

    /// Returns whether the disk is full or a disk quota is used up.
    pub fn is_full(&self) -> bool {
        matches!(self, FileWriteError::System { error, .. }
            if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
    }
}
