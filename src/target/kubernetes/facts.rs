//! A cache of what a cluster has beside our objects, for the daemon. Collecting it takes a dozen calls, and
//! it seldom changes.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::KubernetesTarget;
use crate::component::Extras;
use crate::parallel::locked;
use crate::plan::preflight::PreflightFacts;

/// How long a change may depend on cached facts. It is also the longest that a fixed problem stays unnoticed.
const FRESH: Duration = Duration::from_secs(120);

#[derive(Default)]
pub(super) struct FactsCache(Mutex<Option<CachedFacts>>);

struct CachedFacts {
    at: Instant,
    extras: Extras,
    facts: Arc<PreflightFacts>,
}

impl FactsCache {
    pub(super) fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<CachedFacts>> {
        // Only whole values are stored, so a panic can't have left it inconsistent.
        locked(&self.0)
    }
}

impl KubernetesTarget {
    /// Returns the cached facts, however old, or collects them.
    pub(in crate::target) async fn facts(&self, extras: Extras) -> Option<Arc<PreflightFacts>> {
        let known = self.facts.lock().as_ref().filter(|it| it.extras == extras).map(CachedFacts::facts);
        match known {
            Some(known) => Some(known),
            None => self.find_facts(extras).await,
        }
    }

    pub(in crate::target) fn knows_facts(&self) -> bool {
        self.facts.lock().as_ref().is_some_and(|found| found.at.elapsed() < FRESH)
    }

    pub(in crate::target) async fn find_facts(&self, extras: Extras) -> Option<Arc<PreflightFacts>> {
        let at = Instant::now();
        let facts = Arc::new(self.while_planning(self.preflight(extras)).await?);
        *self.facts.lock() = Some(CachedFacts { at, extras, facts: Arc::clone(&facts) });
        Some(facts)
    }
}

impl CachedFacts {
    fn facts(&self) -> Arc<PreflightFacts> {
        Arc::clone(&self.facts)
    }
}
