//! The commit that was in force last, and the one that it took the place of without following it. That is doubted until a plan
//! has been made of it and what that found suspicious is remembered. It lies in a file beside the clone, since another clone may
//! take its place, and no clone has what the remote no longer has.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use git2::{Oid, Repository};

use super::{GitError, Mirror, clone, locks};

/// What is kept of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    /// Which source: all of its names begin with it.
    pub(super) source: String,
    /// The commit that is in force, or is about to be.
    pub(super) now: String,
    /// One that was in force, if it got lost. A commit that has it among those before it is in order.
    pub(super) lost: Option<String>,
}

impl Kept {
    /// The one that is kept; none where none was yet.
    ///
    /// # Errors
    /// When it can't be read: that is not to say that nothing got lost.
    fn read(place: &Utf8Path) -> io::Result<Option<Kept>> {
        let text = match fs::read_to_string(file(place)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let is_commit = |word: &&str| word.len() == 40 && Oid::from_str(word).is_ok();
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [source, commits @ ..] if matches!(commits.len(), 1 | 2) && commits.iter().all(is_commit) => {
                let lost = commits.get(1).map(|&lost| lost.to_owned());
                Ok(Some(Kept { source: (*source).to_owned(), now: commits[0].to_owned(), lost }))
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it is damaged")),
        }
    }

    /// Keeps it, whatever happens to this process or machine.
    fn write(&self, place: &Utf8Path) -> io::Result<()> {
        let (file, beside) = (file(place), Utf8PathBuf::from(format!("{place}.last.new")));
        let mut written =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        writeln!(written, "{} {} {}", self.source, self.now, self.lost.as_deref().unwrap_or_default())?;
        written.sync_all()?;
        fs::rename(&beside, &file)?;
        File::open(file.parent().unwrap_or(&file))?.sync_all()
    }
}

impl Mirror {
    /// Says that a plan was made of a commit, and all that it wants to have remembered is: where the branch was rewritten,
    /// that is settled then. It waits for nobody: while something is fetched it stays doubted, and a deletion may ask once
    /// more than it has to. Gives whether it is settled now.
    pub fn settled(&self, commit: &str) -> bool {
        let Ok(_alone) = locks::alone(&self.place, &self.url, Duration::ZERO) else { return false };
        match self.kept() {
            Ok(Some(kept)) if kept.now == commit => self.found(kept).is_ok(),
            _ => false,
        }
    }

    /// Forgets that a commit got lost.
    fn found(&self, kept: Kept) -> io::Result<()> {
        if kept.lost.is_none() { Ok(()) } else { Kept { lost: None, ..kept }.write(&self.place) }
    }

    /// A branch that has the lost commit again is in order again. That is said only now that no other is in force.
    pub(super) fn in_order_again(&self) -> Result<(), GitError> {
        let Some(kept) = self.kept()? else { return Ok(()) };
        let failed = |error: &dyn std::error::Error| clone(&self.place, error);
        let repository = Repository::open_bare(&self.place).map_err(|error| failed(&error))?;
        let in_force = self.names().in_force(&repository);
        match (in_force, &kept.lost) {
            (Some(commit), Some(lost)) if follows(&repository, commit, lost) => {
                self.found(kept).map_err(|error| failed(&error))
            }
            _ => Ok(()),
        }
    }

    /// What is kept of this source.
    pub(super) fn kept(&self) -> Result<Option<Kept>, GitError> {
        let kept = Kept::read(&self.place).map_err(|error| GitError::Kept {
            path: file(&self.place),
            url: self.url.clone(),
            why: error.to_string(),
        })?;
        Ok(kept.filter(|kept| kept.source == self.names().digest()))
    }

    /// Keeps that a commit is about to be in force, and which one it takes the place of if it doesn't follow it. As long as
    /// that is not settled, it goes for those that follow. Gives whether it follows the last one.
    pub(super) fn keep(&self, repository: &Repository, now: Oid) -> Result<bool, GitError> {
        let kept = self.kept()?;
        // What is kept here is still known when the clone is lost.
        let last = self.commit().or(kept.as_ref().map(|kept| kept.now.clone()));
        let follows_last = last.as_ref().is_none_or(|last| follows(repository, now, last));
        let lost = kept.as_ref().and_then(|kept| kept.lost.clone()).or(last.filter(|_| !follows_last));
        let wanted = Kept { source: self.names().digest().to_owned(), now: now.to_string(), lost };
        if kept.as_ref() != Some(&wanted) {
            wanted.write(&self.place).map_err(|error| clone(&self.place, &error))?;
        }
        Ok(follows_last)
    }
}

/// Whether a commit is another one or has it among those before it.
pub(super) fn follows(repository: &Repository, commit: Oid, before: &str) -> bool {
    let descends = |before| Ok(commit == before || repository.graph_descendant_of(commit, before)?);
    Oid::from_str(before).and_then(descends).unwrap_or(false)
}

/// Where it is kept.
fn file(place: &Utf8Path) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{place}.last"))
}
