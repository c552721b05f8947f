//! Tokens: one's own and, for super users, everybody's.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::page::Page;
use super::{Answered, Call, written};
use crate::api::caller::Who;
use crate::api::problem::{FieldError, Problem};
use crate::api::tokens::Shown;
use crate::problem::plain;
use crate::state::{NotAdded, Revoked, TokenOrder};

/// The tokens that the caller may know of, the oldest first.
pub(super) fn list(call: &Call) -> Answered {
    let tokens = call.service.state.tokens().into_iter().filter(|token| call.caller.sees_token(token));
    let page = Page::of(&call.query, tokens.collect(), |token| token.id)?;
    Ok(written(StatusCode::OK, &page.answer(page.items.iter().collect())))
}

/// A new token, whose secret stands in the answer and nowhere else.
pub(super) fn create(call: &Call) -> Answered {
    let (order, now) = (order(call)?, Timestamp::now());
    if !call.caller.may_make(&order, now) {
        let why = "the caller may make tokens for themselves only, for no more than the one that they show, and that end no later";
        return Err(Problem::forbidden(why));
    }
    let made = call.service.state.add_token(order, &call.caller.actor(), now).map_err(|why| match why {
        NotAdded::Order(fault) => {
            let error = FieldError {
                pointer: Some(fault.pointer.to_owned()),
                detail: fault.why.clone(),
                ..FieldError::default()
            };
            Problem::invalid(fault.why, vec![error])
        }
        NotAdded::State(error) => Problem::from(error),
    })?;
    Ok(written(StatusCode::CREATED, &Shown::from(made)))
}

/// What is asked for; by default for the caller themselves.
fn order(call: &Call) -> Result<TokenOrder, Problem> {
    let mut body = call.json()?;
    if let (Value::Object(fields), Who::Token { owner, .. }) = (&mut body, call.caller.who()) {
        fields.entry("owner").or_insert_with(|| json!(owner));
    }
    serde_json::from_value(body).map_err(|error| {
        let why = plain(&error.to_string());
        Problem::invalid(format!("no token can be made from the body: {why}"), Vec::new())
    })
}

/// Makes a token good for nothing.
pub(super) fn revoke(call: &Call) -> Answered {
    let named = call.parameter("id");
    let missing =
        || Problem::not_found(format!("there is no token `{}`, or the caller may not see it", plain(named)));
    let tokens = call.service.state.tokens();
    let token = tokens.iter().find(|token| token.id.to_string() == named.to_ascii_lowercase());
    let token = token.filter(|token| call.caller.sees_token(token)).ok_or_else(missing)?;
    if !call.caller.may_revoke(token) {
        return Err(Problem::forbidden(
            "the caller shows a token that is for less than the one that is to be revoked",
        ));
    }
    match call.service.state.revoke_token(token.id, &call.caller.actor(), Timestamp::now()) {
        Ok(Revoked::Unknown) => Err(missing()),
        // To revoke it again changes nothing, and it is revoked.
        Ok(Revoked::Now(_) | Revoked::Before(_)) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            Ok(response)
        }
        Err(error) => Err(Problem::from(error)),
    }
}
