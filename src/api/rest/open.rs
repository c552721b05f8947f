//! Answers that are the same for all callers, who need no token for them, and the limits of such requests.

use std::future::ready;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;

use super::{Base, bytes, json_text};
use crate::api::openapi;
use crate::http::peer::Peer;
use crate::http::problem::{ProblemDocument, code};
use crate::http::rate_limits::RateLimits;
use crate::state::State;

pub(super) fn errors(_: &Base) -> Response {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    json_text(TEXT.get_or_init(|| bytes(&serde_json::json!({"items": code::ALL}))).clone())
}

pub(super) fn document(base: &Base) -> Response {
    let server = if base.url.is_empty() { "/" } else { &base.url };
    json_text(base.document.get_or_init(|| bytes(&openapi::document(server))).clone())
}

/// Counts a request that needs no token; users of this host aren't counted.
pub(super) fn count_public(
    rate_limits: &RateLimits,
    parts: &Parts,
    state: Option<&State>,
) -> Result<(), ProblemDocument> {
    let Some(from) = Peer::of(&parts.extensions).address() else { return Ok(()) };
    let now = (Timestamp::now(), Instant::now());
    Ok(rate_limits.admit_public((&parts.headers, &parts.uri, from), state, now)?)
}

/// Counts requests for unknown paths and methods, too.
pub(in crate::api) fn counted(
    routes: Router,
    rate_limits: &Arc<RateLimits>,
    state: Option<&Arc<State>>,
) -> Router {
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
