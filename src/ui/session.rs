//! Sessions. A session is a token of the API that the browser keeps in a cookie, so it is listed, limited and
//! revoked like any other. Rights are looked up at each request.

use aws_lc_rs::hmac;
use axum::http::HeaderMap;
use axum::http::header::{COOKIE, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use super::Ui;
use super::form::DraftHolder;
use crate::api::answer::CallerDescription;
use crate::state::looks_like_token;

const COOKIE_NAME: &str = "streamfleet_session";

/// How long browsers keep the cookie, in seconds: as long as a session lasts.
const AGE: u32 = 24 * 60 * 60;

pub struct Session(SecretString);

impl Session {
    /// The session in the cookies of a request.
    pub fn of(headers: &HeaderMap) -> Option<Session> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let (_, secret) = pairs.find(|(name, _)| *name == COOKIE_NAME)?;
        looks_like_token(secret).then(|| Session(secret.to_owned().into()))
    }

    /// The header by which the API knows the session.
    pub fn bearer(&self) -> HeaderValue {
        bearer(self.0.expose_secret())
    }

    /// The hidden field of the session's forms. Nobody without the cookie can know it.
    pub fn form_token(&self) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.0.expose_secret().as_bytes());
        hex::encode(hmac::sign(&key, b"form"))
    }

    /// The owner of the drafts that are shown in this session.
    pub fn holder(&self, me: &CallerDescription) -> DraftHolder {
        DraftHolder { session: self.form_token(), owner: me.email.clone().unwrap_or_default() }
    }
}

/// The header `Authorization` for a token.
pub fn bearer(secret: &str) -> HeaderValue {
    let mut header =
        HeaderValue::from_str(&format!("Bearer {secret}")).unwrap_or(HeaderValue::from_static(""));
    header.set_sensitive(true);
    header
}

/// The header `Set-Cookie` that begins a session with this token, or ends it without one. Links from elsewhere
/// may lead to a page, so the cookie is `Lax`.
pub fn cookie(ui: &Ui, secret: Option<&str>) -> HeaderValue {
    let secure = if ui.is_secure { "; Secure" } else { "" };
    let age = if secret.is_some() { AGE } else { 0 };
    let (path, secret) = (ui.address("/"), secret.unwrap_or_default());
    let text = format!("{COOKIE_NAME}={secret}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
    let mut header = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""));
    header.set_sensitive(true);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cookies: &str) -> Option<Session> {
        Session::of(&HeaderMap::from_iter([(COOKIE, cookies.parse().unwrap())]))
    }

    #[test]
    fn a_session_is_a_token_in_the_cookie() {
        let secret = format!("sf_{}", "0".repeat(64));
        let session = of(&format!("a=b; {COOKIE_NAME}={secret}; c=d")).unwrap();
        assert_eq!(session.bearer(), format!("Bearer {secret}"));
        assert!(session.bearer().is_sensitive());
        let other = of(&format!("{COOKIE_NAME}=sf_{}", "1".repeat(64))).unwrap();
        assert_ne!(session.form_token(), other.form_token());
        for none in ["", "a=b", &format!("{COOKIE_NAME}=x"), &format!("x{COOKIE_NAME}={secret}")] {
            assert!(of(none).is_none(), "{none}");
        }
    }
}
