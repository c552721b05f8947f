//! The REST API. Every request takes the same path from authentication to answer, and [`ROUTES`] lists the
//! routes.

mod about;
mod certificates;
mod checks;
mod clusters;
mod cost;
mod event_stream;
mod events;
mod fields;
mod file;
mod fit;
mod history;
mod json;
mod list;
mod logs;
mod me;
mod members;
mod metrics;
mod mistakes;
mod offers;
pub(super) mod open;
mod page;
mod plan_changes;
mod plans;
mod proposal_limits;
mod request_slots;
mod resources;
pub(super) mod sessions;
mod sign_in_accounts;
mod sign_in_links;
mod tokens;
mod writes;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use jiff::Timestamp;
use serde::Serialize;
use tokio::runtime::Handle;
use zeroize::Zeroizing;

use super::caller::{Caller, CallerIdentity, PendingWrites};
use super::local;
use super::organization_queue::QueuedCaller;
use super::request_queue::RequestQueue;
use super::route::{Method, QueueKind, ROUTES, RequiredAccess, Route};
use super::sign_in::SignInSettings;
use crate::config::ApiConfig;
use crate::http::authenticate::Unauthenticated;
use crate::http::peer::Peer;
use crate::http::problem::{ProblemDocument, code};
use crate::http::query::Query;
use crate::http::rate_limits::RateLimits;
use crate::http::tags::{NoTags, Tags};
use crate::names::Identifier;
use crate::problem::quote_untrusted;
use crate::round::Round;
use crate::state::{Access, State, StateError, TokenPurpose, TokenRejection};
use crate::views::metrics::MetricsCache;
use crate::writing::{CurrentPlan, Writer};
use event_stream::StreamSlots;
use json::Wiped;
use request_slots::RequestQueues;

type Answered = Result<Response, ProblemDocument>;

const A_TIME: &str = "a time such as 2026-01-31T12:00:00Z";

#[derive(Clone, Copy)]
enum Handler {
    /// The answer is the same for all callers.
    Open(fn(&Base) -> Response),
    /// The answer depends on the caller.
    Known(fn(&Call) -> Answered),
    /// The answer depends on the caller and on no plan: users of this host get it before there is any.
    Unplanned(fn(&CallerRequest) -> Answered),
}

#[derive(Default)]
pub(super) struct Base {
    /// The address or path that clients are given.
    url: String,
    /// The path prefix, without a trailing slash.
    path: String,
    /// The OpenAPI document, generated on first use.
    document: OnceLock<Bytes>,
}

impl Base {
    pub fn of(config: &ApiConfig) -> Base {
        let url = config.base_url.as_deref().unwrap_or_default().trim_end_matches('/').to_owned();
        Base { url, path: config.base_path().to_owned(), document: OnceLock::new() }
    }
}

pub(super) struct Service {
    pub(super) request_queue: Arc<RequestQueue>,
    pub(super) state: Arc<State>,
    pub(super) writer: Arc<Writer>,
    pub(super) rate_limits: Arc<RateLimits>,
    sign_in: SignInSettings,
    /// Limits the requests that are answered at a time.
    slots: RequestQueues,
    streams: StreamSlots,
    metrics: MetricsCache,
}

/// The content of the answer to a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DryRun {
    Plan,
    File,
}

/// A route with what answers its requests.
#[derive(Clone)]
struct Endpoint {
    service: Arc<Service>,
    base: Arc<Base>,
    route: &'static Route,
    handler: Handler,
}

/// An authenticated request, admitted as far as the route alone can tell.
pub(super) struct CallerRequest {
    service: Arc<Service>,
    base: Arc<Base>,
    route: &'static Route,
    caller: Caller,
    path: Vec<(String, String)>,
    query: Query,
    headers: HeaderMap,
    body: Zeroizing<Vec<u8>>,
    runtime: Handle,
}

/// A request with the plan that it is answered from.
pub(super) struct Call {
    request: CallerRequest,
    made: CurrentPlan,
    /// Writes that the last plan doesn't include yet.
    pending: PendingWrites,
}

impl Deref for Call {
    type Target = CallerRequest;
    fn deref(&self) -> &CallerRequest {
        &self.request
    }
}

pub(super) fn routes(service: &Arc<Service>, base: Base) -> Router {
    let base = Arc::new(base);
    let routes = ROUTES.iter().fold(Router::new(), |router, route| {
        let Some(handler) = handler(route) else { return router };
        let (service, base) = (Arc::clone(service), Arc::clone(&base));
        let endpoint = Endpoint { service, base, route, handler };
        let answer = move |request: Request| answer(endpoint, request);
        let slashed = format!("{}/", route.path);
        router
            .route(route.path, on(filter(route.method), answer.clone()))
            .route(&slashed, on(filter(route.method), answer))
    });
    if base.path.is_empty() { routes } else { Router::new().nest(&base.path, routes) }
}

fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Patch => MethodFilter::PATCH,
        Method::Delete => MethodFilter::DELETE,
    }
}

/// The handler of a route. A test finds routes without one.
fn handler(route: &Route) -> Option<Handler> {
    let known: fn(&Call) -> Answered = match (route.kind(), route.method, route.id) {
        (Some(_), Method::Get, "list_members") => members::list,
        (Some(_), Method::Get, "list_certificates") => certificates::list,
        (Some(_), Method::Get, _) if route.path.ends_with("/file") => file::read,
        (Some(_), Method::Get, _) if route.path.ends_with("/history") => history::list,
        (Some(_), Method::Get, _) if route.path.ends_with("/logs") => logs::read,
        (Some(_), Method::Get, _) if route.path.ends_with("/metrics") => metrics::read,
        (Some(_), Method::Get, _) if route.path.ends_with("/cost") => cost::read,
        (Some(_), Method::Get, _) if route.path.ends_with('}') => resources::read,
        (Some(_), Method::Get, _) => list::list,
        (Some(_), Method::Post, _) => writes::create,
        (Some(_), Method::Put, _) => writes::replace,
        (Some(_), Method::Patch, _) => writes::patch,
        (Some(_), Method::Delete, _) => writes::delete,
        (None, _, "read_plan") => plans::read,
        (None, _, "list_changes") => plan_changes::list,
        (None, _, "propose_plan") => plans::propose,
        (None, _, "approve_plan") => plans::approve,
        (None, _, "list_events") => events::list,
        (None, _, "stream_events") => event_stream::stream,
        (None, _, "read_status") => clusters::status,
        (None, _, "explain_cluster") => clusters::why,
        (None, _, "read_client_properties") => clusters::client_properties,
        (None, _, "read_about") => about::read,
        (None, _, "read_me") => me::read,
        (None, _, "read_offers") => offers::read,
        (None, _, "fit_cluster") => fit::read,
        (None, _, "check_kubernetes_cluster") => checks::check,
        (None, _, "create_sign_in_link") => return Some(Handler::Unplanned(sign_in_links::create)),
        (None, _, "release_account") => return Some(Handler::Unplanned(sign_in_accounts::release)),
        (None, _, "list_tokens") => return Some(Handler::Unplanned(tokens::list)),
        (None, _, "list_sessions") => return Some(Handler::Unplanned(sessions::list)),
        (None, _, "end_session") => return Some(Handler::Unplanned(sessions::end)),
        (None, _, "create_session") => return Some(Handler::Unplanned(sessions::create)),
        (None, _, "create_token") => return Some(Handler::Unplanned(tokens::create)),
        (None, _, "revoke_token") => return Some(Handler::Unplanned(tokens::revoke)),
        (None, _, "list_errors") => return Some(Handler::Open(open::errors)),
        (None, _, "read_openapi") => return Some(Handler::Open(open::document)),
        (None, ..) => return None,
    };
    Some(Handler::Known(known))
}

