//! A state folder as processes have it that only read it, and as those open it that wait for others.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use camino::Utf8Path;

use super::cache::Cache;
use super::events::{self, Events};
use super::folder::{self, Use, Wait};
use super::kubeconfigs::Kubeconfigs;
use super::lines::Lines;
use super::recall::Recalled;
use super::registry::Registry;
use super::snapshot::Standing;
use super::tokens::Tokens;
use super::{State, StateError, finish_restore, open};
use crate::parallel::locked;

/// How long a reader waits for another process to bring the snapshot up to date, which takes a moment.
const MOMENT: Duration = Duration::from_secs(5);

/// How often it looks.
const AGAIN: Duration = Duration::from_millis(20);

impl State {
    /// Opens a state folder as [`State::open`] does, and waits where another process uses it.
    ///
    /// # Errors
    /// As [`State::open`].
    pub fn open_after(dir: &Utf8Path, wait: &mut Wait<'_>) -> Result<State, StateError> {
        wait.until_free(|| State::open(dir))
    }

    /// The same, and makes no folder: where nothing was ever applied, nothing is left behind.
    ///
    /// # Errors
    /// As [`State::open`].
    pub fn open_existing(dir: &Utf8Path, wait: &mut Wait<'_>) -> Result<Option<State>, StateError> {
        finish_restore(dir)?;
        open::refuse_without_registry(dir)?;
        if State::exists(dir) { State::open_after(dir, wait).map(Some) } else { Ok(None) }
    }

    /// Reads a state folder without taking it: other processes go on, and the folder may be one that can't be written. What is
    /// recorded in what this gives stays in memory. None where nothing was ever recorded.
    ///
    /// # Errors
    /// When something of it can't be read, or the registry is damaged or of a newer version.
    pub fn read(dir: &Utf8Path) -> Result<Option<State>, StateError> {
        finish_restore(dir)?;
        open::refuse_without_registry(dir)?;
        // Readers need neither, but a folder that an apply will refuse is no good one.
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
            kubeconfigs: Mutex::new(Kubeconfigs::of(dir)),
            tokens: Tokens::read(dir)?,
            audit: Mutex::new(Lines::unopened(dir.join(open::AUDIT))),
            cache: Cache::read(dir, installation)?,
            writes: Mutex::new(BTreeMap::new()),
            recalled: Mutex::new(Recalled::default()),
            events: Mutex::new(Events::unopened(dir)),
            warnings: Mutex::new(warnings),
            lock: None,
        }))
    }

    /// Leaves what readers read, where anything was written since that was done last.
    pub fn leave_snapshot(&self) {
        if self.cache.is_ahead() {
            let registry_lines = locked(&self.registry).count;
            self.cache.leave_snapshot(registry_lines);
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.leave_snapshot();
    }
}

/// Sees that the snapshot has what was recorded before the process that writes now began. Says what it lacks.
fn bring_up_to_date(dir: &Utf8Path) -> Vec<String> {
    let (begin, mut mended) = (Instant::now(), Vec::new());
    loop {
        let standing = Standing::of(dir);
        if standing == Standing::Same {
            return mended;
        }
        match (&standing, folder::used_by(dir)) {
            (Standing::Behind(Some(writer)), Use::Held(Some(holder))) if *writer == holder => {
                return vec![format!(
                    "process {holder} is working on what is recorded in `{dir}`: shown is what was recorded before it began"
                )];
            }
            // The process that wrote was killed, or a file was lost. Whoever opens the folder mends that.
            (_, Use::Free) => match State::open(dir) {
                Ok(state) => {
                    state.leave_snapshot();
                    mended = state.warnings();
                }
                Err(StateError::Locked { .. }) if begin.elapsed() < MOMENT => {}
                Err(error) => return vec![lacking(dir, &error.to_string())],
            },
            // It has begun to use the folder just now, and mends it first.
            (_, Use::Held(_)) if begin.elapsed() < MOMENT => {}
            (_, Use::Held(_)) => return vec![lacking(dir, "another process is using it")],
        }
        if begin.elapsed() > MOMENT {
            return vec![lacking(dir, "its cache can't be copied")];
        }
        std::thread::sleep(AGAIN);
    }
}

fn lacking(dir: &Utf8Path, why: &str) -> String {
    format!(
        "what was recorded last in `{dir}` isn't shown, since the process that did it was ended and it could not be read \
         again: {why}"
    )
}
