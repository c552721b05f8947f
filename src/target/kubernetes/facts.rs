//! What is known of a cluster beside our own objects, in a process that runs on: it takes a dozen calls to find out, and
//! changes seldom.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::KubernetesTarget;
use crate::parallel::locked;
use crate::plan::preflight::{Extras, Facts};

/// For how long a change may depend on what was found out: whoever mends what is lacking waits no longer for it to be seen.
const FRESH: Duration = Duration::from_secs(120);

/// What was found out last. It lasts as long as the connection.
#[derive(Default)]
pub(super) struct Known(Mutex<Option<Found>>);

struct Found {
    at: Instant,
    /// What it was asked for, too, what it takes to make.
    extras: Extras,
    facts: Arc<Facts>,
}

impl Known {
    pub(super) fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Found>> {
        // Only whole values are put in.
        locked(&self.0)
    }
}

impl KubernetesTarget {
    /// What is known of the cluster, however long; it is found out where nothing is.
    pub(in crate::target) async fn facts(&self, extras: Extras) -> Option<Arc<Facts>> {
        let known = self.facts.lock().as_ref().filter(|it| it.extras == extras).map(Found::facts);
        match known {
            Some(known) => Some(known),
            None => self.find_facts(extras).await,
        }
    }

    /// Whether that was found out a short while ago.
    pub(in crate::target) fn knows_facts(&self) -> bool {
        self.facts.lock().as_ref().is_some_and(|found| found.at.elapsed() < FRESH)
    }

    /// Finds it out.
    pub(in crate::target) async fn find_facts(&self, extras: Extras) -> Option<Arc<Facts>> {
        let at = Instant::now();
        let facts = Arc::new(self.while_planning(self.preflight(extras)).await?);
        *self.facts.lock() = Some(Found { at, extras, facts: Arc::clone(&facts) });
        Some(facts)
    }
}

impl Found {
    fn facts(&self) -> Arc<Facts> {
        Arc::clone(&self.facts)
    }
}
