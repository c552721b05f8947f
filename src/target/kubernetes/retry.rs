//! Which failed calls are retried, and when.

use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::answer::CallError;

/// The time limit of a call, with all retries, waits and the whole response. An API server itself gives up
/// after 60 s, which is longer than a person waits.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The time limit while the daemon plans, because a silent server delays all other fleets for that long.
/// Meanwhile `ClusterWatch` keeps probing the server. It is shorter than the limit of any group of calls, so
/// that silence is noticed.
pub(super) const HASTE: Duration = Duration::from_secs(8);

tokio::task_local! {
    static PATIENCE_OF_TASK: Duration;
}

/// Runs a future with the shorter time limit, because other fleets wait for it.
pub(super) async fn with_planning_timeout<T>(does: impl Future<Output = T>) -> T {
    PATIENCE_OF_TASK.scope(HASTE, does).await
}

/// Whether other fleets wait for this task.
pub(super) fn is_hasty() -> bool {
    PATIENCE_OF_TASK.try_with(|_| ()).is_ok()
}

pub(super) fn longest() -> Duration {
    PATIENCE_OF_TASK.try_with(|longest| *longest).unwrap_or(CALL_TIMEOUT)
}

/// The most tries of a call. The waits between five tries add up to 0.75 to 1.5 s, enough for an API server's
/// leader election or a load balancer's failover.
const TRIES: u32 = 5;

/// The wait after the first try. It doubles after each.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The longest `Retry-After` that is honored. API servers ask for 1 s.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// No try starts after this time. It equals the time limit for connecting, so that an unreachable server
/// costs it only once.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeatability {
    /// Repeating has no further effect: reads, dry runs, server-side apply, and deletion by UID.
    Repeatable,
    /// Repeating the call is refused or has another effect: creating, and replacing at a `resourceVersion`. The
    /// caller reads the object before it repeats the call.
    Once,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetryRule {
    Never,
    /// The call may have taken effect.
    WhereRepeatable,
    /// The call had no effect.
    Always,
}

/// HTTP statuses that are worth a retry. No other refusal changes by repeating the call: neither credentials
/// (401, 403), nor the present object (404, 409), nor the request (400, 422).
const STATUSES: [(RangeInclusive<u16>, RetryRule); 6] = [
    // A truncated response, or a page of a proxy, such as a login portal.
    (200..=299, RetryRule::WhereRepeatable),
    // The server is overloaded and rejected the call unread.
    (429..=429, RetryRule::Always),
    // etcd has no leader for a moment, or a webhook failed.
    (500..=500, RetryRule::WhereRepeatable),
    // A load balancer lost the server.
    (502..=502, RetryRule::WhereRepeatable),
    // The server starts or stops, or the load balancer has none.
    (503..=503, RetryRule::WhereRepeatable),
    // The server or its etcd was too slow for a proxy.
    (504..=504, RetryRule::WhereRepeatable),
];

fn again(failed: &CallError) -> RetryRule {
    match failed {
        // Nothing was sent.
        CallError::Unreached(_) => RetryRule::Always,
        CallError::Lost(_) => RetryRule::WhereRepeatable,
        CallError::Refused { status, .. } => of_status(status.code),
        CallError::Stray { code, .. } => of_status(*code),
        // A denied address or certificate stays denied, and a timeout has used up the time.
        CallError::Barred(_) | CallError::Overdue(_) | CallError::Resting(_) => RetryRule::Never,
        // The same response would come again.
        CallError::TooLong(_) | CallError::OverBudget(_) | CallError::Misnamed => RetryRule::Never,
    }
}

fn of_status(code: u16) -> RetryRule {
    STATUSES
        .iter()
        .find(|(statuses, _)| statuses.contains(&code))
        .map_or(RetryRule::Never, |(_, again)| *again)
}

/// Makes a call with retries. An error comes with the number of tries.
pub(super) async fn call_with_retries<T, C: Future<Output = Result<T, CallError>>>(
    nature: Repeatability,
    call: impl Fn() -> C,
) -> Result<T, (CallError, u32)> {
    let since = Instant::now();
    let mut tries = 0;
    let calls = async {
        loop {
            tries += 1;
            let failed = match call().await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            match wait(&failed, nature, tries, since.elapsed(), fastrand::f64()) {
                Some(wait) => sleep(wait).await,
                None => return Err(failed),
            }
        }
    };
    let longest = longest();
    let answer = timeout(longest, calls).await.unwrap_or(Err(CallError::Overdue(longest)));
    answer.map_err(|failed| (failed, tries))
}

