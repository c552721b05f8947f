//! The metrics of clusters, for a Prometheus outside of their Kubernetes cluster.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use tokio::time::timeout;

use super::{Answered, Call};
use crate::api::openapi::PROMETHEUS_TEXT;
use crate::http::problem::{ProblemDocument, code};
use crate::views::metrics::{LONGEST, MetricsCache};
use crate::views::pods::{NotRead, NotReadCause};

/// The metrics of a cluster, or of all clusters of a fleet.
pub(super) fn read(call: &Call) -> Answered {
    let (key, _) = call.found_key()?;
    let text = call.service.metrics.text(&call.made.round, &key, call.audience());
    let text = call.runtime.block_on(async { timeout(LONGEST, text).await });
    let text = text.unwrap_or_else(|_| Err(MetricsCache::late(&key))).map_err(not_read)?;
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROMETHEUS_TEXT));
    Ok(response)
}

/// Refuses a request for what could not be read of a cluster's pods.
pub(super) fn not_read(NotRead { cause, message, hint }: NotRead) -> ProblemDocument {
    let problem = match cause {
        NotReadCause::Missing => ProblemDocument::not_found(message),
        NotReadCause::Refused => ProblemDocument::new(&code::DEPENDENCY, message),
        NotReadCause::TooMany => ProblemDocument::malformed(message),
        NotReadCause::Unreadable => ProblemDocument::unavailable(message, Duration::from_secs(10)),
    };
    problem.hint(hint)
}
