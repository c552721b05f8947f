//! The queue of requests from API callers to the planning loop, and the last plan.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

use super::organization_queue::OrganizationQueue;
use super::writing::{WriteMark, Writer};
use crate::names::ResourceKey;
use crate::parallel::locked;
use crate::round::{Approved, Installation, Round, RoundMemory};
use crate::spec::Documents;
use crate::state::State;
use crate::views::records;

/// How long a caller waits for a plan: a target that doesn't respond may delay it.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a plan counts as current if nothing newer was written. Rounds run every 30 s anyway, unless a
/// target delays them.
const CURRENT: Duration = Duration::from_secs(60);

/// Passes requests to the planning loop, and keeps the last plan.
pub struct RequestQueue {
    pub(super) state: Option<Arc<State>>,
    pub(super) memory: Arc<RoundMemory>,
    /// Writes specs for API callers; `None` if writes are off.
    pub(super) writer: Option<Arc<Writer>>,
    /// Admits one proposal at a time, since each plan takes memory.
    pub(super) proposals: Arc<OrganizationQueue>,
    last: Mutex<Option<CurrentPlan>>,
    /// `None` once the planning loop has ended.
    questions: Mutex<Option<Vec<PendingRequest>>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// A plan with its inputs.
#[derive(Clone)]
pub struct CurrentPlan {
    pub installation: Arc<Installation>,
    pub documents: Arc<Documents>,
    pub round: Arc<Round>,
    /// The [`Writer::mark`] from when the specs were read: all earlier writes are in the plan.
    pub mark: WriteMark,
    /// Why the plan could not be recorded, in which case none of it is carried out.
    pub trouble: Option<String>,
    since: Instant,
    /// Resources by id, computed on first use.
    ids: Arc<OnceLock<BTreeMap<Uuid, ResourceKey>>>,
}

impl CurrentPlan {
    /// A plan of specs that include every write before `mark`.
    pub fn new(
        installation: Arc<Installation>,
        documents: Arc<Documents>,
        round: Arc<Round>,
        mark: WriteMark,
    ) -> CurrentPlan {
        let (trouble, since) = (None, Instant::now());
        CurrentPlan { installation, documents, round, mark, trouble, since, ids: Arc::default() }
    }

    /// Marks the plan as not carried out.
    pub fn with_trouble(self, trouble: Option<String>) -> CurrentPlan {
        CurrentPlan { trouble, ..self }
    }

    pub(super) fn key_with(&self, id: Uuid) -> Option<&ResourceKey> {
        let all = || {
            let checked = &self.round.checked;
            let recorded =
                checked.recorded.resources.iter().map(|(key, record)| (record.durable.id, key.clone()));
            let wanted =
                checked.catalog.resources.values().map(|resource| (resource.id, resource.key.clone()));
            let root = records::root(&self.round).map(|root| (root.id, root.key));
            root.into_iter().chain(recorded).chain(wanted).collect()
        };
        self.ids.get_or_init(all).get(&id)
    }
}

/// A request with the channel for its reply.
pub struct PendingRequest {
    pub wants: Request,
    answer: oneshot::Sender<Result<Reply, NoReply>>,
}

#[derive(Debug, Clone)]
pub enum Request {
    /// A plan made after the request came in.
    Plan,
    Approve {
        id: String,
        by: String,
    },
}

pub enum Reply {
    Plan(CurrentPlan),
    Approved(Approved),
}

#[derive(Debug, Clone)]
pub struct NoReply {
    /// A sentence without a full stop.
    pub why: String,
    pub hint: String,
}

impl RequestQueue {
    /// `wake` is called whenever a request is added.
    pub fn new(
        state: Option<Arc<State>>,
        memory: Arc<RoundMemory>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> RequestQueue {
        let proposals = Arc::new(OrganizationQueue::new(1));
        let (last, questions) = (Mutex::default(), Mutex::new(Some(Vec::new())));
        RequestQueue { state, memory, writer: None, proposals, last, questions, wake: Box::new(wake) }
    }

    pub fn with_writer(self, writer: Arc<Writer>) -> RequestQueue {
        RequestQueue { writer: Some(writer), ..self }
    }

    /// `None` if writes are off.
    pub fn writer(&self) -> Option<Arc<Writer>> {
        self.writer.clone()
    }

    pub fn memory(&self) -> Arc<RoundMemory> {
        Arc::clone(&self.memory)
    }

    /// Takes all requests whose callers still wait.
    pub fn take(&self) -> Vec<PendingRequest> {
        let mut questions = locked(&self.questions).as_mut().map(std::mem::take).unwrap_or_default();
        questions.retain(|question| !question.answer.is_closed());
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
        let last = locked(&self.last).clone();
        match last {
            Some(made) => Ok(made),
            None => self.plan().await,
        }
    }

    /// Returns the last plan if it is recent and includes every write through the API, or else asks for a new
    /// one.
    pub(super) async fn current(&self) -> Result<CurrentPlan, NoReply> {
        let writes = self.writer.as_ref().map_or(0, |writer| writer.mark().writes);
        let is_current = |made: &CurrentPlan| made.mark.writes >= writes && made.since.elapsed() < CURRENT;
        match self.made().filter(is_current) {
            Some(made) => Ok(made),
            None => self.plan().await,
        }
    }

    /// Asks for a new plan.
    ///
    /// # Errors
    /// When the planning loop has ended, or takes longer than a minute.
    pub async fn plan(&self) -> Result<CurrentPlan, NoReply> {
        match self.ask(Request::Plan).await? {
            Reply::Plan(made) => Ok(made),
            Reply::Approved(_) => Err(ending()),
        }
    }

    /// Approves guarded steps, checked against a new plan.
    pub(super) async fn approve(&self, id: String, by: String) -> Result<Approved, NoReply> {
        match self.ask(Request::Approve { id, by }).await? {
            Reply::Approved(approved) => Ok(approved),
            Reply::Plan(_) => Err(ending()),
        }
    }

    async fn ask(&self, wants: Request) -> Result<Reply, NoReply> {
        let (answer, answered) = oneshot::channel();
        match locked(&self.questions).as_mut() {
            Some(questions) => questions.push(PendingRequest { wants, answer }),
            None => return Err(ending()),
        }
        (self.wake)();
        match timeout(PATIENCE, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(ending()),
            Err(_) => Err(NoReply {
                why: format!("no plan within {} s", PATIENCE.as_secs()),
                hint: "a cluster or a disk may be slow; check the log of `streamfleet serve`, and try again"
                    .to_owned(),
            }),
        }
    }
}

impl PendingRequest {
    /// Sends the reply. A caller that gave up meanwhile is ignored.
    pub fn answer(self, answer: Result<Reply, NoReply>) {
        let _ = self.answer.send(answer);
    }
}

pub(super) fn ending() -> NoReply {
    let hint = "wait until the daemon is running again, and try again".to_owned();
    NoReply { why: "the daemon is shutting down".to_owned(), hint }
}
