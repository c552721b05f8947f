//! Restores what is missing from a state folder: all or nothing, and never over anything newer.
//!
//! The files are staged in a separate folder. Renaming that to `restored/` is the commit point: killed before
//! it, nothing has changed; killed after it, the next process that opens the state finishes.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use super::archive::{Archive, BACKUP_FILES, FINGERPRINT, IDENTITIES};
use super::lines::read_whole;
use super::registry;
use super::{LockWait, StateError, cache, folder, kubeconfigs, tokens};

/// A committed restore, whose files are moved from here to their places.
const DECIDED: &str = "restored";

/// How long to wait for another process that finishes a restore.
const MOMENT: Duration = Duration::from_secs(5);

/// The staging folder of a restore that is not committed yet.
const STAGED: &str = "restored.unfinished";

/// The result of a restore, as file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreReport {
    /// Files that were missing or cut short.
    pub written: Vec<String>,
    /// Files that already had everything in the backup.
    pub kept: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error("the state in `{dir}` is another installation's")]
    AnotherInstallation { dir: Utf8PathBuf },
    /// Files differ from the backup and don't include all of it: they are damaged, or diverged.
    #[error("{} there already, and not as in the backup", listed(.0))]
    Different(Vec<Utf8PathBuf>),
    /// Nothing is missing, and some files are newer than the backup.
    #[error("{} newer than the backup, and nothing is missing", listed(.0))]
    Older(Vec<Utf8PathBuf>),
}

impl RestoreError {
    /// The suggested next step.
    pub fn hint(&self) -> String {
        match self {
            RestoreError::State(error) => error.hint(),
            RestoreError::AnotherInstallation { dir } => format!(
                "name the folder that the backup belongs to with `--state-dir`, or move `{dir}` away and restore again"
            ),
            RestoreError::Different(_) | RestoreError::Older(_) => {
                "nothing was changed: going back would lose ids, protection and keys that were recorded since; if that is \
                 meant, or the file is damaged, move it out of the folder, keep it, and restore again"
                    .to_owned()
            }
        }
    }
}

fn listed(paths: &[Utf8PathBuf]) -> String {
    let quoted: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
    format!("{} {}", quoted.join(", "), if quoted.len() == 1 { "is" } else { "are" })
}

/// How a file compares to the one in the backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileComparison {
    /// Missing, or only a beginning of the backup's file.
    Lacking,
    Same,
    /// Includes everything in the backup's file, and more.
    Newer,
    /// Neither file includes the other.
    Different,
}

/// Restores what is missing from a state folder, and creates the folder if needed.
///
/// # Errors
/// When another process uses the folder, it belongs to another installation, or it can't be written; when a
/// file differs from the backup without including all of it; or when nothing is missing and something is
/// newer. Nothing is changed then.
pub fn restore(
    dir: &Utf8Path,
    archive: &Archive,
    wait: &mut LockWait<'_>,
) -> Result<RestoreReport, RestoreError> {
    drop(folder::prepare(dir)?);
    let _lock = wait.retry_while_locked(|| folder::lock(dir))?;
    finish(dir)?;
    refuse_other_installation(dir, archive)?;
    let standings = standings(dir, archive)?;
    let of = |wanted: &[FileComparison]| -> Vec<String> {
        let chosen = standings.iter().filter(|(_, standing)| wanted.contains(standing));
        chosen.map(|(name, _)| (*name).to_owned()).collect()
    };
    let paths = |names: Vec<String>| names.iter().map(|name| dir.join(name)).collect();
    let (written, newer) = (of(&[FileComparison::Lacking]), of(&[FileComparison::Newer]));
    let different = of(&[FileComparison::Different]);
    if !different.is_empty() {
        return Err(RestoreError::Different(paths(different)));
    }
    if written.is_empty() && !newer.is_empty() {
        return Err(RestoreError::Older(paths(newer)));
    }
    if !written.is_empty() {
        let files = archive.files().filter(|(name, _)| written.iter().any(|written| written == name));
        stage(dir, files).map_err(StateError::io("write the restored files into", dir))?;
        finish(dir)?;
    }
    Ok(RestoreReport { written, kept: of(&[FileComparison::Same, FileComparison::Newer]) })
}

