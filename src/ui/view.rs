//! What all pages share: the frame with its navigation, and the forms of times, states and errors.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde_json::Value;

use super::client::Refusal;
pub use super::pages::page_of;
use super::{Ui, Visit, html};
use crate::api::answer::Room;
pub use crate::http::query::encoded;
use crate::names::ResourceKey;
use crate::problem::{self, Problem};
use crate::spec::Role;

/// The parts of the navigation by group, with the first segments of their paths.
type NavigationGroup = (&'static str, &'static [(&'static str, &'static str)]);
const SECTIONS: [NavigationGroup; 4] = [
    ("State", &[("Overview", ""), ("Plan", "plan"), ("Events", "events")]),
    ("Kafka", &[("Clusters", "clusters"), ("Topics", "topics"), ("Users", "users"), ("Fleets", "fleets")]),
    (
        "Used by clusters",
        &[
            ("Base domains", "base-domains"),
            ("Identity providers", "identity-providers"),
            ("Cloud accounts", "cloud-accounts"),
        ],
    ),
    ("Access", &[("Organizations", "organizations"), ("Members", "members"), ("Tokens", "tokens")]),
];

/// The frame around the content of a page.
pub struct Frame {
    /// The address of the first page, without its trailing slash.
    pub root: String,
    /// The first segment of the path of the active section.
    pub active: &'static str,
    /// The hidden field of forms; `None` without a session.
    pub csrf: Option<String>,
    /// The e-mail address of the person.
    pub who: String,
    pub version: &'static str,
}

impl Frame {
    pub fn of(visit: &Visit, active: &'static str) -> Frame {
        let who = visit.me.email.clone().unwrap_or_default();
        Frame { active, csrf: Some(visit.session.form_token()), who, ..Frame::outside(&visit.ui) }
    }

    /// Of pages without a session.
    pub fn outside(ui: &Ui) -> Frame {
        Frame::at(ui.address(""))
    }

    pub fn at(root: String) -> Frame {
        Frame { root, active: "", csrf: None, who: String::new(), version: env!("CARGO_PKG_VERSION") }
    }

    pub fn sections(&self) -> &'static [NavigationGroup] {
        &SECTIONS
    }

    /// The address of the API.
    pub fn api(&self) -> &str {
        self.root.strip_suffix("/ui").unwrap_or_default()
    }

    pub fn form_token(&self) -> &str {
        self.csrf.as_deref().unwrap_or_default()
    }
}

#[derive(Template)]
#[template(path = "failure.html")]
struct Failure<'f> {
    frame: &'f Frame,
    refusal: &'f Refusal,
}

/// The page of a refusal.
pub fn failure(frame: &Frame, refusal: &Refusal) -> Response {
    shown(refusal.status, &Failure { frame, refusal })
}

pub fn shown(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => html(status, text),
        Err(error) => {
            tracing::error!(%error, "cannot render a page");
            html(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The page can't be shown. The log has the details.".to_owned(),
            )
        }
    }
}

/// A time as people read it, in UTC; the script replaces it by the time of the reader. Empty for no time.
pub fn time(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => text.to_owned(),
    }
}

/// A text of a record's field; empty for any other value.
pub fn field<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// The parts of a message, each with whether it is code, which messages have in backticks.
pub fn parts(text: &str) -> Vec<(bool, String)> {
    let parts = text.split('`').enumerate().filter(|(_, part)| !part.is_empty());
    parts.map(|(index, part)| (index % 2 == 1, crate::plan::plain(part))).collect()
}

/// `admin`, `editor` or `viewer`.
pub fn role(role: &Role) -> &'static str {
    match role {
        Role::Admin => "admin",
        Role::Editor => "editor",
        Role::Viewer => "viewer",
    }
}

/// The used part of a limit, at most 100.
pub fn percent(used: &u32, limit: &u32) -> u32 {
    let part = u64::from(*used) * 100 / u64::from(*limit).max(1);
    u32::try_from(part.min(100)).unwrap_or(100)
}

/// The beginning of a commit's id.
pub fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// A value in a table.
pub enum Cell {
    Text(String),
    /// A sentence of the API, with code in backticks.
    Sentence(String),
    Status(String),
    Time(String),
    /// An address that the settings and names of specs make up.
    Link(String),
    /// A text of several lines.
    Lines(String),
    /// How much of a limit is in use.
    Gauge {
        used: u32,
        limit: u32,
    },
}

