//! The tokens of API callers: their owners, access and expiry. Only the digest of a token is stored, so that
//! tokens can't be stolen from here.
//!
//! A token is 256 random bits, so no two tokens share a digest. Lookups compare digests, so their timing
//! reveals nothing about a token.

mod grant;
mod store;

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use super::records::RegistryLine;
use super::{RecordedEvent, State, StateError};
use crate::names::{Digest, Identifier, InvalidName};
use crate::parallel::locked;
use crate::record;

pub use store::FILE;
pub(super) use store::{TokenStore, whole_records};

/// The prefix of a token, by which people and secret scanners recognize one.
pub const TOKEN_PREFIX: &str = "sf_";

const RANDOM: usize = 32;

/// The default validity in days.
pub const TOKEN_DAYS: u32 = 90;

/// The longest validity in days.
pub const MAX_TOKEN_DAYS: u32 = 365;

/// How many days expired and revoked tokens are kept at least. The audit trail records for ever who created
/// and revoked them.
pub const TOKENS_KEPT_DAYS: i64 = 90;

/// The access of a caller in an organization, from least to most: each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read resources.
    Read,
    /// Change resources.
    Write,
    /// Approve waiting steps, and decide about the access of others.
    Admin,
}

/// The organizations that a token is valid for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Reach {
    /// All organizations, present and future: `*`.
    All,
    /// One organization, by its identifier.
    Organization(Identifier),
}

/// The purpose of a token. Callers can't choose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenPurpose {
    /// Calls of the API.
    Api,
    /// A link that signs in to the web UI: it begins one session, and nothing else.
    Link,
    /// A session of the web UI.
    Session,
}

/// How the person of a session signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignInProof {
    /// The means in words: `a sign-in link`, `token ci`, or the address of the identity provider.
    pub with: String,
    /// When the person proved who they are; null if the identity provider doesn't say it. It may be earlier than the session: an
    /// identity provider asks for no password while its own session lasts.
    #[serde(serialize_with = "in_full_if_any")]
    pub proved_at: Option<Timestamp>,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    /// The id of the token.
    pub id: Uuid,
    /// The name that was given to the token.
    pub name: String,
    /// The e-mail address of the person that the token acts for.
    pub owner: String,
    /// The organization that the token is valid for; `*` for all.
    pub organization: Reach,
    /// The most that the token may be used for there. The present access of its owner limits it further.
    pub access: Access,
    pub purpose: TokenPurpose,
    /// How the person of a session signed in; null for other tokens.
    #[serde(default)]
    pub sign_in: Option<SignInProof>,
    /// The time of its creation.
    #[serde(serialize_with = "in_full")]
    pub created_at: Timestamp,
    /// The time of its expiry.
    #[serde(serialize_with = "in_full")]
    pub expires_at: Timestamp,
    /// The time of its revocation; null if it wasn't revoked.
    #[serde(serialize_with = "in_full_if_any")]
    pub revoked_at: Option<Timestamp>,
}

/// A request for a new token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenOrder {
    /// The name of the token.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// The e-mail address of the person that the token acts for.
    #[schemars(length(max = 254))]
    pub owner: String,
    /// The organization that the token is valid for; `*` for all.
    pub organization: Reach,
    /// The most that the token may be used for there.
    pub access: Access,
    /// How many days the token is valid.
    #[serde(default = "token_days")]
    #[schemars(range(min = 1, max = 365))]
    pub days: u32,
}

/// A request for a new token with any lifetime. Callers of the API send a [`TokenOrder`], in days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenGrant {
    pub name: String,
    /// The e-mail address of the person that the token acts for.
    pub owner: String,
    pub organization: Reach,
    pub access: Access,
    pub purpose: TokenPurpose,
    /// Of a session.
    pub sign_in: Option<SignInProof>,
    pub lasts: SignedDuration,
}

/// A token that was just created. Its secret exists nowhere else.
#[derive(Debug)]
pub struct NewToken {
    pub token: Token,
    /// The text that a caller sends: `sf_` and 64 hexadecimal digits.
    pub secret: SecretString,
}

/// The result of a revocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevocationOutcome {
    /// Revoked by this request.
    Now(Token),
    /// Already revoked earlier.
    Before(Token),
    Unknown,
}

/// Why a token is not accepted. It is only logged: callers must not learn which of these it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenRejection {
    #[error("there is no such token")]
    Unknown,
    #[error("{0} expired at {at}", at = record::timestamp(.0.expires_at))]
    Expired(Box<Token>),
    #[error("{0} was revoked")]
    Revoked(Box<Token>),
}

