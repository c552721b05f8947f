//! Where spec trees come from.

pub mod directory;
pub mod git;
mod rules;
#[cfg(test)]
mod tests;

use camino::Utf8PathBuf;

use crate::names::SpecPath;

/// A file that is to have this content, or to be gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The file, in the folder of the specs.
    pub path: SpecPath,
    /// All of its bytes; none where it is to be removed.
    pub content: Option<Vec<u8>>,
}

/// Edits that belong together, and what is said of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What they do, as a commit says it.
    pub message: String,
    /// The edits. Of two of a file the later one goes.
    pub edits: Vec<Edit>,
}

/// Who wants something written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The name.
    pub name: String,
    /// The e-mail address.
    pub email: String,
}

/// Why a tree could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The root is not there, is no folder or can't be listed.
    #[error("can't read the spec tree {path}: {error}")]
    Root {
        /// The root as it was given.
        path: Utf8PathBuf,
        /// The system's answer.
        error: std::io::Error,
    },
    /// The root's real path can't be shown as text.
    #[error("can't read the spec tree {path}: its real path is not UTF-8")]
    NotUtf8 {
        /// The root as it was given.
        path: Utf8PathBuf,
    },
    /// What is in the root kept changing while it was read.
    #[error("can't read the spec tree {path}: the tree keeps changing")]
    Changing {
        /// The root as it was given.
        path: Utf8PathBuf,
    },
    /// It is a git repository's.
    #[error(transparent)]
    Git(#[from] git::GitError),
}

impl SourceError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            SourceError::Root { error, .. } => match error.kind() {
                std::io::ErrorKind::NotFound => {
                    "make the folder, or give the path of the one with your specs"
                }
                std::io::ErrorKind::NotADirectory => "give the folder, not a file in it",
                _ => "check the folder's permissions and owner",
            },
            SourceError::NotUtf8 { .. } => "rename the folders on the way to it",
            SourceError::Git(error) => error.hint(),
            SourceError::Changing { .. } => "wait until nothing writes to it any more, and try again",
        }
    }
}
