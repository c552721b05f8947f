//! The tokens that callers of the API show: whose each is, how far it reaches and until when. Of a token itself only the
//! digest is kept, so that nobody can take one from here.
//!
//! A token is 256 random bits: no other secret has its digest, and nothing can be learned of it from how long a look-up
//! takes, since what is compared is the digest of what was shown.

mod store;

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use super::records::Entry;
use super::{AuditEntry, State, StateError};
use crate::config::is_email;
use crate::interface;
use crate::names::{Digest, Identifier, InvalidName};
use crate::parallel::locked;

pub use store::FILE;
use store::long_before;
pub(super) use store::{Tokens, outlasts, whole_records};

/// What a token begins with, so that people and scanners of repositories know one when they see it.
pub const TOKEN_PREFIX: &str = "sf_";

/// How many random bytes are in a token.
const RANDOM: usize = 32;

/// How many days a token holds where nobody says.
pub const TOKEN_DAYS: u32 = 90;

/// How many days a token may hold.
pub const MOST_TOKEN_DAYS: u32 = 365;

/// How many days at least a token is kept that ended or was revoked. The audit trail keeps for ever who made and revoked it.
pub const TOKENS_KEPT_DAYS: i64 = 90;

/// How many tokens one owner may have that hold: what is kept of them stays in memory.
const MOST_OF_ONE: usize = 100;

/// How many one owner may have with those that are over and still kept.
const MOST_KEPT_OF_ONE: usize = 1000;

/// The longest name of a token, in characters.
const LONGEST_NAME: usize = 64;

/// What a caller may do in an organization, the least first: each is also all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// See what there is.
    Read,
    /// Change what there is.
    Write,
    /// Approve what waits for that, and decide who else may do what.
    Admin,
}

/// The organizations that a token is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Reach {
    /// All that there are, and will be: `*`.
    All,
    /// One, by its identifier.
    Organization(Identifier),
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    /// Its id.
    pub id: Uuid,
    /// What its owner calls it.
    pub name: String,
    /// The e-mail address of who it speaks for.
    pub owner: String,
    /// The organization that it is for; `*` for all.
    pub organization: Reach,
    /// The most that it may be used for there. What its owner may do at present limits it further.
    pub access: Access,
    /// When it was made.
    #[serde(serialize_with = "in_full")]
    pub created_at: Timestamp,
    /// When it ends.
    #[serde(serialize_with = "in_full")]
    pub expires_at: Timestamp,
    /// When it was revoked; none while it wasn't.
    #[serde(serialize_with = "in_full_if_any")]
    pub revoked_at: Option<Timestamp>,
}

/// What a token is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenOrder {
    /// What to call it.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// The e-mail address of who it speaks for.
    #[schemars(length(max = 254))]
    pub owner: String,
    /// The organization that it is for; `*` for all.
    pub organization: Reach,
    /// The most that it may be used for there.
    pub access: Access,
    /// How many days it holds.
    #[serde(default = "token_days")]
    #[schemars(range(min = 1, max = 365))]
    pub days: u32,
}

/// A token that was just made. Its secret is nowhere else.
#[derive(Debug)]
pub struct NewToken {
    /// What is kept of it.
    pub token: Token,
    /// What a caller shows: `sf_` and 64 hexadecimal digits.
    pub secret: SecretString,
}

/// What came of revoking a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "revoked", content = "token")]
pub enum Revoked {
    /// It is not good for anything from now on.
    Now(Token),
    /// It was revoked before.
    Before(Token),
    /// There is no token with that id.
    Unknown,
}

/// Why what was shown is no token that holds. It is for the log: whoever showed it isn't told which of these it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoToken {
    /// There is none that it is.
    #[error("there is no such token")]
    Unknown,
    /// It has ended.
    #[error("{0} expired at {at}", at = interface::timestamp(.0.expires_at))]
    Expired(Box<Token>),
    /// Somebody revoked it.
    #[error("{0} was revoked")]
    Revoked(Box<Token>),
}

/// Why no token was made.
#[derive(Debug, thiserror::Error)]
pub enum NotAdded {
    /// Nobody could have such a token.
    #[error(transparent)]
    Order(#[from] OrderFault),
    /// It can't be kept.
    #[error(transparent)]
    State(#[from] StateError),
}

/// What is wrong with an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct OrderFault {
    /// The field, as a JSON pointer.
    pub pointer: &'static str,
    /// What is wrong with it, as a sentence without a full stop.
    pub why: String,
    /// What to do next.
    pub hint: &'static str,
}

impl State {
    /// Every token that is kept, the oldest first: all that hold, and those that are over for less than
    /// [so many days][TOKENS_KEPT_DAYS].
    pub fn tokens(&self) -> Vec<Token> {
        self.tokens.facts().all().cloned().collect()
    }

