//! Opens a state folder only to read it, or after waiting for another process.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use tokio::sync::watch;

use super::cache::Cache;
use super::events::{self, EventLog, Retention};
use super::folder::{self, FolderUse, LockWait};
use super::kept::KeptFile;
use super::recall::ResourceRecordCache;
use super::registry::Registry;
use super::sizes::SizeLog;
use super::snapshot::SnapshotFreshness;
use super::tokens::TokenStore;
use super::{State, StateError, open};
use crate::parallel::locked;

/// How long a reader waits for another process to update the snapshot. That usually takes a moment.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(5);

/// The polling interval.
const AGAIN: Duration = Duration::from_millis(20);

impl State {
    /// Opens a state folder as [`State::open`] does, and waits while another process uses it.
    pub fn open_after(dir: &Utf8Path, wait: &mut LockWait<'_>) -> Result<State, StateError> {
        wait.retry_while_locked(|| State::open(dir))
    }

    /// As [`State::open_after`], but creates no folder: none if nothing was ever applied.
    pub fn open_existing(dir: &Utf8Path, wait: &mut LockWait<'_>) -> Result<Option<State>, StateError> {
        open::refuse_without_registry(dir)?;
        if State::exists(dir) { State::open_after(dir, wait).map(Some) } else { Ok(None) }
    }

    /// Reads a state folder without locking it: other processes continue, and the folder may be read-only.
    /// Writes to the returned state stay in memory. None if nothing was ever recorded.
    ///
    /// # Errors
    /// When something in it can't be read, or the registry is damaged or of a newer version.
    pub fn read(dir: &Utf8Path) -> Result<Option<State>, StateError> {
        open::refuse_without_registry(dir)?;
        // Readers use neither file, but report what the next apply would refuse.
        for name in [open::AUDIT, events::FILE] {
            folder::plain_file(&dir.join(name))?;
        }
        let warnings = bring_up_to_date(dir);
        let Some(registry) = Registry::read(dir)? else { return Ok(None) };
        let Some(installation) = registry.facts.installation else {
            return if registry.is_used() { Err(registry.without_installation()) } else { Ok(None) };
        };
        Ok(Some(State {
            registry: Mutex::new(registry),
            kubeconfigs: Mutex::new(KeptFile::of(dir)),
            certificates: Mutex::new(KeptFile::of(dir)),
            tokens: TokenStore::read(dir)?,
            audit: Mutex::new(EventLog::unopened(dir.join(open::AUDIT), Retention::Forever)),
            sizes: Mutex::new(SizeLog::read(dir)?),
            cache: Cache::read(dir, installation)?,
            writes: Mutex::new(BTreeMap::new()),
            recalled: Mutex::new(ResourceRecordCache::default()),
            events: Mutex::new(EventLog::unopened(dir.join(events::FILE), Retention::Recent)),
            heard: watch::Sender::new(()),
            warnings: Mutex::new(warnings),
            lock: None,
        }))
    }

    /// Writes the snapshot for readers, if anything was written since the last one.
    pub fn write_snapshot(&self) {
        if self.cache.is_ahead() {
            let registry_lines = locked(&self.registry).count;
            self.cache.write_snapshot(registry_lines);
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.write_snapshot();
    }
}

/// Makes sure that the snapshot has everything recorded before the current writer began. Returns warnings
/// about what it lacks.
fn bring_up_to_date(dir: &Utf8Path) -> Vec<String> {
    let (begin, mut mended) = (Instant::now(), Vec::new());
    loop {
        let standing = SnapshotFreshness::of(dir);
        if standing == SnapshotFreshness::Same {
            return mended;
        }
        match (&standing, folder::used_by(dir)) {
            (SnapshotFreshness::Behind(Some(writer)), FolderUse::Held(Some(holder))) if *writer == holder => {
                return vec![format!(
                    "process {holder} is changing the state in `{dir}`: this output shows the records from before it began"
                )];
            }
            // The last writer was killed, or a file was lost. Opening the folder repairs both.
            (_, FolderUse::Free) => match State::open(dir) {
                Ok(state) => {
                    state.write_snapshot();
                    mended = state.warnings();
                }
                Err(StateError::Locked { .. }) if begin.elapsed() < SNAPSHOT_TIMEOUT => {}
                Err(error) => return vec![lacking(dir, &error.to_string())],
            },
            // The other process has just opened the folder, and updates the snapshot first.
            (_, FolderUse::Held(_)) if begin.elapsed() < SNAPSHOT_TIMEOUT => {}
            (_, FolderUse::Held(_)) => return vec![lacking(dir, "another process is using it")],
        }
        if begin.elapsed() > SNAPSHOT_TIMEOUT {
            return vec![lacking(dir, "its cache can't be copied")];
        }
        std::thread::sleep(AGAIN);
    }
}

fn lacking(dir: &Utf8Path, why: &str) -> String {
    format!(
        "the last records in `{dir}` are missing from this output, because their process was killed and they could not be \
         read again: {why}"
    )
}
