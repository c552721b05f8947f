//! The pages of sign-in by OpenID Connect: one leads the browser to the issuer, to the other it comes back.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Request;
use axum::http::header::{COOKIE, HeaderValue, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::get;
use secrecy::ExposeSecret as _;

use super::client::Refusal;
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

const COOKIE_NAME: &str = "streamfleet_sign_in";

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
    match oidc.depart(Peer::of(request.extensions()), organization, next).await {
        Ok(Departure { page, cookie }) => {
            let leave = Leave { frame: Frame::outside(&ui), issuer: oidc.host().to_owned(), page };
            let mut response = shown(StatusCode::OK, &leave);
            response.headers_mut().append(SET_COOKIE, attempt_cookie(&ui, &cookie, AGE));
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
    let arrival = Arrival { cookie: attempt_of(&parts.headers), query: &query };
    let mut response = match oidc.arrive(Peer::of(&parts.extensions), arrival).await {
        Ok(signed_in) => {
            sign_in::begin(&ui, &parts, signed_in.session.expose_secret(), &signed_in.next).await
        }
        Err(refusal) => SignIn::form(&ui, String::new(), String::new()).again(told(oidc.host(), refusal)),
    };
    response.headers_mut().append(SET_COOKIE, attempt_cookie(&ui, "", 0));
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
        SignInRefusal::Unreachable => (
            format!("{issuer} can't be reached"),
            "try again later, or use a token or a link; the log has the details",
        ),
        SignInRefusal::Limited(limited) => return ProblemDocument::from(limited).into(),
    };
    ProblemDocument::new(&code::UNAUTHENTICATED, why).hint(hint).into()
}

fn attempt_of(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value)
}

/// The browser comes back from another site, so the cookie is `Lax`.
fn attempt_cookie(ui: &Ui, value: &str, age: u32) -> HeaderValue {
    let secure = if ui.is_secure { "; Secure" } else { "" };
    let path = ui.address("/sign-in");
    let text = format!("{COOKIE_NAME}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
    let mut header = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""));
    header.set_sensitive(true);
    header
}