    /// The token with an id.
    pub fn token(&self, id: Uuid) -> Option<Token> {
        self.tokens.facts().get(id).cloned()
    }

    /// The token that somebody shows. It never waits for the disk.
    ///
    /// # Errors
    /// When it isn't one that holds now.
    pub fn token_of(&self, shown: &str, now: Timestamp) -> Result<Token, NoToken> {
        // What can't be one costs no digest, however long it is.
        if !looks_like_token(shown) {
            return Err(NoToken::Unknown);
        }
        let facts = self.tokens.facts();
        holding(facts.find(&Digest::of(shown)), now)
    }

    /// The same of a token that was shown a moment ago.
    ///
    /// # Errors
    /// When it doesn't hold any more.
    pub fn still_holds(&self, id: Uuid, now: Timestamp) -> Result<(), NoToken> {
        holding(self.tokens.facts().get(id), now).map(drop)
    }

    /// Makes a token, and records who did.
    ///
    /// # Errors
    /// When it is not to be had, or can't be recorded. There is none then.
    pub fn add_token(&self, order: TokenOrder, by: &str, now: Timestamp) -> Result<NewToken, NotAdded> {
        let mut tokens = self.tokens.writing();
        let known = tokens.facts();
        let of_owner: Vec<&Token> = known.all().filter(|token| token.is_owned_by(&order.owner)).collect();
        order.fault(&of_owner, now).map_or(Ok(()), Err)?;
        let secret =
            secret().map_err(|error| StateError::io("make a token for", self.tokens.path())(error))?;
        let TokenOrder { name, owner, organization, access, days } = order;
        let lasts = SignedDuration::from_hours(24 * i64::from(days));
        let expires_at = now.checked_add(lasts).unwrap_or(Timestamp::MAX);
        let (id, revoked_at) = (Uuid::now_v7(), None);
        let token = Token { id, name, owner, organization, access, created_at: now, expires_at, revoked_at };
        // First: nothing may be good for anything that the trail doesn't know of.
        let until = interface::timestamp(expires_at);
        self.audit_token(format!("made {token}: {}, until {until}", token.scope()), by, now)?;
        let mut registry = locked(&self.registry);
        if !registry.facts.tokens_made {
            registry.add(vec![Entry::TokensMade])?;
        }
        drop(registry);
        tokens.add(&token, Digest::of(secret.expose_secret()))?;
        // By the clock of the token before: one that is ahead for once drops nothing that holds.
        let latest = known.all().last().map_or(now, |before| before.created_at.min(now));
        if let Err(error) = tokens.shorten(latest) {
            tracing::warn!(%error, hint = error.hint(), "tokens that ended long ago could not be dropped");
        }
        Ok(NewToken { token, secret })
    }

    /// Makes a token good for nothing, and records who did.
    ///
    /// # Errors
    /// When that can't be recorded.
    pub fn revoke_token(&self, id: Uuid, by: &str, now: Timestamp) -> Result<Revoked, StateError> {
        let mut tokens = self.tokens.writing();
        let Some(token) = self.token(id) else { return Ok(Revoked::Unknown) };
        if token.revoked_at.is_some() {
            return Ok(Revoked::Before(token));
        }
        self.audit_token(format!("revoked {token}"), by, now)?;
        tokens.revoke(id, now)?;
        Ok(Revoked::Now(Token { revoked_at: Some(now), ..token }))
    }

