//! One try of a call, and its outcome.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{AsyncBufRead, TryStreamExt as _};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::response::Parts;
use http::{HeaderMap, HeaderName, Request, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError};
use hyper_util::client::legacy;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde_json::Value;

use super::access::{CONNECT_TIMEOUT, MAX_ANSWER, TookTooLong};
use super::budget::{Budget, Charge, OverBudget};
use super::error::KubeError;
use super::items::{ListSplitError, ListSplitter};
use super::untrusted::{self, MAX_OBJECT, ParseFailure};
use crate::config::DeniedAddress;
use crate::names::one_line;

/// Why a call failed. All texts are ends of sentences.
#[derive(Debug)]
pub(super) enum CallError {
    /// No connection came about, so nothing was sent.
    Unreached(String),
    /// The server was silent a moment ago, so nothing was sent.
    Resting(String),
    Barred(Barred),
    /// The request was sent, and no whole response came.
    Lost(String),
    /// The response is longer than this limit, in bytes.
    TooLong(usize),
    OverBudget(OverBudget),
    /// An object has a name that no API server would accept.
    Misnamed,
    Overdue(Duration),
    /// The response didn't come from an API server.
    Stray {
        code: u16,
        kind: Option<String>,
        /// The `Retry-After` header.
        retry_after: Option<Duration>,
    },
    Refused {
        status: Box<Status>,
        /// The `Retry-After` header.
        retry_after: Option<Duration>,
    },
}

#[derive(Debug)]
pub(super) enum Barred {
    Address(DeniedAddress),
    /// The kubeconfig doesn't trust the server's certificate.
    Stranger(String),
}

pub(super) struct ServerAnswer {
    pub(super) made: bool,
    pub(super) value: Value,
}

impl From<OverBudget> for CallError {
    fn from(over: OverBudget) -> CallError {
        CallError::OverBudget(over)
    }
}

impl From<ListSplitError> for CallError {
    fn from(broken: ListSplitError) -> CallError {
        match broken {
            ListSplitError::NotJson => CallError::Lost("the answer is not complete JSON".to_owned()),
            ListSplitError::TooLong(longest) => CallError::TooLong(longest),
        }
    }
}

pub(super) struct KubeListPage<T> {
    /// The caller's selection from the objects.
    pub(super) kept: Vec<T>,
    /// The list without its objects.
    pub(super) envelope: Value,
    pub(super) objects: usize,
    pub(super) bytes: usize,
    /// The budget that `kept` takes.
    pub(super) charge: Charge,
}

pub(super) async fn attempt(
    client: &Client,
    budget: &Arc<Budget>,
    request: Request<Vec<u8>>,
) -> Result<ServerAnswer, CallError> {
    let answer = client.send(request.map(Body::from)).await.map_err(|error| unanswered(&error))?;
    let (head, body) = answer.into_parts();
    whole(&head, body, budget).await
}

/// Reads a page of a list once. `keep` is called with each object as it arrives, and returns what to keep and
/// its size in bytes.
pub(super) async fn page<T>(
    client: &Client,
    budget: &Arc<Budget>,
    request: Request<Vec<u8>>,
    keep: impl Fn(Value) -> Result<Option<(T, usize)>, CallError>,
) -> Result<KubeListPage<T>, CallError> {
    let answer = client.send(request.map(Body::from)).await.map_err(|error| unanswered(&error))?;
    let (head, mut body) = answer.into_parts();
    if header(&head.headers, CONTENT_TYPE).is_some_and(|kind| !kind.starts_with("application/json")) {
        return Err(stray(head.status, &head.headers));
    }
    if !head.status.is_success() {
        return Err(match whole(&head, body, budget).await {
            Ok(_) => stray(head.status, &head.headers),
            Err(failed) => failed,
        });
    }
    let (mut items, mut kept, mut objects, mut bytes) = (ListSplitter::default(), Vec::new(), 0, 0);
    let (mut charge, mut held) = (Charge::new(budget), Charge::new(budget));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| cut(&error))?.into_data() else { continue };
        bytes += data.len();
        items.take(&data, |object| {
            objects += 1;
            if let Some((item, weight)) = keep(parsed(&head, object)?)? {
                charge.add(weight)?;
                kept.push(item);
            }
            Ok::<_, CallError>(())
        })?;
        held.set(items.held())?;
    }
    let envelope = parsed(&head, items.envelope())?;
    Ok(KubeListPage { kept, envelope, objects, bytes, charge })
}

