//! Rate limits. A request with a valid token counts against the token's owner; any other counts against its
//! address.
//!
//! The token is checked first. That is as cheap as counting, so a caller with a valid token is never refused
//! for what others behind the same address do. After too many failures, an address learns nothing more about
//! its guesses and writes no more log lines. A correct guess would still be accepted, but its odds are 1 in
//! 2^256. Routes that need no token are counted in the same way.
//!
//! A thief who uses up the owner's limit with a stolen token can't keep the owner from revoking it: see
//! `by_token`.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Uri};
use jiff::Timestamp;
use uuid::Uuid;

use super::authenticate::{Unauthenticated, authenticate};
use super::limiter::{Address, Limiter, LogLimit};
use super::problem::ProblemDocument;
use crate::config::ApiConfig;
use crate::state::{State, Token};

/// How many revocations a minute one token may make beyond its owner's limit.
const REVOKING: u32 = 10;

pub struct RateLimits {
    /// Failed requests.
    by_address: Limiter<Address>,
    /// Admitted requests, by the owner's e-mail address in lower case: an owner may have many tokens.
    by_owner: Limiter<String>,
    /// Revocations over the owner's limit, by the token in use and whether it revokes itself. A stolen token
    /// thus uses up only its own allowance, and its owner can still revoke it with another.
    by_token: Limiter<(Uuid, bool)>,
    told: LogLimit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RateLimited {
    Unauthenticated(Unauthenticated),
    /// No valid token, and too many such requests from the address: how long to wait.
    Address(Duration),
    /// Too many requests with the owner's tokens.
    Owner(Duration),
}

impl RateLimits {
    pub fn of(config: &ApiConfig) -> RateLimits {
        let ApiConfig { requests_per_address, requests_per_owner, .. } = config;
        RateLimits {
            by_address: Limiter::per_minute(*requests_per_address),
            by_owner: Limiter::per_minute(*requests_per_owner),
            by_token: Limiter::per_minute(REVOKING),
            told: LogLimit::default(),
        }
    }

    /// Admits a request with a valid token, and logs why any other is refused.
    ///
    /// # Errors
    /// When the token is missing or invalid, or a limit is exceeded.
    pub fn admit(
        &self,
        (headers, uri, from): (&HeaderMap, &Uri, IpAddr),
        state: &State,
        (now, clock): (Timestamp, Instant),
        revokes: bool,
    ) -> Result<Token, RateLimited> {
        let token = authenticate(headers, uri, state, now).map_err(|why| {
            if let Err(refused) = self.count_unauthenticated(from, clock) {
                return refused;
            }
            if self.told.has_room(Some(Address::from(from)), clock) {
                why.log(Some(from));
            }
            RateLimited::Unauthenticated(why)
        })?;
        match self.owner(&token, clock) {
            Err(_) if revokes => {
                let is_own = uri.path().split('/').any(|part| part.parse() == Ok(token.id));
                self.by_token.count((token.id, is_own), clock).map_err(RateLimited::Owner)?;
            }
            counted => counted?,
        }
        Ok(token)
    }

    /// Admits a request to a route that needs no token. It counts against its token's owner if it has a valid
    /// token, else against its address.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn admit_public(
        &self,
        (headers, uri, from): (&HeaderMap, &Uri, IpAddr),
        state: Option<&State>,
        (now, clock): (Timestamp, Instant),
    ) -> Result<(), RateLimited> {
        match state.and_then(|state| authenticate(headers, uri, state, now).ok()) {
            Some(token) => self.owner(&token, clock),
            None => self.count_unauthenticated(from, clock),
        }
    }

    /// Counts a request without a valid token against its address.
    ///
    /// # Errors
    /// When the limit is exceeded.
    pub fn count_unauthenticated(&self, from: IpAddr, clock: Instant) -> Result<(), RateLimited> {
        self.by_address.count(Address::from(from), clock).map_err(RateLimited::Address)
    }

    fn owner(&self, token: &Token, clock: Instant) -> Result<(), RateLimited> {
        self.by_owner.count(token.owner.to_ascii_lowercase(), clock).map_err(RateLimited::Owner)
    }
}

