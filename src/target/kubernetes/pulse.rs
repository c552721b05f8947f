//! Whether a server is there at all, so that not each of a thousand calls waits for one that isn't.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::parallel::locked;

/// How long a server that didn't answer is left alone. Whoever has many calls to make is through with them in that time.
const REST: Duration = Duration::from_secs(10);

/// When a server was last heard, and when it was last silent.
#[derive(Default)]
pub(super) struct Pulse {
    seen: Mutex<Seen>,
    /// For who asks a silent server until it answers.
    pub(super) falls_silent: Notify,
}

#[derive(Default)]
struct Seen {
    answered: Option<Instant>,
    silent: Option<(Instant, String)>,
}

impl Pulse {
    /// Why there is no use in a call now, as the end of a sentence; none where there is.
    pub(super) fn silence(&self, now: Instant) -> Option<String> {
        let seen = self.lock();
        let (since, reason) = seen.silent.as_ref()?;
        (now < *since + REST).then(|| reason.clone())
    }

    /// Something answered.
    pub(super) fn answered(&self, now: Instant) {
        *self.lock() = Seen { answered: Some(now), silent: None };
    }

    /// A call that began then was not answered. It tells nothing about the server where another one was in the second half
    /// of that time. One that was answered earlier says nothing of now: where many calls are under way, a server falls
    /// silent between two of them.
    pub(super) fn was_silent(&self, began: Instant, now: Instant, reason: &str) {
        let mut seen = self.lock();
        let half = began + now.duration_since(began) / 2;
        if seen.answered.is_none_or(|answered| answered < half) {
            seen.silent = Some((now, reason.to_owned()));
            self.falls_silent.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        // Each writes whole values, so that whoever panicked left nothing half done.
        locked(&self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_server_is_left_alone_for_a_while_unless_it_answers_others() {
        let (pulse, start) = (Pulse::default(), Instant::now());
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
