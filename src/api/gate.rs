//! Who is let in: a request is counted for its address, its token is looked at, and then it is counted for the token alone.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Uri};
use jiff::Timestamp;
use uuid::Uuid;

use super::authenticate::{Unauthenticated, authenticate};
use super::limiter::{Address, Limiter, TooMany};
use super::problem::Problem;
use crate::config::ApiConfig;
use crate::state::{State, Token};

/// What is remembered of who asked how often.
pub struct Gate {
    by_address: Limiter<Address>,
    by_token: Limiter<Uuid>,
}

/// Why a request isn't let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// It shows no token that holds.
    Unauthenticated(Unauthenticated),
    /// Others came from its address that showed none.
    Address(TooMany),
    /// Others showed its token.
    Token(TooMany),
}

impl Gate {
    /// One with the limits of the settings.
    pub fn of(config: &ApiConfig) -> Gate {
        let ApiConfig { requests_per_address, requests_per_token, .. } = config;
        Gate {
            by_address: Limiter::per_minute(*requests_per_address),
            by_token: Limiter::per_minute(*requests_per_token),
        }
    }

    /// Lets a request in that shows a token which holds, and says in the log why another one isn't.
    ///
    /// # Errors
    /// When it shows none, or there were too many.
    pub fn admit(
        &self,
        (headers, uri, from): (&HeaderMap, &Uri, IpAddr),
        state: &State,
        (now, clock): (Timestamp, Instant),
    ) -> Result<Token, Refused> {
        let address = Address::from(from);
        self.by_address.count(address, clock).map_err(Refused::Address)?;
        let token = authenticate(headers, uri, state, now).map_err(|why| {
            why.log(Some(from));
            Refused::Unauthenticated(why)
        })?;
        // Many who show tokens may share an address, as behind a proxy.
        self.by_address.take_back(&address);
        self.by_token.count(token.id, clock).map_err(Refused::Token)?;
        Ok(token)
    }
}

impl From<Refused> for Problem {
    fn from(why: Refused) -> Problem {
        let (TooMany { retry_after }, detail) = match why {
            Refused::Unauthenticated(why) => return why.into(),
            Refused::Address(many) => {
                (many, "too many requests without a token that holds came from this address")
            }
            Refused::Token(many) => (many, "too many requests came with this token"),
        };
        Problem::too_many(detail, Duration::from_secs(retry_after))
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
    use crate::state::{Access, NoToken, Reach, TokenOrder};

    #[test]
    fn who_guesses_is_held_by_address_and_who_shows_a_token_by_that() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Utf8Path::from_path(dir.path()).unwrap()).unwrap();
        let (now, clock) = (Timestamp::UNIX_EPOCH, Instant::now());
        let (name, owner) = ("ci".to_owned(), "ada@example.com".to_owned());
        let order = TokenOrder { name, owner, organization: Reach::All, access: Access::Read, days: 1 };
        let made = state.add_token(order, "ann", now).unwrap();
        let config = ApiConfig { requests_per_address: 3, requests_per_token: 5, ..ApiConfig::default() };
        let gate = Gate::of(&config);
        let ask = |secret: &str, from: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, format!("Bearer {secret}").parse().unwrap());
            gate.admit((&headers, &Uri::from_static("/"), from.parse().unwrap()), &state, (now, clock))
        };
        let (good, bad) = (made.secret.expose_secret(), "sf_no");
        let unknown = Refused::Unauthenticated(Unauthenticated::NotHolding(NoToken::Unknown));
        // More than an address has, since they show a token.
        for _ in 0..5 {
            assert_eq!(ask(good, "192.0.2.1").unwrap(), made.token);
        }
        let many = ask(good, "192.0.2.2").unwrap_err();
        assert_eq!(many, Refused::Token(TooMany { retry_after: 12 }));
        for last in 1..=3 {
            assert_eq!(ask(bad, &format!("2001:db8::{last}")).unwrap_err(), unknown);
        }
        let held = ask(bad, "2001:db8::4").unwrap_err();
        assert_eq!(held, Refused::Address(TooMany { retry_after: 20 }));
        assert_eq!(ask(good, "2001:db8::5").unwrap_err(), held, "nobody is looked at from there");
        assert_eq!(ask(bad, "192.0.2.1").unwrap_err(), unknown, "others are heard");
        for (refused, after) in [(many, "12"), (held, "20")] {
            let response = Problem::from(refused).into_response();
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(response.headers()[RETRY_AFTER], after);
        }
    }
}
