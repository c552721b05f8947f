//! Whether a server responds at all, so that a thousand calls don't each wait for one that doesn't.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::parallel::locked;

/// How long no call is made to a silent server. A batch of many calls ends within that time.
const REST: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct ServerLiveness {
    seen: Mutex<LastContact>,
    /// Wakes the task that probes a silent server until it responds.
    pub(super) falls_silent: Notify,
}

#[derive(Default)]
struct LastContact {
    answered: Option<Instant>,
    silent: Option<(Instant, String)>,
}

impl ServerLiveness {
    /// Why a call should not be made now, as the end of a sentence. None when it may be made.
    pub(super) fn silence(&self, now: Instant) -> Option<String> {
        let seen = self.lock();
        let (since, reason) = seen.silent.as_ref()?;
        (now < *since + REST).then(|| reason.clone())
    }

    pub(super) fn answered(&self, now: Instant) {
        *self.lock() = LastContact { answered: Some(now), silent: None };
    }

    /// Records a call without a response. It doesn't count when another call got one in the second half of
    /// its time. An earlier response proves nothing: with many concurrent calls, a server falls silent
    /// between two of them.
    pub(super) fn was_silent(&self, began: Instant, now: Instant, reason: &str) {
        let mut seen = self.lock();
        let half = began + now.duration_since(began) / 2;
        if seen.answered.is_none_or(|answered| answered < half) {
            seen.silent = Some((now, reason.to_owned()));
            self.falls_silent.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, LastContact> {
        // Only whole values are stored, so a panic can't have left it inconsistent.
        locked(&self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_server_is_left_alone_for_a_while_unless_it_answers_others() {
        let (pulse, start) = (ServerLiveness::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(pulse.silence(at(0)), None);
        pulse.was_silent(at(0), at(30), "no answer");
        assert_eq!(pulse.silence(at(39)).as_deref(), Some("no answer"));
        assert_eq!(pulse.silence(at(40)), None);

        pulse.answered(at(41));
        assert_eq!(pulse.silence(at(41)), None);
        pulse.was_silent(at(15), at(45), "no answer");
        assert_eq!(pulse.silence(at(45)), None, "another call was answered at 41");
        pulse.was_silent(at(40), at(70), "no answer");
        assert_eq!(pulse.silence(at(71)).as_deref(), Some("no answer"), "of those begun before 41, too");
    }
}
