//! Errors as problem documents (RFC 9457).
//!
//! [`identify`] gives each request an id, and turns every refusal into a problem document, including those of
//! the router, of libraries and of a handler that panics. hyper itself answers what isn't valid HTTP, with a
//! status alone.

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
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use serde::Serialize;
use uuid::Uuid;

use super::limiter::{Address, LogLimit};
use super::peer::Peer;
use crate::problem::{Problem as Mistake, quote_untrusted};
use crate::state::looks_like_token;
use code::Code;

pub const PROBLEM: &str = "application/problem+json";

/// Keeps browsers from guessing another content type.
const NOSNIFF: (HeaderName, HeaderValue) = (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemDocument {
    pub status: StatusCode,
    /// The error code for programs, with its meaning for people.
    pub kind: &'static Code,
    /// A sentence without a full stop. It contains no secret and nothing that the caller may not see.
    pub detail: String,
    pub hint: Option<String>,
    pub errors: Vec<FieldError>,
    pub retry_after: Option<Duration>,
    /// The methods that the path allows, as in `GET, POST`.
    pub allow: Option<Box<str>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// A JSON pointer into the request body; `None` for the whole body.
    pub pointer: Option<String>,
    /// A sentence without a full stop.
    pub detail: String,
    pub hint: Option<String>,
    /// The file in the spec tree, if the mistake is in one.
    pub file: Option<String>,
    /// Starting at 1.
    pub line: Option<u32>,
}

impl FieldError {
    pub fn at(pointer: impl Into<String>, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        let pointer = Some(pointer.into()).filter(|pointer| !pointer.is_empty());
        Self { pointer, detail: detail.into(), hint: Some(hint.into()), file: None, line: None }
    }
}

/// A JSON pointer (RFC 6901).
pub fn pointer(names: &[&str]) -> String {
    names.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
}

/// Marks an answer whose body already explains the failure, as those of probes do.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

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

impl ProblemDocument {
    pub fn new(code: &'static Code, detail: impl Into<String>) -> ProblemDocument {
        ProblemDocument {
            status: code.status(),
            kind: code,
            detail: detail.into(),
            hint: None,
            errors: Vec::new(),
            retry_after: None,
            allow: None,
        }
    }

    pub fn malformed(detail: impl Into<String>) -> ProblemDocument {
        ProblemDocument::new(&code::MALFORMED, detail)
    }

    /// The caller may see the resource, and lacks the permission.
    pub fn forbidden(detail: impl Into<String>) -> ProblemDocument {
        ProblemDocument::new(&code::FORBIDDEN, detail)
    }

    /// The resource doesn't exist, or the caller may not see it.
    pub fn not_found(detail: impl Into<String>) -> ProblemDocument {
        ProblemDocument::new(&code::NOT_FOUND, detail)
    }

    pub fn method_not_allowed(allow: impl Into<String>) -> ProblemDocument {
        let allow = allow.into();
        let problem = ProblemDocument::new(&code::METHOD_NOT_ALLOWED, "this method is not allowed here");
        ProblemDocument { hint: Some(format!("it allows {allow}")), allow: Some(allow.into()), ..problem }
    }

    /// The resource changed since the caller read it.
    pub fn stale(detail: impl Into<String>) -> ProblemDocument {
        ProblemDocument::new(&code::STALE, detail)
            .hint("read the resource again, and repeat the change with its new `ETag`")
    }

    pub fn too_large(limit: usize) -> ProblemDocument {
        ProblemDocument::new(&code::TOO_LARGE, format!("the body is larger than the limit of {limit} bytes"))
    }

    pub fn unsupported(sent: &str, taken: &str) -> ProblemDocument {
        let sent = quote_untrusted(sent);
        let why = match sent.is_empty() {
            true => "the body has no `Content-Type`".to_owned(),
            false => format!("the body has the content type `{sent}`, which isn't supported here"),
        };
        ProblemDocument::new(&code::UNSUPPORTED, why)
            .hint(format!("send it with a header `Content-Type: {taken}`"))
    }

    /// Well-formed, but wrong.
    pub fn invalid(detail: impl Into<String>, errors: Vec<FieldError>) -> ProblemDocument {
        ProblemDocument { errors, ..ProblemDocument::new(&code::INVALID, detail) }
    }

    /// Well-formed, but wrong in one or several places.
    pub fn mistakes(errors: Vec<FieldError>) -> ProblemDocument {
        let detail = match errors.as_slice() {
            [error] => error.detail.clone(),
            errors => format!("the request has {} errors", errors.len()),
        };
        ProblemDocument::invalid(detail, errors)
    }

    pub fn no_object() -> ProblemDocument {
        ProblemDocument::malformed("the body is not a JSON object").hint("send the fields as a JSON object")
    }

    pub fn too_many(detail: impl Into<String>, pause: Duration) -> ProblemDocument {
        ProblemDocument::new(&code::TOO_MANY, detail).retry_after(pause)
    }

    /// A bug in streamfleet. The log has the details, under the request's id.
    pub fn internal() -> ProblemDocument {
        ProblemDocument::new(&code::INTERNAL, "internal error: the request was aborted")
            .hint("report it, with the log of `streamfleet serve` for this `request_id`")
    }

    /// The change was sent to the git repository, and whether it arrived is unknown.
    pub fn unsure(detail: impl Into<String>) -> ProblemDocument {
        ProblemDocument::new(&code::UNSURE, detail).retry_after(Duration::from_secs(30))
    }

    pub fn unavailable(detail: impl Into<String>, pause: Duration) -> ProblemDocument {
        ProblemDocument::new(&code::UNAVAILABLE, detail).retry_after(pause)
    }

    pub fn hint(self, hint: impl Into<String>) -> ProblemDocument {
        ProblemDocument { hint: Some(hint.into()), ..self }
    }

    fn retry_after(self, pause: Duration) -> ProblemDocument {
        ProblemDocument { retry_after: Some(pause), ..self }
    }

    /// `base` is the path prefix of the API.
    pub fn document(&self, id: Option<Uuid>, base: &str) -> Vec<u8> {
        let document = Document {
            r#type: format!("{base}/v1/errors#{}", self.kind.word),
            title: self.kind.title,
            status: self.status.as_u16(),
            code: self.kind.word,
            detail: &self.detail,
            hint: self.hint.as_deref(),
            errors: &self.errors,
            request_id: id,
        };
        // Can't fail: all keys are strings, and every value serializes.
        serde_json::to_vec(&document).unwrap_or_default()
    }

    /// A whole HTTP/1.1 response, for connections that no handler serves. It closes the connection.
    pub fn written(&self, base: &str) -> Vec<u8> {
        let document = self.document(None, base);
        let retry = self.retry_after.map(|pause| format!("Retry-After: {}\r\n", seconds(pause)));
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {PROBLEM}\r\nX-Content-Type-Options: nosniff\r\nContent-Length: \
                {}\r\n{}Connection: close\r\n\r\n",
            self.status,
            document.len(),
            retry.unwrap_or_default(),
        );
        [head.into_bytes(), document].concat()
    }

    fn answered(self, id: Option<Uuid>, base: &str) -> Response {
        let mut response = Response::new(Body::from(self.document(id, base)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
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
        response.extensions_mut().insert(self);
        response
    }
}

/// Rounds up to whole seconds, at least 1, as `Retry-After` needs.
fn seconds(pause: Duration) -> u64 {
    let begun = pause.subsec_nanos() > 0;
    (pause.as_secs() + u64::from(begun)).max(1)
}

impl IntoResponse for ProblemDocument {
    fn into_response(self) -> Response {
        self.answered(None, "")
    }
}

/// A mistake that is known by its location in a file.
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

/// Wraps routes, and the router's own refusals, in [`identify`].
pub fn identified(routes: Router, base: &'static str) -> Router {
    let told = Arc::new(LogLimit::default());
    Router::new().fallback_service(routes).layer(from_fn_with_state((base, told), identify))
}

/// Assigns the request id, logs the answer, and turns refusals into problem documents. The outermost layer.
async fn identify(
    State((base, told)): State<(&'static str, Arc<LogLimit>)>,
    request: Request,
    next: Next,
) -> Response {
    let (request_id, begin) = (Uuid::now_v7(), Instant::now());
    let from = Peer::of(request.extensions()).address().map(Address::from);
    let (method, path) = (request.method().clone(), without_tokens(request.uri().path()));
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let answered = answered.unwrap_or_else(|_| ProblemDocument::internal().into_response());
    let mut response = refused(answered, request_id, base);
    let status = response.status();
    let millis = begin.elapsed().as_millis();
    // Callers over their rate limit aren't logged.
    let is_refusal = status.is_client_error() || status.is_server_error();
    let is_told = || status != StatusCode::TOO_MANY_REQUESTS && told.has_room(from, Instant::now());
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(request = %request_id, %method, path, status = status.as_u16(), millis, "request failed");
    } else if is_refusal && is_told() {
        tracing::info!(request = %request_id, %method, path, status = status.as_u16(), millis, "request refused");
    } else if !is_refusal && method != Method::GET && method != Method::HEAD {
        tracing::info!(request = %request_id, %method, path, status = status.as_u16(), millis, "request answered");
    } else {
        tracing::debug!(request = %request_id, %method, path, status = status.as_u16(), millis, "request finished");
    }
    // Can't fail: an id is ASCII.
    if let Ok(id) = HeaderValue::from_str(&request_id.to_string()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response.headers_mut().extend([NOSNIFF]);
    response
}

/// Masks tokens in a path for the log: a caller may have put one where its id belongs.
fn without_tokens(path: &str) -> String {
    let parts = path.split('/').map(|part| if looks_like_token(part) { "sf_…" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// Adds the request id to a problem, and turns other refusals into problems.
fn refused(mut response: Response, id: Uuid, base: &str) -> Response {
    let status = response.status();
    if let Some(problem) = response.extensions_mut().remove::<ProblemDocument>() {
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
        StatusCode::NOT_FOUND => ProblemDocument::not_found("there is nothing at this path")
            .hint(format!("`{base}/openapi.json` lists all paths")),
        StatusCode::METHOD_NOT_ALLOWED => ProblemDocument::method_not_allowed(allow.unwrap_or_default()),
        StatusCode::REQUEST_TIMEOUT => ProblemDocument::new(&code::LATE, "the request took too long"),
        status => ProblemDocument::new(code::of(status), "the requested form of the answer isn't supported"),
    };
    // Keeps the original status: `code::of` may have returned a more general code.
    ProblemDocument { status, ..problem }.answered(Some(id), base)
}

#[cfg(test)]
mod tests;
