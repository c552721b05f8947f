//! Timers by the monotonic clock. The wall clock may jump, and that must neither hurry a deletion nor delay
//! everything until tomorrow.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::catalog::Deletion;
use crate::names::{FleetKey, ResourceKey};
use crate::plan::DELETIONS_WINDOW;

/// The clock adjustment that is tolerated before a printed time changes.
const ADJUSTED: SignedDuration = SignedDuration::from_secs(1);

/// The present by the wall clock and by the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) clock: Timestamp,
    pub(super) passed: Instant,
}

impl Moment {
    pub(super) fn now(clock: Timestamp) -> Self {
        Self { clock, passed: Instant::now() }
    }

    fn after(&self, pause: Duration) -> Timestamp {
        let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
        self.clock.checked_add(pause).unwrap_or(Timestamp::MAX)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Timer {
    over: Instant,
    /// The end by the wall clock, as last printed.
    until: Timestamp,
}

impl Timer {
    pub(super) fn begin(pause: Duration, now: Moment) -> Self {
        Self { over: now.passed + pause, until: now.after(pause) }
    }

    /// The end by the wall clock. It stays the same unless the clock is set, and is in the future as long as
    /// the timer runs.
    pub(super) fn until(&mut self, now: Moment) -> Timestamp {
        let left = self.over.saturating_duration_since(now.passed);
        let by_now = now.after(left);
        let is_set = by_now.duration_since(self.until).abs() > ADJUSTED;
        if is_set || left.is_zero() != (self.until <= now.clock) {
            self.until = by_now;
        }
        self.until
    }
}

/// The clusters that fleets lost recently, each with the time until which it counts. For losses before the
/// start of the process, only the wall clock is known.
#[derive(Default)]
pub(super) struct RecentDeletions(Option<BTreeMap<(FleetKey, ResourceKey, Timestamp), Instant>>);

impl RecentDeletions {
    pub(super) fn within_the_hour(&mut self, deletions: &[Deletion], now: Moment) -> BTreeMap<FleetKey, u32> {
        let is_first = self.0.is_none();
        let seen = self.0.get_or_insert_default();
        let window = Duration::try_from(DELETIONS_WINDOW).unwrap_or_default();
        let mut lost = BTreeMap::new();
        for Deletion { fleet, cluster, at } in deletions {
            let age = Duration::try_from(now.clock.duration_since(*at)).unwrap_or_default();
            let left = if is_first { window.saturating_sub(age) } else { window };
            let over = seen.entry((fleet.clone(), cluster.clone(), *at)).or_insert(now.passed + left);
            if *over > now.passed {
                *lost.entry(fleet.clone()).or_default() += 1;
            }
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(clock: &str, start: Instant, seconds: u64) -> Moment {
        Moment { clock: clock.parse().unwrap(), passed: start + Duration::from_secs(seconds) }
    }

    #[test]
    fn a_clock_that_is_set_changes_when_something_is_over_and_not_after_how_long() {
        let start = Instant::now();
        let at = |clock: &str, seconds| moment(clock, start, seconds);
        let mut timer = Timer::begin(Duration::from_secs(30), at("2026-11-21T12:00:00Z", 0));
        let mut until = |clock: &str, seconds| timer.until(at(clock, seconds)).to_string();
        assert_eq!(until("2026-11-21T12:00:00Z", 0), "2026-11-21T12:00:30Z");
        // An adjustment of less than a second doesn't change the printed time.
        assert_eq!(until("2026-11-21T12:00:10.7Z", 10), "2026-11-21T12:00:30Z");
        // The clock is set ahead by a day, and then back by a year.
        assert_eq!(until("2026-11-22T12:00:20Z", 20), "2026-11-22T12:00:30Z");
        assert_eq!(until("2025-11-21T12:00:25Z", 25), "2025-11-21T12:00:30Z");
        // It ends at the right moment, not before.
        assert_eq!(until("2025-11-21T12:00:30.5Z", 29), "2025-11-21T12:00:31.5Z");
        assert_eq!(until("2025-11-21T12:00:31Z", 30), "2025-11-21T12:00:31Z");
        assert_eq!(until("2025-11-21T13:00:00Z", 3600), "2025-11-21T13:00:00Z");
    }

    #[test]
    fn a_lost_cluster_counts_for_an_hour_whatever_the_clock_says() {
        let start = Instant::now();
        let fleet: FleetKey = "acme/eu".to_owned().try_into().unwrap();
        let deletion = |name: &str, at: &str| Deletion {
            fleet: fleet.clone(),
            cluster: format!("Cluster/acme/{name}").try_into().unwrap(),
            at: at.parse().unwrap(),
        };
        let mut deletions =
            vec![deletion("a", "2026-11-21T10:00:00Z"), deletion("b", "2026-11-21T11:30:00Z")];
        let mut losses = RecentDeletions::default();
        let mut lost = |deletions: &[Deletion], clock: &str, seconds| {
            let lost = losses.within_the_hour(deletions, moment(clock, start, seconds));
            lost.get(&fleet).copied().unwrap_or_default()
        };
        // For losses before its start, the process uses the wall clock.
        assert_eq!(lost(&deletions, "2026-11-21T12:00:00Z", 0), 1);
        // The clock is set ahead by a day after a deletion.
        deletions.push(deletion("c", "2026-11-21T12:00:10Z"));
        assert_eq!(lost(&deletions, "2026-11-22T12:00:20Z", 20), 2);
        // A deletion just before the clock is set ahead counts for an hour from when it was first seen.
        deletions.push(deletion("d", "2026-11-21T12:00:20Z"));
        assert_eq!(lost(&deletions, "2026-11-23T12:00:30Z", 30), 3);
        assert_eq!(lost(&deletions, "2026-11-23T12:30:00Z", 1800), 2);
        assert_eq!(lost(&deletions, "2026-11-23T13:00:25Z", 3625), 1);
        assert_eq!(lost(&deletions, "2026-11-23T13:00:30Z", 3630), 0);
    }
}
