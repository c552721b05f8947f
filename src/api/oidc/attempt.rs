//! An attempt to sign in, which the browser keeps in a signed cookie between leaving for the issuer and coming
//! back. Its `state`, `nonce` and PKCE verifier follow from one random secret, which no address contains.

use aws_lc_rs::{constant_time, digest, hmac, rand};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How long somebody may take at the issuer.
pub const LIFETIME: SignedDuration = SignedDuration::from_mins(10);

/// The longest organization, and the longest path to return to, in bytes: browsers drop cookies above 4 KiB.
const LONGEST: usize = 1024;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    secret: [u8; 32],
    /// The organization that was entered; empty for all of the person's.
    pub organization: String,
    /// The page to return to.
    pub next: String,
    /// Whether the person has to prove anew who they are.
    pub is_again: bool,
    /// In seconds of Unix time.
    until: i64,
}

impl Attempt {
    /// `None` if the operating system provides no random numbers. Texts that are too long are shortened.
    pub fn new(organization: &str, next: &str, now: Timestamp) -> Option<Attempt> {
        let mut secret = [0; 32];
        rand::fill(&mut secret).ok()?;
        // A page whose address is too long is returned to without what its query has.
        let page = if next.len() <= LONGEST { next } else { next.split('?').next().unwrap_or_default() };
        let next = if page.len() <= LONGEST { page.to_owned() } else { String::new() };
        let until = now.checked_add(LIFETIME).ok()?.as_second();
        // A name that is too long must not become that of all organizations.
        let organization = organization.chars().take(64).collect();
        Some(Attempt { secret, organization, next, is_again: false, until })
    }

    /// With whether the person has to prove anew who they are.
    pub fn again(self, is_again: bool) -> Attempt {
        Attempt { is_again, ..self }
    }

    /// The text of the cookie.
    pub fn seal(&self, key: &hmac::Key) -> String {
        // Texts and numbers always serialize.
        let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default());
        let tag = URL_SAFE_NO_PAD.encode(hmac::sign(key, text.as_bytes()));
        format!("{text}.{tag}")
    }

    /// The attempt of a cookie; `None` if this process didn't sign it, or it is over.
    pub fn open(cookie: &str, key: &hmac::Key, now: Timestamp) -> Option<Attempt> {
        let (text, tag) = cookie.split_once('.')?;
        hmac::verify(key, text.as_bytes(), &URL_SAFE_NO_PAD.decode(tag).ok()?).ok()?;
        let attempt: Attempt = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        (now.as_second() < attempt.until).then_some(attempt)
    }

    pub fn state(&self) -> String {
        self.derived("state")
    }

    pub fn nonce(&self) -> String {
        self.derived("nonce")
    }

    pub fn verifier(&self) -> String {
        self.derived("verifier")
    }

    /// The challenge of PKCE, by the method `S256` (RFC 7636, section 4.2).
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, self.verifier().as_bytes()))
    }

    pub fn has_state(&self, state: &str) -> bool {
        constant_time::verify_slices_are_equal(self.state().as_bytes(), state.as_bytes()).is_ok()
    }

    /// 43 characters that reveal neither the secret nor each other.
    fn derived(&self, purpose: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.secret);
        URL_SAFE_NO_PAD.encode(hmac::sign(&key, purpose.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &[byte; 32])
    }

    #[test]
    fn an_attempt_is_opened_by_the_process_that_sealed_it_within_ten_minutes() {
        let now = Timestamp::UNIX_EPOCH;
        let attempt = Attempt::new("acme", "/ui/clusters", now).unwrap();
        let cookie = attempt.seal(&key(1));
        assert!(cookie.len() < 1000 && cookie.bytes().all(|byte| byte.is_ascii_graphic() && byte != b';'));
        let after = |seconds| now + SignedDuration::from_secs(seconds);
        assert_eq!(Attempt::open(&cookie, &key(1), after(599)), Some(attempt));
        assert_eq!(Attempt::open(&cookie, &key(1), after(600)), None);
        assert_eq!(Attempt::open(&cookie, &key(2), now), None);
        let (text, tag) = cookie.split_once('.').unwrap();
        for forged in
            [text.to_owned(), format!("{text}."), format!("A{text}.{tag}"), format!(".{tag}"), String::new()]
        {
            assert_eq!(Attempt::open(&forged, &key(1), now), None, "{forged}");
        }
    }

    #[test]
    fn what_follows_from_an_attempt_is_its_own_and_fits_the_rules() {
        let now = Timestamp::UNIX_EPOCH;
        let [one, other] = [(); 2].map(|()| Attempt::new("", "", now).unwrap());
        let of =
            |attempt: &Attempt| [attempt.state(), attempt.nonce(), attempt.verifier(), attempt.challenge()];
        let all: std::collections::BTreeSet<String> = of(&one).into_iter().chain(of(&other)).collect();
        assert_eq!(all.len(), 8);
        assert!(all.iter().all(|text| text.len() == 43));
        assert!(one.has_state(&one.state()) && !one.has_state(&other.state()) && !one.has_state(""));
        let long = "x".repeat(5000);
        let attempt = Attempt::new(&long, &long, now).unwrap();
        assert_eq!((attempt.organization.len(), attempt.next.as_str()), (64, ""));
        let attempt = Attempt::new("", &format!("/ui/new/clusters?{long}"), now).unwrap();
        assert_eq!(attempt.next, "/ui/new/clusters");
        assert!(Attempt::new(&long, &"ü".repeat(512), now).unwrap().seal(&key(1)).len() < 3000);
    }
}
