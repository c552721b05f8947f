//! Why something that was asked for isn't answered, as a problem document (RFC 9457).
//!
//! Every refusal is one, whoever refuses: [`identify`] gives each request an id, and makes problems of what the router and
//! others refuse in words of their own, and of a handler that dies. Refusals of what isn't even a request are left to hyper, which
//! answers them with the status alone.

pub mod code;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use serde::Serialize;
use uuid::Uuid;

use super::connection::Remote;
use super::limiter::{Address, Told};
use crate::problem::{Problem as Mistake, plain};
use crate::state::looks_like_token;
use code::Code;

/// What problem documents are sent as.
pub const PROBLEM: &str = "application/problem+json";

/// Keeps browsers from taking an answer for something else than it says.
const NOSNIFF: (HeaderName, HeaderValue) = (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));

/// The header with the id of a request.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Why something that was asked for isn't answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The status of HTTP.
    pub status: StatusCode,
    /// In which way it isn't: a word for programs, and what that means for people.
    pub kind: &'static Code,
    /// Why, as a sentence without a full stop. It holds no secret, and nothing that the caller may not see.
    pub detail: String,
    /// What to do next.
    pub hint: Option<String>,
    /// What is wrong with which field.
    pub errors: Vec<FieldError>,
    /// When it may be tried again.
    pub retry_after: Option<Duration>,
    /// What may be asked for in its place, as in `GET, POST`.
    pub allow: Option<Box<str>>,
}

/// What is wrong with a field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// The field, as a JSON pointer into what was sent; none where it is about the whole.
    pub pointer: Option<String>,
    /// What is wrong, as a sentence without a full stop.
    pub detail: String,
    /// What to do next.
    pub hint: Option<String>,
    /// The file of the spec tree that it stands in; none where it stands in none.
    pub file: Option<String>,
    /// The line, counted from 1.
    pub line: Option<u32>,
}

/// The id of a request, which stands in its log line, in its answer's header and in a problem's `request_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId(pub Uuid);

/// Marks an answer that says in its own words what is wrong, as probes do.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

/// The problem document.
#[derive(Serialize)]
struct Document<'p> {
    r#type: String,
    title: &'p str,
    status: u16,
    code: &'p str,
    detail: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'p str>,
    #[serde(skip_serializing_if = "<[FieldError]>::is_empty")]
    errors: &'p [FieldError],
    request_id: Option<Uuid>,
}

impl Problem {
    /// A problem of a kind, and why.
    pub fn new(code: &'static Code, detail: impl Into<String>) -> Problem {
        Problem {
            status: code.status(),
            kind: code,
            detail: detail.into(),
            hint: None,
            errors: Vec::new(),
            retry_after: None,
            allow: None,
        }
    }

    /// What was sent can't be understood.
    pub fn malformed(detail: impl Into<String>) -> Problem {
        Problem::new(&code::MALFORMED, detail)
    }

    /// Nobody knows who asks.
    pub fn unauthenticated(detail: impl Into<String>) -> Problem {
        Problem::new(&code::UNAUTHENTICATED, detail)
            .hint("send a token that is good, in a header `Authorization: Bearer TOKEN`")
    }

    /// Who asks may see it, and may not do it.
    pub fn forbidden(detail: impl Into<String>) -> Problem {
        Problem::new(&code::FORBIDDEN, detail)
    }