/// Parses a part of a response that claims to be JSON.
fn parsed(head: &Parts, bytes: &[u8]) -> Result<Value, CallError> {
    let says_json =
        || header(&head.headers, CONTENT_TYPE).is_some_and(|it| it.starts_with("application/json"));
    untrusted::value(bytes).map_err(|unreadable| match unreadable {
        ParseFailure::TooMuch => CallError::TooLong(MAX_OBJECT),
        ParseFailure::NotJson if says_json() => not_whole(head),
        ParseFailure::NotJson => stray(head.status, &head.headers),
    })
}

fn not_whole(head: &Parts) -> CallError {
    CallError::Lost(format!("the answer is not complete JSON ({})", head.status))
}

/// Starts a call whose response has no end, and returns the response as a stream.
pub(super) async fn stream(
    client: &Client,
    budget: &Arc<Budget>,
    request: Request<Vec<u8>>,
) -> Result<impl AsyncBufRead + use<>, CallError> {
    let answer = client.send(request.map(Body::from)).await.map_err(|error| unanswered(&error))?;
    let (head, body) = answer.into_parts();
    if head.status.is_success() {
        return Ok(body.into_data_stream().map_err(io::Error::other).into_async_read());
    }
    Err(match whole(&head, body, budget).await {
        Ok(_) => stray(head.status, &head.headers),
        Err(failed) => failed,
    })
}

async fn whole(head: &Parts, mut body: Body, budget: &Arc<Budget>) -> Result<ServerAnswer, CallError> {
    let (mut bytes, mut held) = (Vec::new(), Charge::new(budget));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| cut(&error))?.into_data() else { continue };
        if bytes.len() + data.len() > MAX_OBJECT {
            return Err(CallError::TooLong(MAX_OBJECT));
        }
        held.add(data.len())?;
        bytes.extend_from_slice(&data);
    }
    let value = parsed(head, &bytes)?;
    if head.status.is_success() {
        return Ok(ServerAnswer { made: head.status == StatusCode::CREATED, value });
    }
    if !is_error(head.status) || value["kind"] != "Status" {
        return Err(stray(head.status, &head.headers));
    }
    let status: Status = serde_json::from_value(value).map_err(|_| stray(head.status, &head.headers))?;
    let status = status.with_code(head.status.as_u16()).boxed();
    Err(CallError::Refused { status, retry_after: retry_after(&head.headers) })
}

fn is_error(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

fn stray(status: StatusCode, headers: &HeaderMap) -> CallError {
    let kind = header(headers, CONTENT_TYPE).and_then(|kind| kind.split(';').next());
    // No media type is longer (RFC 6838).
    let kind = kind.map(|kind| one_line(kind, 127).into_owned());
    CallError::Stray { code: status.as_u16(), kind, retry_after: retry_after(headers) }
}

/// The `Retry-After` header in seconds. No proxy in front of API servers uses its date form.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    Some(Duration::from_secs(header(headers, RETRY_AFTER)?.trim().parse().ok()?))
}

fn header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn unanswered(error: &(dyn Error + 'static)) -> CallError {
    if let Some(denied) = causes(error).find_map(|cause| cause.downcast_ref::<DeniedAddress>()) {
        return CallError::Barred(Barred::Address(denied.clone()));
    }
    if let Some(error) = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>())
        && let rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented = error
    {
        return CallError::Barred(Barred::Stranger(error.to_string()));
    }
    if causes(error).any(|cause| cause.is::<TookTooLong>()) {
        return CallError::Unreached(format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()));
    }
    let mut clients = causes(error).filter_map(|cause| cause.downcast_ref::<legacy::Error>());
    match clients.any(legacy::Error::is_connect) {
        true => CallError::Unreached(deepest(error)),
        false => CallError::Lost(ended(error)),
    }
}

