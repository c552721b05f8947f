//! The pages of sign-in by OpenID Connect: one leads the browser to the issuer, to the other it comes back.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Request;
use axum::http::header::{HeaderValue, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::get;
use secrecy::ExposeSecret as _;

use super::client::Refusal;
use super::session::{cookie, cookies, keeps_secure};
use super::sign_in::{self, SignIn};
use super::view::{Frame, filters, shown};
use super::{Ui, pairs, value_of};
use crate::api::oidc::{Arrival, Departure, OpenIdConnect, SignInRefusal};
use crate::http::peer::Peer;
use crate::http::problem::{ProblemDocument, code};

/// The path of the page that leads to the issuer.
pub const LEAVE: &str = "/sign-in/oidc";

/// The path that the issuer sends browsers back to. It is registered there.
const COME_BACK: &str = "/sign-in/callback";

/// The beginning of the names of cookies. Each attempt has one of its own: several tabs may sign in at a time.
const OF_TLS: &str = "__Secure-streamfleet_sign_in";
const OF_PLAIN_HTTP: &str = "streamfleet_sign_in";

/// How many attempts a browser has at a time. The oldest ones give way.
const ATTEMPTS: usize = 8;

/// How long browsers keep the cookie of an attempt, in seconds.
const AGE: u32 = 10 * 60;

/// Leads on without a redirect: a browser would check that against `form-action`, and an issuer may lead on to
/// yet another site.
#[derive(Template)]
#[template(path = "leave.html")]
struct Leave {
    frame: Frame,
    issuer: String,
    page: String,
}

pub fn routes(ui: &Arc<Ui>) -> Router {
    let Some(oidc) = &ui.oidc else { return Router::new() };
    let (leaving, arriving) = ((Arc::clone(ui), Arc::clone(oidc)), (Arc::clone(ui), Arc::clone(oidc)));
    let leave = get(move |request: Request| leave(leaving.0, leaving.1, request));
    let come_back = get(move |request: Request| come_back(arriving.0, arriving.1, request));
    Router::new().route(&format!("/ui{LEAVE}"), leave).route(&format!("/ui{COME_BACK}"), come_back)
}

async fn leave(ui: Arc<Ui>, oidc: Arc<OpenIdConnect>, request: Request) -> Response {
    let query = pairs(request.uri().query().unwrap_or_default().as_bytes());
    let (organization, next) = (value_of(&query, "organization"), value_of(&query, "next"));
    let is_again = !value_of(&query, "again").is_empty();
    let cookies = AttemptCookies::of(&ui, request.headers());
    match oidc.depart(Peer::of(request.extensions()), organization, next, is_again).await {
        Ok(Departure { page, cookie: sealed, state }) => {
            let leave = Leave { frame: Frame::outside(&ui), issuer: oidc.host().to_owned(), page };
            let mut response = shown(StatusCode::OK, &leave);
            // Browsers send the oldest first (RFC 6265, section 5.4).
            let known: Vec<_> = cookies.all().map(|(name, _)| name).collect();
            for old in known.iter().rev().skip(ATTEMPTS - 1) {
                response.headers_mut().append(SET_COOKIE, cookies.set(old, "", 0));
            }
            response.headers_mut().append(SET_COOKIE, cookies.set(&cookies.name(&state), &sealed, AGE));
            response
        }
        Err(refusal) => {
            SignIn::form(&ui, organization.to_owned(), next.to_owned()).again(told(oidc.host(), refusal))
        }
    }
}

async fn come_back(ui: Arc<Ui>, oidc: Arc<OpenIdConnect>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let query = pairs(parts.uri.query().unwrap_or_default().as_bytes());
    let cookies = AttemptCookies::of(&ui, &parts.headers);
    let name = cookies.name(value_of(&query, "state"));
    let own = cookies.all().find(|(known, _)| *known == name);
    // Any other one tells the log whether the browser began a sign-in at all.
    let cookie = own.or_else(|| cookies.all().next()).map(|(_, value)| value);
    let arrival = Arrival { cookie, query: &query };
    let mut response = match oidc.arrive(Peer::of(&parts.extensions), arrival).await {
        Ok(signed_in) => {
            sign_in::begin(&ui, &parts, signed_in.session.expose_secret(), &signed_in.next).await
        }
        // The page to return to is still known. The organization isn't shown, so that all who are refused get the same answer.
        Err(refusal) => {
            let next = cookie.and_then(|cookie| oidc.awaited_page(cookie)).unwrap_or_default();
            SignIn::form(&ui, String::new(), next).again(told(oidc.host(), refusal))
        }
    };
    if own.is_some() {
        response.headers_mut().append(SET_COOKIE, cookies.set(&name, "", 0));
    }
    response
}

/// The page of a refusal. It is the same for every reason.
fn told(issuer: &str, refusal: SignInRefusal) -> Refusal {
    let (why, hint) = match refusal {
        SignInRefusal::Refused => (
            "you were not signed in".to_owned(),
            "check the organization and try again; if it fails again, an administrator of this installation finds the \
             reason in the log",
        ),
        SignInRefusal::Declined => {
            (format!("you ended the sign-in at {issuer}"), "try again, or use another way")
        }
        SignInRefusal::Unproved => (
            format!("{issuer} doesn't say that you entered your password a moment ago"),
            "try again; if it fails again, use a token or a link, and tell an administrator of this installation: the \
             identity provider has to send `auth_time`",
        ),
        SignInRefusal::Unreachable => (
            format!("{issuer} can't be reached"),
            "try again later, or use a token or a link; the log has the details",
        ),
        SignInRefusal::Limited(limited) => return ProblemDocument::from(limited).into(),
    };
    ProblemDocument::new(&code::UNAUTHENTICATED, why).hint(hint).into()
}

/// The cookies of attempts.
struct AttemptCookies<'r> {
    headers: &'r HeaderMap,
    path: String,
    is_secure: bool,
}

impl<'r> AttemptCookies<'r> {
    fn of(ui: &Ui, headers: &'r HeaderMap) -> AttemptCookies<'r> {
        AttemptCookies { headers, path: ui.address("/sign-in"), is_secure: keeps_secure(ui, headers) }
    }

    fn prefix(&self) -> &'static str {
        if self.is_secure { OF_TLS } else { OF_PLAIN_HTTP }
    }

    fn all(&self) -> impl Iterator<Item = (&'r str, &'r str)> {
        let prefix = self.prefix();
        cookies(self.headers).filter(move |(name, _)| name.starts_with(prefix))
    }

    /// The name of the cookie of an attempt, by the beginning of its `state`.
    fn name(&self, state: &str) -> String {
        let is_name = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        let short: String = state.chars().take_while(is_name).take(16).collect();
        format!("{}_{short}", self.prefix())
    }

    fn set(&self, name: &str, value: &str, age: u32) -> HeaderValue {
        cookie(name, value, &self.path, age, self.is_secure)
    }
}