impl From<RateLimited> for ProblemDocument {
    fn from(why: RateLimited) -> ProblemDocument {
        let (pause, detail) = match why {
            RateLimited::Unauthenticated(why) => return why.into(),
            RateLimited::Address(pause) => {
                (pause, "too many requests without a valid token from this address")
            }
            RateLimited::Owner(pause) => (pause, "too many requests with tokens of this owner"),
        };
        ProblemDocument::too_many(detail, pause)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::http::header::{AUTHORIZATION, RETRY_AFTER};
    use axum::response::IntoResponse as _;
    use camino::Utf8Path;
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::state::{Access, NewToken, Reach, TokenOrder, TokenRejection};

    #[test]
    fn who_guesses_is_held_by_address_and_who_shows_tokens_by_their_owner() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Utf8Path::from_path(dir.path()).unwrap()).unwrap();
        let (now, clock) = (Timestamp::UNIX_EPOCH, Instant::now());
        let make = |owner: &str| {
            let (name, owner) = ("ci".to_owned(), owner.to_owned());
            let order = TokenOrder { name, owner, organization: Reach::All, access: Access::Read, days: 1 };
            state.add_token(order, "ann", now).unwrap()
        };
        let [one, two, other] = ["ada@example.com", "Ada@Example.COM", "bob@example.com"].map(make);
        let config = ApiConfig { requests_per_address: 3, requests_per_owner: 5, ..ApiConfig::default() };
        let rate_limits = RateLimits::of(&config);
        let ask = |secret: &str, from: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, format!("Bearer {secret}").parse().unwrap());
            rate_limits.admit(
                (&headers, &Uri::from_static("/"), from.parse().unwrap()),
                &state,
                (now, clock),
                false,
            )
        };
        let [good, another, others] = [&one, &two, &other].map(|made| made.secret.expose_secret());
        let bad = "sf_no";
        let unknown = RateLimited::Unauthenticated(Unauthenticated::NotHolding(TokenRejection::Unknown));
        for last in 1..=3 {
            assert_eq!(ask(bad, &format!("2001:db8::{last}")).unwrap_err(), unknown);
        }
        let held = ask(bad, "2001:db8::4").unwrap_err();
        assert_eq!(held, RateLimited::Address(Duration::from_secs(20)));
        // Behind a proxy, others share an attacker's address; their tokens have limits of their own.
        for shown in [good, another, good, another, good] {
            assert_eq!(ask(shown, "2001:db8::5").unwrap().name, "ci");
        }
        assert_eq!(ask(bad, "2001:db8::5").unwrap_err(), held, "nothing of that is made good by them");
        let many = ask(another, "192.0.2.2").unwrap_err();
        assert_eq!(many, RateLimited::Owner(Duration::from_secs(12)));
        assert_eq!(ask(good, "2001:db8::5").unwrap_err(), many);
        assert_eq!(ask(others, "2001:db8::5").unwrap(), other.token);
        assert_eq!(ask(bad, "192.0.2.1").unwrap_err(), unknown, "others are heard");
        for (refused, after) in [(many, "12"), (held, "20")] {
            let response = ProblemDocument::from(refused).into_response();
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(response.headers()[RETRY_AFTER], after);
        }
    }

    #[test]
    fn a_token_that_is_used_without_end_is_revoked_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Utf8Path::from_path(dir.path()).unwrap()).unwrap();
        let (now, clock) = (Timestamp::UNIX_EPOCH, Instant::now());
        let make = |_| {
            let (name, owner) = ("ci".to_owned(), "ada@example.com".to_owned());
            let order = TokenOrder { name, owner, organization: Reach::All, access: Access::Read, days: 1 };
            state.add_token(order, "ann", now).unwrap()
        };
        let [stolen, other] = [0, 1].map(make);
        let config = ApiConfig { requests_per_owner: 5, ..ApiConfig::default() };
        let rate_limits = RateLimits::of(&config);
        let ask = |by: &NewToken, uri: &str, revokes: bool| {
            let mut headers = HeaderMap::new();
            let shown = format!("Bearer {}", by.secret.expose_secret());
            headers.insert(AUTHORIZATION, shown.parse().unwrap());
            let (uri, from) = (uri.parse().unwrap(), "192.0.2.1".parse().unwrap());
            rate_limits.admit((&headers, &uri, from), &state, (now, clock), revokes).is_ok()
        };
        while ask(&stolen, "/v1/clusters", false) {}
        // A revocation of an unknown token counts, too.
        let none = format!("/v1/tokens/{}", Uuid::nil());
        assert_eq!((0..100).filter(|_| ask(&stolen, &none, true)).count(), 10);
        assert!(!ask(&other, "/v1/clusters", false), "nothing else is let in");
        let named = format!("/v1/tokens/{}", stolen.token.id);
        assert!(ask(&other, &named, true) && ask(&stolen, &named, true));
    }

    #[test]
    fn what_takes_no_token_is_counted_by_what_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Utf8Path::from_path(dir.path()).unwrap()).unwrap();
        let (now, clock) = (Timestamp::UNIX_EPOCH, Instant::now());
        let (name, owner) = ("ci".to_owned(), "ada@example.com".to_owned());
        let order = TokenOrder { name, owner, organization: Reach::All, access: Access::Read, days: 1 };
        let made = state.add_token(order, "ann", now).unwrap();
        let config = ApiConfig { requests_per_address: 3, requests_per_owner: 5, ..ApiConfig::default() };
        let rate_limits = RateLimits::of(&config);
        let ask = |shown: &str, from: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, format!("Bearer {shown}").parse().unwrap());
            let from = from.parse().unwrap();
            rate_limits.admit_public(
                (&headers, &Uri::from_static("/openapi.json"), from),
                Some(&state),
                (now, clock),
            )
        };
        let count = |shown: &str, from: &str| (0..20).filter(|_| ask(shown, from).is_ok()).count();
        assert_eq!(count("sf_no", "192.0.2.1"), 3);
        assert_eq!(count(made.secret.expose_secret(), "192.0.2.1"), 5);
        assert_eq!(count("sf_no", "192.0.2.2"), 3, "others are heard");
        let held = RateLimited::Address(Duration::from_secs(20));
        assert_eq!(rate_limits.count_unauthenticated("192.0.2.1".parse().unwrap(), clock), Err(held));
    }
}
