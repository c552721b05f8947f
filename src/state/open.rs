//! Checks and repairs when a state folder is opened.

use camino::Utf8Path;
use uuid::Uuid;

use super::error::from_backup;
use super::events::{EventLog, Retention};
use super::records::RegistryLine;
use super::registry::{self, Registry};
use super::{StateError, cache, folder, tokens};

pub(super) const AUDIT: &str = "audit.jsonl";

/// Refuses a used folder without a registry: a new registry would not know what is protected. Keys alone are no
/// sign of use, since the first encrypted secret creates them.
pub(super) fn refuse_without_registry(dir: &Utf8Path) -> Result<(), StateError> {
    let path = dir.join(registry::FILE);
    let is_used = [cache::FOLDER, AUDIT, tokens::FILE].iter().any(|name| dir.join(name).exists());
    match folder::plain_file(&path)? {
        Some(file) if !is_used || file.len() > 0 => Ok(()),
        None if !is_used => Ok(()),
        _ => Err(StateError::NoRegistry { path }),
    }
}

/// The installation's id, created at the first start. A registry with other records but no id is damaged:
/// with a new id, everything on the targets would seem to belong to another installation.
pub(super) fn installation(registry: &mut Registry) -> Result<Uuid, StateError> {
    if let Some(id) = registry.facts.installation {
        return Ok(id);
    }
    if registry.is_used() {
        return Err(registry.without_installation());
    }
    let id = Uuid::now_v7();
    registry.add(vec![RegistryLine::Installation { id }])?;
    Ok(id)
}

/// Opens the audit trail. Warns if the trail of a used state is missing.
pub(super) fn audit(dir: &Utf8Path, is_used: bool) -> Result<(EventLog, Vec<String>), StateError> {
    let path = dir.join(AUDIT);
    let missing = (is_used && folder::plain_file(&path)?.is_none()).then(|| {
        format!(
            "the audit trail `{path}` is missing, so a new one was started; to restore it, move the new one away and \
             {}",
            from_backup(&path)
        )
    });
    let (log, warnings) = EventLog::open(path, Retention::Forever)?;
    Ok((log, missing.into_iter().chain(warnings).collect()))
}
