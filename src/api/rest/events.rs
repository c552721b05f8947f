//! What was decided lately, and what came of it.

use std::str::FromStr;

use axum::http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::page::Page;
use super::{Answered, Call, written};
use crate::api::problem::Problem;
use crate::interface::timestamp;
use crate::secret::EVENT_ID_LENGTH;
use crate::state::{Event, EventMark};

/// The events of organizations that the caller may see, the oldest first or the newest. Only those on the page are read.
pub(super) fn list(call: &Call) -> Answered {
    let organization = call.query.get("organization").map(|named| call.organization(named)).transpose()?;
    let since: Option<Timestamp> =
        call.query.parsed("since", "a time such as 2026-01-31T12:00:00Z").map_err(Problem::malformed)?;
    let order: Option<Order> = call.query.parsed("order", "`asc` or `desc`").map_err(Problem::malformed)?;
    let is_wanted = |event: &EventMark| {
        let sees = match &event.organization {
            Some(of) => call.caller.sees(of) && organization.as_ref().is_none_or(|wanted| wanted == of),
            // What is about the installation is for those who have all of it.
            None => call.caller.is_super() && organization.is_none(),
        };
        sees && since.is_none_or(|since| event.at >= since)
    };
    let state = &call.service.state;
    let mut numbers = state.find_events(is_wanted);
    let is_falling = matches!(order, Some(Order::Desc));
    if is_falling {
        numbers.reverse();
    }
    let keyring = call.made.installation.secrets.keyring();
    let id = |number: &u64| keyring.event_id(*number);
    let page = Page::behind(
        &call.query,
        numbers,
        |numbers, last| match numbers.iter().position(|number| id(number) == last) {
            Some(position) => Some(position + 1),
            // It is dropped by now, with all that were older.
            None if is_id(last) => Some(if is_falling { numbers.len() } else { 0 }),
            None => None,
        },
        id,
    )?;
    let events = state.events(&page.items).map_err(Problem::from)?;
    Ok(written(
        StatusCode::OK,
        &page.answer(events.iter().map(|event| shown(call, event, &id(&event.number))).collect()),
    ))
}

/// Who did something, where that is all that others may know.
const A_SUPER_USER: &str = "a super user";

/// Which events come first.
#[derive(Clone, Copy)]
enum Order {
    /// The oldest.
    Asc,
    /// The newest.
    Desc,
}

impl FromStr for Order {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "asc" => Ok(Order::Asc),
            "desc" => Ok(Order::Desc),
            _ => Err(()),
        }
    }
}

/// Whether this may be the id of an event.
fn is_id(text: &str) -> bool {
    text.len() == EVENT_ID_LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn shown(call: &Call, event: &Event, id: &str) -> Value {
    // Its number would tell how much others do.
    let Event {
        number: _,
        at,
        actor,
        by_super_user,
        commit,
        plan,
        fleet,
        resource,
        verb,
        outcome,
        what,
        why,
    } = event;
    // Who runs the installation is nothing for the members of an organization to know, and that it was done from there is.
    let actor = match by_super_user {
        true if !call.caller.is_super() => A_SUPER_USER,
        _ => actor,
    };
    // Whoever committed last may be another organization's.
    let commit = commit.as_ref().map(|commit| match call.caller.is_super() {
        true => json!(commit),
        false => json!({"id": commit.id}),
    });
    json!({
        "id": id,
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
