//! What a running process remembers from round to round. All of it can be lost: a process that starts anew looks at
//! everything.
//!
//! Clocks are set back: what was to be over at some time is over, too, when that is further away than it can ever have been.

mod corrections;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::Round;
use super::health::Judged;
use super::verify::Asked;
use crate::catalog::Catalog;
use crate::execute::{Failure, Report};
use crate::names::{Digest, FleetKey, ResourceKey};
use crate::plan::{Change, FleetPlan, Pauses, Retry};
use crate::render::Renderer;
use crate::target::{self, Pace};
use corrections::Corrections;

/// The pauses before a fleet on which something failed is tried again.
const PAUSES: Pace = Pace::around(Duration::from_secs(1), LONGEST);

/// The longest of them, which chance may make a little longer.
const LONGEST: Duration = Duration::from_secs(300);

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
    /// Since when resources are missing from the specs.
    absent: BTreeMap<ResourceKey, Since>,
    corrections: Corrections,
    /// The fleets on which something failed.
    failed: BTreeMap<FleetKey, Failed>,
    /// The fleets on which a plan is being carried out, each with since when.
    under_way: BTreeMap<FleetKey, Timestamp>,
}

/// When something began, by the clock and by the time that passes: a clock that is set forward brings no end nearer.
#[derive(Debug, Clone, Copy)]
struct Since {
    time: Timestamp,
    instant: Instant,
}

impl Since {
    #[allow(
        clippy::disallowed_methods,
        reason = "nothing is decided by it alone: it only holds against the clock"
    )]
    fn now(time: Timestamp) -> Self {
        Self { time, instant: Instant::now() }
    }

    /// When it has lasted so long, by both.
    fn until(self, long: SignedDuration, now: Self) -> Option<Timestamp> {
        let passed = now.instant.saturating_duration_since(self.instant);
        let left = long.checked_sub(SignedDuration::try_from(passed).ok()?)?.max(SignedDuration::ZERO);
        Some(self.time.checked_add(long).ok()?.max(now.time.checked_add(left).ok()?))
    }
}

/// Something failed on a fleet.
struct Failed {
    /// What the fleet should be, by its specs. Whoever changes them may do so to mend it.
    wanted: Digest,
    pace: Pace,
    retry: Retry,
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
        state.failed.retain(|fleet, failed| failed.wanted == wanted(catalog, fleet));
        state.absent.retain(|key, _| catalog.absent.contains_key(key));
        let this = Since::now(now);
        for key in catalog.absent.keys() {
            let since = state.absent.entry(key.clone()).or_insert(this);
            since.time = now.min(since.time);
        }
        let absent = state
            .absent
            .iter()
            .filter_map(|(key, since)| Some((key.clone(), since.until(self.absence, this)?)));
        Pauses {
            absent: absent.collect(),
            flapping: state.corrections.flapping(now),
            failed: state
                .failed
                .iter()
                .filter(|(_, failed)| failed.may_be_at(now))
                .map(Failed::retry)
                .collect(),
        }
    }

    /// A plan begins to be carried out on a fleet. Until [`Memory::ends`], nobody looks at the fleet.
    pub fn begins(&self, fleet: &FleetKey, now: Timestamp) {
        self.state().under_way.insert(fleet.clone(), now);
    }

    /// The fleets on which a plan is being carried out.
    pub(super) fn under_way(&self) -> BTreeMap<FleetKey, Timestamp> {
        self.state().under_way.clone()
    }

    /// Nothing is carried out on a fleet any more, whatever came of it.
    pub fn ended(&self, fleet: &FleetKey) {
        self.state().under_way.remove(fleet);
    }

    /// A plan was carried out on a fleet. Where something failed, gives when it is tried again.
    pub fn ends(
        &self,
        round: &Round,
        plan: &FleetPlan,
        report: &Report,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let mut state = self.state();
        state.under_way.remove(&plan.fleet);
        self.targets.forget_facts(&plan.fleet);
        let is_done = |change: &&Change| report.done.iter().any(|done| done.resource == change.resource);
        for change in plan.changes.iter().filter(is_done) {
            state.corrections.done(&plan.fleet, change, now);
        }
        let wanted = wanted(&round.checked.catalog, &plan.fleet);
        state.tried(&plan.fleet, wanted, report.failed.first(), now)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is lost by a panic in the middle only makes the next round plan more.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Something was done on a fleet, or failed. Gives when it is tried again where it did.
    fn tried(
        &mut self,
        fleet: &FleetKey,
        wanted: Digest,
        failed: Option<&Failure>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let before = self.failed.remove(fleet).filter(|before| before.wanted == wanted);
        let failed = failed?.to_string();
        let mut pace = before.map_or(PAUSES, |before| before.pace);
        let pause = SignedDuration::try_from(pace.next_pause()).unwrap_or_default();
        let until = now.checked_add(pause).unwrap_or(now);
        self.failed.insert(fleet.clone(), Failed { wanted, pace, retry: Retry { failed, until } });
        Some(until)
    }
}