/// The wait before the next try, or none to give up. `spent` is the time since the first try. `chance`, from
/// 0 to 1, adds jitter, so that calls that failed together don't return together.
fn wait(
    failed: &CallError,
    nature: Repeatability,
    tries: u32,
    spent: Duration,
    chance: f64,
) -> Option<Duration> {
    let may = match again(failed) {
        RetryRule::Always => true,
        RetryRule::WhereRepeatable => nature == Repeatability::Repeatable,
        RetryRule::Never => false,
    };
    if !may || tries >= TRIES {
        return None;
    }
    let longest = FIRST_WAIT * 2_u32.pow(tries - 1);
    let wait = longest.mul_f64(0.5 + chance / 2.0);
    let wait = wait.max(failed.asks_to_wait().unwrap_or_default().min(LONGEST_WAIT));
    (spent + wait < PATIENCE).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Repeatability::{Once, Repeatable};
    use kube::core::Status;

    fn refused(code: u16, retry_after: Option<u64>) -> CallError {
        let status = Status::failure("words", "Reason").with_code(code).boxed();
        CallError::Refused { status, retry_after: retry_after.map(Duration::from_secs) }
    }

    fn stray(code: u16) -> CallError {
        CallError::Stray { code, kind: None, retry_after: None }
    }

    /// The wait in milliseconds after an immediate failure, with medium jitter.
    fn first_wait(failed: &CallError, nature: Repeatability) -> Option<u128> {
        wait(failed, nature, 1, Duration::ZERO, 0.5).map(|wait| wait.as_millis())
    }

    #[test]
    fn what_may_be_gone_is_tried_again_unless_it_may_have_been_done() {
        let unreached = CallError::Unreached("refused".to_owned());
        let lost = CallError::Lost("reset".to_owned());
        for (failed, repeatable, once) in [
            (unreached, Some(75), Some(75)),
            (lost, Some(75), None),
            (stray(200), Some(75), None),
            (stray(201), Some(75), None),
            (refused(429, None), Some(75), Some(75)),
            (refused(429, Some(1)), Some(1000), Some(1000)),
            (refused(429, Some(600)), Some(5000), Some(5000)),
            (refused(500, None), Some(75), None),
            (stray(502), Some(75), None),
            (refused(503, Some(2)), Some(2000), None),
            (refused(504, None), Some(75), None),
            (refused(400, None), None, None),
            (refused(401, None), None, None),
            (refused(403, Some(1)), None, None),
            (refused(404, None), None, None),
            (stray(404), None, None),
            (refused(409, None), None, None),
            (refused(422, None), None, None),
            (stray(302), None, None),
            (CallError::TooLong(1), None, None),
            (CallError::Misnamed, None, None),
            (CallError::Overdue(CALL_TIMEOUT), None, None),
        ] {
            assert_eq!(first_wait(&failed, Repeatable), repeatable, "{failed:?}");
            assert_eq!(first_wait(&failed, Once), once, "{failed:?}");
        }
    }

    #[test]
    fn the_waits_grow_and_end() {
        let lost = CallError::Lost("reset".to_owned());
        let waits = |chance| {
            let wait = |tries| wait(&lost, Repeatable, tries, Duration::ZERO, chance);
            (1..=TRIES).map(|tries| wait(tries).map(|wait| wait.as_millis())).collect::<Vec<_>>()
        };
        assert_eq!(waits(0.0), [Some(50), Some(100), Some(200), Some(400), None]);
        assert_eq!(waits(1.0), [Some(100), Some(200), Some(400), Some(800), None]);
        // No second connection to a server after connecting took all the time.
        assert_eq!(wait(&lost, Repeatable, 1, PATIENCE, 0.0), None);
        assert_eq!(wait(&refused(429, Some(60)), Repeatable, 2, Duration::from_secs(5), 0.0), None);
    }
}
