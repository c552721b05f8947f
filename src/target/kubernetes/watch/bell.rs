//! That something has happened, for who waits for it.

use std::ops::BitOr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The last revision of any view of the process, so that no two have the same.
static LAST: AtomicU64 = AtomicU64::new(0);

/// What an event may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Happened {
    /// A plan.
    pub(super) plan: bool,
    /// How clusters are judged.
    pub(super) health: bool,
}

impl Happened {
    pub(super) const NOTHING: Happened = Happened { plan: false, health: false };
    pub(super) const ANYTHING: Happened = Happened { plan: true, health: true };
}

impl BitOr for Happened {
    type Output = Happened;
    fn bitor(self, other: Happened) -> Happened {
        Happened { plan: self.plan || other.plan, health: self.health || other.health }
    }
}

/// That something has happened on one cluster.
pub(super) struct Bell {
    plan: AtomicU64,
    health: AtomicU64,
    /// For who waits for any event, however small.
    pub(super) moved: Notify,
    /// For who plans.
    wake: Arc<Notify>,
}

impl Bell {
    pub(super) fn new(wake: Arc<Notify>) -> Self {
        let bell = Self { plan: AtomicU64::new(0), health: AtomicU64::new(0), moved: Notify::new(), wake };
        renumber(&bell.plan);
        renumber(&bell.health);
        bell
    }

    /// A number that is another one whenever something happened since that a plan may depend on.
    pub(super) fn revision(&self) -> u64 {
        self.plan.load(Ordering::SeqCst)
    }

    /// The same of what clusters are judged by.
    pub(super) fn health(&self) -> u64 {
        self.health.load(Ordering::SeqCst)
    }

    /// Something happened, however small.
    pub(super) fn rings(&self, happened: Happened) {
        if happened.plan {
            renumber(&self.plan);
        }
        if happened.health {
            renumber(&self.health);
        }
        if happened != Happened::NOTHING {
            self.wake.notify_one();
        }
        self.moved.notify_waiters();
    }
}

fn renumber(revision: &AtomicU64) {
    revision.store(LAST.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
}