impl Failed {
    /// Whether this can be the time: it can't where the pause that is left is longer than the longest.
    fn may_be_at(&self, now: Timestamp) -> bool {
        SignedDuration::try_from(LONGEST * 2).is_ok_and(|most| self.retry.until.duration_since(now) <= most)
    }

    fn retry((fleet, failed): (&FleetKey, &Failed)) -> (FleetKey, Retry) {
        (fleet.clone(), failed.retry.clone())
    }
}

/// What a fleet should be, with its clusters and how it is reached.
fn wanted(catalog: &Catalog, fleet: &FleetKey) -> Digest {
    let own = catalog.resources.get(&fleet.resource());
    // What is written for debugging has all fields, and of secrets only their marks.
    let own = format!("{:?}", own.map(|own| (&own.spec, &own.secrets)));
    Digest::of(format!("{own} {}", Renderer::new(catalog).inputs(fleet)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_missing_for_so_long_by_the_clock_and_by_the_time_that_passes() {
        let second = SignedDuration::from_secs;
        let begun = Since::now("2026-11-21T12:00:00Z".parse().unwrap());
        let after = |clock: i64, passed: u64| {
            let now = begun.time + second(clock);
            let this = Since { time: now, instant: begun.instant + Duration::from_secs(passed) };
            begun.until(second(30), this).unwrap().duration_since(now)
        };
        assert_eq!(after(0, 0), second(30));
        assert_eq!(after(10, 10), second(20));
        assert_eq!(after(30, 30), second(0));
        // The clock is set forward by an hour.
        assert_eq!(after(3610, 10), second(20));
        // It goes slower than time does.
        assert_eq!(after(10, 40), second(20));
        // A commit is never half written.
        assert_eq!(begun.until(second(0), begun), Some(begun.time));
    }

    #[test]
    fn what_fails_is_tried_again_after_pauses_that_grow_until_it_is_mended() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let fleet: FleetKey = "acme/eu".to_owned().try_into().unwrap();
        let failed = |message: &str| Failure {
            fleet: Some(fleet.clone()),
            resource: None,
            origin: None,
            object: None,
            message: message.to_owned(),
            hint: String::new(),
        };
        let (mut state, specs) = (State::default(), Digest::of("specs"));
        let pause = |until: Timestamp| until.duration_since(now).as_secs_f64();
        for seconds in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0] {
            let until = state.tried(&fleet, specs.clone(), Some(&failed("no")), now).unwrap();
            assert!((seconds * 0.79..seconds * 1.21).contains(&pause(until)), "{seconds}: {until}");
        }
        // The clock is set back by a day: nobody waits for that.
        let pending = &state.failed[&fleet];
        assert!(pending.may_be_at(now) && !pending.may_be_at(now - SignedDuration::from_hours(24)));
        assert_eq!(pending.retry.failed, "fleet acme/eu: no");
        // Other specs begin anew, and so does what worked once.
        let until = state.tried(&fleet, Digest::of("others"), Some(&failed("no")), now).unwrap();
        assert!(pause(until) < 1.21);
        assert_eq!(state.tried(&fleet, specs.clone(), None, now), None);
        assert!(state.failed.is_empty());
    }
}
