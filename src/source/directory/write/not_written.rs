//! Why a file was not written.

use std::io::{self, ErrorKind};

use crate::names::SpecPath;

/// Why a file was not written. It is as it was, but for what is [`NotWritten::Unsure`] or [`NotWritten::Kept`].
#[derive(Debug, thiserror::Error)]
pub enum NotWritten {
    /// What stands there can't be read, by the rules of the tree.
    #[error("`{path}` is left as it is: {why}")]
    Unreadable {
        /// The file or folder.
        path: SpecPath,
        /// Why.
        why: String,
        /// What to do next.
        hint: String,
    },
    /// Something else stands in its place.
    #[error("`{path}` can't be written: {why}")]
    Place {
        /// The file.
        path: SpecPath,
        /// What stands there.
        why: &'static str,
    },
    /// Somebody else has changed it since it was read.
    #[error("`{path}` is left as it is: somebody else keeps changing it")]
    Changed {
        /// The file.
        path: SpecPath,
    },
    /// The system refuses it.
    #[error("cannot {attempted} `{path}` in the specs: {error}")]
    System {
        /// What was attempted, as a verb.
        attempted: &'static str,
        /// The file.
        path: SpecPath,
        /// The system's answer.
        error: io::Error,
    },
    /// It was changed, and neither could the disk be waited for nor the old file be put back.
    #[error("`{path}` was changed, and it is not known whether that outlasts a power cut: {error}")]
    Unsure {
        /// The file.
        path: SpecPath,
        /// The system's answer.
        error: io::Error,
    },
    /// What somebody saved meanwhile was put aside, and could not be put back.
    #[error("what somebody saved as `{path}` could not be put back, and is beside it as `{kept}`: {error}")]
    Kept {
        /// The file.
        path: SpecPath,
        /// The name of the file beside it.
        kept: String,
        /// The system's answer.
        error: io::Error,
    },
}

impl NotWritten {
    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            NotWritten::Unreadable { hint, .. } => hint.clone(),
            NotWritten::Place { .. } => "move what stands there, or make the change in the file".to_owned(),
            NotWritten::Changed { .. } => "try again when nobody writes to it any more".to_owned(),
            NotWritten::Unsure { .. } => {
                "look at the disk of the specs, and read the file again before it is written once more"
                    .to_owned()
            }
            NotWritten::Kept { .. } => {
                "rename it back, unless what stands in its place is newer, and remove it then".to_owned()
            }
            NotWritten::System { .. } if self.is_full() => {
                "free some space on the disk of the specs, and try again".to_owned()
            }
            NotWritten::System { .. } => {
                "let the user that runs streamfleet write the files and folders of the specs, and try again"
                    .to_owned()
            }
        }
    }

    /// Whether there is no room for it.
    pub fn is_full(&self) -> bool {
        matches!(self, NotWritten::System { error, .. }
            if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
    }
}
