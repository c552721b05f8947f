//! Failures to write, in words for the caller. Paths and remotes of the specs are for operators only, and go
//! to the log.

use std::io::{self, ErrorKind};
use std::time::Duration;

use super::refused::WriteRefusal;
use crate::http::problem::{ProblemDocument, code};
use crate::names::SpecPath;
use crate::problem::{Location, Problem};
use crate::source::SourceError;
use crate::source::directory::write::FileWriteError;
use crate::source::git::GitError;
use crate::source::git::write::WriteError;

/// The retry delay while the repository is unreachable.
const AWAY: Duration = Duration::from_secs(10);

/// The retry delay after a conflict with other writers.
const OVERTAKEN: Duration = Duration::from_secs(1);

pub fn left(path: &SpecPath, code: &str, why: &str, hint: &str) -> WriteRefusal {
    let problem = Problem::error(code, format!("the file was not changed: {why}"));
    WriteRefusal::Edit(Box::new(problem.at(Location::file(path.clone()), "").hint(hint)))
}

impl From<FileWriteError> for WriteRefusal {
    fn from(error: FileWriteError) -> WriteRefusal {
        let hint = error.hint();
        match &error {
            FileWriteError::Unreadable { path, why, .. } => left(path, "edit-unreadable", why, &hint),
            FileWriteError::Place { path, why } => left(path, "edit-place", why, &hint),
            FileWriteError::Changed { path } => {
                left(path, "edit-changed", "another program keeps changing it", &hint)
            }
            FileWriteError::Unsure { .. } => {
                let why = error.to_string();
                tracing::error!(%error, hint, "cannot make a write to the specs durable; a power cut may undo it");
                ProblemDocument::unsure(why).hint(hint).into()
            }
            FileWriteError::Kept { .. } => {
                let why = error.to_string();
                tracing::error!(%error, hint, "cannot restore a file that another program saved during a write; it was \
                    renamed");
                ProblemDocument::unsure(why).hint(hint).into()
            }
            FileWriteError::System { error: cause, .. } if is_closed(cause) => {
                tracing::warn!(%error, hint, "cannot write to the folder of the specs");
                let hint = "make the change in the file, or have the administrators of this installation make it \
                            writable";
                read_only(without_host(&error), hint)
            }
            FileWriteError::System { .. } if error.is_full() => {
                ProblemDocument::new(&code::DISK_FULL, without_host(&error)).hint(hint).into()
            }
            FileWriteError::System { path, .. } => {
                tracing::error!(%error, hint, "cannot write to the folder of the specs");
                unusable(&format!("`{path}` can't be read or written in the specs"))
            }
        }
    }
}

/// The message, unless it could contain a path of this host. Errors of the operating system contain none.
fn without_host(why: &FileWriteError) -> String {
    match why {
        FileWriteError::System { attempted, path, error } if error.raw_os_error().is_none() => {
            format!("cannot {attempted} `{path}` in the specs: {}", error.kind())
        }
        why => why.to_string(),
    }
}

/// Whether the file system refuses writes, to all or to this process.
fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// Maps a failed scan of the spec folder: it is missing, or others keep changing it.
pub fn unread(error: &SourceError) -> WriteRefusal {
    tracing::warn!(%error, hint = error.hint(), "cannot write to the folder of the specs");
    match error {
        SourceError::Changing { .. } => away_for(
            OVERTAKEN,
            "other programs keep changing the specs; nothing was written",
            "try again when no other program writes to them",
        ),
        _ => unusable("cannot read the folder of the specs"),
    }
}

/// The change has to be made outside of the API.
fn read_only(why: impl Into<String>, hint: &str) -> WriteRefusal {
    ProblemDocument::new(&code::READ_ONLY, why).hint(hint).into()
}

/// The source of the specs is unavailable. A retry may succeed.
fn away_for(pause: Duration, why: &str, hint: &str) -> WriteRefusal {
    ProblemDocument::unavailable(why, pause).hint(hint).into()
}

const SEE_LOG: &str = "try again in a moment; look for the cause in the log of `streamfleet serve`";

/// The spec folder, or its disk, is unavailable.
fn unusable(why: &str) -> WriteRefusal {
    away_for(AWAY, &format!("{why}; nothing was written"), SEE_LOG)
}

/// The retry delay when an operator has to repair the repository.
const MISSING: Duration = Duration::from_secs(60);

