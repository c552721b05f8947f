//! How many requests are answered at a time, each on a thread, and who waits for that in which line.
//!
//! Who looks doesn't wait for those whose answers take long, who revokes a token waits for nobody else, and those whose requests
//! change something, or have another tree planned, wait in line, where nobody keeps all the places.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::api::problem::Problem;
use crate::api::route::Seat;
use crate::parallel::locked;

/// How long somebody stands in line before they are sent away.
const LONGEST: Duration = Duration::from_secs(30);

/// How many requests of one owner stand in a line at a time. Organizations don't trust each other: whoever sends a hundred at
/// once is to hold up others for no longer than these take.
pub(super) const MOST_OF_ONE: usize = 8;

/// When whoever has as many in line as may be tries again.
const PAUSE: Duration = Duration::from_secs(2);

/// How many requests are answered at a time.
pub(super) struct Seats {
    light: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    tokens: Arc<Semaphore>,
    revoking: Arc<Semaphore>,
    turn: Line,
    proposals: Line,
}

/// Who waits: all tokens of one owner are one, and so are all processes of one user of this host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Party {
    /// The owner of a token, by their e-mail address in lower case.
    Owner(String),
    /// A user of this host.
    User(u32),
}

/// A line that those who come first leave first, and in which nobody keeps all the places.
struct Line {
    seats: Arc<Semaphore>,
    waiting: Mutex<HashMap<Party, usize>>,
}

/// A place in a line, which is left with this.
struct Place<'l> {
    line: &'l Line,
    who: Party,
}

impl Seats {
    /// All are free. Those who propose something share the seats of commands that do.
    pub fn new(proposals: Arc<Semaphore>) -> Seats {
        let [light, heavy, tokens, revoking, turn] =
            [32, 8, 4, 4, 1].map(|seats| Arc::new(Semaphore::new(seats)));
        let [turn, proposals] = [turn, proposals].map(Line::new);
        Seats { light, heavy, tokens, revoking, turn, proposals }
    }

    /// The seat for a request. It is kept as long as the answer is worked on, whether or not anybody waits for it.
    ///
    /// # Errors
    /// When others keep it for too long, or too many of theirs wait for it already.
    pub async fn of(
        &self,
        seat: Seat,
        is_dry_run: bool,
        who: Party,
    ) -> Result<OwnedSemaphorePermit, Problem> {
        match seat {
            Seat::Open | Seat::Light => free(&self.light).await,
            Seat::Heavy => free(&self.heavy).await,
            Seat::Tokens => free(&self.tokens).await,
            Seat::Revoking => free(&self.revoking).await,
            Seat::Turn if !is_dry_run => self.turn.passed(who).await,
            Seat::Turn | Seat::Proposal => self.proposals.passed(who).await,
        }
    }
}

impl Line {
    fn new(seats: Arc<Semaphore>) -> Line {
        Line { seats, waiting: Mutex::default() }
    }

    /// A seat, once all who came before had theirs.
    async fn passed(&self, who: Party) -> Result<OwnedSemaphorePermit, Problem> {
        let _place = self.enter(who)?;
        free(&self.seats).await
    }

    fn enter(&self, who: Party) -> Result<Place<'_>, Problem> {
        let mut waiting = locked(&self.waiting);
        let theirs = waiting.entry(who.clone()).or_default();
        if *theirs >= MOST_OF_ONE {
            return Err(who.is_in_line());
        }
        *theirs += 1;
        Ok(Place { line: self, who })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiting = locked(&self.line.waiting);
        let Some(theirs) = waiting.get_mut(&self.who) else { return };
        *theirs -= 1;
        // Nobody is remembered who waits for nothing.
        if *theirs == 0 {
            waiting.remove(&self.who);
        }
    }
}

impl Party {
    fn is_in_line(&self) -> Problem {
        let whose = match self {
            Party::Owner(_) => "owner",
            Party::User(_) => "user",
        };
        let why =
            format!("{MOST_OF_ONE} requests of this {whose} wait in line already, which is as many as may");
        Problem::too_many(why, PAUSE).hint("wait for the answer to one of them before the next is sent")
    }
}

async fn free(seats: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
    match timeout(LONGEST, Arc::clone(seats).acquire_owned()).await {
        Ok(Ok(seat)) => Ok(seat),
        _ => Err(Problem::unavailable("too many others are being answered", Duration::from_secs(5))),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use axum::http::StatusCode;
    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::*;

    fn seats() -> Seats {
        Seats::new(Arc::new(Semaphore::new(1)))
    }

    #[tokio::test]
    async fn one_owner_has_eight_in_line_and_others_come_after_these() {
        let [ada, bob] = ["ada@example.com", "bob@example.com"].map(|owner| Party::Owner(owner.to_owned()));
        for (seat, is_dry_run) in [(Seat::Turn, false), (Seat::Turn, true), (Seat::Proposal, false)] {
            let seats = seats();
            let ask = |who: &Party| seats.of(seat, is_dry_run, who.clone());
            let first = ask(&ada).await.unwrap();
            // Each leaves its seat as soon as it has it.
            let mut waits = pin!(join_all((0..8).map(|_| ask(&ada).map(|seat| seat.is_ok()))));
            assert!((&mut waits).now_or_never().is_none(), "they wait");
            for _ in 0..100 {
                let refused = ask(&ada).now_or_never().expect("it is answered at once").unwrap_err();
                assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
                assert_eq!(
                    refused.detail,
                    "8 requests of this owner wait in line already, which is as many as may"
                );
                assert_eq!(refused.retry_after, Some(Duration::from_secs(2)));
            }
            let mut others = pin!(ask(&bob));
            assert!((&mut others).now_or_never().is_none(), "others wait, and are not refused");
            drop(first);
            assert!((&mut others).now_or_never().is_none(), "who came first goes first");
            assert_eq!(waits.await, [true; 8]);
            drop(others.await.unwrap());
            assert!(locked(&seats.turn.waiting).is_empty() && locked(&seats.proposals.waiting).is_empty());
        }
    }

    #[tokio::test]
    async fn who_goes_away_leaves_their_place_and_a_user_of_this_host_is_one() {
        let seats = seats();
        let ask = || seats.of(Seat::Turn, false, Party::User(1000));
        let _first = ask().await.unwrap();
        {
            let mut waits = pin!(join_all((0..8).map(|_| ask())));
            assert!((&mut waits).now_or_never().is_none());
            let refused = ask().now_or_never().unwrap().unwrap_err();
            assert_eq!(
                refused.detail,
                "8 requests of this user wait in line already, which is as many as may"
            );
        }
        assert!(ask().now_or_never().is_none(), "there is a place again");
    }

    #[tokio::test]
    async fn a_token_is_revoked_whatever_else_goes_on() {
        let seats = seats();
        let ada = || Party::Owner("ada@example.com".to_owned());
        let mut kept = Vec::new();
        for seat in [Seat::Light, Seat::Heavy, Seat::Tokens, Seat::Turn, Seat::Proposal] {
            while let Some(taken) = seats.of(seat, false, ada()).now_or_never() {
                kept.push(taken.unwrap());
            }
        }
        assert!(kept.len() > 40, "{}", kept.len());
        assert!(seats.of(Seat::Revoking, false, ada()).now_or_never().unwrap().is_ok());
    }
}
