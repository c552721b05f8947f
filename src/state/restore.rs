//! Puts back into a state folder what is missing from it, all or nothing, and never over anything newer.
//!
//! Everything is staged in a folder of its own, and the rename of that folder to `restored/` decides: killed before it,
//! nothing has happened; killed after it, whatever opens the state next finishes.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use super::archive::{Archive, FINGERPRINT, IDENTITIES, KEPT};
use super::lines::read_whole;
use super::registry;
use super::{StateError, Wait, cache, folder, kubeconfigs, tokens};

/// What was decided to be restored. It is moved from here to its place.
const DECIDED: &str = "restored";

/// How long is waited for another process that finishes a restore.
const MOMENT: Duration = Duration::from_secs(5);

/// Where it is put together before that.
const STAGED: &str = "restored.unfinished";

/// What a restore did, by the files' names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// What was missing, or cut short, and is back.
    pub written: Vec<String>,
    /// What was there and has all that the backup has.
    pub kept: Vec<String>,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum NotRestored {
    /// The folder can't be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The folder is another installation's.
    #[error("the state in `{dir}` is another installation's")]
    AnotherInstallation {
        /// The state folder.
        dir: Utf8PathBuf,
    },
    /// Something else than the backup's files is there: newer, or damaged.
    #[error("{} there already, and not as in the backup", listed(.0))]
    Different(Vec<Utf8PathBuf>),
    /// Nothing is missing, and the folder has what the backup hasn't.
    #[error("{} newer than the backup, and nothing is missing", listed(.0))]
    Older(Vec<Utf8PathBuf>),
}

impl NotRestored {
    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            NotRestored::State(error) => error.hint(),
            NotRestored::AnotherInstallation { dir } => format!(
                "name the folder that the backup belongs to with `--state-dir`, or move `{dir}` away and restore again"
            ),
            NotRestored::Different(_) | NotRestored::Older(_) => {
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

/// How a file of the folder stands to the one in the backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It isn't there, or it is a beginning of the backup's.
    Lacking,
    /// It is the same.
    Same,
    /// It has all that the backup's has, and more.
    Newer,
    /// Neither has all of the other.
    Different,
}

/// Restores what is missing from a state folder, and makes the folder where there is none.
///
/// # Errors
/// When another process uses the folder, when it is another installation's, when a file is there that has not all that
/// the backup's has, or nothing is missing and something is newer; and when the folder can't be written. Nothing is
/// changed then.
pub fn restore(dir: &Utf8Path, archive: &Archive, wait: &mut Wait<'_>) -> Result<Restored, NotRestored> {
    drop(folder::prepare(dir)?);
    let _lock = wait.until_free(|| folder::lock(dir))?;
    finish(dir)?;
    refuse_other_installation(dir, archive)?;
    let standings = standings(dir, archive)?;
    let of = |wanted: &[Standing]| -> Vec<String> {
        let chosen = standings.iter().filter(|(_, standing)| wanted.contains(standing));
        chosen.map(|(name, _)| (*name).to_owned()).collect()
    };
    let paths = |names: Vec<String>| names.iter().map(|name| dir.join(name)).collect();
    let (written, newer) = (of(&[Standing::Lacking]), of(&[Standing::Newer]));
    let different = of(&[Standing::Different]);
    if !different.is_empty() {
        return Err(NotRestored::Different(paths(different)));
    }
    if written.is_empty() && !newer.is_empty() {
        return Err(NotRestored::Older(paths(newer)));
    }
    if !written.is_empty() {
        let files = archive.files().filter(|(name, _)| written.iter().any(|written| written == name));
        stage(dir, files).map_err(StateError::io("write the restored files into", dir))?;
        finish(dir)?;
    }
    Ok(Restored { written, kept: of(&[Standing::Same, Standing::Newer]) })
}

/// A registry that can be read says whose the folder is. One that can't is met as a file that differs.
fn refuse_other_installation(dir: &Utf8Path, archive: &Archive) -> Result<(), NotRestored> {
    let path = dir.join(registry::FILE);
    let Some(bytes) = read_whole(&path)? else { return Ok(()) };
    let here = registry::whole_records(&path, bytes).ok().and_then(|(_, facts)| facts.installation);
    match (here, archive.manifest.installation) {
        (Some(here), Some(saved)) if here != saved => {
            Err(NotRestored::AnotherInstallation { dir: dir.to_owned() })
        }
        _ => Ok(()),
    }
}

fn standings<'a>(dir: &Utf8Path, archive: &'a Archive) -> Result<Vec<(&'a str, Standing)>, StateError> {
    let standing = |(name, saved): (&'a str, &[u8])| {
        let here = read_whole(&dir.join(name))?;
        Ok((
            name,
            here.map_or(Standing::Lacking, |here| compare(name, &here, saved, archive.manifest.made_at)),
        ))
    };
    archive.files().map(standing).collect()
}

fn compare(name: &str, here: &[u8], saved: &[u8], saved_at: Timestamp) -> Standing {
    let (has_all, lacks_some) = match name {
        // New identities are put in front.
        IDENTITIES => {
            let (here, saved) = (identities(here), identities(saved));
            (here.is_superset(&saved), here.is_subset(&saved))
        }
        FINGERPRINT => {
            let is_same = here.trim_ascii() == saved.trim_ascii();
            (is_same, is_same || here.is_empty())
        }
        // What is kept here fits what the registry says here.
        kubeconfigs::FILE => (true, here == saved),
        // What ended long ago is dropped from it now and then.
        tokens::FILE if tokens::outlasts(here, saved, saved_at) => (true, here == saved),
        // What only grows is newer when it goes on from the other's end.
        _ => (here.starts_with(saved), saved.starts_with(here)),
    };
    match (has_all, lacks_some) {
        (true, true) => Standing::Same,
        (true, false) => Standing::Newer,
        (false, true) => Standing::Lacking,
        (false, false) => Standing::Different,
    }
}

/// The lines of a key file that are keys.
fn identities(bytes: &[u8]) -> BTreeSet<&[u8]> {
    let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")).collect()
}

/// Puts the files where their names say that they are decided.
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

/// Finishes a restore that was decided and interrupted, where there is one.
///
/// # Errors
/// When another process uses the folder, or it can't be written.
pub fn finish_restore(dir: &Utf8Path) -> Result<(), StateError> {
    if !dir.join(DECIDED).is_dir() {
        return Ok(());
    }
    // Several may meet it at once: one finishes it, in a moment.
    let _lock = Wait { at_most: MOMENT, tell: &mut |_| {} }.until_free(|| folder::lock(dir))?;
    finish(dir)
}

/// Moves what was decided to its place. The folder is this process's.
pub(super) fn finish(dir: &Utf8Path) -> Result<(), StateError> {
    let failed = || StateError::io("finish the restore of", dir);
    let decided = dir.join(DECIDED);
    if !decided.is_dir() {
        return remove_all(&dir.join(STAGED)).map_err(failed());
    }
    let move_all = || -> io::Result<()> {
        // What the cache knows fits the registry beside which it was written, and is built anew.
        if decided.join(registry::FILE).exists() {
            remove_all(&dir.join(cache::FOLDER))?;
            // Before the registry is in its place, or else a power cut could leave the old cache beside it.
            fs::File::open(dir)?.sync_all()?;
        }
        for name in KEPT.into_iter().filter(|name| decided.join(name).exists()) {
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
