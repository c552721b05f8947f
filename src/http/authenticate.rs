//! Authentication by a bearer token in exactly one `Authorization` header.
//!
//! A refused caller doesn't learn why: no token, an expired token and a revoked one get the same answer after
//! the same work. The log tells them apart. The audit trail has no entry, since the write to disk would show
//! in the response time.

use std::net::IpAddr;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue, Uri};
use jiff::Timestamp;

use super::problem::{ProblemDocument, code};
use crate::state::{State, Token, TokenRejection, looks_like_token};

/// Query parameters that carry a token (RFC 6750, section 2.3). Proxies write them to their logs.
const IN_QUERY: [&str; 2] = ["access_token", "token"];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unauthenticated {
    #[error("the request has no `Authorization` header")]
    Missing,
    #[error("the request has several `Authorization` headers; exactly one is allowed")]
    Several,
    #[error("the `Authorization` header doesn't contain `Bearer` and a token")]
    Scheme,
    /// The token is in the URL, where others may read it.
    #[error("the request's address contains a token, which servers on the way may have logged")]
    InAddress,
    /// The token is unknown, expired or revoked.
    #[error("{0}")]
    NotHolding(#[from] TokenRejection),
}

/// Returns the valid token of a request.
///
/// # Errors
/// When the request has no valid token, several, or one in its URL.
pub fn authenticate(
    headers: &HeaderMap,
    uri: &Uri,
    state: &State,
    now: Timestamp,
) -> Result<Token, Unauthenticated> {
    refuse_in_address(uri)?;
    let mut headers = headers.get_all(AUTHORIZATION).iter();
    let header = match (headers.next(), headers.next()) {
        (None, _) => return Err(Unauthenticated::Missing),
        (Some(header), None) => header,
        (Some(_), Some(_)) => return Err(Unauthenticated::Several),
    };
    let shown = shown(header).ok_or(Unauthenticated::Scheme)?;
    Ok(state.authenticate_token(shown, now)?)
}

fn refuse_in_address(uri: &Uri) -> Result<(), Unauthenticated> {
    if uri.path().split('/').any(looks_like_token) {
        return Err(Unauthenticated::InAddress);
    }
    let mut words = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let is_token = |name: &str, value: &str| IN_QUERY.contains(&name) || looks_like_token(value);
    match words.any(|(name, value)| is_token(&name, &value)) {
        true => Err(Unauthenticated::InAddress),
        false => Ok(()),
    }
}

/// The credentials after `Bearer`, a scheme whose case doesn't matter (RFC 9110, section 11.1).
fn shown(header: &HeaderValue) -> Option<&str> {
    let (scheme, shown) = header.to_str().ok()?.split_once(' ')?;
    let shown = shown.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !shown.is_empty()).then_some(shown)
}

impl Unauthenticated {
    /// The detail and the hint for the caller. They never contain any part of the credentials that were sent.
    pub fn told(&self) -> (String, &'static str) {
        const SHOW: &str =
            "send one header `Authorization: Bearer TOKEN`; `streamfleet token create` creates a token";
        match self {
            Unauthenticated::Missing | Unauthenticated::Several | Unauthenticated::Scheme => {
                (self.to_string(), SHOW)
            }
            Unauthenticated::InAddress => (
                self.to_string(),
                "revoke the token with `streamfleet token revoke`, and send another one in the header `Authorization: \
                 Bearer TOKEN`",
            ),
            Unauthenticated::NotHolding(_) => (
                "the token is unknown, expired or revoked".to_owned(),
                "check that the token is complete; `streamfleet token list` lists valid tokens, and `streamfleet token \
                 create` creates one",
            ),
        }
    }

    /// Logs why a request is refused. Guessing can't flood the log: an address over its limit of failures is
    /// refused before this is called.
    pub fn log(&self, from: Option<IpAddr>) {
        let from = from.map(tracing::field::display);
        match self {
            // A client that used to work stopped working, and its operator will search for the reason.
            Unauthenticated::NotHolding(TokenRejection::Expired(_) | TokenRejection::Revoked(_))
            | Unauthenticated::InAddress => {
                tracing::warn!(from, "request refused: {self}");
            }
            _ => tracing::info!(from, "request refused: {self}"),
        }
    }
}

