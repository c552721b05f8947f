//! Errors of targets, with hints for a person.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use crate::names::{FleetKey, ObjectKey, count};
use crate::plan::Reach;
use crate::target::KubeError;

/// Why a target couldn't be read or written. The message says what was attempted and why it failed;
/// [`TargetError::hint`] says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("cannot {attempted} `{path}`: {source}")]
    Io { attempted: &'static str, path: Utf8PathBuf, source: io::Error },
    /// Files are where recorded objects have theirs, and the inventory that would tell whose they are isn't.
    #[error(
        "cannot read the inventory `{path}`: it is missing, though the state records that streamfleet wrote {} there",
        count(*known, "file")
    )]
    MissingInventory {
        path: Utf8PathBuf,
        /// The recorded objects that have files there.
        known: u64,
    },
    #[error("cannot read the inventory `{path}`: it is damaged ({reason})")]
    Damaged { path: Utf8PathBuf, reason: String },
    #[error(
        "cannot read the inventory `{path}`: a newer version of streamfleet wrote it (version {found}, this one reads up to {known})"
    )]
    Newer {
        path: Utf8PathBuf,
        found: u32,
        /// The newest version that this build reads.
        known: u32,
    },
    #[error("cannot use the inventory `{path}`: it belongs to fleet {fleet}")]
    AnotherFleet { path: Utf8PathBuf, fleet: FleetKey },
    #[error("cannot use the inventory `{path}`: another installation of streamfleet writes to this folder")]
    AnotherInstallation { path: Utf8PathBuf },
    /// A foreign file is in the way.
    #[error("cannot write `{path}`: a file that streamfleet did not create is there")]
    Foreign { path: Utf8PathBuf },
    /// The file isn't the one that the plan was made for.
    #[error("cannot {attempted} `{path}`: it changed since the plan was made")]
    Changed { attempted: &'static str, path: Utf8PathBuf },
    /// A link, or a folder and a file in each other's place.
    #[error("cannot use `{path}`: it is a link or not a {expected}")]
    NotPlain { path: Utf8PathBuf, expected: &'static str },
    #[error("cannot name a file after {object}: `{part}` is not a plain file name")]
    UnsafeName {
        object: ObjectKey,
        /// The part of the path that is no plain file name.
        part: String,
    },
    #[error("cannot write {object} as YAML: {reason}")]
    Yaml { object: ObjectKey, reason: String },
    #[error(transparent)]
    Kubernetes(Box<KubeError>),
    /// A step whose intent was not recorded.
    #[error("cannot write {object}: its intent was not recorded first")]
    NotIntended { object: ObjectKey },
}

impl From<KubeError> for TargetError {
    fn from(error: KubeError) -> Self {
        TargetError::Kubernetes(Box::new(error))
    }
}

impl TargetError {
    pub(super) fn io(
        attempted: &'static str,
        path: &Utf8Path,
    ) -> impl FnOnce(io::Error) -> TargetError + use<> {
        let path = path.to_owned();
        move |source| TargetError::Io { attempted, path, source }
    }

    /// Shortens paths for plans and records: they become relative to `folder`, because only operators may
    /// learn where it is on this host.
    pub(super) fn below(self, folder: &Utf8Path) -> TargetError {
        use TargetError::*;
        let short = |path: Utf8PathBuf| match path.strip_prefix(folder) {
            Ok(below) if below.as_str().is_empty() => "output_dir".into(),
            Ok(below) => below.to_owned(),
            Err(_) if path.is_absolute() => path.file_name().unwrap_or("output_dir").into(),
            Err(_) => path,
        };
        match self {
            // An error without an OS code may contain the path in its text.
            Io { attempted, path, source } => {
                let is_plain = source.raw_os_error().is_some();
                let source = if is_plain { source } else { source.kind().into() };
                Io { attempted, path: short(path), source }
            }
            MissingInventory { path, known } => MissingInventory { path: short(path), known },
            Damaged { path, reason } => Damaged { path: short(path), reason },
            Newer { path, found, known } => Newer { path: short(path), found, known },
            AnotherFleet { path, fleet } => AnotherFleet { path: short(path), fleet },
            AnotherInstallation { path } => AnotherInstallation { path: short(path) },
            Foreign { path } => Foreign { path: short(path) },
            Changed { attempted, path } => Changed { attempted, path: short(path) },
            NotPlain { path, expected } => NotPlain { path: short(path), expected },
            other @ (UnsafeName { .. } | Yaml { .. } | Kubernetes(_) | NotIntended { .. }) => other,
        }
    }

    /// Whether the target's content may be lost for good, so that forgetting it can be right.
    pub fn may_be_lost(&self) -> bool {
        match self {
            TargetError::Io { source, .. } => source.kind() != io::ErrorKind::PermissionDenied,
            TargetError::Damaged { .. } | TargetError::Foreign { .. } | TargetError::NotPlain { .. } => true,
            TargetError::Kubernetes(error) => error.may_be_lost(),
            _ => false,
        }
    }

    /// Whether only a DNS record couldn't be changed, which tells nothing of the rest of the fleet.
    pub fn is_of_record(&self) -> bool {
        matches!(self, TargetError::Kubernetes(error) if matches!(**error, KubeError::Record { .. }))
    }

    /// Whether the error describes a failed connection, whose details only operators may see.
    pub fn is_unreached(&self) -> bool {
        matches!(self, TargetError::Kubernetes(error) if error.is_unreached())
    }

    /// The reach of a fleet that can't be read because of this error. It isn't refused: the next attempt may succeed.
    pub fn reach(&self, last_seen: Option<Timestamp>) -> Reach {
        Reach::Unreachable {
            reason: self.to_string(),
            hint: self.hint().to_owned(),
            refused: false,
            lost: self.may_be_lost(),
            concealed: self.is_unreached(),
            last_seen,
        }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            TargetError::Io { attempted: "read" | "look for", source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    "let the user that runs streamfleet read it and the folders on the way there, or set another folder \
                     with `output_dir`; then plan again"
                }
                _ => "check the disk and the permissions of the folders on the way there, then plan again",
            },
            TargetError::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    "let the user that runs streamfleet write there, or set another folder with `output_dir`"
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    "mount the file system writable, or set another folder with `output_dir`"
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some space and apply again; finished steps are not repeated"
                }
                _ => "check the disk and the folder's permissions, then apply again",
            },
            TargetError::MissingInventory { .. } | TargetError::Damaged { .. } => {
                "restore the inventory from a backup or from version control; or stop what applies the fleet's folder, move \
                 all of the folder's content away and apply again"
            }
            TargetError::Newer { .. } => "install that version again",
            TargetError::AnotherFleet { .. } => "move the folder back to its fleet's place, or empty it",
            TargetError::AnotherInstallation { .. } => {
                "use that installation's state with `state_dir`, or set another folder with `output_dir`; if that state is \
                 lost, move what is in its place away and restore that installation's state: streamfleet restore FILE \
                 TREE; without a backup, remove the line `installation` from the inventory to take over the folder with \
                 its ids and protection"
            }
            TargetError::Kubernetes(error) => error.hint(),
            TargetError::Foreign { .. } => "move it away if it isn't needed, then apply again",
            TargetError::Changed { .. } => "plan again and check the difference",
            TargetError::NotPlain { .. } => {
                "move it away; if it is a link, put what it leads to in its place, because only `output_dir` itself may be a \
                 link; then apply again"
            }
            TargetError::UnsafeName { .. } | TargetError::Yaml { .. } | TargetError::NotIntended { .. } => {
                "this is a bug in streamfleet; report it"
            }
        }
    }
}
