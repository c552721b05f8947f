//! Sessions. A session is a token of the API that the browser keeps in a cookie, so it is listed, limited and
//! revoked like any other. Rights are looked up at each request.

use std::net::IpAddr;

use aws_lc_rs::hmac;
use axum::http::HeaderMap;
use axum::http::header::{COOKIE, HOST, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use super::Ui;
use super::form::DraftHolder;
use crate::api::answer::CallerDescription;
use crate::state::looks_like_token;

/// The name of the cookie. By the prefix, browsers take it from this host alone: a sibling below the same domain can't
/// plant one. Below a path, which that prefix forbids, at least TLS is needed. Browsers drop both where there is none.
const OF_HOST: &str = "__Host-streamfleet";
const OF_TLS: &str = "__Secure-streamfleet";
const OF_PLAIN_HTTP: &str = "streamfleet_session";

/// How long browsers keep the cookie, in seconds: as long as a session lasts.
const AGE: u32 = 24 * 60 * 60;

pub struct Session(SecretString);

impl Session {
    /// The session in the cookies of a request. A cookie with another name than this request's isn't heard.
    pub fn of(ui: &Ui, headers: &HeaderMap) -> Option<Session> {
        let name = cookie_name(ui, headers);
        let (_, secret) = cookies(headers).find(|(known, _)| *known == name)?;
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

/// The names and values of a request's cookies.
pub fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

/// Whether the browser keeps cookies that are marked as secure: by TLS, and from its own host.
pub fn keeps_secure(ui: &Ui, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name);
    let name = name.trim_matches(['[', ']']);
    let is_own_host = || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    ui.is_secure || name.eq_ignore_ascii_case("localhost") || is_own_host()
}

fn cookie_name(ui: &Ui, headers: &HeaderMap) -> &'static str {
    match (keeps_secure(ui, headers), ui.base.is_empty()) {
        (true, true) => OF_HOST,
        (true, false) => OF_TLS,
        (false, _) => OF_PLAIN_HTTP,
    }
}

/// The header `Set-Cookie` that begins a session with this token, or ends it without one.
pub fn session_cookie(ui: &Ui, headers: &HeaderMap, secret: Option<&str>) -> HeaderValue {
    let name = cookie_name(ui, headers);
    let path = if name == OF_HOST { "/".to_owned() } else { ui.address("/") };
    let age = if secret.is_some() { AGE } else { 0 };
    cookie(name, secret.unwrap_or_default(), &path, age, keeps_secure(ui, headers))
}

/// The header `Set-Cookie`. Links and issuers lead here from other sites, so the cookie is `Lax`.
pub fn cookie(name: &str, value: &str, path: &str, age: u32, is_secure: bool) -> HeaderValue {
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
    let mut header = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""));
    header.set_sensitive(true);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, cookies: &str) -> HeaderMap {
        HeaderMap::from_iter([(HOST, host.parse().unwrap()), (COOKIE, cookies.parse().unwrap())])
    }

    #[test]
    fn a_session_is_a_token_in_the_cookie() {
        let ui = Ui::of_test("");
        let of = |cookies: &str| Session::of(&ui, &headers("127.0.0.1:3000", cookies));
        let secret = format!("sf_{}", "0".repeat(64));
        let session = of(&format!("a=b; {OF_HOST}={secret}; c=d")).unwrap();
        assert_eq!(session.bearer(), format!("Bearer {secret}"));
        assert!(session.bearer().is_sensitive());
        let other = of(&format!("{OF_HOST}=sf_{}", "1".repeat(64))).unwrap();
        assert_ne!(session.form_token(), other.form_token());
        for none in ["", "a=b", &format!("{OF_HOST}=x"), &format!("x{OF_HOST}={secret}")] {
            assert!(of(none).is_none(), "{none}");
        }
        // A sibling could have planted these.
        for name in [OF_TLS, OF_PLAIN_HTTP, "__host-streamfleet"] {
            assert!(of(&format!("{name}={secret}")).is_none(), "{name}");
        }
    }

    #[test]
    fn browsers_keep_the_cookie_and_take_it_from_no_other_host() {
        let secure = Ui { is_secure: true, ..Ui::of_test("") };
        for (ui, host, expected) in [
            (
                &Ui::of_test(""),
                "127.0.0.1:3000",
                "__Host-streamfleet=t; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure",
            ),
            (
                &Ui::of_test(""),
                "localhost",
                "__Host-streamfleet=t; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure",
            ),
            (
                &Ui::of_test(""),
                "[::1]:80",
                "__Host-streamfleet=t; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure",
            ),
            (
                &secure,
                "k.example.com",
                "__Host-streamfleet=t; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure",
            ),
            (
                &Ui::of_test("/a"),
                "127.0.0.1",
                "__Secure-streamfleet=t; Path=/a/ui/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure",
            ),
            (
                &Ui::of_test(""),
                "k.example.com:3000",
                "streamfleet_session=t; Path=/ui/; Max-Age=86400; HttpOnly; SameSite=Lax",
            ),
            (
                &Ui::of_test(""),
                "localhost.example.com",
                "streamfleet_session=t; Path=/ui/; Max-Age=86400; HttpOnly; SameSite=Lax",
            ),
        ] {
            assert_eq!(session_cookie(ui, &headers(host, ""), Some("t")), expected, "{host}");
        }
        let ends = session_cookie(&secure, &HeaderMap::new(), None);
        assert_eq!(ends, "__Host-streamfleet=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure");
    }
}