impl From<Unauthenticated> for ProblemDocument {
    fn from(why: Unauthenticated) -> ProblemDocument {
        let (detail, hint) = why.told();
        ProblemDocument::new(&code::UNAUTHENTICATED, detail).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::http::header::WWW_AUTHENTICATE;
    use axum::response::IntoResponse as _;
    use camino::Utf8Path;
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::state::{Access, Reach, TokenOrder};

    fn order(name: &str, days: u32) -> TokenOrder {
        let owner = "ada@example.com".to_owned();
        TokenOrder { name: name.to_owned(), owner, organization: Reach::All, access: Access::Read, days }
    }

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn a_token_is_shown_in_one_header_and_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Utf8Path::from_path(dir.path()).unwrap()).unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let made = state.add_token(order("ci", 30), "ann", now).unwrap();
        let secret = made.secret.expose_secret().to_owned();
        let ask = |values: &[String], uri: &str| {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            authenticate(&headers(&values), &uri.parse().unwrap(), &state, now)
        };
        let bearer = format!("Bearer {secret}");
        for fine in [bearer.clone(), format!("bearer {secret}"), format!("BEARER   {secret} ")] {
            assert_eq!(ask(&[fine], "/v1/clusters?page_size=3&page_token=abc").unwrap(), made.token);
        }
        let unknown = Unauthenticated::NotHolding(TokenRejection::Unknown);
        let with = |value: &str| vec![value.to_owned()];
        let several = vec![bearer.clone(), bearer.clone()];
        let cases = [
            (vec![], "/", Unauthenticated::Missing),
            (several, "/", Unauthenticated::Several),
            (vec![bearer.clone(), "Basic YTpi".to_owned()], "/", Unauthenticated::Several),
            (with("Basic YTpi"), "/", Unauthenticated::Scheme),
            (with(&secret), "/", Unauthenticated::Scheme),
            (with("Bearer"), "/", Unauthenticated::Scheme),
            (with("Bearer "), "/", Unauthenticated::Scheme),
            (with(&format!("Bearer\t{secret}")), "/", Unauthenticated::Scheme),
            (with("Bearer gr\u{fc}n"), "/", Unauthenticated::Scheme),
            (with(&format!("{bearer}, {bearer}")), "/", unknown.clone()),
            (with(&format!("{bearer}0")), "/", unknown.clone()),
            (with(&bearer[..bearer.len() - 1]), "/", unknown.clone()),
            (with(&format!("Bearer {}", secret.to_uppercase())), "/", unknown.clone()),
            (with("Bearer sf_"), "/", unknown),
            (with(&bearer), "/v1/clusters?access_token=x", Unauthenticated::InAddress),
            (with(&bearer), "/v1/clusters?a=b&%74oken=", Unauthenticated::InAddress),
        ];
        for (values, uri, expected) in cases {
            let found = ask(&values, uri).unwrap_err();
            assert_eq!(found, expected, "{values:?} {uri}");
            let (told, hint) = found.told();
            assert!(!format!("{told} {hint} {found} {found:?}").contains(&secret[..12]), "{told}");
        }
        let key = format!("/v1/clusters?key={secret}");
        assert_eq!(ask(&[bearer], &key).unwrap_err(), Unauthenticated::InAddress);
    }

    #[test]
    fn who_is_refused_learns_nothing_of_whether_the_token_was_ever_one() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Utf8Path::from_path(dir.path()).unwrap()).unwrap();
        let (begin, day) = (Timestamp::UNIX_EPOCH, jiff::SignedDuration::from_hours(24));
        let expired = state.add_token(order("old", 1), "ann", begin).unwrap();
        let revoked = state.add_token(order("lost", 9), "ann", begin).unwrap();
        state.revoke_token(revoked.token.id, "ann", begin).unwrap();
        let now = begin + day;
        let unknown = format!("sf_{}", "0".repeat(64));
        let refused =
            [expired.secret.expose_secret(), revoked.secret.expose_secret(), &unknown].map(|secret| {
                let headers = headers(&[&format!("Bearer {secret}")]);
                authenticate(&headers, &Uri::from_static("/"), &state, now).unwrap_err()
            });
        let [old, lost] = [expired.token.id, revoked.token.id];
        let expected = [
            format!("token old ({old}) of ada@example.com expired at 1970-01-02T00:00:00.000000Z"),
            format!("token lost ({lost}) of ada@example.com was revoked"),
            "there is no such token".to_owned(),
        ];
        assert_eq!(refused.each_ref().map(ToString::to_string), expected);
        for why in refused {
            assert_eq!(
                why.told(),
                (
                    "the token is unknown, expired or revoked".to_owned(),
                    "check that the token is complete; `streamfleet token list` lists valid tokens, and `streamfleet token \
                     create` creates one"
                )
            );
            let response = ProblemDocument::from(why).into_response();
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
            assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer");
        }
    }
}
