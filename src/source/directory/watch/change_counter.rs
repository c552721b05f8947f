//! Tells whether a tree changed since it was read, even if the change is only in the kernel's queue and not
//! processed yet.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::sleep;
use std::time::Duration;

use rustix::io::ioctl_fionread;

use crate::parallel::locked;

/// The limit of named files. A tree with more changes is walked, which isn't slower then.
const MAX_NAMED: usize = 1_000;

/// How long to wait for the watching thread to read the kernel's queue.
const QUEUE_WAITS: u32 = 5;
const QUEUE_WAIT: Duration = Duration::from_millis(1);

/// A counter of changes of a watched tree, which also collects the names of changed files.
#[derive(Debug, Clone, Default)]
pub struct ChangeCounter(Arc<Mutex<ChangeCount>>);

#[derive(Debug, Default)]
pub(super) struct ChangeCount {
    /// The inotify descriptor; none if some changes cause no events.
    from: Option<Arc<OwnedFd>>,
    /// The number of processed notifications that matter.
    count: u64,
    /// The names in events since they were last taken; none if something else may have changed, too.
    named: Option<BTreeSet<PathBuf>>,
    /// The renames of which only the old name was told yet.
    half_renames: BTreeSet<u32>,
}

impl ChangeCounter {
    /// Returns the current count, or none if some changes may go unnoticed. Take it before reading the tree.
    pub fn mark(&self) -> Option<u64> {
        let ear = self.lock_count();
        ear.from.is_some().then_some(ear.count)
    }

    pub fn is_unchanged_since(&self, mark: Option<u64>) -> bool {
        // `Watch::take` reads and counts events under the same lock.
        let ear = self.lock_count();
        let waits = ear.from.as_ref().map(ioctl_fionread);
        matches!(waits, Some(Ok(0))) && mark == Some(ear.count)
    }

    /// Returns the names in events since the last call, which are the only ones that changed; none if others
    /// may have changed, too. Take them before reading the tree: later changes are for the next call.
    pub(in super::super) fn take_named(&self) -> Option<BTreeSet<PathBuf>> {
        for _ in 0..QUEUE_WAITS {
            let ear = self.lock_count();
            match ear.from.as_ref().map(ioctl_fionread) {
                Some(Ok(waits)) if waits > 0 => {}
                Some(Ok(_)) => return Self::taken(ear),
                Some(Err(_)) | None => break,
            }
            drop(ear);
            sleep(QUEUE_WAIT);
        }
        Self::taken(self.lock_count());
        None
    }

    fn taken(mut ear: MutexGuard<'_, ChangeCount>) -> Option<BTreeSet<PathBuf>> {
        let is_half = !std::mem::take(&mut ear.half_renames).is_empty();
        ear.named.replace(BTreeSet::new()).filter(|_| !is_half)
    }

    /// Sets the inotify descriptor, or none if some changes cause no events from now on.
    pub(super) fn set_inotify(&self, from: Option<&Arc<OwnedFd>>) {
        let mut ear = self.lock_count();
        ear.from = from.cloned();
        // Changes before this call may have gone unnoticed.
        ear.count += 1;
        ear.named = None;
    }

    #[cfg(test)]
    pub(in super::super) fn set_named(&self, named: BTreeSet<PathBuf>) {
        self.lock_count().named = Some(named);
    }

    pub(super) fn lock_count(&self) -> MutexGuard<'_, ChangeCount> {
        locked(&self.0)
    }
}

impl ChangeCount {
    pub(super) fn count_change(&mut self) {
        self.count += 1;
    }

    pub(super) fn mark_incomplete(&mut self) {
        self.from = None;
    }

    /// Counts a change of one name; none if it is unknown what changed.
    pub(super) fn name(&mut self, name: Option<PathBuf>) {
        self.named = match (self.named.take(), name) {
            (Some(mut named), Some(name)) if named.len() < MAX_NAMED => {
                named.insert(name);
                Some(named)
            }
            _ => None,
        };
    }

    /// Counts one half of a rename, whose halves have the same cookie. Two names that are exchanged change at
    /// once, so neither may be read without the other.
    pub(super) fn count_rename(&mut self, cookie: u32, is_old_name: bool) {
        match is_old_name {
            true => self.half_renames.insert(cookie),
            false => self.half_renames.remove(&cookie),
        };
    }
}