impl Cell {
    /// The room that is in use.
    pub fn gauge(room: &Room) -> Cell {
        match room.limit {
            Some(limit) => Cell::Gauge { used: room.used, limit },
            None => Cell::Text(room.used.to_string()),
        }
    }

    pub fn of(name: &str, value: &Value) -> Cell {
        match value {
            Value::String(text) if name.eq_ignore_ascii_case("status") => Cell::Status(text.clone()),
            Value::String(text) if text.contains('\n') => Cell::Lines(text.clone()),
            Value::String(text) if is_time(text) => Cell::Time(text.clone()),
            Value::String(text) => Cell::Text(text.clone()),
            Value::Null => Cell::Text(String::new()),
            Value::Bool(is_so) => Cell::Text(if *is_so { "yes" } else { "no" }.to_owned()),
            Value::Array(items) => {
                let tag =
                    |item: &Value| Some(format!("{}={}", item["key"].as_str()?, item["value"].as_str()?));
                let text = |item: &Value| item.as_str().map(str::to_owned).or_else(|| tag(item));
                let texts = items.iter().map(|item| text(item).unwrap_or_else(|| item.to_string()));
                Cell::Text(texts.collect::<Vec<_>>().join(", "))
            }
            other => Cell::Text(other.to_string()),
        }
    }
}

/// The times of records end with `Z`; other texts may parse as times, too.
fn is_time(text: &str) -> bool {
    text.ends_with('Z') && text.parse::<Timestamp>().is_ok()
}

/// Where a mistake is, with the line, as the command line shows it.
pub fn excerpt(problem: &Problem) -> String {
    let told = problem::render(std::slice::from_ref(problem), false);
    let place = told.lines().skip_while(|line| !line.trim_start().starts_with("--> "));
    let place = place.take_while(|line| !line.trim_start().starts_with("= help"));
    let lines: Vec<&str> = place.collect();
    lines.join("\n").trim_end_matches(['|', ' ', '\n']).to_owned()
}

/// The page with the planned changes of a resource, as a path below `/ui`.
pub fn plan_of(key: &ResourceKey) -> String {
    format!("/plan?resource={}", encoded(&String::from(key.clone())))
}

/// The page of the resource that an event is about, as a path below `/ui`; empty if there is none.
pub fn event_page(event: &Value) -> String {
    resource_of(event).as_ref().map(page_of).unwrap_or_default()
}

/// The resource that an event is about: `cluster acme/orders`; empty if there is none.
pub fn event_resource(event: &Value) -> String {
    resource_of(event).map(|key| key.to_string()).unwrap_or_default()
}

fn resource_of(event: &Value) -> Option<ResourceKey> {
    ResourceKey::try_from(event["resource"].as_str()?.to_owned()).ok()
}

pub mod filters {
    use askama::Values;

    /// Shows characters that would hide or reorder text.
    #[askama::filter_fn]
    pub fn plain(text: impl ToString, _: &dyn Values) -> askama::Result<String> {
        Ok(crate::plan::plain(&text.to_string()))
    }

    /// As `plain`, but keeps line breaks and tabs.
    #[askama::filter_fn]
    pub fn plain_lines(text: impl ToString, _: &dyn Values) -> askama::Result<String> {
        Ok(crate::plan::plain_lines(&text.to_string()))
    }
}

/// The class of a status, for its colour.
pub fn tone(status: &str) -> &'static str {
    match status {
        "Healthy" | "done" => "good",
        "Provisioning" | "Updating" | "Upgrading" | "Pending" | "Deleting" | "decided" => "busy",
        "Degraded" | "Unreachable" | "waits" => "warn",
        "Failed" | "failed" => "bad",
        _ => "plain",
    }
}

/// The class of a line of a difference.
pub fn line_class(line: &str) -> &'static str {
    const DEEPEST: usize = 4;
    let rest = line.trim_start_matches(' ');
    match rest.as_bytes() {
        [mark, b' ', ..] if line.len() - rest.len() <= DEEPEST => match mark {
            b'+' => "added",
            b'-' => "removed",
            b'~' | b'!' => "object",
            _ => "same",
        },
        _ => "same",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_by_people() {
        assert_eq!(time("2026-11-23T13:47:13.042157Z"), "2026-11-23 13:47:13 UTC");
        assert_eq!(time("soon"), "soon");
    }

    #[test]
    fn lines_of_a_difference_are_told_apart() {
        let classes =
            ["~ Kafka orders", "  + a: 1", "  - a: 2", "    a: 3", "        - an item"].map(line_class);
        assert_eq!(classes, ["object", "added", "removed", "same", "same"]);
    }
}
