//! The REST API. Every request takes the same path from authentication to answer, and [`ROUTES`] lists the
//! routes.

mod clusters;
mod events;
mod json;
mod page;
mod plans;
mod proposal_limits;
mod request_slots;
mod resources;
mod tokens;
mod writes;

use std::collections::BTreeMap;
use std::future::ready;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Handle;
use zeroize::{Zeroize as _, Zeroizing};

use super::caller::{Caller, SuperUsers};
use super::local;
use super::openapi::{self, JSON, MERGE_PATCH};
use super::organization_queue::QueuedCaller;
use super::request_queue::{NoReply, RequestQueue};
use super::route::{Method, QueueKind, ROUTES, RequestBody, RequiredAccess, Route};
use crate::config::ApiConfig;
use crate::http::authenticate::Unauthenticated;
use crate::http::peer::Peer;
use crate::http::problem::{ProblemDocument, code};
use crate::http::query::Query;
use crate::http::rate_limits::RateLimits;
use crate::http::tags::{NoTags, Tags};
use crate::names::{Digest, Identifier, ResourceKey};
use crate::round::Round;
use crate::state::{Access, State, StateError, Token};
use crate::writing::CurrentPlan;
use crate::writing::{WriteResult, Writer};
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
    request_queue: Arc<RequestQueue>,
    state: Arc<State>,
    writer: Arc<Writer>,
    rate_limits: Arc<RateLimits>,
    /// Limits the requests that are answered at a time.
    slots: RequestQueues,
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
    pending: BTreeMap<ResourceKey, Arc<WriteResult>>,
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
        let at = (Arc::clone(service), Arc::clone(&base));
        let answer = move |request: Request| answer(at, route, handler, request);
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
    let is_one = route.path.ends_with('}');
    let known: fn(&Call) -> Answered = match (route.kind(), route.method, route.id) {
        (Some(_), Method::Get, _) if is_one => resources::read,
        (Some(_), Method::Get, _) => resources::list,
        (Some(_), Method::Post, _) => writes::create,
        (Some(_), Method::Put, _) => writes::replace,
        (Some(_), Method::Patch, _) => writes::patch,
        (Some(_), Method::Delete, _) => writes::delete,
        (None, _, "read_plan") => plans::read,
        (None, _, "propose_plan") => plans::propose,
        (None, _, "approve_plan") => plans::approve,
        (None, _, "list_events") => events::list,
        (None, _, "read_status") => clusters::status,
        (None, _, "explain_cluster") => clusters::why,
        (None, _, "read_client_properties") => clusters::client_properties,
        (None, _, "list_tokens") => return Some(Handler::Unplanned(tokens::list)),
        (None, _, "create_token") => return Some(Handler::Unplanned(tokens::create)),
        (None, _, "revoke_token") => return Some(Handler::Unplanned(tokens::revoke)),
        (None, _, "list_errors") => return Some(Handler::Open(errors)),
        (None, _, "read_openapi") => return Some(Handler::Open(document)),
        (None, ..) => return None,
    };
    Some(Handler::Known(known))
}

