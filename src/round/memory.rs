//! What a running process remembers from round to round. All of it can be lost: a process that starts anew looks at
//! everything.

mod corrections;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Round;
use super::health::Judged;
use super::verify::Asked;
use crate::catalog::Catalog;
use crate::execute::{Failure, Report};
use crate::names::{FleetKey, ResourceKey};
use crate::plan::{Change, Pauses, Retry, Verb};
use crate::target::{self, Pace};
use corrections::Corrections;

/// The pauses before a fleet on which something failed is tried again.
const PAUSES: Pace = Pace::new(Duration::from_secs(1), Duration::from_secs(300));

/// What a running process remembers.
#[derive(Default)]
pub struct Memory {
    /// The fleets that were found as they should be, and the connections to clusters.
    pub(super) targets: target::Memory,
    /// How fleets were found to be.
    pub(super) judged: Judged,
    /// What their targets would say to what is to be done.
    pub(super) asked: Asked,
    /// How long a resource has to be missing from the specs before it counts as removed.
    absence: SignedDuration,
    /// Who is told that planning goes on.
    watcher: Option<Box<dyn Fn() + Send + Sync>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The specs that were planned last, by hash.
    revision: String,
    /// Since when resources are missing from the specs.
    absent: BTreeMap<ResourceKey, Timestamp>,
    corrections: Corrections,
    /// The fleets on which something failed.
    failed: BTreeMap<FleetKey, (Pace, Retry)>,
}

impl Memory {
    /// Of a process whose specs may be looked at while somebody is changing them: a resource has to be missing for so long
    /// before it counts as removed.
    pub fn with_absence(absence: SignedDuration) -> Self {
        Self { absence, ..Self::default() }
    }

    /// The same, telling somebody whenever it goes on to another fleet.
    pub fn watched_by(self, watcher: impl Fn() + Send + Sync + 'static) -> Self {
        Self { watcher: Some(Box::new(watcher)), ..self }
    }

    /// Another fleet is looked at.
    pub(super) fn goes_on(&self) {
        if let Some(watcher) = &self.watcher {
            watcher();
        }
    }

    /// Comes back when something happened on a target that is watched.
    pub async fn changed(&self) {
        self.targets.changed().await;
    }

    /// What has to be put off in the next plan of these specs.
    pub(super) fn pauses(&self, catalog: &Catalog, now: Timestamp) -> Pauses {
        let mut state = self.state();
        if state.revision != catalog.revision {
            // Whoever changed the specs may have done so to mend it.
            state.revision.clone_from(&catalog.revision);
            state.failed.clear();
        }
        state.absent.retain(|key, _| catalog.absent.contains_key(key));
        for key in catalog.absent.keys() {
            state.absent.entry(key.clone()).or_insert(now);
        }
        let absent = state
            .absent
            .iter()
            .filter_map(|(key, since)| Some((key.clone(), since.checked_add(self.absence).ok()?)));
        Pauses {
            absent: absent.collect(),
            flapping: state.corrections.flapping(now),
            failed: state.failed.iter().map(|(fleet, (_, retry))| (fleet.clone(), retry.clone())).collect(),
        }
    }

    /// Remembers what came of a round.
    pub fn learn(&self, round: &Round, report: &Report, now: Timestamp) {
        let mut state = self.state();
        for plan in round.plan.fleets.iter().filter(|plan| plan.changes.iter().any(is_ready)) {
            self.targets.forget_facts(&plan.fleet);
            let failed = report.failed.iter().find(|failed| failed.fleet.as_ref() == Some(&plan.fleet));
            state.tried(&plan.fleet, failed, now);
            let is_done = |change: &&Change| report.done.iter().any(|done| done.resource == change.resource);
            for change in plan.changes.iter().filter(is_done) {
                state.corrections.done(&plan.fleet, change, now);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is lost by a panic in the middle only makes the next round plan more.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Something was done on a fleet, or failed.
    fn tried(&mut self, fleet: &FleetKey, failed: Option<&Failure>, now: Timestamp) {
        let before = self.failed.remove(fleet);
        let Some(failed) = failed else { return };
        let mut pace = before.map_or(PAUSES, |(pace, _)| pace);
        let pause = SignedDuration::try_from(pace.next_pause()).unwrap_or_default();
        let until = now.checked_add(pause).unwrap_or(now);
        self.failed.insert(fleet.clone(), (pace, Retry { failed: failed.to_string(), until }));
    }
}

fn is_ready(change: &Change) -> bool {
    change.waiting.is_empty() && change.verb != Verb::Keep
}
