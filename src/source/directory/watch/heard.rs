//! Whether anything was told of a tree since it was read, asked of the kernel itself: whoever saved a file a moment ago has
//! told it, be it that nobody came to hear that yet.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::io::ioctl_fionread;

use crate::parallel::locked;

/// What is told of a tree that is watched.
#[derive(Debug, Clone, Default)]
pub struct Heard(Arc<Mutex<Ear>>);

/// How far a tree is heard of.
#[derive(Debug, Default)]
pub(super) struct Ear {
    /// Where the kernel tells what happens; none where it doesn't tell everything.
    from: Option<Arc<OwnedFd>>,
    /// How often anything was told that matters.
    count: u64,
}

impl Heard {
    /// How much was told by now; none where not everything is. To be asked before the tree is read.
    pub fn mark(&self) -> Option<u64> {
        let ear = self.ear();
        ear.from.is_some().then_some(ear.count)
    }

    /// Whether the tree is as it was at a mark.
    pub fn is_quiet_since(&self, mark: Option<u64>) -> bool {
        // Nobody takes what was told, and counts it later, as long as this is held.
        let ear = self.ear();
        let waits = ear.from.as_ref().map(ioctl_fionread);
        matches!(waits, Some(Ok(0))) && mark == Some(ear.count)
    }

    /// From now on, everything is told here, or no longer everything is.
    pub(super) fn listens(&self, from: Option<&Arc<OwnedFd>>) {
        let mut ear = self.ear();
        ear.from = from.cloned();
        // Before, something may have happened that nobody was told.
        ear.count += 1;
    }

    pub(super) fn ear(&self) -> MutexGuard<'_, Ear> {
        locked(&self.0)
    }
}

impl Ear {
    /// Something was told that matters.
    pub(super) fn hear(&mut self) {
        self.count += 1;
    }

    /// Not everything is told any more.
    pub(super) fn lose(&mut self) {
        self.from = None;
    }
}