async fn answer(endpoint: Endpoint, request: Request) -> Response {
    let handler = endpoint.handler;
    let mut response = answered(endpoint, request).await.unwrap_or_else(ProblemDocument::into_response);
    // The answer is for this caller alone, and may contain a token or a secret.
    if !matches!(handler, Handler::Open(_)) {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

async fn answered(endpoint: Endpoint, request: Request) -> Answered {
    let Endpoint { service, base, route, handler } = endpoint;
    let (mut parts, body) = request.into_parts();
    if let Handler::Open(handler) = handler {
        open::count_public(&service.rate_limits, &parts, Some(&service.state))?;
        return Ok(handler(&base));
    }
    let who = service.admit(&parts, route)?;
    let known = route.query.iter().map(|query| query.name);
    let query = Query::strict(&parts.uri, known.clone())?;
    if let Some(name) = known.into_iter().find(|name| query.get(name) == Some("")) {
        let why = format!("the query parameter `{name}` has no value");
        return Err(ProblemDocument::malformed(why).hint("add a value, or leave it out"));
    }
    let path = RawPathParams::from_request_parts(&mut parts, &()).await;
    let path = path.map_err(|_| ProblemDocument::malformed("the path is not UTF-8 text"))?;
    let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let body = match &route.takes {
        Some(takes) => json::read_body(takes, &parts.headers, body).await?,
        None => Zeroizing::default(),
    };
    let is_dry_run = query.get("dry_run").is_some_and(|wanted| wanted != "false");
    let is_planned_apart = is_dry_run || query.get("at").is_some();
    let queue = if is_planned_apart { QueueKind::Proposal } else { route.queue };
    // The first organization that the caller is a member of takes the turn.
    let last = || Caller::by_plan(&who, service.request_queue.made().as_ref(), &BTreeMap::new());
    let organization = || last().organizations().next().cloned();
    let slot = service.slots.of(queue, who.requester(), organization).await?;
    let (made, pending) = service.plan_for(route, &who, handler).await?;
    who.still_holds(&service.state)?;
    let caller = Caller::by_plan(&who, made.as_ref(), &pending);
    let (runtime, headers) = (Handle::current(), parts.headers);
    let request = CallerRequest { service, base, route, caller, path, query, headers, body, runtime };
    let answer = move || {
        let _slot = slot;
        match (handler, made) {
            (Handler::Known(handler), Some(made)) => {
                request.refuse_other_source(&made)?;
                handler(&Call { request, made, pending })
            }
            (Handler::Unplanned(handler), _) => handler(&request),
            _ => Err(ProblemDocument::internal()),
        }
    };
    let answered = tokio::task::spawn_blocking(answer).await;
    answered.unwrap_or_else(|_| Err(ProblemDocument::internal()))
}

impl CallerIdentity {
    /// Checks the token again after the upload and the queue: it may have been revoked meanwhile.
    fn still_holds(&self, state: &State) -> Result<(), ProblemDocument> {
        let CallerIdentity::Token(token) = self else { return Ok(()) };
        state.recheck_token(token.id, Timestamp::now()).map_err(|why| {
            let why = Unauthenticated::from(why);
            why.log(None);
            why.into()
        })
    }

    fn requester(&self) -> QueuedCaller {
        match self {
            CallerIdentity::User { .. } => QueuedCaller::Host,
            CallerIdentity::Token(token) => QueuedCaller::Owner(token.owner.to_ascii_lowercase()),
        }
    }
}

impl Service {
    /// `None` if there is no state, or writes are off.
    pub(super) fn of(
        request_queue: &Arc<RequestQueue>,
        rate_limits: Arc<RateLimits>,
        sign_in: SignInSettings,
    ) -> Option<Service> {
        let (state, writer) = (request_queue.state.clone()?, request_queue.writer.clone()?);
        let (request_queue, slots) = (Arc::clone(request_queue), RequestQueues::new());
        let (streams, metrics) = (StreamSlots::default(), MetricsCache::default());
        Some(Service { request_queue, state, writer, rate_limits, sign_in, slots, streams, metrics })
    }

    /// Admits callers on the socket, which has checked the user already, and callers with a valid token.
    fn admit(&self, parts: &Parts, route: &Route) -> Result<CallerIdentity, ProblemDocument> {
        match Peer::of(&parts.extensions) {
            Peer::Local { uid } => Ok(CallerIdentity::User { uid, name: local::user(&parts.headers) }),
            Peer::Remote(from) => {
                let now = (Timestamp::now(), Instant::now());
                let revokes = route.queue == QueueKind::Revoking;
                let asked = (&parts.headers, &parts.uri, from.ip());
                let token = self.rate_limits.admit(asked, &self.state, now, revokes)?;
                // A link signs in once and does nothing else.
                match token.purpose == TokenPurpose::Link && route.id != "create_session" {
                    true => Err(Unauthenticated::NotHolding(TokenRejection::Unknown).into()),
                    false => Ok(CallerIdentity::Token(token)),
                }
            }
        }
    }

    /// The plan to answer from, and the writes since; none for a user of this host who needs none while there
    /// is none. It is awaited here, so that a caller who goes away ends the wait.
    async fn plan_for(
        &self,
        route: &Route,
        who: &CallerIdentity,
        handler: Handler,
    ) -> Result<(Option<CurrentPlan>, PendingWrites), ProblemDocument> {
        let made = match (who, handler, route.id) {
            (CallerIdentity::User { .. }, Handler::Unplanned(_), _) => match self.request_queue.made() {
                Some(made) => made,
                None => return Ok((None, BTreeMap::new())),
            },
            // A command shows what the files say now.
            (CallerIdentity::User { .. }, _, "read_plan") => self.request_queue.plan().await?,
            // Frequent polling doesn't cause new plans.
            (_, _, "read_plan" | "list_changes") => self.request_queue.current().await?,
            // Without any plan the permissions are unknown, so the first one is waited for.
            _ => self.request_queue.last().await?,
        };
        // Takes the newest plan, which includes earlier writes.
        let (made, pending) = self.writer.newest(|| self.request_queue.made().unwrap_or(made));
        Ok((Some(made), pending))
    }
}

impl CallerRequest {
    fn parameter(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    fn json(&self) -> Result<Wiped, ProblemDocument> {
        json::read(&self.body)
            .map(Wiped)
            .map_err(|why| ProblemDocument::malformed(format!("cannot read the body: {why}")))
    }

    /// The time to plan for; `None` for now.
    fn at(&self) -> Result<Option<Timestamp>, ProblemDocument> {
        self.query.parsed("at", A_TIME)
    }

    /// Refuses a command that names other specs than the daemon's: its user would take the answer for their
    /// own specs.
    fn refuse_other_source(&self, made: &CurrentPlan) -> Result<(), ProblemDocument> {
        let own = &made.round.plan.inputs.source.0;
        let named = local::source(&self.headers).filter(|named| self.caller.is_user() && named != own);
        let Some(named) = named else { return Ok(()) };
        let why = format!("the daemon with this state has the specs of `{own}`, not of `{named}`");
        let hint = "use its specs; to plan other specs in their place: streamfleet plan TREE --checkout DIR";
        Err(ProblemDocument::new(&code::OTHER_SOURCE, why).hint(hint))
    }

    /// Hides paths on this host from all but its users. The log has them.
    fn of_state(&self, error: &StateError) -> ProblemDocument {
        tracing::error!(%error, hint = error.hint(), "request failed");
        match self.caller.is_user() {
            true => ProblemDocument::new(&code::INTERNAL, error.to_string()).hint(error.hint()),
            false => ProblemDocument::internal(),
        }
    }

    /// The answer that is wanted instead of a write; `None` to write.
    fn dry_run(&self) -> Result<Option<DryRun>, ProblemDocument> {
        let wanted = |text: &str| match text {
            "true" => Some(Some(DryRun::Plan)),
            "file" => Some(Some(DryRun::File)),
            "false" => Some(None),
            _ => None,
        };
        Ok(self.query.parsed_by("dry_run", "`true`, `file` or `false`", wanted)?.flatten())
    }

    /// The `If-Match` condition; `None` if there is none.
    fn expected(&self) -> Result<Option<Tags>, ProblemDocument> {
        Tags::expected(&self.headers).map_err(|NoTags| {
            ProblemDocument::malformed("`If-Match` is neither `*` nor a list of tags from `ETag`")
                .hint("send the `ETag` of the record, with its quotes, or leave out the header")
        })
    }

    /// Checks a permission in an organization. A caller who may not even read gets "not found".
    fn may(&self, organization: &Identifier, needs: RequiredAccess) -> Result<(), ProblemDocument> {
        let access = match needs {
            RequiredAccess::Nobody => return Ok(()),
            RequiredAccess::Read => Access::Read,
            RequiredAccess::Write => Access::Write,
            RequiredAccess::Admin => Access::Admin,
            RequiredAccess::Super => return self.may_as_super(),
        };
        require(self.caller.may(organization, access), || {
            self.caller.lacks(self.route.doing, organization, access)
        })
    }

    fn may_as_super(&self) -> Result<(), ProblemDocument> {
        require(self.caller.is_super(), || self.caller.lacks_super(self.route.doing))
    }
}

impl Call {
    /// Tells a user of this host which plan an answer is made from, and what to know of it.
    fn with_plan(&self, mut response: Response, round: &Round, trouble: Option<&str>) -> Response {
        if self.caller.is_user() {
            let trouble = trouble
                .map(|why| format!("no command is accepted while the audit trail can't be written: {why}"));
            let warnings: Vec<String> = round.warnings().chain(trouble).collect();
            local::add_plan(response.headers_mut(), &round.plan, &warnings);
        }
        response
    }

    /// Adds the current plan to an answer that is made from it.
    fn with_current_plan(&self, response: Response) -> Response {
        self.with_plan(response, &self.made.round, self.made.trouble.as_deref())
    }
}

/// Refuses callers without a permission; `lacks` says why and what to do.
fn require(may: bool, lacks: impl FnOnce() -> (String, &'static str)) -> Result<(), ProblemDocument> {
    if may {
        return Ok(());
    }
    let (why, hint) = lacks();
    Err(ProblemDocument::forbidden(why).hint(hint))
}

fn missing(noun: &str, named: &str) -> ProblemDocument {
    let named = quote_untrusted(named);
    ProblemDocument::not_found(format!("there is no {noun} `{named}`, or the caller may not see it"))
}

fn written(status: StatusCode, data: &impl Serialize) -> Response {
    (status, json_text(bytes(data))).into_response()
}

fn bytes(data: &impl Serialize) -> Bytes {
    // Can't fail: all keys are strings, and every value serializes.
    serde_json::to_vec(data).unwrap_or_default().into()
}

fn json_text(text: Bytes) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_answered() {
        let unanswered = ROUTES.iter().filter(|route| handler(route).is_none()).map(|route| route.id);
        assert_eq!(unanswered.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
