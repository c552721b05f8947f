//! Slows down changes that are repeated without effect.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::names::{Digest, FleetKey, ResourceKey};
use crate::plan::{Change, Repeated};
use crate::target::Backoff;

use super::timer::{Moment, Timer};

/// The backoff before the same change of a resource: from a second to five minutes.
const PAUSES: Backoff = Backoff::around(Duration::from_secs(1), Duration::from_secs(300));

/// The last change of each resource that still differed from its spec afterwards.
#[derive(Default)]
pub(super) struct RepeatedChanges(BTreeMap<ResourceKey, Last>);

struct Last {
    fleet: Option<FleetKey>,
    done: Digest,
    times: u32,
    pace: Backoff,
    pause: Timer,
}

impl RepeatedChanges {
    pub(super) fn done(&mut self, fleet: Option<&FleetKey>, change: &Change, now: Moment) {
        let done = change.effect_digest();
        let before = self.0.remove(&change.resource).filter(|before| before.done == done);
        let (times, mut pace) = before.map_or((0, PAUSES), |before| (before.times, before.pace));
        let pause = Timer::begin(pace.next_pause(), now);
        let last = Last { fleet: fleet.cloned(), done, times: times.saturating_add(1), pace, pause };
        self.0.insert(change.resource.clone(), last);
    }

    /// Forgets resources whose change had its effect.
    pub(super) fn forget(&mut self, is_settled: impl Fn(&ResourceKey, Option<&FleetKey>) -> bool) {
        self.0.retain(|resource, last| !is_settled(resource, last.fleet.as_ref()));
    }

    /// The changes to delay.
    pub(super) fn repeated(&mut self, now: Moment) -> BTreeMap<ResourceKey, Repeated> {
        let repeated = self.0.iter_mut().map(|(resource, Last { done, times, pause, .. })| {
            let until = pause.until(now);
            (resource.clone(), Repeated { done: done.clone(), times: *times, until })
        });
        repeated.collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::plan::{Cause, FieldChange, Verb, Verdict};

    fn change(units: u32) -> Change {
        let field = FieldChange { field: "kafka_units".to_owned(), before: 1.into(), after: units.into() };
        Change {
            resource: "Cluster/acme/orders".to_owned().try_into().unwrap(),
            verb: Verb::Update,
            origin: None,
            cause: Cause::Spec,
            fields: vec![field],
            verdict: Verdict::NoOp,
            effects: Vec::new(),
            waiting: Vec::new(),
            guarded: false,
            repair: false,
            bucket: None,
            certificate: None,
            steps: Vec::new(),
            remarks: Vec::new(),
            record: None,
        }
    }

    #[test]
    fn what_is_done_again_and_again_is_put_off_longer_each_time_until_it_has_an_effect() {
        let now = Moment::now("2026-11-21T12:00:00Z".parse::<Timestamp>().unwrap());
        let mut repeats = RepeatedChanges::default();
        let pause = |repeats: &mut RepeatedChanges, change: &Change| {
            repeats.done(None, change, now);
            let (_, Repeated { times, until, done }) = repeats.repeated(now).into_iter().next().unwrap();
            assert_eq!(done, change.effect_digest());
            (times, until.duration_since(now.clock).as_secs_f64())
        };
        for (times, seconds) in (1..).zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0])
        {
            let (told, pause) = pause(&mut repeats, &change(2));
            assert_eq!(told, times);
            assert!((seconds * 0.79..seconds * 1.21).contains(&pause), "{seconds}: {pause}");
        }
        // Another change isn't delayed and starts a new count.
        let (times, seconds) = pause(&mut repeats, &change(3));
        assert!(times == 1 && seconds < 1.21, "{times} {seconds}");
        assert_ne!(change(2).effect_digest(), change(3).effect_digest());
        repeats.forget(|_, fleet| fleet.is_some());
        assert_eq!(repeats.repeated(now).len(), 1);
        repeats.forget(|resource, _| *resource == change(3).resource);
        assert!(repeats.repeated(now).is_empty());
    }
}