/// Maps a git failure: the remote is unreachable or lacks the branch. The details are for operators only.
pub fn away(error: &GitError) -> WriteRefusal {
    tracing::warn!(%error, hint = error.hint(), "cannot write to the git repository");
    if matches!(error, GitError::NoBranch { .. }) {
        return away_for(
            MISSING,
            "the branch in the git repository of the specs is missing; nothing was written",
            "have the administrators of this installation push the branch again, or set another one in the settings",
        );
    }
    away_for(AWAY, "the git repository of the specs can't be reached; nothing was written", SEE_LOG)
}

pub fn not_pushed(error: WriteError<WriteRefusal>) -> WriteRefusal {
    let told = error.hint();
    match error {
        WriteError::Edits(refused) => refused,
        WriteError::Away(error) => away(&error),
        WriteError::Overtaken { .. } => away_for(
            OVERTAKEN,
            "others pushed to the branch of the specs at the same time; nothing was written",
            "try again",
        ),
        WriteError::Place { path, why } => {
            let why = format!("{path} {why}");
            let problem = Problem::error("edit-place", format!("the file was not changed: {why}"));
            WriteRefusal::Edit(Box::new(problem.hint(told.unwrap_or_default())))
        }
        error @ WriteError::Protected { .. } => {
            tracing::warn!(%error, hint = told, "cannot write to the git repository");
            read_only(
                "the branch of the specs doesn't accept commits of the API, so the API can't change anything",
                "make the change in the repository, with a merge request",
            )
        }
        error @ WriteError::Unsure { .. } => {
            tracing::error!(%error, hint = told, "cannot confirm that the git repository received a write");
            let why = "the connection to the git repository of the specs was lost, and it is unknown whether it \
                       received the change";
            let hint = "read the resource again in a minute, and repeat the change if it is missing; with the earlier \
                        `ETag` in `If-Match` nothing is written twice";
            ProblemDocument::unsure(why).hint(hint).into()
        }
        error @ WriteError::Unsigned => {
            tracing::warn!(%error, hint = told, "cannot write to the git repository");
            read_only(
                "commits must be signed, and `source.signing_key` has no key for it, so the API can't change anything",
                "make the change in the repository with a signed commit, or have the administrators of this \
                    installation set `source.signing_key`",
            )
        }
        error @ WriteError::Commit(_) => {
            tracing::error!(%error, hint = told, "cannot write to the git repository");
            ProblemDocument::new(&code::INTERNAL, "cannot create a commit; nothing was written")
                .hint("look for the cause in the log of `streamfleet serve`")
                .into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_from_writing_is_told_without_where_the_specs_are_and_is_no_defect() {
        let told = |refused: WriteRefusal| {
            let problem = ProblemDocument::from(refused);
            let words = format!("{}; {}", problem.detail, problem.hint.unwrap_or_default());
            (problem.kind.status, problem.kind.word, words)
        };
        let path: SpecPath = "acme.yaml".parse().unwrap();
        let system = |error| FileWriteError::System { attempted: "write", path: path.clone(), error };
        let denied = io::Error::new(ErrorKind::PermissionDenied, "denied at path /srv/specs/x");
        let again = "try again in a moment; look for the cause in the log of `streamfleet serve`";
        let cases = [
            (
                unread(&SourceError::Root { path: "/srv/specs".into(), error: ErrorKind::NotFound.into() }),
                (503, "unavailable"),
                format!("cannot read the folder of the specs; nothing was written; {again}"),
            ),
            (
                unread(&SourceError::Changing { path: "/srv/specs".into() }),
                (503, "unavailable"),
                "other programs keep changing the specs; nothing was written; try again when no other program writes \
                    to them"
                    .to_owned(),
            ),
            (
                system(io::Error::from_raw_os_error(5)).into(),
                (503, "unavailable"),
                format!("`acme.yaml` can't be read or written in the specs; nothing was written; {again}"),
            ),
            (
                system(denied).into(),
                (409, "read_only"),
                "cannot write `acme.yaml` in the specs: permission denied; make the change in the file, or have the \
                 administrators of this installation make it writable"
                    .to_owned(),
            ),
            (
                not_pushed(WriteError::Unsigned),
                (409, "read_only"),
                "commits must be signed, and `source.signing_key` has no key for it, so the API can't change anything; \
                    make the change in the repository with a signed commit, or have the administrators of this \
                    installation set `source.signing_key`"
                    .to_owned(),
            ),
        ];
        for (refused, (status, code), words) in cases {
            assert_eq!(told(refused), (status, code, words));
        }
    }
}
