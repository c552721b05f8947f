//! The commit that was in force last, and the one that it took the place of without following it. That is doubted until a plan
//! has been made of it and what that found suspicious is remembered. It lies in a file beside the clone, since another clone may
//! take its place, and no clone has what the remote no longer has.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use git2::Oid;

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
    pub(super) fn read(place: &Utf8Path) -> io::Result<Option<Kept>> {
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
    pub(super) fn write(&self, place: &Utf8Path) -> io::Result<()> {
        let (file, beside) = (file(place), Utf8PathBuf::from(format!("{place}.last.new")));
        let mut written =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        writeln!(written, "{} {} {}", self.source, self.now, self.lost.as_deref().unwrap_or_default())?;
        written.sync_all()?;
        fs::rename(&beside, &file)?;
        File::open(file.parent().unwrap_or(&file))?.sync_all()
    }
}

/// Where it is kept.
pub(super) fn file(place: &Utf8Path) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{place}.last"))
}
