//! Notification of changes on a cluster.

use std::ops::BitOr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The last revision, shared by all clusters, so that no two revisions are equal.
static LAST: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChangeScope {
    pub(super) plan: bool,
    pub(super) health: bool,
}

impl ChangeScope {
    pub(super) const NOTHING: ChangeScope = ChangeScope { plan: false, health: false };
    pub(super) const ANYTHING: ChangeScope = ChangeScope { plan: true, health: true };
}

impl BitOr for ChangeScope {
    type Output = ChangeScope;
    fn bitor(self, other: ChangeScope) -> ChangeScope {
        ChangeScope { plan: self.plan || other.plan, health: self.health || other.health }
    }
}

pub(super) struct ChangeNotifier {
    plan: AtomicU64,
    health: AtomicU64,
    /// Notified of every event.
    pub(super) moved: Notify,
    /// Wakes the planner.
    wake: Arc<Notify>,
}

impl ChangeNotifier {
    pub(super) fn new(wake: Arc<Notify>) -> Self {
        let notifier =
            Self { plan: AtomicU64::new(0), health: AtomicU64::new(0), moved: Notify::new(), wake };
        renumber(&notifier.plan);
        renumber(&notifier.health);
        notifier
    }

    /// A number that changes with everything that a plan may depend on.
    pub(super) fn revision(&self) -> u64 {
        self.plan.load(Ordering::SeqCst)
    }

    /// A number that changes with everything that health is judged by.
    pub(super) fn health(&self) -> u64 {
        self.health.load(Ordering::SeqCst)
    }

    pub(super) fn record_change(&self, happened: ChangeScope) {
        if happened.plan {
            renumber(&self.plan);
        }
        if happened.health {
            renumber(&self.health);
        }
        if happened != ChangeScope::NOTHING {
            self.wake.notify_one();
        }
        self.moved.notify_waiters();
    }
}

fn renumber(revision: &AtomicU64) {
    revision.store(LAST.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
}
