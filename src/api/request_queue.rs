//! The queue of requests from API callers to the planning loop, and the last plan.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::http::problem::ProblemDocument;
use crate::parallel::locked;
use crate::round::{Approved, RoundMemory};
use crate::state::State;
use crate::writing::{CurrentPlan, Writer};

/// How long a caller waits for a plan: a target that doesn't respond may delay it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Passes requests to the planning loop, and keeps the last plan.
pub struct RequestQueue {
    pub(super) state: Option<Arc<State>>,
    pub memory: Arc<RoundMemory>,
    /// Writes specs for API callers; `None` if writes are off.
    pub writer: Option<Arc<Writer>>,
    last: Mutex<Option<CurrentPlan>>,
    /// `None` once the planning loop has ended.
    questions: Mutex<Option<Vec<PendingRequest>>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

pub type ReplySender<T> = oneshot::Sender<Result<T, NoReply>>;

/// A request with the channel for its reply. A caller that gave up meanwhile has closed it.
pub enum PendingRequest {
    /// A plan made after the request came in.
    Plan(ReplySender<CurrentPlan>),
    Approve {
        id: String,
        by: String,
        reply: ReplySender<Approved>,
    },
}

#[derive(Debug, Clone)]
pub struct NoReply {
    /// A sentence without a full stop.
    pub why: String,
    pub hint: String,
}

impl From<NoReply> for ProblemDocument {
    fn from(NoReply { why, hint }: NoReply) -> ProblemDocument {
        ProblemDocument::unavailable(why, Duration::from_secs(10)).hint(hint)
    }
}

impl RequestQueue {
    /// `wake` is called whenever a request is added.
    pub fn new(
        state: Option<Arc<State>>,
        memory: Arc<RoundMemory>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> RequestQueue {
        let (last, questions) = (Mutex::default(), Mutex::new(Some(Vec::new())));
        RequestQueue { state, memory, writer: None, last, questions, wake: Box::new(wake) }
    }

    pub fn with_writer(self, writer: Arc<Writer>) -> RequestQueue {
        RequestQueue { writer: Some(writer), ..self }
    }

    /// Takes all requests whose callers still wait.
    pub fn take(&self) -> Vec<PendingRequest> {
        let mut questions = locked(&self.questions).as_mut().map(std::mem::take).unwrap_or_default();
        questions.retain(|question| match question {
            PendingRequest::Plan(reply) => !reply.is_closed(),
            PendingRequest::Approve { reply, .. } => !reply.is_closed(),
        });
        questions
    }

    /// Ends the queue: no plan will be made any more.
    pub fn close(&self) {
        // Dropping the channels wakes all waiting callers with an error.
        locked(&self.questions).take();
    }

    pub fn publish_plan(&self, made: CurrentPlan) {
        *locked(&self.last) = Some(made);
    }

    pub(super) fn made(&self) -> Option<CurrentPlan> {
        locked(&self.last).clone()
    }

    /// Returns the last plan, or waits for the first one.
    pub(super) async fn last(&self) -> Result<CurrentPlan, NoReply> {
        match self.made() {
            Some(made) => Ok(made),
            None => self.plan().await,
        }
    }

    /// Returns the last plan if it is recent and includes every write through the API, or else asks for a new
    /// one.
    pub(super) async fn current(&self) -> Result<CurrentPlan, NoReply> {
        let writes = self.writer.as_ref().map_or(0, |writer| writer.mark().writes);
        match self.made().filter(|made| made.is_recent(writes)) {
            Some(made) => Ok(made),
            None => self.plan().await,
        }
    }

    /// Asks for a new plan.
    ///
    /// # Errors
    /// When the planning loop has ended, or takes longer than a minute.
    pub async fn plan(&self) -> Result<CurrentPlan, NoReply> {
        self.ask(PendingRequest::Plan).await
    }

    /// Approves guarded steps, checked against a new plan.
    pub(super) async fn approve(&self, id: String, by: String) -> Result<Approved, NoReply> {
        self.ask(|reply| PendingRequest::Approve { id, by, reply }).await
    }

    async fn ask<T>(&self, request: impl FnOnce(ReplySender<T>) -> PendingRequest) -> Result<T, NoReply> {
        let (reply, answered) = oneshot::channel();
        match locked(&self.questions).as_mut() {
            Some(questions) => questions.push(request(reply)),
            None => return Err(ending()),
        }
        (self.wake)();
        match timeout(PATIENCE, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(ending()),
            Err(_) => Err(NoReply {
                why: format!("no plan within {} s", PATIENCE.as_secs()),
                hint: "a cluster or a disk may be slow: check the log of `streamfleet serve`, and try again"
                    .to_owned(),
            }),
        }
    }
}

fn ending() -> NoReply {
    let hint = "wait until the daemon is running again, and try again".to_owned();
    NoReply { why: "the daemon is shutting down".to_owned(), hint }
}
