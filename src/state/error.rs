//! Errors of the state folder, and what to do about them.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use super::certificates::KeptCertificates;
use super::kept::Content as _;
use super::kubeconfigs::Kubeconfigs;
use super::{cache, disk, events, folder, last_used, sizes, tokens};

/// An error of the state that a person has to fix. The message says what was attempted and why it failed;
/// [`StateError::hint`] says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The operating system refused an operation.
    #[error("cannot {attempted} `{path}`: {source}")]
    Io {
        /// A verb, with its object if that is not the path: `write`, `create the state folder`.
        attempted: &'static str,
        path: Utf8PathBuf,
        source: io::Error,
    },
    /// A path has an unexpected type, such as a link in place of a file.
    #[error("cannot use `{path}`: it is {found}, not {expected}")]
    WrongFileType {
        path: Utf8PathBuf,
        /// The type found: `a link`.
        found: &'static str,
        /// The type needed: `a file`.
        expected: &'static str,
    },
    /// Root would leave files that the folder's owner can't read.
    #[error("cannot use the state in `{dir}`: it belongs to user {owner}, and this is root")]
    Foreign { dir: Utf8PathBuf, owner: u32 },
    #[error("cannot use the state in `{dir}`: {} is using it", holder.map_or("another process".to_owned(), |pid| format!("process {pid}")))]
    Locked {
        dir: Utf8PathBuf,
        /// The process id, if the lock file has it.
        holder: Option<u32>,
    },
    /// The folder was removed or replaced while it was in use.
    #[error("cannot continue with the state in `{dir}`: the folder was removed or replaced while in use")]
    Gone { dir: Utf8PathBuf },
    #[error(
        "cannot read `{path}:{line}`: a newer version of streamfleet wrote it (record version {found}, this one reads up to {known})"
    )]
    Newer {
        path: Utf8PathBuf,
        /// From 1.
        line: usize,
        found: u32,
        /// The newest version that this software reads.
        known: u32,
    },
    /// An invalid line before others. A crash can only damage the last line.
    #[error("cannot read `{path}:{line}`: it is damaged ({reason})")]
    Damaged {
        path: Utf8PathBuf,
        /// From 1.
        line: usize,
        reason: String,
    },
    /// The registry has fewer lines than an older snapshot of the cache recorded.
    #[error("cannot use `{path}`: its end is missing; it has {lines} lines, and had {known} or more")]
    CutShort {
        path: Utf8PathBuf,
        /// The number of complete lines now.
        lines: usize,
        /// The number of lines when the snapshot was written.
        known: usize,
    },
    /// The registry is missing or empty while other files exist.
    #[error("cannot use the state in `{}`: `{path}` is missing or empty, but other files of the state exist", path.parent().unwrap_or(path))]
    NoRegistry { path: Utf8PathBuf },
    #[error("cannot {attempted} the cache in `{path}`: {reason}")]
    Cache {
        /// A verb: `read`.
        attempted: &'static str,
        path: Utf8PathBuf,
        reason: String,
    },
}

