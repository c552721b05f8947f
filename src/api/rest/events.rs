//! Recent events: decisions and their outcomes.

use axum::http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::page::ListPage;
use super::{A_TIME, Answered, Call, written};
use crate::api::caller::Caller;
use crate::http::problem::ProblemDocument;
use crate::names::{Identifier, ResourceKey};
use crate::plan::Verb;
use crate::record::timestamp;
use crate::secret::EVENT_ID_LENGTH;
use crate::state::{EventIndexEntry, RecordedEvent};

/// Lists the events of organizations that the caller may see, the oldest or the newest first. Only the events
/// on the page are read from disk.
pub(super) fn list(call: &Call) -> Answered {
    let organization = call.queried_organization()?;
    let since: Option<Timestamp> = call.query.parsed("since", A_TIME)?;
    let falls = |order: &str| match order {
        "asc" => Some(false),
        "desc" => Some(true),
        _ => None,
    };
    let is_falling = call.query.parsed_by("order", "`asc` or `desc`", falls)?.unwrap_or_default();
    let filter = EventFilter::of(call)?;
    let is_wanted = |event: &EventIndexEntry| {
        sees(&call.caller, organization.as_ref(), event)
            && since.is_none_or(|since| event.at >= since)
            && filter.takes(event)
    };
    let state = &call.service.state;
    let mut numbers = state.find_events(is_wanted);
    if is_falling {
        numbers.reverse();
    }
    let keyring = call.made.installation.secrets.keyring();
    let id = |number: &u64| keyring.event_id(*number);
    let page = ListPage::behind(
        &call.query,
        numbers,
        |numbers, last| match numbers.iter().position(|number| id(number) == last) {
            Some(position) => Some(position + 1),
            // The event was dropped since, and so were all older ones.
            None if is_id(last) => Some(if is_falling { numbers.len() } else { 0 }),
            None => None,
        },
        id,
    )?;
    let events = state.events(&page.items).map_err(|error| call.of_state(&error))?;
    let items: Vec<Value> =
        events.iter().map(|event| shown(call.caller.is_super(), event, &id(&event.number))).collect();
    Ok(written(StatusCode::OK, &page.answer(items)))
}

/// The subject of the events that a caller asks for.
struct EventFilter {
    resource: Option<ResourceKey>,
    verb: Option<Verb>,
    /// Whether they are about a resource or a fleet.
    is_of_resources: Option<bool>,
}

impl EventFilter {
    fn of(call: &Call) -> Result<EventFilter, ProblemDocument> {
        let resource = |text: &str| ResourceKey::try_from(text.to_owned()).ok();
        let verb = |text: &str| Verb::ALL.into_iter().find(|verb| verb.to_string() == text);
        let about = |text: &str| match text {
            "resources" => Some(true),
            "installation" => Some(false),
            _ => None,
        };
        let verbs: Vec<String> = Verb::ALL.iter().map(|verb| format!("`{verb}`")).collect();
        let (last, first) = verbs.split_last().map_or(("", &[][..]), |(last, first)| (last, first));
        Ok(EventFilter {
            resource: call.query.parsed_by(
                "resource",
                "a resource such as `Cluster/acme/orders`",
                resource,
            )?,
            verb: call.query.parsed_by("verb", &format!("{} or {last}", first.join(", ")), verb)?,
            is_of_resources: call.query.parsed_by("about", "`resources` or `installation`", about)?,
        })
    }

    fn takes(&self, event: &EventIndexEntry) -> bool {
        let EventFilter { resource, verb, is_of_resources } = self;
        resource.as_ref().is_none_or(|wanted| event.resource.as_ref() == Some(wanted))
            && verb.is_none_or(|wanted| event.verb == Some(wanted))
            && is_of_resources.is_none_or(|wanted| event.organization.is_some() == wanted)
    }
}

/// Whether a caller may see an event, and asked for it.
pub(super) fn sees(caller: &Caller, organization: Option<&Identifier>, event: &EventIndexEntry) -> bool {
    match &event.organization {
        Some(of) => caller.sees(of) && organization.is_none_or(|wanted| wanted == of),
        // Events about the whole installation are for super users only.
        None => caller.is_super() && organization.is_none(),
    }
}

pub(super) fn is_id(text: &str) -> bool {
    text.len() == EVENT_ID_LENGTH && text.bytes().all(|it| it.is_ascii_hexdigit())
}

/// Hides the identity of a super user from others.
const A_SUPER_USER: &str = "a super user";

pub(super) fn shown(is_super: bool, event: &RecordedEvent, id: &str) -> Value {
    // Left out, since its gaps would show how much other organizations do.
    let RecordedEvent {
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
    // Members of an organization may know that a super user acted, but not which one.
    let actor = if *by_super_user && !is_super { A_SUPER_USER } else { actor };
    // The author may belong to another organization.
    let commit = commit.as_ref().map(|commit| match is_super {
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
