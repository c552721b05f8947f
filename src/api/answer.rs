//! What is answered to commands: JSON that says which version it is of, so that a command of another version can say what to do.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::state::StateError;
use crate::views::Unshown;

/// The version of what is answered, which changes when an older command can't understand it any more.
pub const VERSION: u32 = 1;

/// The process that answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Daemon {
    /// The number of the process.
    pub pid: u32,
    /// The version of streamfleet that it runs.
    pub software: String,
}

impl Daemon {
    /// This one.
    fn itself() -> Daemon {
        Daemon { pid: std::process::id(), software: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// What was asked for.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer<T> {
    /// The version of this form.
    pub version: u32,
    /// Who answers.
    pub daemon: Daemon,
    /// The plan that it is from; none where it is from none.
    pub plan: Option<Mark>,
    /// What a person should know beside it.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// What was asked for.
    pub data: T,
}

/// A plan, by name.
#[derive(Debug, Serialize, Deserialize)]
pub struct Mark {
    /// Its id.
    pub id: String,
    /// When it was made.
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

    /// As it is sent.
    pub(super) fn written(&self) -> Response {
        // Keys are strings and no value can fail to be written.
        json(StatusCode::OK, "application/json", serde_json::to_vec(self).unwrap_or_default())
    }
}

/// Why something that was asked for isn't answered.
#[derive(Debug, Serialize, Deserialize)]
pub struct Problem {
    /// The version of this form.
    pub version: u32,
    /// Who answers.
    pub daemon: Daemon,
    /// The status of HTTP.
    pub status: u16,
    /// Why, as a sentence without a full stop.
    pub detail: String,
    /// What to do next.
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
