//! How often something is told of one resource: what servers say may be another text each time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How many changes are told at once.
const AT_ONCE: u32 = 20;

/// How long it takes until one more is.
const EVERY: Duration = Duration::from_secs(30);

/// Bounds how often changes are told, for each subject by itself. The last of those that weren't told is told later, with how
/// many there were: whoever wants to tell it asks again.
#[derive(Debug)]
pub struct Throttle<K> {
    subjects: BTreeMap<K, Subject>,
}

#[derive(Debug)]
struct Subject {
    /// How many may be told, and since when that is so.
    left: u32,
    since: Instant,
    /// How many changes weren't told.
    untold: u32,
}

impl<K> Default for Throttle<K> {
    fn default() -> Self {
        Self { subjects: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Throttle<K> {
    /// Whether a change may be told now; if so, how many before it weren't.
    pub fn admit(&mut self, subject: &K, now: Instant) -> Option<u32> {
        // Of what had time enough to be told nothing has to be known.
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

/// What is added to a text before which others weren't told.
pub fn left_out(untold: u32) -> String {
    match untold {
        0 => String::new(),
        1 => " (one change before this was left out)".to_owned(),
        untold => format!(" ({untold} changes before this were left out)"),
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
        // Others are told all the same, and it is told how much was left out.
        assert_eq!(throttle.admit(&"other", start + Duration::from_secs(60)), Some(0));
        assert_eq!(throttle.admit(&"changing", start + Duration::from_secs(90)), Some(299));
        assert_eq!(left_out(299), " (299 changes before this were left out)");
        // What is calm for a while is forgotten.
        for _ in 0..20 {
            assert_eq!(throttle.admit(&"calm", start + Duration::from_secs(3600)), Some(0));
        }
        assert_eq!(throttle.subjects.len(), 1);
    }
}
