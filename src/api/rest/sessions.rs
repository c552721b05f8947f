//! Sessions of the web UI. A session is a token that lasts a day at most.

use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::fields::{self, BodyField, field, is};
use super::tokens::{listed, not_added, revoked};
use super::{Answered, CallerRequest, written};
use crate::api::answer::CreatedToken;
use crate::http::problem::{FieldError, ProblemDocument, code};
use crate::names::Identifier;
use crate::state::{Access, Reach, RevocationOutcome, SignInProof, Token, TokenGrant, TokenPurpose};

/// The name of tokens that are sessions.
const NAME: &str = "web session";

pub(in crate::api) const LIFETIME: SignedDuration = SignedDuration::from_hours(24);

const FIELDS: [BodyField; 1] =
    [field("organization", "the identifier of an organization, or `root` for all", is::<Identifier>)];

#[derive(Debug, Deserialize)]
struct Order {
    organization: Option<Identifier>,
}

/// Lists the sessions that the caller may know of, the oldest first.
pub(super) fn list(call: &CallerRequest) -> Answered {
    listed(call, |purpose| purpose == TokenPurpose::Session)
}

/// Ends a session at once.
pub(super) fn end(call: &CallerRequest) -> Answered {
    revoked(call, "session", |purpose| purpose == TokenPurpose::Session)
}

/// Begins a session by the caller's token, with the same access.
pub(super) fn create(call: &CallerRequest) -> Answered {
    let Some(own) = call.caller.token() else {
        let why = "a session begins with a token, and users of this host have none";
        return Err(ProblemDocument::forbidden(why)
            .hint("run `streamfleet sign-in EMAIL`, and open its link in a browser"));
    };
    let usual = |name: &str| (name == "organization").then_some(Value::Null);
    let Order { organization } = fields::parse(&call.json()?.0, &FIELDS, usual)?;
    let organization = match organization {
        None => own.organization.clone(),
        Some(root) if root.as_str() == Identifier::ROOT => Reach::All,
        Some(organization) => Reach::Organization(organization),
    };
    if !organization.is_within(&own.organization) {
        let why = format!("this token is for organization `{}` alone", own.organization);
        let hint = "enter that organization, or sign in with another token";
        return Err(ProblemDocument::mistakes(vec![FieldError::at("/organization", why, hint)]));
    }
    let now = Timestamp::now();
    // A link works once: it ends before its session begins. The session then lasts as long as any.
    let rest = match own.purpose == TokenPurpose::Link {
        true => {
            end_link(call, own, now)?;
            LIFETIME
        }
        false => own.expires_at.duration_since(now),
    };
    let by = |with: String| Some(SignInProof { with, proved_at: Some(now) });
    let sign_in = match own.purpose {
        TokenPurpose::Link => by("a sign-in link".to_owned()),
        TokenPurpose::Api => by(format!("token {}", own.name)),
        // Its person proves nothing anew.
        TokenPurpose::Session => own.sign_in.clone(),
    };
    let grant = TokenGrant { sign_in, ..grant(own.owner.clone(), organization, own.access, rest) };
    let made = call.service.state.grant_token(grant, &call.caller.actor(), now);
    let made = made.map_err(|why| not_added(call, why, None))?;
    Ok(written(StatusCode::CREATED, &CreatedToken { shown: made.into(), warnings: Vec::new() }))
}

/// The token of a session, which lasts a day at most, and no longer than `rest`.
pub(in crate::api) fn grant(
    owner: String,
    organization: Reach,
    access: Access,
    rest: SignedDuration,
) -> TokenGrant {
    let (name, purpose, lasts) = (NAME.to_owned(), TokenPurpose::Session, rest.min(LIFETIME));
    TokenGrant { name, owner, organization, access, purpose, sign_in: None, lasts }
}

/// Revokes the token of a sign-in link. Of several requests with it at a time, one succeeds.
fn end_link(call: &CallerRequest, link: &Token, now: Timestamp) -> Result<(), ProblemDocument> {
    match call.service.state.revoke_token(link.id, &call.caller.actor(), now) {
        Ok(RevocationOutcome::Now(_)) => Ok(()),
        Ok(RevocationOutcome::Before(_) | RevocationOutcome::Unknown) => {
            Err(ProblemDocument::new(&code::UNAUTHENTICATED, "the token is unknown, expired or revoked"))
        }
        Err(error) => Err(call.of_state(&error)),
    }
}
