use std::io::{self, ErrorKind};

use crate::names::SpecPath;

/// Why a file was not written. It is unchanged, except after [`FileWriteError::Unsure`] and
/// [`FileWriteError::Kept`].
#[derive(Debug, thiserror::Error)]
pub enum FileWriteError {
    #[error("cannot change `{path}`: {why}")]
    Unreadable { path: SpecPath, why: String, hint: String },
    #[error("cannot write `{path}`: {why}")]
    Place { path: SpecPath, why: &'static str },
    #[error("cannot change `{path}`: another program keeps changing it")]
    Changed { path: SpecPath },
    #[error("cannot {attempted} `{path}` in the specs: {error}")]
    System {
        /// As a verb.
        attempted: &'static str,
        path: SpecPath,
        error: io::Error,
    },
    /// The file was changed, but not durably, and the old one could not be restored.
    #[error("`{path}` was changed, but the change may not survive a power cut: {error}")]
    Unsure { path: SpecPath, error: io::Error },
    /// A version saved meanwhile was put aside and could not be restored.
    #[error(
        "another program saved `{path}` at the same time; its version could not be restored, and is in `{kept}`: \
             {error}"
    )]
    Kept { path: SpecPath, kept: String, error: io::Error },
}

impl FileWriteError {
    pub fn hint(&self) -> String {
        match self {
            FileWriteError::Unreadable { hint, .. } => hint.clone(),
            FileWriteError::Place { .. } => {
                "move it away, or make the change in the file".to_owned()
            }
            FileWriteError::Changed { .. } => "try again when no other program writes to it".to_owned(),
            FileWriteError::Unsure { .. } => {
                "check the disk of the specs, and read the file before you write it again"
                    .to_owned()
            }
            FileWriteError::Kept { .. } => {
                "rename it back, unless the new file is newer; then remove it".to_owned()
            }
            FileWriteError::System { .. } if self.is_full() => {
                "free some space on the disk of the specs, and try again".to_owned()
            }
            FileWriteError::System { .. } => {
                "let the user that runs streamfleet write to the files and folders of the specs, and try again"
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
