//! Tokens: the caller's own or, for super users, all.

mod order;

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use jiff::Timestamp;

use super::page::ListPage;
use super::{Answered, CallerRequest, missing, written};
use crate::api::answer::CreatedToken;
use crate::api::caller::{PendingWrites, missing_organization, shortfall_by_plan};
use crate::http::problem::{FieldError, ProblemDocument};
use crate::names::ResourceKey;
use crate::state::{AddTokenError, Reach, RevocationOutcome, TokenPurpose};
use crate::writing::CurrentPlan;

/// Lists the tokens that the caller may know of, the oldest first. Sessions have a list of their own.
pub(super) fn list(call: &CallerRequest) -> Answered {
    listed(call, |purpose| purpose != TokenPurpose::Session)
}

/// The tokens for some purposes, as a page.
pub(super) fn listed(call: &CallerRequest, is_wanted: impl Fn(TokenPurpose) -> bool) -> Answered {
    let tokens = call.service.state.tokens().into_iter();
    let tokens = tokens.filter(|token| is_wanted(token.purpose) && call.caller.sees_token(token));
    let page = ListPage::of(&call.query, tokens.collect(), |token| token.id)?;
    Ok(written(StatusCode::OK, &page.answer(page.items.iter().collect())))
}

/// Creates a token, by default for the caller. Only this answer contains its secret.
pub(super) fn create(call: &CallerRequest) -> Answered {
    let owner = call.caller.token().map(|token| token.owner.as_str());
    let now = Timestamp::now();
    let body = call.json()?;
    let order = order::read(&body.0, owner, call.caller.usual_days(now))?;
    if let Some((pointer, why)) = call.caller.excess(&order, now) {
        let hint = "request no more than this token allows, or have a person with that access create it";
        let errors = vec![FieldError::at(pointer, why.clone(), hint)];
        return Err(ProblemDocument { errors, ..ProblemDocument::forbidden(why).hint(hint) });
    }
    let planned = Planned::newest(call);
    planned.as_ref().map_or(Ok(()), |planned| planned.refuse_missing(call, &order.organization))?;
    let made = call.service.state.add_token(order, &call.caller.actor(), now);
    let made = made.map_err(|why| not_added(call, why, None))?;
    let lacks = |Planned { plan, pending }| shortfall_by_plan("token", &made.token, &plan, &pending);
    let warnings = planned.and_then(lacks).into_iter().collect();
    Ok(written(StatusCode::CREATED, &CreatedToken { shown: made.into(), warnings }))
}

/// The newest plan, for a request that is answered without one, too.
pub(super) struct Planned {
    pub plan: CurrentPlan,
    /// The writes that the plan doesn't include yet.
    pub pending: PendingWrites,
}

impl Planned {
    /// `None` before the first plan: members and organizations are unknown then.
    pub fn newest(call: &CallerRequest) -> Option<Planned> {
        let made = call.service.request_queue.made()?;
        let (plan, pending) = call.service.writer.newest(|| made);
        Some(Planned { plan, pending })
    }

    /// Refuses an organization that doesn't exist, which a user of this host likely misspelled. Other callers get
    /// a warning, since some may not know which organizations exist.
    pub fn refuse_missing(&self, call: &CallerRequest, reach: &Reach) -> Result<(), ProblemDocument> {
        let Planned { plan, pending } = self;
        let is_written = |named| pending.contains_key(&ResourceKey::organization(named));
        let missing = match reach {
            _ if !call.caller.is_user() => None,
            Reach::Organization(named) if is_written(named) => None,
            reach => missing_organization(reach, &plan.documents, &plan.round.checked.recorded),
        };
        match missing {
            None => Ok(()),
            Some((why, hint)) => {
                Err(ProblemDocument::mistakes(vec![FieldError::at("/organization", why, hint)]))
            }
        }
    }
}

/// The refusal of a token. `pointer` is the field at fault where the body isn't an order for a token.
pub(super) fn not_added(
    call: &CallerRequest,
    why: AddTokenError,
    pointer: Option<&'static str>,
) -> ProblemDocument {
    match why {
        AddTokenError::Order(fault) => {
            let pointer = pointer.unwrap_or(fault.pointer);
            ProblemDocument::mistakes(vec![FieldError::at(pointer, fault.why, fault.hint)])
        }
        AddTokenError::State(error) => call.of_state(&error),
    }
}

/// Revokes a token, which may be a session's.
pub(super) fn revoke(call: &CallerRequest) -> Answered {
    revoked(call, "token", |_| true)
}

/// Revokes the token that the path names, if it is for one of some purposes.
pub(super) fn revoked(
    call: &CallerRequest,
    noun: &'static str,
    is_wanted: impl Fn(TokenPurpose) -> bool,
) -> Answered {
    let named = call.parameter("id");
    let token = named.parse().ok().and_then(|id| call.service.state.token(id));
    let token = token.filter(|token| is_wanted(token.purpose) && call.caller.sees_token(token));
    let token = token.ok_or_else(|| missing(noun, named))?;
    if !call.caller.may_revoke(&token) {
        let why = "a token can revoke only tokens with the same or less access, and this one has more";
        return Err(
            ProblemDocument::forbidden(why).hint("use that token itself, or one with the same access")
        );
    }
    match call.service.state.revoke_token(token.id, &call.caller.actor(), Timestamp::now()) {
        Ok(RevocationOutcome::Unknown) => Err(missing(noun, named)),
        // Revoking is idempotent.
        Ok(RevocationOutcome::Now(_) | RevocationOutcome::Before(_)) => {
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        Err(error) => Err(call.of_state(&error)),
    }
}
