//! Links that sign in to the web UI.

use axum::http::StatusCode;
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::Value;

use super::fields::{self, BodyField, field, is};
use super::tokens::{Planned, not_added};
use super::{Answered, CallerRequest, written};
use crate::api::answer::CreatedSignInLink;
use crate::api::caller::{memberships, shortfall_by_plan};
use crate::api::sign_in::{SignInLink, SignInRequest};
use crate::config::is_email;
use crate::http::problem::{FieldError, ProblemDocument, code};
use crate::names::Identifier;
use crate::record;
use crate::state::{Access, Reach, Token, is_same_email};

const FIELDS: [BodyField; 2] = [
    field("email", "an e-mail address", |value| value.as_str().is_some_and(is_email)),
    field("organization", "the identifier of an organization, or `root` for all", is::<Identifier>),
];

#[derive(Debug, Deserialize)]
struct Order {
    email: String,
    organization: Option<Identifier>,
}

/// Creates a link. Only this answer contains it.
pub(super) fn create(call: &CallerRequest) -> Answered {
    call.may_as_super()?;
    let Some(ui) = &call.service.sign_in.ui else {
        let why = "cannot create a sign-in link, because the daemon has no open port and so no web UI";
        let hint = "restart it with an address: streamfleet serve --listen 127.0.0.1:3000; if it has one, its log says \
                    why the port was not opened";
        return Err(ProblemDocument::new(&code::NO_PORT, why).hint(hint));
    };
    let usual = |name: &str| (name == "organization").then_some(Value::Null);
    let Order { email, organization } = fields::parse(&call.json()?.0, &FIELDS, usual)?;
    let planned = Planned::newest(call);
    let organization = match organization {
        Some(root) if root.as_str() == Identifier::ROOT => Reach::All,
        Some(organization) => Reach::Organization(organization),
        None => usual_organization(call, &email, planned.as_ref())?,
    };
    planned.as_ref().map_or(Ok(()), |planned| planned.refuse_missing(call, &organization))?;
    let request = SignInRequest { owner: email, organization };
    let (by, now) = (call.caller.actor(), Timestamp::now());
    let made = SignInLink::create(&call.service.state, ui, request, &by, now);
    let SignInLink { token, link } = made.map_err(|why| not_added(call, why, Some("/email")))?;
    // A person with fewer rights than an administrator signs in as well.
    let read = Token { access: Access::Read, ..token.clone() };
    let lacks = |Planned { plan, pending }| shortfall_by_plan("link", &read, &plan, &pending);
    let created = CreatedSignInLink {
        link: link.expose_secret().to_owned(),
        expires_at: record::timestamp(token.expires_at),
        organization: token.organization,
        warnings: planned.and_then(lacks).into_iter().collect(),
    };
    Ok(written(StatusCode::CREATED, &created))
}

/// The organization of a request that names none: all for a super user, and for others the only one that they are
/// a member of.
fn usual_organization(
    call: &CallerRequest,
    email: &str,
    planned: Option<&Planned>,
) -> Result<Reach, ProblemDocument> {
    if call.service.sign_in.super_users.iter().any(|known| is_same_email(known, email)) {
        return Ok(Reach::All);
    }
    let Some(Planned { plan, pending }) = planned else {
        let why = "the members of organizations are unknown until the specs have been read";
        let pause = std::time::Duration::from_secs(10);
        return Err(ProblemDocument::unavailable(why, pause).hint("try again, or name the organization"));
    };
    let members = memberships(email, &Reach::All, plan, pending);
    let names: Vec<&str> = members.iter().map(|member| member.organization.as_str()).collect();
    let (why, hint) = match members.as_slice() {
        [one] => return Ok(Reach::Organization(one.organization.clone())),
        [] => (
            format!("{email} is neither a super user nor a member of an organization in the specs"),
            "check the address; who signs in has to be one of the `members` of an organization, or a super user by \
             the settings",
        ),
        _ => (
            format!("{email} is a member of several organizations: {}", names.join(", ")),
            "name one of them as the organization to sign in for",
        ),
    };
    Err(ProblemDocument::mistakes(vec![FieldError::at("/organization", why, hint)]))
}
