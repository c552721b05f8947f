//! ID tokens (OpenID Connect Core 1.0, section 3.1.3.7). What one says counts only when everything in it is right.

use jiff::Timestamp;
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;
use serde_json::Value;

use crate::config::is_email;
use crate::problem::quote_untrusted;

/// How far the issuer's clock may be from ours, in seconds.
const LEEWAY: f64 = 30.0;

/// The longest id of an account, in bytes (OpenID Connect Core 1.0, section 2).
const LONGEST_SUBJECT: usize = 255;

/// The algorithms with a private key. With a shared one, whoever knows a published key could sign.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// The claims that a token must have.
pub struct Expected<'e> {
    pub issuer: &'e str,
    pub client_id: &'e str,
    pub nonce: &'e str,
    pub trust_unverified_emails: bool,
    /// How long ago, in seconds, the person may have proved who they are (section 3.1.2.1).
    pub max_age: Option<u32>,
    pub now: Timestamp,
}

/// Whom a valid token is about.
#[derive(Debug, PartialEq, Eq)]
pub struct Person {
    pub subject: String,
    pub email: String,
    /// When they proved who they are to the issuer (`auth_time`); `None` if it doesn't say that.
    pub proved_at: Option<Timestamp>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdTokenFault {
    #[error("its header is invalid: {0}")]
    Header(String),
    #[error("it is signed with {0}, which is not allowed")]
    Algorithm(String),
    /// The issuer may have a new key, so its keys are worth another look.
    #[error("the issuer publishes no key {0}")]
    UnknownKey(String),
    #[error("its signature is not one of the issuer")]
    Signature,
    #[error("its claims are invalid: {0}")]
    Claims(String),
    #[error("its issuer is {0}")]
    Issuer(String),
    #[error("it is for another client")]
    Audience,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    Early,
    #[error("its nonce is not that of this sign-in")]
    Nonce,
    #[error("it doesn't say that the person signed in to the issuer a moment ago (`auth_time`)")]
    Old,
    #[error("it says that the person signs in to the issuer in the future (`auth_time`)")]
    Future,
    #[error("its subject is empty or too long")]
    Subject,
    #[error("it has no e-mail address in the claim `email`; the identity provider has to add it")]
    NoEmail,
    #[error(
        "the identity provider doesn't call the address {0} verified (`email_verified`); if only its administrators set \
         addresses, set `api.oidc.trust_unverified_emails`"
    )]
    Unverified(String),
}

/// Times may be fractions (RFC 7519, section 2).
#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: TokenAudience,
    azp: Option<String>,
    exp: f64,
    iat: f64,
    nbf: Option<f64>,
    nonce: Option<String>,
    auth_time: Option<f64>,
    email: Option<String>,
    email_verified: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TokenAudience {
    One(String),
    Several(Vec<String>),
}

/// Checks a token, and returns whom it is about.
///
/// # Errors
/// With the first thing that is wrong. It contains nothing of the token that isn't quoted.
pub fn check(token: &str, keys: &[Jwk], expected: &Expected<'_>) -> Result<Person, IdTokenFault> {
    let unusable =
        |error: jsonwebtoken::errors::Error| IdTokenFault::Header(quote_untrusted(&error.to_string()));
    let header = jsonwebtoken::decode_header(token).map_err(unusable)?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(IdTokenFault::Algorithm(format!("{:?}", header.alg)));
    }
    if header.crit.is_some() || header.enc.is_some() {
        return Err(IdTokenFault::Header("it has extensions that are not supported".to_owned()));
    }
    let named = header.kid.as_deref();
    let is_named = |key: &&Jwk| named.is_none_or(|named| key.common.key_id.as_deref() == Some(named));
    let signs = |key: &&Jwk| !matches!(key.common.public_key_use, Some(PublicKeyUse::Encryption));
    let mut candidates = keys.iter().filter(is_named).filter(signs).peekable();
    if candidates.peek().is_none() {
        let named =
            named.map_or_else(|| "to sign with".to_owned(), |named| format!("`{}`", quote_untrusted(named)));
        return Err(IdTokenFault::UnknownKey(named));
    }
    let claims = candidates.find_map(|key| signed(token, key, header.alg)).ok_or(IdTokenFault::Signature)?;
    let claims: Claims = serde_json::from_value(claims)
        .map_err(|error| IdTokenFault::Claims(quote_untrusted(&error.to_string())))?;
    claims.judge(expected)
}

/// The claims of a token that is signed with a key. They are checked by [`Claims::judge`].
fn signed(token: &str, key: &Jwk, algorithm: Algorithm) -> Option<Value> {
    let key = DecodingKey::from_jwk(key).ok().filter(|key| key.family() == algorithm.family())?;
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_aud) = (false, false);
    jsonwebtoken::decode(token, &key, &validation).ok().map(|data| data.claims)
}

impl Claims {
    fn judge(self, expected: &Expected<'_>) -> Result<Person, IdTokenFault> {
        if self.iss != expected.issuer {
            return Err(IdTokenFault::Issuer(quote_untrusted(&self.iss)));
        }
        let others = match &self.aud {
            TokenAudience::One(one) => std::slice::from_ref(one),
            TokenAudience::Several(several) => several,
        };
        let is_ours = |client: &String| client == expected.client_id;
        // With several audiences, the token must say for which client it was made.
        let is_made_for_us = match &self.azp {
            Some(client) => is_ours(client),
            None => others.len() == 1,
        };
        if !others.iter().any(is_ours) || !is_made_for_us {
            return Err(IdTokenFault::Audience);
        }
        // Exact up to 2^53 seconds.
        let now = expected.now.as_second() as f64;
        if now >= self.exp + LEEWAY {
            return Err(IdTokenFault::Expired);
        }
        if [Some(self.iat), self.nbf].into_iter().flatten().any(|begin| begin > now + LEEWAY) {
            return Err(IdTokenFault::Early);
        }
        if self.nonce.as_deref() != Some(expected.nonce) {
            return Err(IdTokenFault::Nonce);
        }
        if self.auth_time.is_some_and(|at| at > now + LEEWAY) {
            return Err(IdTokenFault::Future);
        }
        if let Some(age) = expected.max_age
            && self.auth_time.is_none_or(|at| at + f64::from(age) + LEEWAY < now)
        {
            return Err(IdTokenFault::Old);
        }
        if self.sub.is_empty() || self.sub.len() > LONGEST_SUBJECT {
            return Err(IdTokenFault::Subject);
        }
        let email = self.email.filter(|email| is_email(email)).ok_or(IdTokenFault::NoEmail)?;
        // Some providers send a text.
        let is_verified = self.email_verified.is_some_and(|it| it == true || it == "true");
        match is_verified || expected.trust_unverified_emails {
            true => {
                // A fraction of a second doesn't matter, and a time that none can be is out of range.
                let proved_at = self.auth_time.and_then(|at| Timestamp::from_second(at as i64).ok());
                let proved_at = proved_at.map(|at| at.min(expected.now));
                Ok(Person { subject: self.sub, email, proved_at })
            }
            false => Err(IdTokenFault::Unverified(email)),
        }
    }
}
