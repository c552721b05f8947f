//! What can go wrong with the state folder, and what a person does about it.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use super::{cache, events, kubeconfigs, last_used, tokens};

/// Something about the state that a person has to mend. The text says what was attempted and why it failed;
/// [`StateError::hint`] says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The operating system refused something.
    #[error("cannot {attempted} `{path}`: {source}")]
    Io {
        /// What was attempted, as a verb with its object: `write`, `create the state folder`.
        attempted: &'static str,
        /// The file or folder.
        path: Utf8PathBuf,
        /// Why it was refused.
        source: io::Error,
    },
    /// Something of another sort lies where a file or the folder should be.
    #[error("cannot use `{path}`: it is {found}, not {expected}")]
    Strange {
        /// The path.
        path: Utf8PathBuf,
        /// What is there: `a link`.
        found: &'static str,
        /// What should be: `a file`.
        expected: &'static str,
    },
    /// Another process uses the folder.
    #[error("cannot use the state in `{dir}`: {} is using it", holder.map_or("another process".to_owned(), |pid| format!("process {pid}")))]
    Locked {
        /// The state folder.
        dir: Utf8PathBuf,
        /// The process, where it has said who it is.
        holder: Option<u32>,
    },
    /// The folder was taken away while it was in use.
    #[error("cannot go on with the state in `{dir}`: the folder was removed or replaced while it was in use")]
    Gone {
        /// The state folder.
        dir: Utf8PathBuf,
    },
    /// A record that a newer version of this software wrote.
    #[error(
        "cannot read `{path}:{line}`: a newer version of streamfleet wrote it (record version {found}, this one reads up to {known})"
    )]
    Newer {
        /// The file.
        path: Utf8PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The record's version.
        found: u32,
        /// The newest version that this software reads.
        known: u32,
    },
    /// A line that is no record, followed by others: no crash leaves that behind.
    #[error("cannot read `{path}:{line}`: it is damaged ({reason})")]
    Damaged {
        /// The file.
        path: Utf8PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// Why it is no record.
        reason: String,
    },
    /// The registry has fewer lines than it had.
    #[error("cannot use `{path}`: the end of it is missing; it has {lines} lines, and had {known} or more")]
    CutShort {
        /// The registry's file.
        path: Utf8PathBuf,
        /// How many whole lines it has.
        lines: usize,
        /// How many it had.
        known: usize,
    },
    /// The registry is missing or empty beside other records.
    #[error("cannot use the state in `{}`: `{path}` is missing or empty though others of its files are there", path.parent().unwrap_or(path))]
    NoRegistry {
        /// The registry's file.
        path: Utf8PathBuf,
    },
    /// The cache failed while it was in use.
    #[error("cannot {attempted} the cache in `{path}`: {reason}")]
    Cache {
        /// What was attempted, as a verb.
        attempted: &'static str,
        /// The cache's folder.
        path: Utf8PathBuf,
        /// Why it failed.
        reason: String,
    },
}

impl StateError {
    /// Wraps a refusal of the operating system.
    pub(super) fn io(
        attempted: &'static str,
        path: &Utf8Path,
    ) -> impl FnOnce(io::Error) -> StateError + use<> {
        let path = path.to_owned();
        move |source| StateError::Io { attempted, path, source }
    }

    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            StateError::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    "let the user that runs streamfleet write there, or name another folder with `state_dir`"
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    "mount the file system writable, or name another folder with `state_dir`"
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some space and try again; nothing that was recorded is lost"
                }
                _ => "look at the disk and the folder's permissions, then try again",
            }
            .to_owned(),
            StateError::Locked { holder: Some(pid), .. } => {
                format!(
                    "wait until process {pid} is done or stop it; only one streamfleet at a time may change a state folder"
                )
            }
            StateError::Locked { holder: None, .. } => {
                "wait until it is done; only one streamfleet at a time may change a state folder".to_owned()
            }
            StateError::CutShort { path, .. } => format!(
                "restore it from a backup, since it holds ids and protection: streamfleet restore FILE TREE; to go on with what \
                 is left of it, move `{}` out of the folder",
                path.with_file_name(cache::FOLDER)
            ),
            StateError::Gone { .. } => {
                "put it back, or restore it from a backup, and start again: streamfleet restore FILE TREE".to_owned()
            }
            StateError::Newer { .. } => {
                "install that version again; to go back to before it, move the folder away and restore an older backup: streamfleet restore FILE TREE".to_owned()
            }
            StateError::Damaged { path, .. } if path.file_name() == Some(kubeconfigs::FILE) => format!(
                "move `{path}` out of the folder and restore it: streamfleet restore FILE TREE; without a backup it is made anew for the fleets that have a spec"
            ),
            StateError::Damaged { path, .. } if path.file_name() == Some(tokens::FILE) => format!(
                "move `{path}` out of the folder and restore it: streamfleet restore FILE TREE; without a backup no token holds any more, and new ones are made by `streamfleet token create`"
            ),
            StateError::Damaged { path, .. } if path.file_name() == Some(last_used::FILE) => {
                "remove it: it is made anew; until then nothing says which `policy.mode` held, so name the settings".to_owned()
            }
            StateError::Damaged { path, line: 1, .. } => format!(
                "move `{path}` out of the folder and restore it: streamfleet restore FILE TREE; to start anew without ids and protection, move the whole folder away"
            ),
            StateError::Damaged { path, line, .. } => format!(
                "move `{path}` out of the folder and restore it: streamfleet restore FILE TREE; without a backup, copy the folder, remove line {line} and look at what `streamfleet plan` says before anything is applied"
            ),
            StateError::NoRegistry { .. } => {
                "restore it from a backup, since it holds ids and protection: streamfleet restore FILE TREE; to start anew without them, move the folder away"
                    .to_owned()
            }
            StateError::Strange { found: "a link", .. } => {
                "put the file itself there: a link would be replaced when the file is written anew; to keep the state elsewhere, name its folder with `state_dir`".to_owned()
            }
            StateError::Strange { expected: "a folder", .. } => {
                "move it away, or name another folder with `state_dir`".to_owned()
            }
            StateError::Strange { path, .. } if path.file_name() == Some(events::FILE) => {
                "move it away: the file is begun anew, and nothing but what happened lately was in it".to_owned()
            }
            StateError::Strange { .. } => {
                "move it away and restore the file from a backup: streamfleet restore FILE TREE".to_owned()
            }
            StateError::Cache { .. } => {
                "run the command again: the cache is set aside and built anew, nothing in it is needed"
                    .to_owned()
            }
        }
    }
}