fn ended(error: &(dyn Error + 'static)) -> String {
    format!("the connection closed before the answer ended: {}", deepest(error))
}

fn cut(error: &(dyn Error + 'static)) -> CallError {
    match causes(error).any(|cause| cause.is::<LengthLimitError>()) {
        true => CallError::TooLong(MAX_ANSWER),
        false => CallError::Lost(ended(error)),
    }
}

fn deepest(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

/// An error and its causes, the deepest last.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| match error.downcast_ref::<io::Error>() {
        // An `io::Error` doesn't return the error that it wraps as its source.
        Some(wrapper) => wrapper.get_ref().map(|inner| inner as &(dyn Error + 'static)),
        None => error.source(),
    })
}

impl CallError {
    pub(super) fn asks_to_wait(&self) -> Option<Duration> {
        match self {
            CallError::Refused { retry_after, .. } | CallError::Stray { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    pub(super) fn is_silence(&self) -> bool {
        matches!(self, CallError::Unreached(_) | CallError::Overdue(_))
    }

    pub(super) fn is_refusal(&self, code: u16) -> bool {
        matches!(self, CallError::Refused { status, .. } if status.code == code)
    }

    /// Whether the response was a 404, from the API server or from a proxy.
    pub(super) fn is_not_found(&self) -> bool {
        self.is_refusal(404) || matches!(self, CallError::Stray { code: 404, .. })
    }

    /// Whether the call may have taken effect nevertheless.
    pub(super) fn may_be_done(&self) -> bool {
        match self {
            CallError::Lost(_)
            | CallError::TooLong(_)
            | CallError::OverBudget(_)
            | CallError::Misnamed
            | CallError::Overdue(_) => true,
            CallError::Stray { code, .. } => *code < 400 || *code >= 500,
            CallError::Refused { status, .. } => status.code >= 500,
            CallError::Unreached(_) | CallError::Resting(_) | CallError::Barred(_) => false,
        }
    }

    pub(super) fn reason(&self) -> String {
        match self {
            CallError::Unreached(reason) => format!("the connection failed: {reason}"),
            CallError::Resting(reason) => format!("{reason}, a moment ago"),
            CallError::Barred(Barred::Address(denied)) => denied.to_string(),
            CallError::Barred(Barred::Stranger(reason)) => reason.clone(),
            CallError::Lost(reason) => reason.clone(),
            CallError::TooLong(longest) => {
                format!("a part of the answer is longer than {} KiB, the limit", longest >> 10)
            }
            CallError::OverBudget(OverBudget(reason)) => reason.clone(),
            CallError::Misnamed => "an object in the answer has an invalid name".to_owned(),
            CallError::Overdue(longest) => format!("no complete answer within {} s", longest.as_secs()),
            CallError::Stray { code, kind, .. } => stray_reason(*code, kind.as_deref()),
            CallError::Refused { status, .. } => status.message.clone(),
        }
    }

    /// The error for a person, with what was attempted and how often.
    pub(super) fn into_kube_error(self, attempted: &str, tries: u32) -> KubeError {
        let times = if tries > 1 { format!(" (tried {tries} times)") } else { String::new() };
        match self {
            CallError::Barred(Barred::Address(denied)) => KubeError::Denied(denied),
            CallError::Barred(Barred::Stranger(reason)) => {
                // The text may quote the certificate.
                KubeError::Untrusted { attempted: attempted.to_owned(), reason: KubeError::line(&reason) }
            }
            CallError::Refused { mut status, .. } => {
                status.message.push_str(&times);
                KubeError::refused(attempted, &status)
            }
            CallError::OverBudget(_) | CallError::TooLong(_) => KubeError::too_much(attempted, self.reason()),
            other => KubeError::connection(attempted, other.reason() + &times),
        }
    }
}

fn stray_reason(code: u16, kind: Option<&str>) -> String {
    let status = StatusCode::from_u16(code).map(|status| status.to_string()).unwrap_or(code.to_string());
    let kind = kind.map(|kind| format!(", {kind}")).unwrap_or_default();
    match code {
        300..400 => format!("the answer is a redirect, and redirects are not followed ({status})"),
        429 => format!("the server is overloaded ({status})"),
        _ => format!("the answer doesn't come from an API server ({status}{kind})"),
    }
}
