//! Which calls are made again when they come to nothing, and how soon.

use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::answer::Failed;

/// How long a call may take, with all its tries and the waits between them, and with the whole of its answer. An API server
/// itself gives a request up after 60 s, which is longer than a person waits.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The same while a process that runs on plans, since a server that is silent holds up all other fleets for so long. It is
/// asked again beside the plans, for as long as it takes (`watch::View`). It is less than any group of calls gets, so that
/// silence is noted.
const HASTE: Duration = Duration::from_secs(8);

tokio::task_local! {
    /// How long the calls of a task may take, where that is another time.
    static PATIENCE_OF_TASK: Duration;
}

/// Does something with calls that are waited for no longer than other fleets can be held up.
pub(super) async fn hastily<T>(does: impl Future<Output = T>) -> T {
    PATIENCE_OF_TASK.scope(HASTE, does).await
}

/// Whether other fleets are held up by the calls of this task.
pub(super) fn is_hasty() -> bool {
    PATIENCE_OF_TASK.try_with(|_| ()).is_ok()
}

/// How long a call of this task may take.
pub(super) fn longest() -> Duration {
    PATIENCE_OF_TASK.try_with(|longest| *longest).unwrap_or(CALL_TIMEOUT)
}

/// How often a call is tried at most. The waits between five tries add up to 0.75 to 1.5 s: an API server's leader, or a
/// balancer's choice of servers, changes in that time.
const TRIES: u32 = 5;

/// The wait after the first try, which is doubled after each.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The longest wait that a server may ask for by `Retry-After`. API servers ask for 1 s.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// After this time no further try is begun. It is what connecting may take, so that a server that is off costs that once.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether a call may be made twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    /// Twice is as good as once: reading, asking without anything being stored, server-side apply, and deleting what has a
    /// certain uid.
    Repeatable,
    /// The second time is refused, or does something else: making, and replacing what has a certain `resourceVersion`. Who
    /// calls looks at what is there before it calls again.
    Once,
}

/// When a call that failed is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    Never,
    /// It may have been done all the same.
    WhereRepeatable,
    /// It was surely not done.
    Always,
}

/// When an answer with this HTTP status is worth another try. No other refusal is: neither credentials (401, 403), nor what
/// is there (404, 409), nor what was sent (400, 422) becomes another by asking again.
const STATUSES: [(RangeInclusive<u16>, Again); 6] = [
    // Not whole, or a page of something in between, say a portal that wants a login.
    (200..=299, Again::WhereRepeatable),
    // The server has too much to do, and turned the call away unread.
    (429..=429, Again::Always),
    // Its etcd has no leader for a moment, or a webhook failed.
    (500..=500, Again::WhereRepeatable),
    // A balancer lost the server.
    (502..=502, Again::WhereRepeatable),
    // The server starts or stops, or the balancer has none.
    (503..=503, Again::WhereRepeatable),
    // The server, or its etcd, was too slow for whoever is in between.
    (504..=504, Again::WhereRepeatable),
];

fn again(failed: &Failed) -> Again {
    match failed {
        // Nothing was sent.
        Failed::Unreached(_) => Again::Always,
        Failed::Lost(_) => Again::WhereRepeatable,
        Failed::Refused { status, .. } => of_status(status.code),
        Failed::Stray { code, .. } => of_status(*code),
        // Who may not be connected to, or isn't trusted, stays so; and what took all the time leaves none.
        Failed::Barred(_) | Failed::Overdue(_) | Failed::Resting(_) => Again::Never,
        // It would be as much, or as wrong, once more.
        Failed::TooLong(_) | Failed::OverBudget(_) | Failed::Misnamed => Again::Never,
    }
}

fn of_status(code: u16) -> Again {
    STATUSES.iter().find(|(statuses, _)| statuses.contains(&code)).map_or(Again::Never, |(_, again)| *again)
}

/// Makes a call until it comes to something, or there is no use in another try. Says how often it was tried.
pub(super) async fn persist<T, C: Future<Output = Result<T, Failed>>>(
    nature: Nature,
    call: impl Fn() -> C,
) -> Result<T, (Failed, u32)> {
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
    let answer = timeout(longest, calls).await.unwrap_or(Err(Failed::Overdue(longest)));
    answer.map_err(|failed| (failed, tries))
}

/// How long to wait before the next try, after so many and so much time; none where there is to be none. `chance` is
/// between 0 and 1 and spreads those that failed together over time, so that they don't come back together.
fn wait(failed: &Failed, nature: Nature, tries: u32, spent: Duration, chance: f64) -> Option<Duration> {
    let may = match again(failed) {
        Again::Always => true,
        Again::WhereRepeatable => nature == Nature::Repeatable,
        Again::Never => false,
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
    use Nature::{Once, Repeatable};
    use kube::core::Status;

    fn refused(code: u16, retry_after: Option<u64>) -> Failed {
        let status = Status::failure("words", "Reason").with_code(code).boxed();
        Failed::Refused { status, retry_after: retry_after.map(Duration::from_secs) }
    }

    fn stray(code: u16) -> Failed {
        Failed::Stray { code, kind: None, retry_after: None }
    }

    /// The wait in milliseconds after a first try that took no time, at the middle of chance.
    fn first_wait(failed: &Failed, nature: Nature) -> Option<u128> {
        wait(failed, nature, 1, Duration::ZERO, 0.5).map(|wait| wait.as_millis())
    }

    #[test]
    fn what_may_be_gone_is_tried_again_unless_it_may_have_been_done() {
        let unreached = Failed::Unreached("refused".to_owned());
        let lost = Failed::Lost("reset".to_owned());
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
            (Failed::TooLong(1), None, None),
            (Failed::Misnamed, None, None),
            (Failed::Overdue(CALL_TIMEOUT), None, None),
        ] {
            assert_eq!(first_wait(&failed, Repeatable), repeatable, "{failed:?}");
            assert_eq!(first_wait(&failed, Once), once, "{failed:?}");
        }
    }

    #[test]
    fn the_waits_grow_and_end() {
        let lost = Failed::Lost("reset".to_owned());
        let waits = |chance| {
            let wait = |tries| wait(&lost, Repeatable, tries, Duration::ZERO, chance);
            (1..=TRIES).map(|tries| wait(tries).map(|wait| wait.as_millis())).collect::<Vec<_>>()
        };
        assert_eq!(waits(0.0), [Some(50), Some(100), Some(200), Some(400), None]);
        assert_eq!(waits(1.0), [Some(100), Some(200), Some(400), Some(800), None]);
        // A server that connecting to took all the time is not connected to again.
        assert_eq!(wait(&lost, Repeatable, 1, PATIENCE, 0.0), None);
        assert_eq!(wait(&refused(429, Some(60)), Repeatable, 2, Duration::from_secs(5), 0.0), None);
    }
}
