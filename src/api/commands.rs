//! Routes for commands, which ask the running process because it has the state locked.
//!
//! | route | what |
//! |---|---|
//! | `GET /plan` | plans now |
//! | `POST /plans` | plans the tree in the body as a proposal, with the daemon's settings |
//! | `POST /plans/ID/approve` | approves the guarded steps of a plan id |
//! | `GET /status`, `/records`, `/why`, `/clients` | shows the last plan |
//! | `GET /events` | recent decisions and their outcomes |
//! | `GET /tokens`, `POST /tokens`, `DELETE /tokens/ID` | API tokens ([`super::tokens`]) |

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use jiff::Timestamp;
use serde::Serialize;
use tokio::runtime::Handle;

use super::answer::{CommandAnswer, CommandProblem, PlanId};
use super::proposal::Proposal;
use super::request_queue::{CurrentPlan, NoReply, RequestQueue};
use super::socket::Peer;
use super::tokens;
use crate::names::Kind;
use crate::round::{Installation, Round};
use crate::spec::{self, Documents};
use crate::views::{self, NotFound};

/// The longest name of an approver that is recorded, in characters.
const LONGEST_NAME: usize = 100;

pub(super) type Answered = Result<Response, CommandProblem>;

pub(super) fn routes(desk: Arc<RequestQueue>) -> Router {
    Router::new()
        .route("/plan", get(plan))
        .route("/plans", post(propose))
        .route("/plans/{id}/approve", post(approve))
        .route("/status", get(status))
        .route("/records", get(records))
        .route("/why", get(why))
        .route("/clients", get(clients))
        .route("/events", get(events))
        .merge(tokens::routes())
        .fallback(unknown)
        .with_state(desk)
}

pub(super) struct Words(BTreeMap<String, String>);

