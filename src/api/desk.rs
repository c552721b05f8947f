//! Where those who ask leave their questions, and whoever makes plans the last one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

use super::line::Line;
use super::writing::{Mark, Writer};
use crate::names::ResourceKey;
use crate::parallel::locked;
use crate::round::{Approved, Installation, Memory, Round};
use crate::spec::Documents;
use crate::state::State;
use crate::views::records;

/// How long a plan is waited for: a target that is silent may hold it up.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a plan is current that nothing is known to have overtaken. There is another one every 30 s anyway, unless a target
/// holds it up.
const CURRENT: Duration = Duration::from_secs(60);

/// Where those who ask leave their questions.
pub struct Desk {
    /// The state, which outlives all plans.
    pub(super) state: Option<Arc<State>>,
    /// What plans are made with.
    pub(super) memory: Arc<Memory>,
    /// What writes specs for those who call; none where nobody may.
    pub(super) writer: Option<Arc<Writer>>,
    /// Lets one at a time plan what nobody carries out: a plan takes memory.
    pub(super) proposals: Arc<Line>,
    last: Mutex<Option<Made>>,
    /// None when no answer will be given any more.
    questions: Mutex<Option<Vec<Question>>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// A plan that was made.
#[derive(Clone)]
pub struct Made {
    /// With what.
    pub installation: Arc<Installation>,
    /// Of which specs.
    pub documents: Arc<Documents>,
    /// The plan.
    pub round: Arc<Round>,
    /// What the specs have in any case: the [`Writer::mark`] of when they were read.
    pub mark: Mark,
    /// Why what it says could not be recorded, so that nothing of it is done; none where it could.
    pub trouble: Option<String>,
    /// Since when it is there.
    since: Instant,
    /// What has which id, once somebody asks for one.
    ids: Arc<OnceLock<BTreeMap<Uuid, ResourceKey>>>,
}

impl Made {
    /// A plan of specs that have all of what was before a mark.
    pub fn new(
        installation: Arc<Installation>,
        documents: Arc<Documents>,
        round: Arc<Round>,
        mark: Mark,
    ) -> Made {
        let (trouble, since) = (None, Instant::now());
        Made { installation, documents, round, mark, trouble, since, ids: Arc::default() }
    }

    /// The same, of which nothing is done.
    pub fn with_trouble(self, trouble: Option<String>) -> Made {
        Made { trouble, ..self }
    }

