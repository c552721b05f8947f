//! Copies out of a state folder what can't be had again, at any time: another process may be using the folder.

use camino::Utf8Path;
use jiff::Timestamp;
use zeroize::Zeroizing;

use super::archive::{Archive, KEPT};
use super::lines::{read_whole, whole_length};
use super::registry::{self, whole_records};
use super::{StateError, open, restore, tokens};

/// Makes a backup of a state folder; none where there is nothing to save.
///
/// The folder's lock is not taken, since a process that runs for ever holds it for ever. The registry, the tokens and the
/// audit trail are copied while nobody writes them, and what is written afterwards is in the next backup. Keys, and tokens
/// when those that ended long ago are dropped, are replaced as whole files.
///
/// # Errors
/// When a file can't be read, or the registry is missing or damaged: a backup of that would be no backup.
pub fn back_up(dir: &Utf8Path, software: &str, now: Timestamp) -> Result<Option<Archive>, StateError> {
    restore::finish_restore(dir)?;
    open::refuse_without_registry(dir)?;
    let mut files = Vec::new();
    let mut of = (None, None);
    for name in KEPT {
        let path = dir.join(name);
        let Some(mut bytes) = read_whole(&path)? else { continue };
        match name {
            registry::FILE => {
                let (whole, facts) = whole_records(&path, bytes)?;
                of = (facts.installation, facts.source);
                bytes = whole;
            }
            tokens::FILE => bytes = tokens::whole_records(&path, bytes)?,
            open::AUDIT => bytes.truncate(whole_length(&bytes)),
            _ => {}
        }
        files.push((name, Zeroizing::new(bytes)));
    }
    let archive = Archive::new(software, now, of, files);
    Ok((!archive.manifest.files.is_empty()).then_some(archive))
}
