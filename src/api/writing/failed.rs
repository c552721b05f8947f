//! What keeps from writing, in words for who called. Where specs are kept, and how that is reached, is for those who run this to
//! know: that is logged.

use std::io::{self, ErrorKind};
use std::time::Duration;

use super::refused::Refused;
use crate::names::SpecPath;
use crate::problem::{Location, Problem};
use crate::source::directory::write::NotWritten;
use crate::source::git::GitError;
use crate::source::git::write::WriteError;

/// When to try again where the repository is away.
const AWAY: Duration = Duration::from_secs(10);

/// When to try again where others were faster.
const OVERTAKEN: Duration = Duration::from_secs(1);

/// A file that is left as it is.
pub fn left(path: &SpecPath, code: &str, why: &str, hint: &str) -> Refused {
    let problem = Problem::error(code, format!("the file is left as it is: {why}"));
    Refused::Edit(Box::new(problem.at(Location::file(path.clone()), "").hint(hint)))
}

impl From<NotWritten> for Refused {
    fn from(error: NotWritten) -> Refused {
        let hint = error.hint();
        match &error {
            NotWritten::Unreadable { path, why, .. } => left(path, "edit-unreadable", why, &hint),
            NotWritten::Place { path, why } => left(path, "edit-place", why, &hint),
            NotWritten::Changed { path } => {
                left(path, "edit-changed", "somebody else keeps changing it", &hint)
            }
            NotWritten::Unsure { .. } => {
                let why = error.to_string();
                tracing::error!(%error, hint, "nobody knows whether what a call wrote outlasts a power cut");
                Refused::Unsure { why, hint }
            }
            NotWritten::System { error: cause, .. } if is_closed(cause) => {
                tracing::warn!(%error, hint, "a call could not be written to the folder of the specs");
                Refused::ReadOnly { why: error.to_string(), hint: "make the change in the file, or have the administrators of this installation let it be written".to_owned() }
            }
            NotWritten::System { .. } => {
                Refused::Disk { why: error.to_string(), hint, is_full: error.is_full() }
            }
        }
    }
}

/// Whether the system lets nobody write there, or not this process.
fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// When to try again where somebody has to mend the repository.
const MISSING: Duration = Duration::from_secs(60);

/// The repository can't be reached, or has no such branch. Which one it is, and how it is reached, is for those who run this to know.
pub fn away(error: &GitError) -> Refused {
    tracing::warn!(%error, hint = error.hint(), "a call could not be written to the git repository");
    if matches!(error, GitError::NoBranch { .. }) {
        return Refused::Away {
            why: "the git repository of the specs has no such branch any more, and nothing was written"
                .to_owned(),
            hint: "have the administrators of this installation push the branch again, or name another in the settings"
                .to_owned(),
            retry_after: MISSING,
        };
    }
    Refused::Away {
        why: "the git repository of the specs can't be reached, and nothing was written".to_owned(),
        hint: "try again in a moment; the log of `streamfleet serve` says what keeps from it".to_owned(),
        retry_after: AWAY,
    }
}

pub fn not_pushed(error: WriteError<Refused>) -> Refused {
    let told = error.hint();
    match error {
        WriteError::Edits(refused) => refused,
        WriteError::Away(error) => away(&error),
        WriteError::Overtaken { .. } => Refused::Away {
            why: "others pushed to the branch of the specs at the same time, and nothing was written"
                .to_owned(),
            hint: "try again".to_owned(),
            retry_after: OVERTAKEN,
        },
        WriteError::Place { path, why } => {
            let why = format!("{path} {why}");
            let problem = Problem::error("edit-place", format!("the file is left as it is: {why}"));
            Refused::Edit(Box::new(problem.hint(told.unwrap_or_default())))
        }
        error @ WriteError::Protected { .. } => {
            tracing::warn!(%error, hint = told, "a call could not be written to the git repository");
            Refused::ReadOnly {
                why:
                    "the branch of the specs takes no commits from here, so that calls can't change anything"
                        .to_owned(),
                hint: "make the change in the repository, by a merge request".to_owned(),
            }
        }
        error @ WriteError::Unsure { .. } => {
            tracing::error!(%error, hint = told, "nobody knows whether a call was written to the git repository");
            Refused::Unsure {
                why: "the git repository of the specs went away, and it is not known whether it took the change: it may still do so"
                    .to_owned(),
                hint: "read it again in a minute, and repeat the change if it isn't there; nothing is written twice where \
                       `If-Match` has the `ETag` from before"
                    .to_owned(),
            }
        }
        error @ WriteError::Commit(_) => {
            tracing::error!(%error, hint = told, "a call could not be written to the git repository");
            Refused::Disk {
                why: "no commit could be made of the change, and nothing was written".to_owned(),
                hint: "the log of `streamfleet serve` says what keeps from it".to_owned(),
                is_full: false,
            }
        }
    }
}