    /// It isn't there, or who asks may not see it.
    pub fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(&code::NOT_FOUND, detail)
    }

    /// It is there, and that can't be done with it.
    pub fn method_not_allowed(allow: impl Into<String>) -> Problem {
        let allow = allow.into();
        let problem = Problem::new(&code::METHOD_NOT_ALLOWED, "that can't be done with what the path names");
        Problem { hint: Some(format!("it takes {allow}")), allow: Some(allow.into()), ..problem }
    }

    /// It didn't come in time.
    pub fn late(detail: impl Into<String>) -> Problem {
        Problem::new(&code::LATE, detail)
    }

    /// It can't be done as things are. The kind says in which way: [`code::DUPLICATE`] and those after it.
    pub fn conflict(code: &'static Code, detail: impl Into<String>) -> Problem {
        Problem::new(code, detail)
    }

    /// It was changed since it was read.
    pub fn stale(detail: impl Into<String>) -> Problem {
        Problem::new(&code::STALE, detail).hint("read it again, and change what it is now")
    }

    /// More was sent than is taken.
    pub fn too_large(limit: usize) -> Problem {
        Problem::new(
            &code::TOO_LARGE,
            format!("the body is larger than {limit} bytes, which is the most that is taken"),
        )
    }

    /// It was sent as something that isn't taken.
    pub fn unsupported(sent: &str, taken: &str) -> Problem {
        let why = match sent {
            "" => "the body is sent without a `Content-Type`".to_owned(),
            sent => format!("the body is sent as `{}`, which isn't taken here", plain(sent)),
        };
        Problem::new(&code::UNSUPPORTED, why).hint(format!("send it with a header `Content-Type: {taken}`"))
    }

    /// It was understood, and is wrong.
    pub fn invalid(detail: impl Into<String>, errors: Vec<FieldError>) -> Problem {
        Problem { errors, ..Problem::new(&code::INVALID, detail) }
    }

    /// Who asks has asked too often.
    pub fn too_many(detail: impl Into<String>, retry_after: Duration) -> Problem {
        Problem { retry_after: Some(retry_after), ..Problem::new(&code::TOO_MANY, detail) }
    }

    /// A mistake in streamfleet itself. What it was stands in the log, with the request's id.
    pub fn internal() -> Problem {
        Problem::new(&code::INTERNAL, "a mistake in streamfleet itself ended what was asked for")
            .hint("report it, with what the log of `streamfleet serve` says of this `request_id`")
    }

    /// It can't be done now.
    pub fn unavailable(detail: impl Into<String>, retry_after: Duration) -> Problem {
        Problem { retry_after: Some(retry_after), ..Problem::new(&code::UNAVAILABLE, detail) }
    }

    /// It took too long, and goes on, or doesn't.
    pub fn timed_out(within: Duration) -> Problem {
        Problem::new(&code::TIMED_OUT, format!("it was not done within {} s", within.as_secs()))
            .hint("look whether it was done before it is asked for again")
    }

    /// The same with what to do next.
    pub fn hint(self, hint: impl Into<String>) -> Problem {
        Problem { hint: Some(hint.into()), ..self }
    }

    /// The document, for a request, of an API below a path.
    pub fn document(&self, id: Option<RequestId>, base: &str) -> Vec<u8> {
        let document = Document {
            r#type: format!("{base}/v1/errors#{}", self.kind.word),
            title: self.kind.title,
            status: self.status.as_u16(),
            code: self.kind.word,
            detail: &self.detail,
            hint: self.hint.as_deref(),
            errors: &self.errors,
            request_id: id.map(|id| id.0),
        };
        // Its keys are strings and none of its values can fail to be written.
        serde_json::to_vec(&document).unwrap_or_default()
    }

    /// A whole answer, for whoever can't be answered otherwise. The connection ends with it.
    pub(super) fn written(&self, base: &str) -> Vec<u8> {
        let document = self.document(None, base);
        let retry = self.retry_after.map(|pause| format!("Retry-After: {}\r\n", seconds(pause)));
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {PROBLEM}\r\nX-Content-Type-Options: nosniff\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n",
            self.status,
            document.len(),
            retry.unwrap_or_default(),
        );
        [head.into_bytes(), document].concat()
    }

    fn answered(self, id: Option<RequestId>, base: &str) -> Response {
        let mut response = Response::new(Body::from(self.document(id, base)));
        *response.status_mut() = self.status;
        self.say_beside(response.headers_mut());
        response.extensions_mut().insert(self);
        response
    }

    fn say_beside(&self, headers: &mut HeaderMap) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(pause) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds(pause)));
        }
        if let Some(allow) = self.allow.as_ref().and_then(|allow| HeaderValue::from_str(allow).ok()) {
            headers.insert(ALLOW, allow);
        }
    }
}

/// Whole seconds, one at least.
fn seconds(pause: Duration) -> u64 {
    let begun = pause.subsec_nanos() > 0;
    (pause.as_secs() + u64::from(begun)).max(1)
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.answered(None, "")
    }
}

