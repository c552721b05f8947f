//! A fair queue for work that is done one or a few at a time. Organizations take turns, so a caller with a
//! hundred requests delays others by at most one of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::http::problem::ProblemDocument;
use crate::names::Identifier;
use crate::parallel::fair_queue::FairQueue;
use crate::parallel::locked;

/// How long a request waits for its turn before it is refused.
pub(super) const LONGEST: Duration = Duration::from_secs(30);

/// The queued requests of one caller at a time, so that other members of their organization get a turn.
const MAX_QUEUED_PER_CALLER: usize = 8;

/// The retry delay for a caller whose requests fill their share of the queue.
const PAUSE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QueuedCaller {
    /// A local user, who runs the installation: first in line, and without limits.
    Host,
    /// All tokens of an owner together, by the e-mail address in lower case.
    Owner(String),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Party {
    /// Local users, who run the installation. They come first.
    Host,
    Organization(Identifier),
    /// The owner of a token who is a member of no organization.
    Owner(String),
}

struct Waiter {
    who: QueuedCaller,
    turn: oneshot::Sender<Turn>,
}

type Places = Arc<Mutex<FairQueue<Party, Waiter>>>;

pub(super) struct OrganizationQueue {
    places: Places,
}

/// A slot that is freed when this is dropped.
pub(super) struct Turn {
    places: Places,
    party: Party,
}

impl OrganizationQueue {
    /// `places` is how many requests run at a time.
    pub fn new(places: usize) -> OrganizationQueue {
        OrganizationQueue::with_reserve_slots(places, 0)
    }

    /// Like [`OrganizationQueue::new`], with `more` slots for organizations that have none. A few slow requests
    /// of one organization then keep no other waiting.
    pub fn with_reserve_slots(places: usize, more: usize) -> OrganizationQueue {
        let turns = FairQueue::new(places).with_reserve_slots(more);
        let turns = turns.with_priority(|party| *party == Party::Host);
        OrganizationQueue { places: Arc::new(Mutex::new(turns)) }
    }

    /// Waits for a turn, on behalf of an organization. The host waits ahead of all organizations, and without
    /// a time limit.
    ///
    /// # Errors
    /// When the caller has too many requests queued already, or the wait is too long.
    pub async fn pass(
        &self,
        who: QueuedCaller,
        organization: Option<Identifier>,
    ) -> Result<Turn, ProblemDocument> {
        let party = match (&who, organization) {
            (QueuedCaller::Host, _) => Party::Host,
            (QueuedCaller::Owner(_), Some(organization)) => Party::Organization(organization),
            (QueuedCaller::Owner(owner), None) => Party::Owner(owner.clone()),
        };
        let longest = if who == QueuedCaller::Host { Duration::MAX } else { LONGEST };
        match timeout(longest, self.enter(party, who)?).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(no_capacity()),
        }
    }

    fn enter(&self, party: Party, who: QueuedCaller) -> Result<oneshot::Receiver<Turn>, ProblemDocument> {
        let mut turns = locked(&self.places);
        turns.retain(|waiter| !waiter.turn.is_closed());
        let theirs = turns.waiting(&party).filter(|waiter| waiter.who == who).count();
        if who != QueuedCaller::Host && theirs >= MAX_QUEUED_PER_CALLER {
            let why = format!("too many queued requests (limit {MAX_QUEUED_PER_CALLER} per owner)");
            let hint = "wait for an answer before you send the next request";
            return Err(ProblemDocument::too_many(why, PAUSE).hint(hint));
        }
        let (turn, comes) = oneshot::channel();
        turns.enqueue(party, Waiter { who, turn });
        drop(turns);
        admit_waiting(&self.places);
        Ok(comes)
    }
}