    fn audit_token(&self, what: String, by: &str, at: Timestamp) -> Result<(), StateError> {
        self.audit_person(&AuditEntry::new(at, by, what))
    }
}

fn holding(token: Option<&Token>, now: Timestamp) -> Result<Token, NoToken> {
    let token = token.cloned().ok_or(NoToken::Unknown)?;
    match token.revoked_at {
        Some(_) => Err(NoToken::Revoked(token.into())),
        None if token.expires_at <= now => Err(NoToken::Expired(token.into())),
        None => Ok(token),
    }
}

/// A new token, as a caller shows it.
fn secret() -> std::io::Result<SecretString> {
    let mut random = zeroize::Zeroizing::new([0; RANDOM]);
    aws_lc_rs::rand::fill(random.as_mut_slice())
        .map_err(|_| std::io::Error::other("the operating system gives no random numbers"))?;
    // One piece of memory, which is wiped: what is put together from parts leaves some behind.
    let mut text = String::with_capacity(TOKEN_PREFIX.len() + 2 * RANDOM);
    text.push_str(TOKEN_PREFIX);
    text.push_str(&zeroize::Zeroizing::new(hex::encode(random.as_slice())));
    Ok(SecretString::from(text))
}

/// Whether a text may be a token, by its form alone.
pub fn looks_like_token(text: &str) -> bool {
    let digits = text.strip_prefix(TOKEN_PREFIX).unwrap_or_default();
    digits.len() == 2 * RANDOM && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Token {
    /// Whether it is good for anything now.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
    }

    /// When it was over, or will be.
    pub fn over_at(&self) -> Timestamp {
        self.revoked_at.map_or(self.expires_at, |at| at.min(self.expires_at))
    }

    /// Whether it speaks for who has this e-mail address.
    pub fn is_owned_by(&self, email: &str) -> bool {
        is_same_email(&self.owner, email)
    }

    /// What it may be used for, for a person: `write in organization acme`.
    pub fn scope(&self) -> String {
        match &self.organization {
            Reach::All => format!("{} in all organizations", self.access),
            Reach::Organization(organization) => format!("{} in organization {organization}", self.access),
        }
    }
}

/// `token ci (019364c1-…) of ada@example.com`, for the log and the audit trail.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {} ({}) of {}", self.name, self.id, self.owner)
    }
}

impl TokenOrder {
    /// What is wrong with it, for an owner who has these tokens.
    fn fault(&self, of_owner: &[&Token], now: Timestamp) -> Option<OrderFault> {
        let fault = |pointer, why, hint| Some(OrderFault { pointer, why, hint });
        let length = self.name.chars().count();
        if !(1..=LONGEST_NAME).contains(&length)
            || self.name.trim() != self.name
            || self.name.chars().any(char::is_control)
        {
            return fault(
                "/name",
                format!(
                    "the name of a token has 1 to {LONGEST_NAME} characters, no control characters, and no space at \
                     either end"
                ),
                "choose another name",
            );
        }
        if !is_email(&self.owner) {
            return fault(
                "/owner",
                format!("`{}` is not an e-mail address", shortened(&self.owner)),
                "give the address of a person, as a super user or a member of an organization has it",
            );
        }
        if !(1..=MOST_TOKEN_DAYS).contains(&self.days) {
            return fault(
                "/days",
                format!("a token holds from 1 to {MOST_TOKEN_DAYS} days, and not {}", self.days),
                "make another one when it ends",
            );
        }
        let (holding, kept) = (
            of_owner.iter().filter(|token| token.holds(now)).count(),
            of_owner.iter().filter(|token| token.over_at() > long_before(now)).count(),
        );
        let (why, hint) = if holding >= MOST_OF_ONE {
            (
                format!("{} has {holding} tokens that hold, and there can't be more", self.owner),
                "revoke those that nobody needs",
            )
        } else if kept >= MOST_KEPT_OF_ONE {
            let why = format!(
                "{} has {kept} tokens with those that ended or were revoked in the last {TOKENS_KEPT_DAYS} days, and there \
                 can't be more",
                self.owner
            );
            (
                why,
                "use a token until it ends, in place of a new one each time; those that are over are forgotten with time",
            )
        } else {
            return None;
        };
        fault("/owner", why, hint)
    }
}

/// Whether two e-mail addresses are the same, but for the case of ASCII: other letters only look alike.
pub fn is_same_email(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Enough of what somebody wrote to know it again.
fn shortened(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME).collect()
}

fn token_days() -> u32 {
    TOKEN_DAYS
}

impl Access {
    /// All of them, the least first.
    pub const ALL: [Access; 3] = [Access::Read, Access::Write, Access::Admin];

    /// The word for it.
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
    /// How all organizations are written. No identifier is that.
    const ALL: &str = "*";

    /// Whether an organization is among them.
    pub fn covers(&self, organization: &Identifier) -> bool {
        match self {
            Reach::All => true,
            Reach::Organization(own) => own == organization,
        }
    }

    /// Whether every organization of another reach is among them.
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
    serializer.serialize_str(&interface::timestamp(*at))
}

fn in_full_if_any<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(interface::timestamp).serialize(serializer)
}
