//! Tells whether a tree changed since it was read, even if the change is only in the kernel's queue and not
//! processed yet.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::io::ioctl_fionread;

use crate::parallel::locked;

/// A counter of changes of a watched tree.
#[derive(Debug, Clone, Default)]
pub struct ChangeCounter(Arc<Mutex<ChangeCount>>);

#[derive(Debug, Default)]
pub(super) struct ChangeCount {
    /// The inotify descriptor; none if some changes cause no events.
    from: Option<Arc<OwnedFd>>,
    /// The number of processed notifications that matter.
    count: u64,
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

    /// Sets the inotify descriptor, or none if some changes cause no events from now on.
    pub(super) fn set_inotify(&self, from: Option<&Arc<OwnedFd>>) {
        let mut ear = self.lock_count();
        ear.from = from.cloned();
        // Changes before this call may have gone unnoticed.
        ear.count += 1;
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
}