async fn answer(
    at: (Arc<Service>, Arc<Base>),
    route: &'static Route,
    handler: Handler,
    request: Request,
) -> Response {
    let answered = answered(at, route, handler, request).await;
    let mut response = answered.unwrap_or_else(ProblemDocument::into_response);
    // The answer is for this caller alone, and may contain a token or a secret.
    if !matches!(handler, Handler::Open(_)) {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

async fn answered(
    at: (Arc<Service>, Arc<Base>),
    route: &'static Route,
    handler: Handler,
    request: Request,
) -> Answered {
    let (service, base) = at;
    let (mut parts, body) = request.into_parts();
    if let Handler::Open(handler) = handler {
        service.pass(&parts)?;
        return Ok(handler(&base));
    }
    let who = service.admit(&parts, route)?;
    let query = Query::strict(&parts.uri, route.query.iter().map(|query| query.name))
        .map_err(ProblemDocument::malformed)?;
    if let Some(name) = route.query.iter().map(|query| query.name).find(|name| query.get(name) == Some("")) {
        let why = format!("the query parameter `{name}` has no value");
        return Err(ProblemDocument::malformed(why).hint("add a value, or leave it out"));
    }
    let path = RawPathParams::from_request_parts(&mut parts, &()).await;
    let path = path.map_err(|_| ProblemDocument::malformed("the path is not UTF-8 text"))?;
    let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let body = match &route.takes {
        Some(takes) => read_body(takes, &parts.headers, body).await?,
        None => Zeroizing::default(),
    };
    let is_planned_apart = query.get("dry_run") == Some("true") || query.get("at").is_some();
    let queue = if is_planned_apart { QueueKind::Proposal } else { route.queue };
    let organization = || who.organization(&service.request_queue.made()?);
    let slot = service.slots.of(queue, who.requester(), organization).await?;
    let (made, pending) = service.plan_for(route, &who, handler).await?;
    who.still_holds(&service.state)?;
    let caller = who.caller(made.as_ref(), &pending);
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

/// An authenticated caller whose permissions aren't known yet.
enum AuthenticatedCaller {
    User { uid: u32, name: Option<String> },
    Token(Token),
}

impl AuthenticatedCaller {
    /// Checks the token again after the upload and the queue: it may have been revoked meanwhile.
    fn still_holds(&self, state: &State) -> Result<(), ProblemDocument> {
        let AuthenticatedCaller::Token(token) = self else { return Ok(()) };
        state.recheck_token(token.id, Timestamp::now()).map_err(|why| {
            let why = Unauthenticated::from(why);
            why.log(None);
            why.into()
        })
    }

    fn requester(&self) -> QueuedCaller {
        match self {
            AuthenticatedCaller::User { .. } => QueuedCaller::Host,
            AuthenticatedCaller::Token(token) => QueuedCaller::Owner(token.owner.to_ascii_lowercase()),
        }
    }

    /// The organization that takes the turn in the queue: the first that the caller is a member of.
    fn organization(&self, made: &CurrentPlan) -> Option<Identifier> {
        self.caller(Some(made), &BTreeMap::new()).organizations().next().cloned()
    }

    /// Without a plan, a token's owner is a member of nothing.
    fn caller(
        &self,
        made: Option<&CurrentPlan>,
        pending: &BTreeMap<ResourceKey, Arc<WriteResult>>,
    ) -> Caller {
        match (self, made) {
            (AuthenticatedCaller::User { uid, name }, _) => Caller::of_user(*uid, name.clone()),
            (AuthenticatedCaller::Token(token), Some(made)) => Caller::by_plan_and(token, made, pending),
            (AuthenticatedCaller::Token(token), None) => {
                Caller::of_token(token, &SuperUsers::default(), std::iter::empty())
            }
        }
    }
}

impl Service {
    /// `None` if there is no state, or writes are off.
    pub(super) fn of(request_queue: &Arc<RequestQueue>, rate_limits: Arc<RateLimits>) -> Option<Service> {
        let (state, writer) = (request_queue.state.clone()?, request_queue.writer()?);
        Some(Service {
            request_queue: Arc::clone(request_queue),
            state,
            writer,
            rate_limits,
            slots: RequestQueues::new(),
        })
    }

    /// Admits callers on the socket, which has checked the user already, and callers with a valid token.
    fn admit(&self, parts: &Parts, route: &Route) -> Result<AuthenticatedCaller, ProblemDocument> {
        match Peer::of(&parts.extensions) {
            Peer::Local { uid } => Ok(AuthenticatedCaller::User { uid, name: local::user(&parts.headers) }),
            Peer::Remote(from) => {
                let now = (Timestamp::now(), Instant::now());
                let revokes = route.queue == QueueKind::Revoking;
                let asked = (&parts.headers, &parts.uri, from.ip());
                Ok(AuthenticatedCaller::Token(self.rate_limits.admit(asked, &self.state, now, revokes)?))
            }
        }
    }

    /// Admits any caller to a public route, within the rate limits.
    fn pass(&self, parts: &Parts) -> Result<(), ProblemDocument> {
        count_public(&self.rate_limits, parts, Some(&self.state))
    }

    /// The plan to answer from, and the writes since; none for a user of this host who needs none while there
    /// is none. It is awaited here, so that a caller who goes away ends the wait.
    async fn plan_for(
        &self,
        route: &Route,
        who: &AuthenticatedCaller,
        handler: Handler,
    ) -> Result<(Option<CurrentPlan>, BTreeMap<ResourceKey, Arc<WriteResult>>), ProblemDocument> {
        let made = match (who, handler, route.id) {
            (AuthenticatedCaller::User { .. }, Handler::Unplanned(_), _) => match self.request_queue.made() {
                Some(made) => made,
                None => return Ok((None, BTreeMap::new())),
            },
            // A command shows what the files say now.
            (AuthenticatedCaller::User { .. }, _, "read_plan") => self.request_queue.plan().await?,
            // Frequent polling doesn't cause new plans.
            (AuthenticatedCaller::Token(_), _, "read_plan") => self.request_queue.current().await?,
            // Without any plan the permissions are unknown, so the first one is waited for.
            _ => self.request_queue.last().await?,
        };
        // Takes the newest plan, which includes earlier writes.
        let (made, pending) = self.writer.newest(|| self.request_queue.made().unwrap_or(made));
        Ok((Some(made), pending))
    }
}

/// Counts a request that needs no token; users of this host aren't counted.
fn count_public(
    rate_limits: &RateLimits,
    parts: &Parts,
    state: Option<&State>,
) -> Result<(), ProblemDocument> {
    let Some(from) = Peer::of(&parts.extensions).address() else { return Ok(()) };
    let now = (Timestamp::now(), Instant::now());
    Ok(rate_limits.admit_public((&parts.headers, &parts.uri, from), state, now)?)
}

/// Counts requests for unknown paths and methods, too.
pub(super) fn counted(routes: Router, rate_limits: &Arc<RateLimits>, state: Option<&Arc<State>>) -> Router {
    let missing = |status: StatusCode| {
        let (rate_limits, state) = (Arc::clone(rate_limits), state.cloned());
        move |request: Request| {
            let (parts, _) = request.into_parts();
            ready(match count_public(&rate_limits, &parts, state.as_deref()) {
                Ok(()) => status.into_response(),
                Err(refused) => refused.into_response(),
            })
        }
    };
    routes
        .fallback(missing(StatusCode::NOT_FOUND))
        .method_not_allowed_fallback(missing(StatusCode::METHOD_NOT_ALLOWED))
}

/// Reads a whole body with a JSON content type.
async fn read_body(
    takes: &RequestBody,
    headers: &HeaderMap,
    mut body: Body,
) -> Result<Zeroizing<Vec<u8>>, ProblemDocument> {
    let sent = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let sent = sent.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let taken = if matches!(takes, RequestBody::Patch(_)) { MERGE_PATCH } else { JSON };
    if sent != JSON && sent != taken {
        return Err(ProblemDocument::unsupported(&sent, taken));
    }
    let mut whole = Zeroizing::new(Vec::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ProblemDocument::malformed("the body is incomplete"))?;
        if let Ok(part) = frame.into_data() {
            append(&mut whole, &part);
            // Wipes the chunk, which has no other owner but the connection's read buffer.
            if let Ok(mut part) = part.try_into_mut() {
                part.as_mut().zeroize();
            }
        }
    }
    Ok(whole)
}

/// Appends bytes that may contain a secret. A `Vec` that reallocates would leave a copy in freed memory.
fn append(whole: &mut Zeroizing<Vec<u8>>, part: &[u8]) {
    let needed = whole.len() + part.len();
    if needed > whole.capacity() {
        let mut larger = Zeroizing::new(Vec::with_capacity(needed.max(2 * whole.capacity())));
        larger.extend_from_slice(whole);
        *whole = larger;
    }
    whole.extend_from_slice(part);
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
        self.query.parsed("at", A_TIME).map_err(ProblemDocument::malformed)
    }

    /// Refuses a command that names other specs than the daemon's: its user would take the answer for their
    /// own specs.
    fn refuse_other_source(&self, made: &CurrentPlan) -> Result<(), ProblemDocument> {
        let own = &made.round.plan.inputs.source.0;
        match local::source(&self.headers).filter(|_| self.caller.is_user()) {
            Some(named) if named != *own => {
                let why = format!("the daemon with this state has the specs of `{own}`, not of `{named}`");
                Err(ProblemDocument::conflict(&code::OTHER_SOURCE, why).hint(
                    "use its specs; to plan other specs in their place: streamfleet plan TREE --checkout DIR",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Hides paths on this host from all but its users. The log has them.
    fn of_state(&self, error: &StateError) -> ProblemDocument {
        tracing::error!(%error, hint = error.hint(), "request failed");
        match self.caller.is_user() {
            true => ProblemDocument::new(&code::INTERNAL, error.to_string()).hint(error.hint()),
            false => ProblemDocument::internal(),
        }
    }

    fn is_dry_run(&self) -> Result<bool, ProblemDocument> {
        let asked =
            self.query.parsed::<bool>("dry_run", "`true` or `false`").map_err(ProblemDocument::malformed)?;
        Ok(asked.unwrap_or_default())
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
        if self.caller.may(organization, access) {
            return Ok(());
        }
        Err(forbidden(self.caller.lacks(self.route.doing, organization, access)))
    }

    fn may_as_super(&self) -> Result<(), ProblemDocument> {
        if self.caller.is_super() {
            return Ok(());
        }
        Err(forbidden(self.caller.lacks_super(self.route.doing)))
    }
}

impl Call {
    /// Tells a user of this host which plan an answer is made from, and what to know of it.
    fn with_plan(&self, mut response: Response, round: &Round, trouble: Option<&str>) -> Response {
        if self.caller.is_user() {
            let trouble = trouble
                .map(|why| format!("no command is accepted while the audit trail can't be written: {why}"));
            let warnings: Vec<String> =
                round.unknown.iter().map(ToString::to_string).chain(trouble).collect();
            local::add_plan(response.headers_mut(), &round.plan, &warnings);
        }
        response
    }

    /// Adds the current plan to an answer that is made from it.
    fn with_current_plan(&self, response: Response) -> Response {
        self.with_plan(response, &self.made.round, self.made.trouble.as_deref())
    }
}

fn forbidden((why, hint): (String, &'static str)) -> ProblemDocument {
    ProblemDocument::forbidden(why).hint(hint)
}

fn errors(_: &Base) -> Response {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    json_text(TEXT.get_or_init(|| bytes(&serde_json::json!({"items": code::ALL}))).clone())
}

fn document(base: &Base) -> Response {
    let server = if base.url.is_empty() { "/" } else { &base.url };
    json_text(base.document.get_or_init(|| bytes(&openapi::document(server))).clone())
}

fn written(status: StatusCode, data: &impl Serialize) -> Response {
    let mut response = json_text(bytes(data));
    *response.status_mut() = status;
    response
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

/// A record, with its `ETag` and `Location`.
fn record(status: StatusCode, record: &Value, tag: Option<&Digest>, place: Option<&str>) -> Response {
    let mut response = written(status, record);
    let headers = response.headers_mut();
    let text = |text: String| HeaderValue::from_str(&text).ok();
    let tag = tag.and_then(|tag| text(format!("\"{tag}\"")));
    headers.extend(
        tag.map(|tag| (ETAG, tag))
            .into_iter()
            .chain(place.and_then(|place| Some((LOCATION, text(place.to_owned())?)))),
    );
    response
}

impl From<NoReply> for ProblemDocument {
    fn from(NoReply { why, hint }: NoReply) -> ProblemDocument {
        ProblemDocument::unavailable(why, Duration::from_secs(10)).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_answered() {
        let unanswered = ROUTES.iter().filter(|route| handler(route).is_none()).map(|route| route.id);
        assert_eq!(unanswered.collect::<Vec<_>>(), Vec::<&str>::new());
    }

    #[tokio::test]
    async fn a_body_is_taken_whole_however_large_it_is_and_in_however_many_parts_it_comes() {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(JSON))]);
        let takes = RequestBody::Schema(|| Value::Null);
        let parts: Vec<Vec<u8>> = (0..=50).map(|number| vec![number; 100_000]).collect();
        let sent = parts.concat();
        let parts = parts.into_iter().map(|part| Ok::<_, std::io::Error>(Bytes::from(part)));
        let body = Body::from_stream(futures_util::stream::iter(parts));
        let read = read_body(&takes, &headers, body).await.unwrap();
        assert!(*read == sent, "{} of {}", read.len(), sent.len());
    }
}