/// Compares the installations. A registry that can't be read is reported later, as a file that differs.
fn refuse_other_installation(dir: &Utf8Path, archive: &Archive) -> Result<(), RestoreError> {
    let path = dir.join(registry::FILE);
    let Some(bytes) = read_whole(&path)? else { return Ok(()) };
    let here = registry::whole_records(&path, bytes).ok().and_then(|(_, facts)| facts.installation);
    match (here, archive.manifest.installation) {
        (Some(here), Some(saved)) if here != saved => {
            Err(RestoreError::AnotherInstallation { dir: dir.to_owned() })
        }
        _ => Ok(()),
    }
}

fn standings<'a>(dir: &Utf8Path, archive: &'a Archive) -> Result<Vec<(&'a str, FileComparison)>, StateError> {
    let standing = |(name, saved): (&'a str, &[u8])| {
        let here = read_whole(&dir.join(name))?;
        Ok((
            name,
            here.map_or(FileComparison::Lacking, |here| {
                compare(name, &here, saved, archive.manifest.made_at)
            }),
        ))
    };
    archive.files().map(standing).collect()
}

fn compare(name: &str, here: &[u8], saved: &[u8], saved_at: Timestamp) -> FileComparison {
    let (has_all, lacks_some) = match name {
        // New identities are added in front.
        IDENTITIES => {
            let (here, saved) = (identities(here), identities(saved));
            (here.is_superset(&saved), here.is_subset(&saved))
        }
        FINGERPRINT => {
            let is_same = here.trim_ascii() == saved.trim_ascii();
            (is_same, is_same || here.is_empty())
        }
        // The existing kubeconfigs match the existing registry.
        kubeconfigs::FILE => (true, here == saved),
        // Old tokens are dropped from time to time, so a newer file need not begin with the backup's.
        tokens::FILE if tokens::includes_backed_up_tokens(here, saved, saved_at) => (true, here == saved),
        // An append-only file is newer if it begins with the other.
        _ => (here.starts_with(saved), saved.starts_with(here)),
    };
    match (has_all, lacks_some) {
        (true, true) => FileComparison::Same,
        (true, false) => FileComparison::Newer,
        (false, true) => FileComparison::Lacking,
        (false, false) => FileComparison::Different,
    }
}

/// The keys in a key file, without comments.
fn identities(bytes: &[u8]) -> BTreeSet<&[u8]> {
    let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")).collect()
}

/// Writes the files to the staging folder, and commits with a rename.
fn stage<'a>(dir: &Utf8Path, files: impl Iterator<Item = (&'a str, &'a [u8])>) -> io::Result<()> {
    let staged = dir.join(STAGED);
    remove_all(&staged)?;
    DirBuilder::new().mode(0o700).create(&staged)?;
    for (name, bytes) in files {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(staged.join(name))?;
        file.write_all(bytes)?;
        file.sync_all()?;
    }
    fs::File::open(&staged)?.sync_all()?;
    fs::rename(&staged, dir.join(DECIDED))?;
    fs::File::open(dir)?.sync_all()
}

/// Finishes a committed restore that was interrupted, if there is one.
///
/// # Errors
/// When another process uses the folder, or it can't be written.
pub fn finish_restore(dir: &Utf8Path) -> Result<(), StateError> {
    if !dir.join(DECIDED).is_dir() {
        return Ok(());
    }
    // Several processes may find it at once; one finishes it, and the others wait a moment.
    let _lock = LockWait { at_most: MOMENT, tell: &mut |_| {} }.retry_while_locked(|| folder::lock(dir))?;
    finish(dir)
}

/// Moves committed files to their places. The caller holds the folder's lock.
pub(super) fn finish(dir: &Utf8Path) -> Result<(), StateError> {
    let failed = || StateError::io("finish the restore of", dir);
    let decided = dir.join(DECIDED);
    if !decided.is_dir() {
        return remove_all(&dir.join(STAGED)).map_err(failed());
    }
    let move_all = || -> io::Result<()> {
        // The cache matches the registry that it was written with, so it is removed and rebuilt.
        if decided.join(registry::FILE).exists() {
            remove_all(&dir.join(cache::FOLDER))?;
            // Sync before the registry is replaced: a power cut could leave the old cache beside it.
            fs::File::open(dir)?.sync_all()?;
        }
        for name in BACKUP_FILES.into_iter().filter(|name| decided.join(name).exists()) {
            fs::rename(decided.join(name), dir.join(name))?;
        }
        fs::File::open(dir)?.sync_all()?;
        fs::remove_dir(&decided)
    };
    move_all().map_err(failed())?;
    folder::sync(dir)
}

fn remove_all(folder: &Utf8Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