impl Words {
    pub(super) fn of(uri: &Uri) -> Words {
        let words = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        Words(words.into_owned().collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn need(&self, name: &str) -> Result<&str, CommandProblem> {
        self.get(name).ok_or_else(|| {
            CommandProblem::new(StatusCode::BAD_REQUEST, format!("the request lacks `{name}`"))
        })
    }

    /// The user: the name they give, and the uid from the kernel.
    pub(super) fn by(&self, peer: Peer) -> Result<String, CommandProblem> {
        let name = self.need("by")?.chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME);
        Ok(format!("{} (command line, uid {})", name.collect::<String>(), peer.uid))
    }

    /// The time to plan for; `None` means now.
    fn at(&self) -> Result<Option<Timestamp>, CommandProblem> {
        let at = self.get("at").map(str::parse).transpose();
        at.map_err(|error| {
            CommandProblem::new(StatusCode::BAD_REQUEST, format!("`at` is not a time: {error}"))
        })
    }

    /// Refuses a command that names other specs than the daemon's: its user would take the answer for their
    /// own specs.
    fn refuse_other(&self, made: &CurrentPlan) -> Result<(), CommandProblem> {
        let own = &made.round.plan.inputs.source.0;
        match self.get("source") {
            Some(source) if source != own => {
                let why = format!("the daemon with this state has the specs of `{own}`, not of `{source}`");
                Err(CommandProblem::new(StatusCode::CONFLICT, why).hint(
                    "use its specs; to plan other specs in their place: streamfleet plan TREE --checkout DIR",
                ))
            }
            _ => Ok(()),
        }
    }
}

async fn plan(State(desk): State<Arc<RequestQueue>>, uri: Uri) -> Answered {
    let words = Words::of(&uri);
    let made = desk.plan().await?;
    words.refuse_other(&made)?;
    match words.at()? {
        None => blocking(move || Ok(written(&made.round, made.trouble.clone(), &made.round.plan))).await,
        Some(at) => {
            let CurrentPlan { installation, documents, .. } = made;
            beside(&desk, installation, move || Ok(documents), at).await
        }
    }
}

/// Plans a proposal and discards the result.
async fn propose(State(desk): State<Arc<RequestQueue>>, uri: Uri, body: Bytes) -> Answered {
    let words = Words::of(&uri);
    let made = desk.last().await?;
    words.refuse_other(&made)?;
    let at = words.at()?.unwrap_or_else(Timestamp::now);
    let installation = Installation { proposed: true, ..Installation::clone(&made.installation) };
    let documents = move || {
        let refused = |why: String| {
            CommandProblem::new(StatusCode::BAD_REQUEST, format!("the specs that were sent {why}"))
        };
        let proposal: Proposal =
            serde_json::from_slice(&body).map_err(|error| refused(format!("can't be parsed: {error}")))?;
        let snapshot = proposal.snapshot().map_err(|_| refused("are not base64".to_owned()))?;
        // Reuses the parsed form of files that are equal to the daemon's own.
        Ok(Arc::new(spec::read(&snapshot, Some(&made.documents))))
    };
    beside(&desk, Arc::new(installation), documents, at).await
}

/// Makes a plan that isn't carried out, one at a time.
async fn beside(
    desk: &Arc<RequestQueue>,
    installation: Arc<Installation>,
    documents: impl FnOnce() -> Result<Arc<Documents>, CommandProblem> + Send + 'static,
    at: Timestamp,
) -> Answered {
    let ended = |_| CommandProblem::from(super::request_queue::ending());
    let turn = desk.proposals.pass_first().await.map_err(ended)?;
    let (desk, runtime) = (Arc::clone(desk), Handle::current());
    let plan = move || {
        let _turn = turn;
        let (documents, memory) = (documents()?, desk.memory.copy());
        let round = installation.plan(&documents, at, &runtime, Some(&memory))?;
        Ok(written(&round, None, &round.plan))
    };
    blocking(plan).await
}

async fn approve(
    State(desk): State<Arc<RequestQueue>>,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
    uri: Uri,
) -> Answered {
    let approved = desk.approve(id, Words::of(&uri).by(peer)?).await?;
    Ok(CommandAnswer::new(None, approved).written())
}

async fn status(State(desk): State<Arc<RequestQueue>>, uri: Uri) -> Answered {
    let made = last(&desk, &Words::of(&uri)).await?;
    shown(made, |round, _| Ok(views::status::lines(round))).await
}

async fn records(State(desk): State<Arc<RequestQueue>>, uri: Uri) -> Answered {
    let words = Words::of(&uri);
    let kind = words.need("kind")?;
    let kind = Kind::meant_by(kind).ok_or_else(|| {
        CommandProblem::new(StatusCode::BAD_REQUEST, format!("`{kind}` is not a kind of resource"))
    })?;
    let made = last(&desk, &words).await?;
    shown(made, move |round, _| views::records::of_kind(round, kind, words.get("path"))).await
}

async fn why(State(desk): State<Arc<RequestQueue>>, uri: Uri) -> Answered {
    let words = Words::of(&uri);
    let (cluster, tree) = (words.need("cluster")?.to_owned(), words.need("tree")?.to_owned());
    let made = last(&desk, &words).await?;
    shown(made, move |round, runtime| views::why::page(round, &cluster, &tree, runtime)).await
}

async fn clients(State(desk): State<Arc<RequestQueue>>, uri: Uri) -> Answered {
    let words = Words::of(&uri);
    let cluster = words.need("cluster")?.to_owned();
    let made = last(&desk, &words).await?;
    shown(made, move |round, _| views::clients::ways(round, &cluster)).await
}

async fn events(State(desk): State<Arc<RequestQueue>>, uri: Uri) -> Answered {
    let from = Words::of(&uri).need("from")?.parse();
    let from = from.map_err(|_| CommandProblem::new(StatusCode::BAD_REQUEST, "`from` is not a number"))?;
    let Some(state) = desk.state.clone() else { return Err(unknown().await) };
    blocking(move || Ok(CommandAnswer::new(None, state.events_from(from)?).written())).await
}

pub(super) async fn unknown() -> CommandProblem {
    CommandProblem::new(StatusCode::NOT_FOUND, "this version of streamfleet doesn't have this operation")
}

async fn last(desk: &RequestQueue, words: &Words) -> Result<CurrentPlan, CommandProblem> {
    let made = desk.last().await?;
    words.refuse_other(&made)?;
    Ok(made)
}

/// Renders a view of a plan, off the async threads since it may take a while.
async fn shown<T: Serialize>(
    made: CurrentPlan,
    view: impl FnOnce(&Round, &Handle) -> Result<T, NotFound> + Send + 'static,
) -> Answered {
    let runtime = Handle::current();
    blocking(move || Ok(written(&made.round, made.trouble.clone(), view(&made.round, &runtime)?))).await
}

fn written(round: &Round, trouble: Option<String>, data: impl Serialize) -> Response {
    let trouble =
        trouble.map(|why| format!("no command is accepted while the audit trail can't be written: {why}"));
    let warnings = round.unknown.iter().map(ToString::to_string).chain(trouble).collect();
    CommandAnswer { warnings, ..CommandAnswer::new(Some(PlanId::from(&round.plan)), data) }.written()
}

pub(super) async fn blocking(work: impl FnOnce() -> Answered + Send + 'static) -> Answered {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        let why = "internal error: the request was aborted";
        Err(CommandProblem::new(StatusCode::INTERNAL_SERVER_ERROR, why)
            .hint("report it, with the log of `streamfleet serve`"))
    })
}

impl From<NoReply> for CommandProblem {
    fn from(NoReply { why, hint }: NoReply) -> CommandProblem {
        CommandProblem::new(StatusCode::SERVICE_UNAVAILABLE, why).hint(hint)
    }
}
