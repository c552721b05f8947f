//! The limits of a request for a token.

use jiff::{SignedDuration, Timestamp};

use super::{InvalidTokenRequest, MAX_TOKEN_DAYS, Token, TokenGrant, TokenOrder, TokenPurpose};
use crate::config::is_email;

/// How many valid tokens one owner may have: they are kept in memory.
const MAX_VALID_TOKENS_PER_OWNER: usize = 100;

/// The same, including expired and revoked tokens that are still kept.
const MAX_STORED_TOKENS_PER_OWNER: usize = 1000;

/// In characters.
const LONGEST_NAME: usize = 64;

impl TokenOrder {
    pub(super) fn grant(self) -> Result<TokenGrant, InvalidTokenRequest> {
        let TokenOrder { name, owner, organization, access, days } = self;
        if !(1..=MAX_TOKEN_DAYS).contains(&days) {
            let why = format!("a token is valid for 1 to {MAX_TOKEN_DAYS} days, not {days}");
            let hint = "create another one when it expires";
            return Err(InvalidTokenRequest { pointer: "/days", why, hint });
        }
        let lasts = SignedDuration::from_hours(24 * i64::from(days));
        let (purpose, sign_in) = (TokenPurpose::Api, None);
        Ok(TokenGrant { name, owner, organization, access, purpose, sign_in, lasts })
    }
}

impl TokenGrant {
    /// Validates the request against the existing tokens of the owner.
    pub(super) fn fault(&self, of_owner: &[&Token], now: Timestamp) -> Option<InvalidTokenRequest> {
        let fault = |pointer, why, hint| Some(InvalidTokenRequest { pointer, why, hint });
        let length = self.name.chars().count();
        if !(1..=LONGEST_NAME).contains(&length)
            || self.name.trim() != self.name
            || self.name.chars().any(char::is_control)
        {
            return fault(
                "/name",
                format!(
                    "the name of a token must have 1 to {LONGEST_NAME} characters, without control characters and spaces \
                     at its ends"
                ),
                "choose another name",
            );
        }
        if !is_email(&self.owner) {
            return fault(
                "/owner",
                format!("`{}` is not an e-mail address", shortened(&self.owner)),
                "use the address of a person, as listed among the super users or the members of an organization",
            );
        }
        let (holding, kept) = (
            of_owner.iter().filter(|token| token.is_valid_at(now)).count(),
            of_owner.iter().filter(|token| token.is_kept_at(now)).count(),
        );
        let (why, hint) = if holding >= MAX_VALID_TOKENS_PER_OWNER {
            (
                format!("{} has {holding} valid tokens, which is the limit", self.owner),
                "revoke tokens that aren't needed",
            )
        } else if kept >= MAX_STORED_TOKENS_PER_OWNER {
            let why = format!(
                "{} has {kept} tokens, including those that expired or were revoked lately, which is the limit",
                self.owner
            );
            (
                why,
                "reuse a token until it expires, instead of creating a new one each time; old tokens are dropped over time",
            )
        } else {
            return None;
        };
        fault("/owner", why, hint)
    }
}

/// Shortens user input for an error message.
fn shortened(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME).collect()
}
