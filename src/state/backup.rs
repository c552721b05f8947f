//! Makes backups of a state folder, also while another process uses it.

use camino::Utf8Path;
use jiff::Timestamp;
use zeroize::Zeroizing;

use super::archive::{Archive, BACKUP_FILES};
use super::lines::{read_whole, whole_length};
use super::registry::{self, whole_records};
use super::{StateError, open, sizes, tokens};

/// Makes a backup of a state folder; none if there is nothing to save.
///
/// The lock of the folder is not taken, since a daemon holds it all the time. The registry, the tokens and
/// the audit trail are copied between two writes; later writes are in the next backup. Keys are replaced
/// atomically as whole files, and so are the tokens when old ones are dropped.
///
/// # Errors
/// When a file can't be read, or the registry is missing or damaged: such a backup would be useless.
pub fn back_up(dir: &Utf8Path, software: &str, now: Timestamp) -> Result<Option<Archive>, StateError> {
    open::refuse_without_registry(dir)?;
    let mut files = Vec::new();
    let mut of = (None, None);
    for name in BACKUP_FILES {
        let path = dir.join(name);
        let Some(mut bytes) = read_whole(&path)? else { continue };
        match name {
            registry::FILE => {
                let (whole, facts) = whole_records(&path, bytes)?;
                of = (facts.installation, facts.source);
                bytes = whole;
            }
            tokens::FILE => bytes = tokens::whole_records(&path, bytes)?,
            sizes::FILE => bytes = sizes::whole_records(bytes),
            open::AUDIT => bytes.truncate(whole_length(&bytes)),
            _ => {}
        }
        files.push((name, Zeroizing::new(bytes)));
    }
    let archive = Archive::new(software, now, of, files);
    Ok((!archive.manifest.files.is_empty()).then_some(archive))
}