/// A mistake in what was sent, where it is known by its place in a file.
impl From<&Mistake> for FieldError {
    fn from(mistake: &Mistake) -> FieldError {
        let place = mistake.location.as_ref();
        FieldError {
            pointer: None,
            detail: mistake.message.clone(),
            hint: mistake.hint.clone(),
            file: place.map(|place| place.path.to_string()),
            line: place.map(|place| place.line).filter(|line| *line > 0),
        }
    }
}

/// Has [`identify`] go around routes, and around what the router itself refuses, of an API below a path.
pub fn identified(routes: Router, base: &'static str) -> Router {
    let told = Arc::new(Told::default());
    Router::new().fallback_service(routes).layer(from_fn_with_state((base, told), identify))
}

/// Gives a request its id, has it answered, and sees to it that a refusal is a problem document. It goes around everything else.
async fn identify(
    State((base, told)): State<(&'static str, Arc<Told>)>,
    mut request: Request,
    next: Next,
) -> Response {
    let (id, begin) = (RequestId(Uuid::now_v7()), Instant::now());
    let from = request.extensions().get::<Remote>().map(|remote| Address::from(remote.0.ip()));
    request.extensions_mut().insert(id);
    let (method, path) = (request.method().clone(), without_tokens(request.uri().path()));
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let answered = answered.unwrap_or_else(|_| Problem::internal().into_response());
    let mut response = refused(answered, id, base);
    let status = response.status();
    let millis = begin.elapsed().as_millis();
    let request = id.0;
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(%request, %method, path, status = status.as_u16(), millis, "a request was not answered");
    } else if !status.is_success() && is_told(status, from, &told) {
        tracing::info!(%request, %method, path, status = status.as_u16(), millis, "a request was refused");
    } else if status.is_success() && method != Method::GET && method != Method::HEAD {
        tracing::info!(%request, %method, path, status = status.as_u16(), millis, "a request was answered");
    } else {
        tracing::debug!(%request, %method, path, status = status.as_u16(), millis, "a request is over");
    }
    // An id is ASCII.
    if let Ok(id) = HeaderValue::from_str(&request.to_string()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response.headers_mut().extend([NOSNIFF]);
    response
}

/// A path as the log may have it: somebody may have put a token where its id belongs.
fn without_tokens(path: &str) -> String {
    let parts = path.split('/').map(|part| if looks_like_token(part) { "sf_…" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// Whether a refusal has a line in the log. Who asks too often has none.
fn is_told(status: StatusCode, from: Option<Address>, told: &Told) -> bool {
    status != StatusCode::TOO_MANY_REQUESTS && told.has_room(from, Instant::now())
}

/// Puts the request's id into a problem, and makes problems of other refusals.
fn refused(mut response: Response, id: RequestId, base: &str) -> Response {
    let status = response.status();
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let (mut parts, _) = response.into_parts();
        parts.headers.remove(CONTENT_LENGTH);
        return Response::from_parts(parts, Body::from(problem.document(Some(id), base)));
    }
    let is_refused = status.is_client_error() || status.is_server_error();
    let is_told = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == PROBLEM)
        || response.extensions().get::<Plain>().is_some();
    if !is_refused || is_told {
        return response;
    }
    let allow = response.headers().get(ALLOW).and_then(|allow| allow.to_str().ok()).map(str::to_owned);
    let problem = match status {
        StatusCode::NOT_FOUND => unknown(base),
        StatusCode::METHOD_NOT_ALLOWED => Problem::method_not_allowed(allow.unwrap_or_default()),
        StatusCode::REQUEST_TIMEOUT => Problem::late("it took longer than it may"),
        status => Problem::new(code::of(status), "it can't be answered as it was asked for"),
    };
    // What the code stands for may be less than what was meant.
    Problem { status, ..problem }.answered(Some(id), base)
}

/// There is nothing at a path, and there is an API below another.
fn unknown(base: &str) -> Problem {
    Problem::not_found("there is nothing at this path")
        .hint(format!("`{base}/openapi.json` has every path that there is"))
}

#[cfg(test)]
mod tests;
