//! Signing in, by a link that works once or by a token of the API. Either way the session gets a token of its own.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Request;
use axum::http::header::{HeaderValue, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use axum::routing::get;
use serde_json::{Value, json};

use super::client::{ApiClient, Refusal};
use super::pages::DRAFTS;
use super::session::{Session, bearer, cookie, cookies, keeps_secure, session_cookie};
use super::view::{Frame, failure, filters, shown};
use super::{Ui, form, oidc, pairs, see_other, value_of};
use crate::api::answer::CallerDescription;
use crate::http::peer::Peer;
use crate::http::problem::{ProblemDocument, code};
use crate::http::query::encoded;
use crate::state::{TOKEN_PREFIX, looks_like_token};

/// The cookie with the page to return to, for a link that is opened in the same browser. It is not secret, and what it has is
/// checked as if it came from an address.
const NEXT: &str = "streamfleet_next";

/// How long browsers keep it, in seconds, and the most that it has, in bytes.
const NEXT_AGE: u32 = 30 * 60;
const LONGEST_NEXT: usize = 1024;

#[derive(Template)]
#[template(path = "sign_in.html")]
pub struct SignIn {
    frame: Frame,
    /// The issuer's host, if one can sign in there.
    issuer: String,
    /// The secret of a link, which the form sends back.
    link: String,
    organization: String,
    /// The page to return to, as a path below `/ui`.
    next: String,
    /// Whether the session goes on, and what is to be done needs a sign-in of its own.
    is_again: bool,
    error: Option<Refusal>,
}

pub fn routes(ui: &Arc<Ui>) -> Router {
    let (shows, signs_in, ends) = (Arc::clone(ui), Arc::clone(ui), Arc::clone(ui));
    let sign_in = get(move |request: Request| std::future::ready(show(&shows, &request)))
        .post(move |request: Request| sign_in(signs_in, request));
    let sign_out = axum::routing::post(move |request: Request| sign_out(ends, request));
    Router::new().route("/ui/sign-in", sign_in).route("/ui/sign-out", sign_out)
}

/// Leads to the form, and from there back to the page.
pub fn ask(ui: &Ui, here: &str) -> Response {
    let form = if ui.auto_redirect { oidc::LEAVE } else { "/sign-in" };
    see_other(&format!("{}?next={}", ui.address(form), encoded(here)))
}

/// As `ask`, for somebody who signed in too long ago. The form says why.
pub fn ask_again(ui: &Ui, here: &str) -> Response {
    see_other(&format!("{}?again=1&next={}", ui.address("/sign-in"), encoded(here)))
}

fn show(ui: &Ui, request: &Request) -> Response {
    let query = pairs(request.uri().query().unwrap_or_default().as_bytes());
    let value = |name: &str| value_of(&query, name).to_owned();
    let (link, is_again, mut next) = (value("link"), !value("again").is_empty(), value("next"));
    if !link.is_empty() && next.is_empty() {
        next = awaited_page(request.headers());
    }
    let is_kept = link.is_empty() && !next.is_empty() && next.len() <= LONGEST_NEXT;
    let kept = is_kept.then(|| next_cookie(ui, request.headers(), &next));
    let mut response =
        shown(StatusCode::OK, &SignIn { link, is_again, ..SignIn::form(ui, value("organization"), next) });
    response.headers_mut().extend(kept.map(|cookie| (SET_COOKIE, cookie)));
    response
}

/// The page that this browser came for when it was led to the form; empty if it wasn't lately.
fn awaited_page(headers: &HeaderMap) -> String {
    let found = cookies(headers).find(|(name, _)| *name == NEXT);
    let text = found.map(|(_, text)| format!("next={text}")).unwrap_or_default();
    value_of(&pairs(text.as_bytes()), "next").to_owned()
}

/// Keeps the page to return to, or forgets it if it is empty.
fn next_cookie(ui: &Ui, headers: &HeaderMap, next: &str) -> HeaderValue {
    let age = if next.is_empty() { 0 } else { NEXT_AGE };
    cookie(NEXT, &encoded(next), &ui.address("/sign-in"), age, keeps_secure(ui, headers))
}

impl SignIn {
    /// Whether something that was typed waits for the person.
    fn is_kept(&self) -> bool {
        self.next.starts_with(&format!("{}{DRAFTS}/", self.frame.root))
    }

    /// Whether the address of a form has what was typed.
    fn is_in_address(&self) -> bool {
        self.next.starts_with(&format!("{}/new/", self.frame.root)) && self.next.contains("step=")
    }

    pub fn form(ui: &Ui, organization: String, next: String) -> SignIn {
        let issuer = ui.oidc.as_ref().map(|oidc| oidc.host().to_owned()).unwrap_or_default();
        let (frame, link) = (Frame::outside(ui), String::new());
        SignIn { frame, issuer, link, organization, next, is_again: false, error: None }
    }

    /// The form with the reason why it is shown again.
    pub fn again(self, error: Refusal) -> Response {
        let (status, error) = (error.status, Some(error));
        shown(status, &SignIn { error, ..self })
    }
}

/// Begins a session in the browser, in place of the one that it had.
pub async fn begin(ui: &Ui, parts: &Parts, session: &str, next: &str) -> Response {
    if let Some(before) = Session::of(ui, &parts.headers) {
        end(ui, Peer::of(&parts.extensions), &before).await;
    }
    let mut response = see_other(&next_page(ui, next));
    response.headers_mut().insert(SET_COOKIE, session_cookie(ui, &parts.headers, Some(session)));
    if !awaited_page(&parts.headers).is_empty() {
        response.headers_mut().append(SET_COOKIE, next_cookie(ui, &parts.headers, ""));
    }
    response
}

async fn sign_in(ui: Arc<Ui>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let fields = match form(body).await {
        Ok(sent) => sent.fields,
        Err(refusal) => return failure(&Frame::outside(&ui), &refusal),
    };
    let value = |name: &str| value_of(&fields, name).to_owned();
    let (link, organization, next) = (value("link"), value("organization"), value("next"));
    let secret = if link.is_empty() { value("token") } else { format!("{TOKEN_PREFIX}{link}") };
    match exchange(&ui, Peer::of(&parts.extensions), &secret, !link.is_empty(), &organization).await {
        Ok(session) => begin(&ui, &parts, &session, &next).await,
        Err(error) => {
            // One for another organization still works.
            let link = if error.status == StatusCode::UNPROCESSABLE_ENTITY { link } else { String::new() };
            SignIn { link, ..SignIn::form(&ui, organization, next) }.again(error)
        }
    }
}

/// Only pages of the UI are returned to, never another site.
fn next_page(ui: &Ui, next: &str) -> String {
    let home = ui.address("/");
    let path = next.split(['?', '#']).next().unwrap_or_default();
    // Browsers take both for the folder above.
    let leaves = path.to_ascii_lowercase().replace("%2e", ".").split('/').any(|part| part == "..");
    let is_plain = !next.contains('\\') && !next.contains(char::is_control) && !next.contains("//");
    if next.starts_with(&home) && is_plain && !leaves { next.to_owned() } else { home }
}

/// Begins a session by a token; a link's token ends with that.
async fn exchange(
    ui: &Ui,
    peer: Peer,
    secret: &str,
    is_link: bool,
    organization: &str,
) -> Result<String, Refusal> {
    if !looks_like_token(secret) {
        return Err(refused(is_link));
    }
    let api = ApiClient::new(ui, peer, bearer(secret));
    // A link can't do anything else. Somebody's API token in a link would sign its reader in as that person.
    if is_link && api.get::<Value>("/v1/me").await.is_ok() {
        return Err(refused(is_link));
    }
    let order = match organization {
        "" => json!({}),
        organization => json!({ "organization": organization }),
    };
    let made = api.send(Method::POST, "/v1/sessions", Some(&order)).await;
    let made = made.map_err(|refusal| match refusal.status {
        StatusCode::UNAUTHORIZED => refused(is_link),
        _ => refusal,
    })?;
    Ok(made["token"].as_str().unwrap_or_default().to_owned())
}

fn refused(is_link: bool) -> Refusal {
    let (why, hint) = match is_link {
        true => (
            "this link was used already, or it has expired",
            "get a new one on the host of the daemon: streamfleet sign-in EMAIL TREE",
        ),
        false => (
            "this is not a valid token",
            "check that it was copied whole; `streamfleet token list` shows whether it expired or was revoked",
        ),
    };
    Refusal::from(ProblemDocument::new(&code::UNAUTHENTICATED, why).hint(hint))
}

async fn sign_out(ui: Arc<Ui>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let session = Session::of(&ui, &parts.headers);
    drop(form(body).await);
    // The form comes from this origin, and maybe from a tab that was opened in a session before this one.
    if let Some(session) = session {
        ui.drafts.end_session(&session.form_token());
        end(&ui, Peer::of(&parts.extensions), &session).await;
    }
    let mut response = see_other(&ui.address("/sign-in"));
    response.headers_mut().insert(SET_COOKIE, session_cookie(&ui, &parts.headers, None));
    response
}

/// Revokes the token of a session. If that fails, the session ends with its cookie, and its token in a day.
async fn end(ui: &Ui, peer: Peer, session: &Session) {
    let api = ApiClient::new(ui, peer, session.bearer());
    if let Ok(CallerDescription { token_id: Some(id), .. }) = api.get("/v1/me").await {
        let _ = api.send(Method::DELETE, &format!("/v1/tokens/{id}"), None).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_page_of_this_ui_is_returned_to() {
        let ui = Ui::of_test("/base");
        for own in ["/base/ui/", "/base/ui/clusters?status=Healthy", "/base/ui/new/clusters?step=2&a=.."] {
            assert_eq!(next_page(&ui, own), own);
        }
        for other in [
            "",
            "/",
            "/ui/",
            "https://evil.example.com/",
            "//evil.example.com",
            "/base/ui//evil",
            "/base/ui/\\x",
            "/base/ui/../v1/clusters",
            "/base/ui/a/%2E./../x",
            "/base/ui/\t",
        ] {
            assert_eq!(next_page(&ui, other), "/base/ui/", "{other}");
        }
    }
}