fn admit_waiting(places: &Places) {
    loop {
        let Some((party, waiter)) = locked(places).assign_slot() else { return };
        // If the caller has given up, the turn is dropped here, which frees the slot for the next one.
        let _ = waiter.turn.send(Turn { places: Arc::clone(places), party });
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        locked(&self.places).release_slot(&self.party);
        admit_waiting(&self.places);
    }
}

pub(super) fn no_capacity() -> ProblemDocument {
    ProblemDocument::unavailable("other requests use all the capacity", Duration::from_secs(5))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use axum::http::StatusCode;
    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::*;

    fn owner(name: &str) -> QueuedCaller {
        QueuedCaller::Owner(format!("{name}@example.com"))
    }

    fn organization(name: &str) -> Option<Identifier> {
        Some(name.parse().unwrap())
    }

    #[tokio::test]
    async fn one_owner_has_eight_in_line_and_others_have_their_turn_before_these() {
        let line = OrganizationQueue::new(1);
        let ask = |name: &'static str, of: &str| line.pass(owner(name), organization(of));
        let first = ask("ada", "acme").await.unwrap();
        let mut waits = pin!(join_all((0..8).map(|_| ask("ada", "acme").map(|turn| turn.is_ok()))));
        assert!((&mut waits).now_or_never().is_none(), "they wait");
        for _ in 0..100 {
            let refused = ask("ada", "acme").now_or_never().expect("it is answered at once").err().unwrap();
            assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(refused.detail, "too many queued requests (limit 8 per owner)");
            assert_eq!(refused.retry_after, Some(Duration::from_secs(2)));
        }
        // Another member isn't refused, and comes after the earlier requests.
        let mut member = pin!(ask("bob", "acme"));
        assert!((&mut member).now_or_never().is_none());
        let mut other = pin!(ask("eve", "globex"));
        assert!((&mut other).now_or_never().is_none(), "others wait, and are not refused");
        drop(first);
        let turn = (&mut other).now_or_never().expect("the other organization comes next").unwrap();
        assert!((&mut waits).now_or_never().is_none() && (&mut member).now_or_never().is_none());
        drop(turn);
        assert_eq!(waits.await, [true; 8]);
        drop(member.await.unwrap());
        assert!(locked(&line.places).is_empty());
    }

    #[tokio::test]
    async fn who_runs_the_installation_comes_first() {
        let line = OrganizationQueue::new(1);
        let first = line.pass(owner("ada"), organization("acme")).await.unwrap();
        let mut organizations = pin!(line.pass(owner("eve"), organization("globex")));
        let mut nobodys = pin!(line.pass(owner("root"), None));
        assert!((&mut organizations).now_or_never().is_none() && (&mut nobodys).now_or_never().is_none());
        let mut own = pin!(line.pass(QueuedCaller::Host, None));
        assert!((&mut own).now_or_never().is_none());
        let mut commands =
            pin!(join_all((0..20).map(|_| line.pass(QueuedCaller::Host, None).map(|turn| turn.is_ok()))));
        assert!((&mut commands).now_or_never().is_none());
        drop(first);
        let turn = (&mut own).now_or_never().expect("it comes first").unwrap();
        assert!((&mut organizations).now_or_never().is_none());
        drop(turn);
        assert_eq!(commands.await, [true; 20], "as many as there are");
        let turn = (&mut organizations).now_or_never().unwrap().unwrap();
        drop(turn);
        assert!(nobodys.await.is_ok());
    }

    #[tokio::test]
    async fn who_goes_away_leaves_their_place() {
        let line = OrganizationQueue::new(1);
        let ask = || line.pass(owner("ada"), None);
        let first = ask().await.unwrap();
        {
            let mut waits = pin!(join_all((0..8).map(|_| ask())));
            assert!((&mut waits).now_or_never().is_none());
            let refused = ask().now_or_never().unwrap().err().unwrap();
            assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        }
        assert!(ask().now_or_never().is_none(), "there is a place again");
        drop(first);
        assert!(ask().now_or_never().is_some_and(|turn| turn.is_ok()));
    }
}
