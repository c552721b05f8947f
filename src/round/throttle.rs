//! Rate limit for reports about one resource: servers may vary the text of a message each time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The burst of changes that are reported.
const AT_ONCE: u32 = 20;

/// The time until one more change may be reported.
const EVERY: Duration = Duration::from_secs(30);

/// Limits how often changes are reported, for each subject. A change that was left out can be reported later,
/// with the number of those left out, if the caller asks again.
#[derive(Debug)]
pub struct Throttle<K> {
    subjects: BTreeMap<K, Subject>,
}

#[derive(Debug)]
struct Subject {
    /// How many changes may be reported, and since when.
    left: u32,
    since: Instant,
    /// How many changes were left out.
    untold: u32,
}

impl<K> Default for Throttle<K> {
    fn default() -> Self {
        Self { subjects: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Throttle<K> {
    /// Whether a change may be reported now; if so, how many were left out before it.
    pub fn admit(&mut self, subject: &K, now: Instant) -> Option<u32> {
        // A subject whose allowance is full again needs no entry.
        self.subjects
            .retain(|_, it| it.untold > 0 || now.saturating_duration_since(it.since) < EVERY * AT_ONCE);
        let new = || Subject { left: AT_ONCE, since: now, untold: 0 };
        let it = self.subjects.entry(subject.clone()).or_insert_with(new);
        while it.left < AT_ONCE && now.saturating_duration_since(it.since) >= EVERY {
            it.left += 1;
            it.since += EVERY;
        }
        if it.left == AT_ONCE {
            it.since = now;
        }
        match it.left.checked_sub(1) {
            Some(left) => {
                it.left = left;
                Some(std::mem::take(&mut it.untold))
            }
            None => {
                it.untold = it.untold.saturating_add(1);
                None
            }
        }
    }
}

/// The suffix of a report that says how many others were left out before it.
pub fn left_out(untold: u32) -> String {
    match untold {
        0 => String::new(),
        1 => " (1 earlier change was not logged)".to_owned(),
        untold => format!(" ({untold} earlier changes were not logged)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_all_the_time_is_told_now_and_then() {
        let (start, mut throttle) = (Instant::now(), Throttle::default());
        let told = (0..600).filter(|tenth| {
            let now = start + Duration::from_millis(100) * *tenth;
            throttle.admit(&"changing", now).is_some()
        });
        assert_eq!(told.count(), 21, "within a minute");
        // Other subjects aren't affected, and the number left out is reported.
        assert_eq!(throttle.admit(&"other", start + Duration::from_secs(60)), Some(0));
        assert_eq!(throttle.admit(&"changing", start + Duration::from_secs(90)), Some(299));
        assert_eq!(left_out(299), " (299 earlier changes were not logged)");
        // An entry is dropped once its allowance is full again.
        for _ in 0..20 {
            assert_eq!(throttle.admit(&"calm", start + Duration::from_secs(3600)), Some(0));
        }
        assert_eq!(throttle.subjects.len(), 1);
    }
}
