//! Tokens: the caller's own or, for super users, all.

mod order;

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use jiff::Timestamp;

use super::page::ListPage;
use super::{Answered, CallerRequest, missing, written};
use crate::api::answer::CreatedToken;
use crate::api::caller::{missing_organization, shortfall_by_plan};
use crate::http::problem::{FieldError, ProblemDocument};
use crate::names::ResourceKey;
use crate::state::{AddTokenError, Reach, RevocationOutcome};

/// Lists the tokens that the caller may know of, the oldest first.
pub(super) fn list(call: &CallerRequest) -> Answered {
    let tokens = call.service.state.tokens().into_iter().filter(|token| call.caller.sees_token(token));
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
    // Members and organizations are unknown before the first plan.
    let planned = call.service.request_queue.made().map(|made| call.service.writer.newest(|| made));
    if let Some((plan, pending)) = planned.as_ref().filter(|_| call.caller.is_user()) {
        let (documents, recorded) = (&plan.documents, &plan.round.checked.recorded);
        let is_written = |named| pending.contains_key(&ResourceKey::organization(named));
        let missing = match &order.organization {
            Reach::Organization(named) if is_written(named) => None,
            reach => missing_organization(reach, documents, recorded),
        };
        if let Some((why, hint)) = missing {
            return Err(ProblemDocument::mistakes(vec![FieldError::at("/organization", why, hint)]));
        }
    }
    let made = call.service.state.add_token(order, &call.caller.actor(), now).map_err(|why| match why {
        AddTokenError::Order(fault) => {
            ProblemDocument::mistakes(vec![FieldError::at(fault.pointer, fault.why, fault.hint)])
        }
        AddTokenError::State(error) => call.of_state(&error),
    })?;
    let lacks = planned.and_then(|(plan, pending)| shortfall_by_plan(&made.token, &plan, &pending));
    let warnings = lacks.into_iter().collect();
    Ok(written(StatusCode::CREATED, &CreatedToken { shown: made.into(), warnings }))
}

pub(super) fn revoke(call: &CallerRequest) -> Answered {
    let named = call.parameter("id");
    let token = named.parse().ok().and_then(|id| call.service.state.token(id));
    let token = token.filter(|token| call.caller.sees_token(token)).ok_or_else(|| missing("token", named))?;
    if !call.caller.may_revoke(&token) {
        let why = "a token can revoke only tokens with the same or less access, and this one has more";
        return Err(
            ProblemDocument::forbidden(why).hint("use that token itself, or one with the same access")
        );
    }
    match call.service.state.revoke_token(token.id, &call.caller.actor(), Timestamp::now()) {
        Ok(RevocationOutcome::Unknown) => Err(missing("token", named)),
        // Revoking is idempotent.
        Ok(RevocationOutcome::Now(_) | RevocationOutcome::Before(_)) => {
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        Err(error) => Err(call.of_state(&error)),
    }
}