#[derive(Debug, thiserror::Error)]
pub enum AddTokenError {
    /// The request is invalid.
    #[error(transparent)]
    Order(#[from] InvalidTokenRequest),
    #[error(transparent)]
    State(#[from] StateError),
}

/// An invalid field of a request for a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct InvalidTokenRequest {
    /// The field, as a JSON pointer.
    pub pointer: &'static str,
    /// A sentence without a full stop.
    pub why: String,
    /// The suggested next step.
    pub hint: &'static str,
}

impl State {
    /// All stored tokens, the oldest first: valid ones, and those that expired or were revoked less than
    /// [this many days](TOKENS_KEPT_DAYS) ago; of tokens for a day at most, less than a day ago.
    pub fn tokens(&self) -> Vec<Token> {
        self.tokens.facts().all().cloned().collect()
    }

    pub fn token(&self, id: Uuid) -> Option<Token> {
        self.tokens.facts().get(id).cloned()
    }

    /// Finds the valid token that a caller sent. It never waits for the disk.
    pub fn authenticate_token(&self, shown: &str, now: Timestamp) -> Result<Token, TokenRejection> {
        // Text of any length is rejected by its form, without computing a digest.
        if !looks_like_token(shown) {
            return Err(TokenRejection::Unknown);
        }
        let facts = self.tokens.facts();
        holding(facts.find(&Digest::of(shown)), now)
    }

    /// Checks again a token that was accepted before.
    pub fn recheck_token(&self, id: Uuid, now: Timestamp) -> Result<(), TokenRejection> {
        holding(self.tokens.facts().get(id), now).map(drop)
    }

    /// Whether a token was ever created, even if it is no longer stored.
    pub fn has_made_tokens(&self) -> bool {
        locked(&self.registry).facts.tokens_made
    }

    /// Creates a token, and records who created it.
    ///
    /// # Errors
    /// When the request is invalid, or the token can't be recorded. No token exists then.
    pub fn add_token(&self, order: TokenOrder, by: &str, now: Timestamp) -> Result<NewToken, AddTokenError> {
        self.grant_token(order.grant()?, by, now)
    }

    /// As [`State::add_token`], for any lifetime.
    pub fn grant_token(
        &self,
        grant: TokenGrant,
        by: &str,
        now: Timestamp,
    ) -> Result<NewToken, AddTokenError> {
        let mut tokens = self.tokens.writing();
        let known = tokens.facts();
        let of_owner: Vec<&Token> = known.all().filter(|token| token.is_owned_by(&grant.owner)).collect();
        grant.fault(&of_owner, now).map_or(Ok(()), Err)?;
        let secret =
            secret().map_err(|error| StateError::io("create a token for", self.tokens.path())(error))?;
        let TokenGrant { name, owner, organization, access, purpose, sign_in, lasts } = grant;
        let expires_at = now.checked_add(lasts).unwrap_or(Timestamp::MAX);
        let (id, revoked_at) = (Uuid::now_v7(), None);
        let created_at = now;
        let token = Token {
            id,
            name,
            owner,
            organization,
            access,
            purpose,
            sign_in,
            created_at,
            expires_at,
            revoked_at,
        };
        // The audit trail first: no valid token may be missing from it.
        let until = record::timestamp(expires_at);
        self.audit_token(format!("created {token}: {}, until {until}", token.scope()), by, now)?;
        let mut registry = locked(&self.registry);
        if !registry.facts.tokens_made {
            registry.add(vec![RegistryLine::TokensMade])?;
        }
        drop(registry);
        tokens.add(&token, Digest::of(secret.expose_secret()))?;
        // Uses the creation time of the previous token if that is earlier, so that a clock that is ahead once
        // drops no valid token.
        let latest = known.all().last().map_or(now, |before| before.created_at.min(now));
        if let Err(error) = tokens.shorten(latest) {
            tracing::warn!(%error, hint = error.hint(), "cannot drop old tokens");
        }
        Ok(NewToken { token, secret })
    }

    /// Revokes a token, and records who revoked it.
    pub fn revoke_token(&self, id: Uuid, by: &str, now: Timestamp) -> Result<RevocationOutcome, StateError> {
        let mut tokens = self.tokens.writing();
        let Some(token) = self.token(id) else { return Ok(RevocationOutcome::Unknown) };
        if token.revoked_at.is_some() {
            return Ok(RevocationOutcome::Before(token));
        }
        self.audit_token(format!("revoked {token}"), by, now)?;
        tokens.revoke(id, now)?;
        Ok(RevocationOutcome::Now(Token { revoked_at: Some(now), ..token }))
    }

