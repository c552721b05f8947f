//! The REST API. Every request takes the same path from authentication to answer, and [`ROUTES`] lists the
//! routes.

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
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Handle;
use zeroize::{Zeroize as _, Zeroizing};

use super::authenticate::Unauthenticated;
use super::caller::Caller;
use super::connection::Remote;
use super::openapi::{self, JSON, MERGE_PATCH};
use super::organization_queue::QueuedCaller;
use super::problem::{ProblemDocument, code};
use super::query::Query;
use super::rate_limits::RateLimits;
use super::request_queue::{CurrentPlan, NoReply, RequestQueue};
use super::route::{Method, QueueKind, ROUTES, RequestBody, RequiredAccess, Route};
use super::socket::Peer;
use super::tags::{NoTags, Tags};
use super::writing::{WriteResult, Writer};
use crate::config::ApiConfig;
use crate::names::{Digest, Identifier, ResourceKey};
use crate::state::{Access, State, StateError, Token};
use json::Wiped;
use request_slots::RequestQueues;

type Answered = Result<Response, ProblemDocument>;

#[derive(Clone, Copy)]
enum Handler {
    /// The answer is the same for all callers.
    Open(fn(&Base) -> Response),
    /// The answer depends on the caller.
    Known(fn(&Call) -> Answered),
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
    desk: Arc<RequestQueue>,
    state: Arc<State>,
    writer: Arc<Writer>,
    gate: Arc<RateLimits>,
    /// Limits the requests that are answered at a time.
    seats: RequestQueues,
}

/// An authenticated request, admitted as far as the route alone can tell.
pub(super) struct Call {
    service: Arc<Service>,
    base: Arc<Base>,
    route: &'static Route,
    caller: Caller,
    made: CurrentPlan,
    /// Writes that the last plan doesn't include yet.
    pending: BTreeMap<ResourceKey, Arc<WriteResult>>,
    path: Vec<(String, String)>,
    query: Query,
    headers: HeaderMap,
    body: Zeroizing<Vec<u8>>,
    runtime: Handle,
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

/// Whether the request proposes a tree of specs, whose body may be larger than others.
pub(super) fn is_proposal(request: &Request) -> bool {
    let path = request.uri().path();
    request.method() == axum::http::Method::POST
        && path.strip_suffix('/').unwrap_or(path).ends_with("/v1/plans")
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
        (None, _, "list_tokens") => tokens::list,
        (None, _, "create_token") => tokens::create,
        (None, _, "revoke_token") => tokens::revoke,
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
    if matches!(handler, Handler::Known(_)) {
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
    let handler = match handler {
        Handler::Open(handler) => {
            service.pass(&parts)?;
            return Ok(handler(&base));
        }
        Handler::Known(handler) => handler,
    };
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
    let is_dry_run = query.get("dry_run") == Some("true");
    let organization = || who.organization(&service.desk.made()?);
    let seat = service.seats.of(route.seat, is_dry_run, who.requester(), organization).await?;
    // Takes the newest plan, which includes earlier writes. Without any plan the permissions are unknown, so
    // the first one is waited for.
    let made = service.desk.last().await?;
    let (made, pending) = service.writer.newest(|| service.desk.made().unwrap_or(made));
    who.still_holds(&service.state)?;
    let caller = who.caller(&made, &pending);
    let (runtime, headers) = (Handle::current(), parts.headers);
    let call = Call { service, base, route, caller, made, pending, path, query, headers, body, runtime };
    let answer = move || {
        let _seat = seat;
        handler(&call)
    };
    let answered = tokio::task::spawn_blocking(answer).await;
    answered.unwrap_or_else(|_| Err(ProblemDocument::internal()))
}

/// An authenticated caller whose permissions aren't known yet.
enum AuthenticatedCaller {
    Peer(Peer),
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
            AuthenticatedCaller::Peer(peer) => QueuedCaller::User(peer.uid),
            AuthenticatedCaller::Token(token) => QueuedCaller::Owner(token.owner.to_ascii_lowercase()),
        }
    }

    /// The organization that takes the turn in the queue: the first that the caller is a member of.
    fn organization(&self, made: &CurrentPlan) -> Option<Identifier> {
        self.caller(made, &BTreeMap::new()).organizations().next().cloned()
    }

    fn caller(&self, made: &CurrentPlan, pending: &BTreeMap<ResourceKey, Arc<WriteResult>>) -> Caller {
        match self {
            AuthenticatedCaller::Peer(peer) => Caller::of_peer(peer.uid),
            AuthenticatedCaller::Token(token) => Caller::by_plan_and(token, made, pending),
        }
    }
}

impl Service {
    /// `None` if there is no state, or writes are off.
    pub(super) fn of(desk: &Arc<RequestQueue>, gate: Arc<RateLimits>) -> Option<Service> {
        let (state, writer) = (desk.state.clone()?, desk.writer()?);
        let seats = RequestQueues::new(Arc::clone(&desk.proposals));
        Some(Service { desk: Arc::clone(desk), state, writer, gate, seats })
    }

    /// Admits callers on the socket, which has checked the user already, and callers with a valid token.
    fn admit(&self, parts: &Parts, route: &Route) -> Result<AuthenticatedCaller, ProblemDocument> {
        if let Some(peer) = parts.extensions.get::<Peer>() {
            return Ok(AuthenticatedCaller::Peer(*peer));
        }
        let now = (Timestamp::now(), Instant::now());
        let revokes = route.seat == QueueKind::Revoking;
        Ok(AuthenticatedCaller::Token(self.gate.admit(asked(parts), &self.state, now, revokes)?))
    }

    /// Admits any caller to a public route, within the rate limits.
    fn pass(&self, parts: &Parts) -> Result<(), ProblemDocument> {
        if parts.extensions.get::<Peer>().is_some() {
            return Ok(());
        }
        Ok(self.gate.admit_public(asked(parts), Some(&self.state), (Timestamp::now(), Instant::now()))?)
    }
}

fn asked(parts: &Parts) -> (&HeaderMap, &Uri, IpAddr) {
    let unknown = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let from = parts.extensions.get::<Remote>().map_or(unknown, |remote| remote.0.ip());
    (&parts.headers, &parts.uri, from)
}

/// Counts requests for unknown paths and methods, too.
pub(super) fn counted(routes: Router, gate: &Arc<RateLimits>, state: Option<&Arc<State>>) -> Router {
    let missing = |status: StatusCode| {
        let (gate, state) = (Arc::clone(gate), state.cloned());
        move |request: Request| {
            let (parts, _) = request.into_parts();
            let now = (Timestamp::now(), Instant::now());
            ready(match gate.admit_public(asked(&parts), state.as_deref(), now) {
                Ok(()) => status.into_response(),
                Err(refused) => ProblemDocument::from(refused).into_response(),
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

impl Call {
    fn parameter(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    fn json(&self) -> Result<Wiped, ProblemDocument> {
        json::read(&self.body)
            .map(Wiped)
            .map_err(|why| ProblemDocument::malformed(format!("cannot read the body: {why}")))
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

impl From<StateError> for ProblemDocument {
    fn from(error: StateError) -> ProblemDocument {
        tracing::error!(%error, hint = error.hint(), "request failed");
        ProblemDocument::internal()
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