/// How to put back one file of the state folder.
pub(super) fn from_backup(path: &Utf8Path) -> String {
    let (dir, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
    format!("take it from a backup: tar -xf FILE -C {dir} {name}")
}

impl StateError {
    pub(super) fn io(
        attempted: &'static str,
        path: &Utf8Path,
    ) -> impl FnOnce(io::Error) -> StateError + use<> {
        let path = path.to_owned();
        move |source| StateError::Io { attempted, path, source }
    }

    /// Whether it ends once there is room on the disk.
    pub fn is_full_disk(&self) -> bool {
        matches!(self, StateError::Io { source, .. } if disk::is_full(source))
    }

    /// The suggested next step.
    pub fn hint(&self) -> String {
        match self {
            StateError::Io { attempted: folder::CLOSE, path, source }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                let inner = path.join("state");
                format!(
                    "it belongs to another user: name a folder in it that streamfleet creates, such as `{inner}`, with \
                     `state_dir`"
                )
            }
            StateError::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    "let the user that runs streamfleet write there, or set another folder with `state_dir`"
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    "mount the file system writable, or set another folder with `state_dir`"
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some space and try again; no records are lost"
                }
                io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices => {
                    "a mount point can't be replaced: name a folder in it with `state_dir`"
                }
                _ => "check the disk and the folder's permissions, then try again",
            }
            .to_owned(),
            StateError::Foreign { owner, .. } => {
                format!("root would leave files that this user can't read: sudo -u '#{owner}' streamfleet …")
            }
            StateError::Locked { holder: Some(pid), .. } => {
                format!(
                    "wait until process {pid} is done or stop it; only one streamfleet at a time may change a state folder"
                )
            }
            StateError::Locked { holder: None, .. } => {
                "wait until it is done; only one streamfleet at a time may change a state folder".to_owned()
            }
            StateError::CutShort { path, .. } => format!(
                "the registry holds ids and protection: {}; if the backup is older, or to continue with the remaining \
                 lines, move `{}` out of the folder",
                from_backup(path),
                path.with_file_name(cache::FOLDER)
            ),
            StateError::Gone { .. } => {
                "restore the folder, or restore a backup, and start again: streamfleet restore FILE TREE".to_owned()
            }
            StateError::Newer { .. } => {
                "install that version again; to return to an earlier one, move the folder away and restore an older \
                 backup: streamfleet restore FILE TREE".to_owned()
            }
            StateError::Damaged { path, .. } if path.file_name() == Some(Kubeconfigs::FILE) => format!(
                "move `{path}` out of the folder and {}; without a backup, it is recreated for the fleets that have a \
                 spec",
                from_backup(path)
            ),
            StateError::Damaged { path, .. } if path.file_name() == Some(KeptCertificates::FILE) => format!(
                "move `{path}` out of the folder and {}; without a backup, managed base domains get new certificates, for \
                 which their clusters restart",
                from_backup(path)
            ),
            StateError::Damaged { path, .. } if path.file_name() == Some(tokens::FILE) => format!(
                "move `{path}` out of the folder and {}; without a backup, all tokens become invalid: create new ones \
                 with `streamfleet token create`",
                from_backup(path)
            ),
            StateError::Damaged { path, .. } if path.file_name() == Some(sizes::FILE) => format!(
                "move `{path}` out of the folder and {}; without a backup, the costs of clusters start anew",
                from_backup(path)
            ),
            StateError::Damaged { path, .. } if path.file_name() == Some(last_used::FILE) => {
                "remove it: streamfleet recreates it; until then the last `policy.mode` is unknown, so pass the \
                 settings with `--config`".to_owned()
            }
            StateError::Damaged { path, line: 1, .. } => format!(
                "move `{path}` out of the folder and {}; to start without ids and protection, move the whole folder \
                 away",
                from_backup(path)
            ),
            StateError::Damaged { path, line, .. } => format!(
                "move `{path}` out of the folder and {}; without a backup, copy the folder, remove line {line} and \
                 check the output of `streamfleet plan` before you apply",
                from_backup(path)
            ),
            StateError::NoRegistry { path } => format!(
                "the registry holds ids and protection: {}; to start without them, move the folder away",
                from_backup(path)
            ),
            StateError::WrongFileType { found: "a link", .. } => {
                "put the file itself there: a link would be replaced when the file is rewritten; to keep the state \
                 elsewhere, set its folder with `state_dir`".to_owned()
            }
            StateError::WrongFileType { expected: "a folder", .. } => {
                "move it away, or set another folder with `state_dir`".to_owned()
            }
            StateError::WrongFileType { path, .. } if path.file_name() == Some(events::FILE) => {
                "move it away: streamfleet creates a new file, and only recent events are lost".to_owned()
            }
            StateError::WrongFileType { path, .. } => format!("move it away and {}", from_backup(path)),
            StateError::Cache { .. } => {
                "run the command again: the cache is set aside and rebuilt, and nothing is lost"
                    .to_owned()
            }
        }
    }
}