    fn audit_token(&self, what: String, by: &str, at: Timestamp) -> Result<(), StateError> {
        self.audit_person(RecordedEvent::done(at, by, what))
    }
}

fn holding(token: Option<&Token>, now: Timestamp) -> Result<Token, TokenRejection> {
    let token = token.cloned().ok_or(TokenRejection::Unknown)?;
    match token.revoked_at {
        Some(_) => Err(TokenRejection::Revoked(token.into())),
        None if token.expires_at <= now => Err(TokenRejection::Expired(token.into())),
        None => Ok(token),
    }
}

/// Generates the text of a new token.
fn secret() -> std::io::Result<SecretString> {
    let mut random = zeroize::Zeroizing::new([0; RANDOM]);
    aws_lc_rs::rand::fill(random.as_mut_slice())
        .map_err(|_| std::io::Error::other("the operating system provides no random numbers"))?;
    // One allocation that is wiped when dropped; concatenation would leave copies behind.
    let mut text = String::with_capacity(TOKEN_PREFIX.len() + 2 * RANDOM);
    text.push_str(TOKEN_PREFIX);
    text.push_str(&zeroize::Zeroizing::new(hex::encode(random.as_slice())));
    Ok(SecretString::from(text))
}

/// Whether a text has the form of a token.
pub fn looks_like_token(text: &str) -> bool {
    let digits = text.strip_prefix(TOKEN_PREFIX).unwrap_or_default();
    digits.len() == 2 * RANDOM && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Token {
    /// Whether the token is valid now.
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
    }

    /// The time at which it became or becomes invalid.
    pub fn over_at(&self) -> Timestamp {
        self.revoked_at.map_or(self.expires_at, |at| at.min(self.expires_at))
    }

    /// Whether it must be kept: it is valid, or became invalid not long ago. Sessions and links live for a day at
    /// most, and many are made.
    fn is_kept_at(&self, at: Timestamp) -> bool {
        const DAY: SignedDuration = SignedDuration::from_hours(24);
        let is_brief = self.expires_at.duration_since(self.created_at) <= DAY;
        let days = if is_brief { 1 } else { TOKENS_KEPT_DAYS };
        let kept = SignedDuration::from_hours(24 * days);
        self.over_at().checked_add(kept).is_ok_and(|dropped| at < dropped)
    }

    pub fn is_owned_by(&self, email: &str) -> bool {
        is_same_email(&self.owner, email)
    }

    /// Its access in words: `write in organization acme`. That of most sessions is limited by the role of their owner
    /// alone.
    pub fn scope(&self) -> String {
        let access = match (self.purpose, self.access) {
            (TokenPurpose::Session, Access::Admin) => "what its owner's role allows".to_owned(),
            (_, access) => access.to_string(),
        };
        match &self.organization {
            Reach::All => format!("{access} in all organizations"),
            Reach::Organization(organization) => format!("{access} in organization {organization}"),
        }
    }
}

/// `token ci (019364c1-…) of ada@example.com`, for the log and the audit trail.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {} ({}) of {}", self.name, self.id, self.owner)
    }
}

/// Compares e-mail addresses, ignoring the case of ASCII letters only: other letters may merely look alike.
pub fn is_same_email(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

fn token_days() -> u32 {
    TOKEN_DAYS
}

impl Access {
    /// From least to most.
    pub const ALL: [Access; 3] = [Access::Read, Access::Write, Access::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Admin => "admin",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Reach {
    /// The text for all organizations, which is no valid identifier.
    const ALL: &str = "*";

    pub fn covers(&self, organization: &Identifier) -> bool {
        match self {
            Reach::All => true,
            Reach::Organization(own) => own == organization,
        }
    }

    /// Whether this is limited to the organizations of `wider`.
    pub fn is_within(&self, wider: &Reach) -> bool {
        match self {
            Reach::All => *wider == Reach::All,
            Reach::Organization(organization) => wider.covers(organization),
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reach::All => f.write_str(Self::ALL),
            Reach::Organization(organization) => organization.fmt(f),
        }
    }
}

impl TryFrom<String> for Reach {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        match text.as_str() {
            Self::ALL => Ok(Reach::All),
            _ => text.try_into().map(Reach::Organization),
        }
    }
}

impl From<Reach> for String {
    fn from(reach: Reach) -> String {
        reach.to_string()
    }
}

fn in_full<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&record::timestamp(*at))
}

fn in_full_if_any<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(record::timestamp).serialize(serializer)
}
