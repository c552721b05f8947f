//! Accounts at the OpenID Connect issuer, which people sign in to the web UI with.

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use jiff::Timestamp;

use super::{Answered, CallerRequest};
use crate::http::problem::ProblemDocument;
use crate::problem::quote_untrusted;
use crate::state::{Token, TokenPurpose};

/// Releases an e-mail address from the accounts that it is bound to.
pub(super) fn release(call: &CallerRequest) -> Answered {
    call.may_as_super()?;
    let email = call.parameter("email");
    match call.service.state.release_accounts(email, &call.caller.actor(), Timestamp::now()) {
        Ok(0) => {
            let email = quote_untrusted(email);
            let why = format!("no account is bound to the e-mail address `{email}`");
            let hint = "nothing has to be released: the next account that signs in with it is bound to it";
            Err(ProblemDocument::not_found(why).hint(hint))
        }
        // Whoever had the address before is signed out. Tokens of the API remain, and are revoked one by one.
        Ok(_) => {
            let (state, now) = (&call.service.state, Timestamp::now());
            let is_theirs = |token: &Token| {
                token.purpose == TokenPurpose::Session && token.is_owned_by(email) && token.is_valid_at(now)
            };
            for session in state.tokens().into_iter().filter(is_theirs) {
                let ended = state.revoke_token(session.id, &call.caller.actor(), now);
                ended.map_err(|error| call.of_state(&error))?;
            }
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        Err(error) => Err(call.of_state(&error)),
    }
}