    /// What has an id.
    pub(super) fn key_with(&self, id: Uuid) -> Option<&ResourceKey> {
        let all = || {
            let checked = &self.round.checked;
            let recorded = checked.recorded.resources.iter().map(|(key, record)| (record.id, key.clone()));
            let wanted =
                checked.catalog.resources.values().map(|resource| (resource.id, resource.key.clone()));
            let root = records::root(&self.round).map(|root| (root.id, root.key));
            root.into_iter().chain(recorded).chain(wanted).collect()
        };
        self.ids.get_or_init(all).get(&id)
    }
}

/// What somebody asks for that takes a plan.
pub struct Question {
    /// What.
    pub wants: Wants,
    answer: oneshot::Sender<Result<Given, Unanswered>>,
}

/// What somebody asks for.
#[derive(Debug, Clone)]
pub enum Wants {
    /// A plan that is made from now on.
    Plan,
    /// To approve what waits for that in such a plan.
    Approve {
        /// The id that the plan names beside it.
        id: String,
        /// Who approves it.
        by: String,
    },
}

/// What is given to who asks.
pub enum Given {
    /// A plan.
    Plan(Made),
    /// What came of an approval.
    Approved(Approved),
}

/// Why there is no answer, as a sentence without a full stop, and what to do next.
#[derive(Debug, Clone)]
pub struct Unanswered {
    /// Why.
    pub why: String,
    /// What to do next.
    pub hint: String,
}

impl Desk {
    /// An empty one. Whoever makes plans is woken when a question is there.
    pub fn new(
        state: Option<Arc<State>>,
        memory: Arc<Memory>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Desk {
        let proposals = Arc::new(Line::new(1));
        let (last, questions) = (Mutex::default(), Mutex::new(Some(Vec::new())));
        Desk { state, memory, writer: None, proposals, last, questions, wake: Box::new(wake) }
    }

    /// The same where specs can be written.
    pub fn with_writer(self, writer: Arc<Writer>) -> Desk {
        Desk { writer: Some(writer), ..self }
    }

    /// What writes specs for those who call; none where nobody may.
    pub fn writer(&self) -> Option<Arc<Writer>> {
        self.writer.clone()
    }

    /// What plans are made with.
    pub fn memory(&self) -> Arc<Memory> {
        Arc::clone(&self.memory)
    }

    /// The questions that are there, from those who still wait for an answer.
    pub fn take(&self) -> Vec<Question> {
        let mut questions = locked(&self.questions).as_mut().map(std::mem::take).unwrap_or_default();
        questions.retain(|question| !question.answer.is_closed());
        questions
    }

    /// No plan is made any more.
    pub fn close(&self) {
        // Whoever waits hears that there will be no answer.
        locked(&self.questions).take();
    }

    /// A plan was made.
    pub fn put(&self, made: Made) {
        *locked(&self.last) = Some(made);
    }

    /// The last plan, where there is one.
    pub(super) fn made(&self) -> Option<Made> {
        locked(&self.last).clone()
    }

    /// The last plan, or the first one once it is made.
    pub(super) async fn last(&self) -> Result<Made, Unanswered> {
        let last = locked(&self.last).clone();
        match last {
            Some(made) => Ok(made),
            None => self.plan().await,
        }
    }

    /// The last plan, where it is current: made a moment ago, of specs that have everything which was written through the API.
    /// Otherwise one that is made from now on.
    pub(super) async fn current(&self) -> Result<Made, Unanswered> {
        let writes = self.writer.as_ref().map_or(0, |writer| writer.mark().writes);
        let is_current = |made: &Made| made.mark.writes >= writes && made.since.elapsed() < CURRENT;
        match self.made().filter(is_current) {
            Some(made) => Ok(made),
            None => self.plan().await,
        }
    }

    /// A plan that is made from now on.
    ///
    /// # Errors
    /// When none is made any more, or not within a minute.
    pub async fn plan(&self) -> Result<Made, Unanswered> {
        match self.ask(Wants::Plan).await? {
            Given::Plan(made) => Ok(made),
            Given::Approved(_) => Err(ending()),
        }
    }

    /// Approves what waits for that in a plan that is made from now on.
    pub(super) async fn approve(&self, id: String, by: String) -> Result<Approved, Unanswered> {
        match self.ask(Wants::Approve { id, by }).await? {
            Given::Approved(approved) => Ok(approved),
            Given::Plan(_) => Err(ending()),
        }
    }

    async fn ask(&self, wants: Wants) -> Result<Given, Unanswered> {
        let (answer, answered) = oneshot::channel();
        match locked(&self.questions).as_mut() {
            Some(questions) => questions.push(Question { wants, answer }),
            None => return Err(ending()),
        }
        (self.wake)();
        match timeout(PATIENCE, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(ending()),
            Err(_) => Err(Unanswered {
                why: format!("no plan was made within {} s", PATIENCE.as_secs()),
                hint: "a cluster or a disk may be slow to answer; see the log of `streamfleet serve`, and try again"
                    .to_owned(),
            }),
        }
    }
}

impl Question {
    /// Answers it. Who went away meanwhile hears nothing.
    pub fn answer(self, answer: Result<Given, Unanswered>) {
        let _ = self.answer.send(answer);
    }
}

/// Whoever makes plans is gone.
pub(super) fn ending() -> Unanswered {
    let hint = "wait until it is gone, or was started again, and try again".to_owned();
    Unanswered { why: "the daemon is ending".to_owned(), hint }
}
