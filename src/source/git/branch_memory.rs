//! Records the last active commit, and the one it replaced without descending from it. A rewritten branch is
//! doubted until a plan was made of it and the plan's suspicions are recorded. The record is a file beside
//! the clone: the clone may be replaced, and a new one lacks commits that the remote no longer has.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use git2::{Oid, Repository};

use super::{GitError, Mirror, clone, locks};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BranchMemory {
    /// Identifies the source: the digest in its reference names.
    pub(super) source: String,
    /// The commit that is active, or is about to be.
    pub(super) now: String,
    /// A formerly active commit that the branch lost. A commit that descends from it is in order again.
    pub(super) lost: Option<String>,
}

impl BranchMemory {
    /// Reads the record; none if there is none yet.
    ///
    /// # Errors
    /// If it can't be read: then a commit may have been lost.
    fn read(place: &Utf8Path) -> io::Result<Option<BranchMemory>> {
        let text = match fs::read_to_string(file(place)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let is_commit = |word: &&str| word.len() == 40 && Oid::from_str(word).is_ok();
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [source, commits @ ..] if matches!(commits.len(), 1 | 2) && commits.iter().all(is_commit) => {
                let lost = commits.get(1).map(|&lost| lost.to_owned());
                Ok(Some(BranchMemory { source: (*source).to_owned(), now: commits[0].to_owned(), lost }))
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it is damaged")),
        }
    }

    /// Writes the record atomically and durably.
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
    /// Settles a rewrite of the branch after a plan was made of a commit and everything that the plan must
    /// remember is recorded. It doesn't wait for a lock: during a fetch the branch stays doubted, and a
    /// deletion may need one more approval than necessary. Returns whether it is settled.
    pub fn settle_rewrite(&self, commit: &str) -> bool {
        let Ok(_alone) = locks::alone(&self.place, &self.url, Duration::ZERO) else { return false };
        match self.kept() {
            Ok(Some(kept)) if kept.now == commit => self.forget_lost_commit(kept).is_ok(),
            _ => false,
        }
    }

    fn forget_lost_commit(&self, kept: BranchMemory) -> io::Result<()> {
        if kept.lost.is_none() { Ok(()) } else { BranchMemory { lost: None, ..kept }.write(&self.place) }
    }

    /// Settles a rewrite if the branch contains the lost commit again. Call it once the active commit is set.
    pub(super) fn in_order_again(&self) -> Result<(), GitError> {
        let Some(kept) = self.kept()? else { return Ok(()) };
        let failed = |error: &dyn std::error::Error| clone(&self.place, error);
        let repository = Repository::open_bare(&self.place).map_err(|error| failed(&error))?;
        let in_force = self.names().in_force(&repository);
        match (in_force, &kept.lost) {
            (Some(commit), Some(lost)) if follows(&repository, commit, lost) => {
                self.forget_lost_commit(kept).map_err(|error| failed(&error))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn kept(&self) -> Result<Option<BranchMemory>, GitError> {
        let kept = BranchMemory::read(&self.place).map_err(|error| GitError::Kept {
            path: file(&self.place),
            url: self.url.clone(),
            why: error.to_string(),
        })?;
        Ok(kept.filter(|kept| kept.source == self.names().digest()))
    }

    /// Records that a commit is about to be active, and the commit it replaces if it doesn't descend from
    /// that one. Until that is settled, later commits are doubted too. Returns whether it descends from the
    /// last one.
    pub(super) fn keep(&self, repository: &Repository, now: Oid) -> Result<bool, GitError> {
        let kept = self.kept()?;
        // The record is still known if the clone is lost.
        let last = self.commit().or(kept.as_ref().map(|kept| kept.now.clone()));
        let follows_last = last.as_ref().is_none_or(|last| follows(repository, now, last));
        let lost = kept.as_ref().and_then(|kept| kept.lost.clone()).or(last.filter(|_| !follows_last));
        let wanted = BranchMemory { source: self.names().digest().to_owned(), now: now.to_string(), lost };
        if kept.as_ref() != Some(&wanted) {
            wanted.write(&self.place).map_err(|error| clone(&self.place, &error))?;
        }
        Ok(follows_last)
    }
}

/// Returns whether a commit is or descends from another one.
pub(super) fn follows(repository: &Repository, commit: Oid, before: &str) -> bool {
    let descends = |before| Ok(commit == before || repository.graph_descendant_of(commit, before)?);
    Oid::from_str(before).and_then(descends).unwrap_or(false)
}

fn file(place: &Utf8Path) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{place}.last"))
}
