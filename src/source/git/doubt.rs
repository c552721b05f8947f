//! That a branch was rewritten, kept until a plan has been made of it and what that found suspicious is remembered. It lies in
//! a file beside the clone, since another clone may take its place, and no clone has what the remote no longer has.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};

/// That one commit took the place of another without following it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Doubt {
    /// Which source: all of its names begin with it.
    pub(super) source: String,
    /// The commit that is in force.
    pub(super) now: String,
    /// The one that was before.
    pub(super) before: String,
}

impl Doubt {
    /// The one that is kept. A file that says something else is none: whoever can write it can write the clone.
    pub(super) fn read(place: &Utf8Path) -> Option<Doubt> {
        let text = fs::read_to_string(file(place)).ok()?;
        let mut words = text.split_whitespace().map(str::to_owned);
        let mut word = || words.next();
        Some(Doubt { source: word()?, now: word()?, before: word()? })
    }

    /// Keeps it, whatever happens to this process or machine.
    pub(super) fn write(&self, place: &Utf8Path) -> io::Result<()> {
        let (file, beside) = (file(place), file(place).with_extension("rewritten.new"));
        let mut written =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        writeln!(written, "{} {} {}", self.source, self.now, self.before)?;
        written.sync_all()?;
        fs::rename(&beside, &file)
    }

    /// Forgets it.
    pub(super) fn remove(place: &Utf8Path) -> io::Result<()> {
        match fs::remove_file(file(place)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn file(place: &Utf8Path) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{place}.rewritten"))
}
