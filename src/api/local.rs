//! Headers for the command line, which only requests and answers on the socket have.

use std::fmt::Display;

use axum::Router;
use axum::http::header::SERVER;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::map_response;
use axum::response::Response;
use jiff::Timestamp;

use crate::plan::Plan;

/// The name of the user, for the audit trail; the uid beside it is from the kernel.
pub const USER: HeaderName = HeaderName::from_static("streamfleet-user");

/// The specs that the command is for.
pub const SOURCE: HeaderName = HeaderName::from_static("streamfleet-source");

/// The plan that an answer is made from: `ID; created_at=TIME`.
pub const PLAN: HeaderName = HeaderName::from_static("streamfleet-plan");

/// A warning beside an answer, as a sentence. There may be several.
pub const WARNING: HeaderName = HeaderName::from_static("streamfleet-warning");

const CREATED_AT: &str = "; created_at=";

/// HTTP clients take about a hundred headers.
const MOST_WARNINGS: usize = 30;

/// The longest name that is recorded, in characters.
const LONGEST_NAME: usize = 100;

/// The process that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Daemon {
    pub version: String,
    pub pid: u32,
}

impl Daemon {
    /// Reads the header `Server`; `None` if it isn't streamfleet's.
    pub fn of(headers: &HeaderMap) -> Option<Daemon> {
        let name = text(headers.get(SERVER)?);
        let (version, pid) = name.strip_prefix("streamfleet/")?.split_once(" (pid ")?;
        Some(Daemon { version: version.to_owned(), pid: pid.strip_suffix(')')?.parse().ok()? })
    }
}

/// Names the process in each answer.
pub(super) fn named(routes: Router) -> Router {
    let name = format!("streamfleet/{} (pid {})", env!("CARGO_PKG_VERSION"), std::process::id());
    let name = value(&name);
    routes.layer(map_response(move |mut response: Response| {
        response.headers_mut().insert(SERVER, name.clone());
        std::future::ready(response)
    }))
}

pub(super) fn user(headers: &HeaderMap) -> Option<String> {
    let name: String = text(headers.get(USER)?).chars().take(LONGEST_NAME).collect();
    Some(name).filter(|name| !name.is_empty())
}

pub(super) fn source(headers: &HeaderMap) -> Option<String> {
    Some(text(headers.get(SOURCE)?))
}

/// Adds the plan that an answer is made from, and its warnings.
pub(super) fn add_plan(headers: &mut HeaderMap, plan: &Plan, warnings: &[String]) {
    headers.insert(PLAN, value(format!("{}{CREATED_AT}{}", plan.id, plan.created_at)));
    for warning in warnings.iter().take(MOST_WARNINGS) {
        headers.append(WARNING, value(warning));
    }
    if let Some(more) = warnings.len().checked_sub(MOST_WARNINGS).filter(|more| *more > 0) {
        headers.append(WARNING, value(format!("{more} more warnings are left out")));
    }
}

/// The id of the plan that an answer is made from, and when it was made.
pub fn plan(headers: &HeaderMap) -> Option<(String, Timestamp)> {
    let text = text(headers.get(PLAN)?);
    let (id, at) = text.split_once(CREATED_AT)?;
    Some((id.to_owned(), at.parse().ok()?))
}

pub fn warnings(headers: &HeaderMap) -> impl Iterator<Item = String> {
    headers.get_all(WARNING).iter().map(text)
}

/// A header with any text but control characters, in UTF-8.
pub fn value(text: impl Display) -> HeaderValue {
    let text: String =
        text.to_string().chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    // Can't fail without control characters.
    HeaderValue::from_bytes(text.trim().as_bytes()).unwrap_or(HeaderValue::from_static(""))
}

fn text(value: &HeaderValue) -> String {
    let text = String::from_utf8_lossy(value.as_bytes());
    text.chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_carries_any_text_on_one_line() {
        let headers = HeaderMap::from_iter([(USER, value("Jürgen\r\nX-Evil: 1\u{9b}"))]);
        assert_eq!(user(&headers).as_deref(), Some("Jürgen  X-Evil: 1"));
        assert_eq!(user(&HeaderMap::from_iter([(USER, value("\n"))])), None);
        let long = HeaderMap::from_iter([(USER, value("x".repeat(101)))]);
        assert_eq!(user(&long).map(|name| name.len()), Some(100));
    }

    #[test]
    fn the_daemon_is_named_by_version_and_process() {
        let of = |text: &str| Daemon::of(&HeaderMap::from_iter([(SERVER, value(text))]));
        assert_eq!(of("streamfleet/1.2.3 (pid 7)"), Some(Daemon { version: "1.2.3".to_owned(), pid: 7 }));
        for other in ["", "nginx/1.2", "streamfleet/1.2.3", "streamfleet/1.2.3 (pid x)"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
