//! What was decided lately, and what came of it.

use axum::http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::page::Page;
use super::{Answered, Call, written};
use crate::api::problem::Problem;
use crate::interface::timestamp;
use crate::names::Identifier;
use crate::state::Event;

/// The events of organizations that the caller may see, the oldest first.
pub(super) fn list(call: &Call) -> Answered {
    let organization = call.query.get("organization").map(|named| call.organization(named)).transpose()?;
    let since: Option<Timestamp> =
        call.query.parsed("since", "a time such as 2026-01-31T12:00:00Z").map_err(Problem::malformed)?;
    let is_wanted = |event: &Event| {
        let sees = match organization_of(event) {
            Some(of) => call.caller.sees(of) && organization.as_ref().is_none_or(|wanted| wanted == of),
            // What is about the installation is for those who have all of it.
            None => call.caller.is_super() && organization.is_none(),
        };
        sees && since.is_none_or(|since| event.at >= since)
    };
    let events = call.service.state.events_from(0).map_err(Problem::from)?;
    let page = Page::of(&call.query, events.into_iter().filter(is_wanted).collect(), |event| event.number)?;
    Ok(written(StatusCode::OK, &page.answer(page.items.iter().map(|event| shown(call, event)).collect())))
}

/// Whose organization something happened in; none where it is about the installation.
fn organization_of(event: &Event) -> Option<&Identifier> {
    let fleet = event.fleet.as_ref().map(|fleet| &fleet.organization);
    event.resource.as_ref().map(|resource| &resource.organization).or(fleet)
}

fn shown(call: &Call, event: &Event) -> Value {
    let Event { number, at, actor, commit, plan, fleet, resource, verb, outcome, what, why } = event;
    // Whoever committed last may be another organization's.
    let commit = commit.as_ref().map(|commit| match call.caller.is_super() {
        true => json!(commit),
        false => json!({"id": commit.id}),
    });
    json!({
        "number": number,
        "at": timestamp(*at),
        "actor": actor,
        "commit": commit,
        "plan": plan,
        "fleet": fleet,
        "resource": resource,
        "verb": verb,
        "outcome": outcome,
        "what": what,
        "why": why,
    })
}
