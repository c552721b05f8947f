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
use crate::views::NotFound;

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
pub struct CommandAnswer<T> {
    pub version: u32,
    pub daemon: Daemon,
    /// The plan that the data is from, if any.
    pub plan: Option<PlanId>,
    #[serde(default)]
    pub warnings: Vec<String>,
    pub data: T,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct PlanId {
    pub id: String,
    pub made_at: Timestamp,
}

impl From<&Plan> for PlanId {
    fn from(plan: &Plan) -> PlanId {
        PlanId { id: plan.id.clone(), made_at: plan.created_at }
    }
}

impl<T: Serialize> CommandAnswer<T> {
    pub(super) fn new(plan: Option<PlanId>, data: T) -> CommandAnswer<T> {
        CommandAnswer { version: VERSION, daemon: Daemon::itself(), plan, warnings: Vec::new(), data }
    }

    pub(super) fn written(&self) -> Response {
        // Can't fail: all keys are strings, and every value serializes.
        json(StatusCode::OK, "application/json", serde_json::to_vec(self).unwrap_or_default())
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct CommandProblem {
    pub version: u32,
    pub daemon: Daemon,
    pub status: u16,
    /// A sentence without a full stop.
    pub detail: String,
    pub hint: Option<String>,
}

impl CommandProblem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> CommandProblem {
        CommandProblem {
            version: VERSION,
            daemon: Daemon::itself(),
            status: status.as_u16(),
            detail: detail.into(),
            hint: None,
        }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> CommandProblem {
        CommandProblem { hint: Some(hint.into()), ..self }
    }
}

impl From<NotFound> for CommandProblem {
    fn from(NotFound { message, hint, is_usage }: NotFound) -> CommandProblem {
        let status = if is_usage { StatusCode::BAD_REQUEST } else { StatusCode::NOT_FOUND };
        CommandProblem::new(status, message).hint(hint)
    }
}

impl From<StateError> for CommandProblem {
    fn from(error: StateError) -> CommandProblem {
        CommandProblem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).hint(error.hint())
    }
}

impl IntoResponse for CommandProblem {
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
