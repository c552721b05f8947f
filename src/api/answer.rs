//! Answers to commands: JSON with a protocol version, so that a command of another version can tell the user
//! what to do.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::state::StateError;
use crate::views::Unshown;

/// The protocol version. It increases when older commands can no longer parse the answers.
pub const VERSION: u32 = 1;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Daemon {
    pub pid: u32,
    pub software: String,
}

impl Daemon {
    fn itself() -> Daemon {
        Daemon { pid: std::process::id(), software: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Answer<T> {
    pub version: u32,
    pub daemon: Daemon,
    /// The plan that the data is from, if any.
    pub plan: Option<Mark>,
    #[serde(default)]
    pub warnings: Vec<String>,
    pub data: T,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Mark {
    pub id: String,
    pub made_at: Timestamp,
}

impl From<&Plan> for Mark {
    fn from(plan: &Plan) -> Mark {
        Mark { id: plan.id.clone(), made_at: plan.created_at }
    }
}

impl<T: Serialize> Answer<T> {
    pub(super) fn new(plan: Option<Mark>, data: T) -> Answer<T> {
        Answer { version: VERSION, daemon: Daemon::itself(), plan, warnings: Vec::new(), data }
    }

    pub(super) fn written(&self) -> Response {
        // Can't fail: all keys are strings, and every value serializes.
        json(StatusCode::OK, "application/json", serde_json::to_vec(self).unwrap_or_default())
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Problem {
    pub version: u32,
    pub daemon: Daemon,
    pub status: u16,
    /// A sentence without a full stop.
    pub detail: String,
    pub hint: Option<String>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem {
            version: VERSION,
            daemon: Daemon::itself(),
            status: status.as_u16(),
            detail: detail.into(),
            hint: None,
        }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Problem {
        Problem { hint: Some(hint.into()), ..self }
    }
}

impl From<Unshown> for Problem {
    fn from(Unshown { message, hint, is_usage }: Unshown) -> Problem {
        let status = if is_usage { StatusCode::BAD_REQUEST } else { StatusCode::NOT_FOUND };
        Problem::new(status, message).hint(hint)
    }
}

impl From<StateError> for Problem {
    fn from(error: StateError) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).hint(error.hint())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        json(status, "application/problem+json", serde_json::to_vec(&self).unwrap_or_default())
    }
}

fn json(status: StatusCode, kind: &'static str, text: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
