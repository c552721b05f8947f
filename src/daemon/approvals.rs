//! What people approve while this process has the state.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedSender;

use super::Event;
use crate::round::{Approved, Round};
use crate::state::{Answer, Request, State, StateError};

/// How often is looked whether somebody asks.
const TICK: Duration = Duration::from_millis(250);

/// Makes events of what people ask for.
pub(super) async fn watch(state: Arc<State>, tell: UnboundedSender<Event>) {
    let mut before = Vec::new();
    loop {
        tokio::time::sleep(TICK).await;
        let now = state.requested();
        if now != before && !now.is_empty() && tell.send(Event::Asked).is_err() {
            return;
        }
        before = now;
    }
}

/// Answers what people ask for, by the plan that was just made. Says whether anything was approved, so that there is another
/// plan now.
pub(super) fn answer(state: &State, round: &Round) -> bool {
    let requests = state.requests();
    let requests = requests.inspect_err(unanswered).unwrap_or_default();
    let mut is_approved = false;
    for (path, Request { approve, by }) in requests {
        let approved = round.approve(state, &approve, &by, Timestamp::now());
        is_approved |= matches!(approved, Ok(Approved::Now { .. }));
        let answered = state.answer(&path, &told(&approve, &by, approved));
        answered.unwrap_or_else(|error| unanswered(&error));
    }
    is_approved
}

/// Who asks is told that nobody answered; nothing else depends on it.
fn unanswered(error: &StateError) {
    tracing::error!(hint = error.hint(), "could not answer who approves something: {error}");
}

fn told(id: &str, by: &str, approved: Result<Approved, StateError>) -> Answer {
    let answer = |done, said, hint| Answer { done, said, hint };
    match approved {
        Ok(Approved::Now { fleet, changes }) => {
            tracing::info!(%fleet, approved = id, by, "approved: {changes}");
            answer(true, format!("approved {id} on fleet {fleet}: {changes}"), None)
        }
        Ok(Approved::Before { by }) => answer(true, format!("{id} was approved already, by {by}"), None),
        Ok(Approved::Unknown { waiting }) => {
            let hint = match waiting.is_empty() {
                true => "nothing waits for approval; see the log of `streamfleet serve`".to_owned(),
                false => format!(
                    "what waits now: {}; the steps may have changed since you saw them",
                    waiting.join(", ")
                ),
            };
            answer(false, format!("no step of the current plan waits for approval as `{id}`"), Some(hint))
        }
        Err(error) => answer(false, format!("could not record the approval: {error}"), Some(error.hint())),
    }
}
