//! The durations that decide in judgements of health.

use jiff::{SignedDuration, Timestamp};

/// How long trouble must last before it is reported. A pod set's counts drop to 0 and return within the same
/// second, and a killed pod is replaced within one. People can't react faster than this anyway.
pub const DEBOUNCE: SignedDuration = SignedDuration::from_secs(10);

/// After a gap of this length between two judgements, trouble that is seen for the first time is reported at
/// once instead of being debounced. A command that is run now and then should give the answer without being
/// run twice.
pub const OBSERVATION_GAP: SignedDuration = SignedDuration::from_secs(60);

/// How long everything must be quiet before a change counts as finished when the operator doesn't announce
/// its end, since it may restart more pods. The longest recorded pause between two restarts of one change is
/// 26 s.
pub const QUIET_PERIOD: SignedDuration = SignedDuration::from_secs(30);

/// How long nothing may move, or one pod may be away, before it counts as trouble: the 300 s for which the
/// operator waits for a pod and ignores everything else (`STRIMZI_OPERATION_TIMEOUT_MS`), the 120 s between
/// its periodic reconciliations (`STRIMZI_FULL_RECONCILIATION_INTERVAL_MS`), and 60 s for pods to start.
pub const DEADLINE: SignedDuration = SignedDuration::from_secs(300 + 120 + 60);

/// Returns the next moment at which something that began at one of these times reaches a duration that
/// decides.
pub fn first_after(began: impl Iterator<Item = Timestamp>, now: Timestamp) -> Option<Timestamp> {
    let ends = |began: Timestamp| {
        [DEBOUNCE, QUIET_PERIOD, DEADLINE].into_iter().filter_map(move |lasts| began.checked_add(lasts).ok())
    };
    began.flat_map(ends).filter(|end| *end > now).min()
}
