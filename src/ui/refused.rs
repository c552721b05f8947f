//! Pages in place of the documents with which the server refuses a request before it gets to a page: one for an unknown
//! address, or with a body that is too large.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value;
use tokio::time::timeout;

use super::client::Refusal;
use super::view::{Frame, failure};
use super::{LARGEST_FORM, guard};
use crate::config::ApiConfig;
use crate::http::connection::LARGEST_BODY;
use crate::http::problem::PROBLEM;

/// How much is read of a form that isn't taken, in bytes, and for how long: a browser shows no answer while it sends.
const READ: usize = 16 << 20;
const SENDING: Duration = Duration::from_secs(10);

/// The largest problem document, in bytes.
const LARGEST_DOCUMENT: usize = 256 << 10;

/// Adds the pages. `routes` are all of the port, with their limits.
pub fn shown_to_browsers(routes: Router, config: &ApiConfig) -> Router {
    // Leaked once per process, since the setting never changes.
    let root: &'static str = format!("{}/ui", config.base_path()).leak();
    routes.layer(from_fn_with_state(root, readable))
}

async fn readable(State(root): State<&'static str>, request: Request, next: Next) -> Response {
    let below = request.uri().path().strip_prefix(root);
    if !below.is_some_and(|below| below.is_empty() || below.starts_with('/')) {
        return next.run(request).await;
    }
    let (parts, mut body) = request.into_parts();
    if is_refused_unread(&parts.headers) {
        let _ = timeout(SENDING, skip(body)).await;
        body = Body::empty();
    }
    let response = next.run(Request::from_parts(parts, body)).await;
    match response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == PROBLEM) {
        true => page(root, response).await,
        false => response,
    }
}

/// Whether the server answers without reading the body.
fn is_refused_unread(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    length.is_some_and(|length: usize| length > LARGEST_BODY)
}

async fn skip(body: Body) {
    let mut body = Limited::new(body, READ);
    while let Some(Ok(_)) = body.frame().await {}
}

/// The page in place of a problem document.
async fn page(root: &str, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, LARGEST_DOCUMENT).collect().await;
    let document: Value =
        body.ok().and_then(|body| serde_json::from_slice(&body.to_bytes()).ok()).unwrap_or_default();
    let refusal = match parts.status {
        StatusCode::NOT_FOUND => Refusal::no_page(),
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::too_large(LARGEST_FORM),
        status => Refusal::of_document(status, &document),
    };
    let page = failure(&Frame::at(root.to_owned()), &refusal);
    let mut page = guard::headers(page).await;
    let kept = parts
        .headers
        .into_iter()
        .filter(|(name, _)| name.as_ref().is_some_and(|name| ![CONTENT_TYPE, CONTENT_LENGTH].contains(name)));
    page.headers_mut().extend(kept);
    page
}
