pub mod directory;
pub mod git;
mod rules;
#[cfg(test)]
mod tests;

use camino::Utf8PathBuf;

use crate::names::SpecPath;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// Relative to the folder of the specs.
    pub path: SpecPath,
    /// The whole content; none to remove the file.
    pub content: Option<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceChange {
    /// The commit message.
    pub message: String,
    /// If two edits are of the same file, the later one wins.
    pub edits: Vec<FileEdit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    pub name: String,
    pub email: String,
}

#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("cannot read the spec tree {path}: {error}")]
    Root { path: Utf8PathBuf, error: std::io::Error },
    #[error("cannot read the spec tree {path}: its real path is not UTF-8")]
    NotUtf8 { path: Utf8PathBuf },
    #[error("cannot read the spec tree {path}: its files keep changing")]
    Changing { path: Utf8PathBuf },
    #[error(transparent)]
    Git(#[from] git::GitError),
}

impl SourceError {
    pub fn hint(&self) -> &'static str {
        match self {
            SourceError::Root { error, .. } => match error.kind() {
                std::io::ErrorKind::NotFound => {
                    "create the folder, or give the path of the one with your specs"
                }
                std::io::ErrorKind::NotADirectory => "give the folder, not a file in it",
                _ => "check the folder's permissions and owner",
            },
            SourceError::NotUtf8 { .. } => "rename the folders on its path to UTF-8 names",
            SourceError::Git(error) => error.hint(),
            SourceError::Changing { .. } => "wait until no program writes to it, and try again",
        }
    }
}
