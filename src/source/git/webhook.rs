//! Parses and authenticates push webhooks. GitHub and Gitea sign the body with a shared secret, GitLab sends
//! the secret. A webhook can only make a fetch happen earlier.

use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use http::HeaderMap;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

const BRANCHES: &str = "refs/heads/";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A branch was pushed or deleted.
    Branch(String),
    /// Anything else, which needs no fetch: a tag, an issue, the first ping.
    Other,
}

/// Why a webhook is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebhookRefusal {
    #[error(
        "the webhook is not signed: set the secret on the git server; GitHub sends X-Hub-Signature-256, GitLab \
         X-Gitlab-Token, Gitea X-Gitea-Signature"
    )]
    Unsigned,
    #[error("the webhook is signed with another secret: set the one from the settings on the git server")]
    WrongSecret,
    #[error("the webhook's body is not JSON: have the git server send JSON")]
    Body,
    #[error("the settings have no secret for webhooks")]
    NoSecret,
}

/// The part of a push that all three servers send.
#[derive(Deserialize)]
struct Push {
    #[serde(rename = "ref")]
    reference: String,
}

/// Authenticates a webhook and parses it. The body is not parsed before the sender is authenticated.
///
/// # Errors
/// If the sender didn't prove that it knows the secret, or the body isn't understood.
pub fn judge(headers: &HeaderMap, body: &[u8], secret: &SecretString) -> Result<Notice, WebhookRefusal> {
    let secret = secret.expose_secret().as_bytes();
    if secret.is_empty() {
        return Err(WebhookRefusal::NoSecret);
    }
    let header = |name: &str| headers.get(name).map(http::HeaderValue::as_bytes);
    let key = Key::new(HMAC_SHA256, secret);
    let is_signed = |signature: &[u8]| {
        hex::decode(signature).is_ok_and(|signature| hmac::verify(&key, body, &signature).is_ok())
    };
    // Gitea also sends GitHub's headers. Every header that is present must be valid.
    let shown = [
        header("x-hub-signature-256")
            .map(|signature| signature.strip_prefix(b"sha256=").is_some_and(is_signed)),
        header("x-gitea-signature").map(is_signed),
        header("x-gitlab-token").map(|token| is_same(token, &key, secret)),
    ];
    let mut shown = shown.into_iter().flatten().peekable();
    if shown.peek().is_none() {
        return Err(WebhookRefusal::Unsigned);
    }
    if !shown.all(|is_right| is_right) {
        return Err(WebhookRefusal::WrongSecret);
    }
    let event = ["x-gitea-event", "x-gitlab-event", "x-github-event"].into_iter().find_map(header);
    match event {
        Some(b"push" | b"Push Hook") => {}
        _ => return Ok(Notice::Other),
    }
    let Push { reference } = serde_json::from_slice(body).map_err(|_| WebhookRefusal::Body)?;
    Ok(reference.strip_prefix(BRANCHES).map_or(Notice::Other, |name| Notice::Branch(name.to_owned())))
}

/// Compares in constant time.
fn is_same(sent: &[u8], key: &Key, secret: &[u8]) -> bool {
    hmac::verify(key, sent, hmac::sign(key, secret).as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "It's a Secret to Everybody";

    fn judged(headers: &[(&'static str, &str)], body: &str) -> Result<Notice, WebhookRefusal> {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        judge(&headers.collect::<HeaderMap>(), body.as_bytes(), &SecretString::from(SECRET))
    }

    fn signature(body: &str) -> String {
        hex::encode(hmac::sign(&Key::new(HMAC_SHA256, SECRET.as_bytes()), body.as_bytes()))
    }

    fn main() -> Result<Notice, WebhookRefusal> {
        Ok(Notice::Branch("main".to_owned()))
    }

    const GITHUB: &str = r#"{"ref":"refs/heads/main","before":"6113728f27ae82c7b1a177c8d03f9e96e0adf246",
        "after":"0000000000000000000000000000000000000000","created":false,"deleted":true,"forced":false,
        "repository":{"id":186853002,"full_name":"Codertocat/Hello-World","default_branch":"main"},
        "pusher":{"name":"Codertocat","email":"21031067+Codertocat@users.noreply.github.com"},"commits":[]}"#;
    const GITLAB: &str = r#"{"object_kind":"push","event_name":"push","before":"95790bf891e76fee5e1747ab589903a6a1f80f22",
        "after":"da1560886d4f094c3e6c9ef40349f7d38b5d27d7","ref":"refs/heads/main","ref_protected":true,
        "checkout_sha":"da1560886d4f094c3e6c9ef40349f7d38b5d27d7","user_id":4,"user_username":"jsmith",
        "project":{"id":15,"path_with_namespace":"mike/diaspora"},"commits":[],"total_commits_count":4}"#;
    const GITEA: &str = r#"{"ref":"refs/heads/main","before":"28e1879d029cb852e4844d9c718537df08844e03",
        "after":"bffeb74224043ba2feb48d137756c8a9331c449a","compare_url":"http://localhost:3000/gitea/webhooks/compare",
        "commits":[],"total_commits":1,"repository":{"id":140,"full_name":"gitea/webhooks"},"pusher":{"id":1,"login":"gitea"}}"#;

    #[test]
    fn githubs_own_example_is_right() {
        // From "Validating webhook deliveries" in GitHub's documentation.
        let example = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(signature("Hello, World!"), example);
        let header = format!("sha256={example}");
        assert_eq!(judged(&[("x-hub-signature-256", &header)], "Hello, World!"), Ok(Notice::Other));
    }

    #[test]
    fn a_push_names_its_branch_whichever_server_says_so() {
        let github = format!("sha256={}", signature(GITHUB));
        let headers = [("x-github-event", "push"), ("x-hub-signature-256", &*github)];
        assert_eq!(judged(&headers, GITHUB), main());
        let headers = [("x-gitlab-event", "Push Hook"), ("x-gitlab-token", SECRET)];
        assert_eq!(judged(&headers, GITLAB), main());
        let (gitea, hub) = (signature(GITEA), format!("sha256={}", signature(GITEA)));
        let headers = [
            ("x-gitea-event", "push"),
            ("x-gitea-signature", &*gitea),
            ("x-github-event", "push"),
            ("x-hub-signature-256", &*hub),
        ];
        assert_eq!(judged(&headers, GITEA), main());
    }

    #[test]
    fn what_is_no_push_of_a_branch_is_nothing_to_fetch_for() {
        let tag = GITLAB.replace("refs/heads/main", "refs/tags/v1");
        let token = ("x-gitlab-token", SECRET);
        assert_eq!(judged(&[("x-gitlab-event", "Push Hook"), token], &tag), Ok(Notice::Other));
        assert_eq!(judged(&[("x-gitlab-event", "Issue Hook"), token], "{}"), Ok(Notice::Other));
        assert_eq!(judged(&[token], GITLAB), Ok(Notice::Other));
        let nested = GITLAB.replace("refs/heads/main", "refs/heads/release/1");
        let nested = judged(&[("x-gitlab-event", "Push Hook"), token], &nested);
        assert_eq!(nested, Ok(Notice::Branch("release/1".to_owned())));
    }

    #[test]
    fn who_does_not_know_the_secret_is_refused() {
        let right = format!("sha256={}", signature(GITHUB));
        let push = ("x-github-event", "push");
        let other = signature(GITEA);
        for (headers, body, expected) in [
            (vec![push], GITHUB, WebhookRefusal::Unsigned),
            (vec![push, ("x-hub-signature", &*right)], GITHUB, WebhookRefusal::Unsigned),
            (vec![push, ("x-hub-signature-256", &*right)], GITEA, WebhookRefusal::WrongSecret),
            (
                vec![push, ("x-hub-signature-256", &right["sha256=".len()..])],
                GITHUB,
                WebhookRefusal::WrongSecret,
            ),
            (vec![push, ("x-hub-signature-256", "sha256=")], GITHUB, WebhookRefusal::WrongSecret),
            (vec![push, ("x-hub-signature-256", "sha256=no hex")], GITHUB, WebhookRefusal::WrongSecret),
            (
                vec![push, ("x-hub-signature-256", &right[..right.len() - 2])],
                GITHUB,
                WebhookRefusal::WrongSecret,
            ),
            // A valid header doesn't make up for an invalid one.
            (
                vec![push, ("x-hub-signature-256", &*right), ("x-gitea-signature", &*other)],
                GITHUB,
                WebhookRefusal::WrongSecret,
            ),
            (vec![("x-gitlab-token", "It's a Secret")], GITLAB, WebhookRefusal::WrongSecret),
            (vec![("x-gitlab-token", "")], GITLAB, WebhookRefusal::WrongSecret),
            (
                vec![("x-gitlab-event", "Push Hook"), ("x-gitlab-token", SECRET)],
                "payload=%7B",
                WebhookRefusal::Body,
            ),
            (vec![("x-gitlab-event", "Push Hook"), ("x-gitlab-token", SECRET)], "{}", WebhookRefusal::Body),
        ] {
            assert_eq!(judged(&headers, body), Err(expected), "{headers:?}");
        }
        let none = SecretString::from("");
        let signed = hex::encode(hmac::sign(&Key::new(HMAC_SHA256, b""), b"{}"));
        let headers = [("x-gitea-signature".parse().unwrap(), signed.parse().unwrap())];
        assert_eq!(judge(&HeaderMap::from_iter(headers), b"{}", &none), Err(WebhookRefusal::NoSecret));
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        let said = [
            WebhookRefusal::Unsigned,
            WebhookRefusal::WrongSecret,
            WebhookRefusal::Body,
            WebhookRefusal::NoSecret,
        ];
        insta::assert_snapshot!(said.map(|refusal| refusal.to_string()).join("\n"), @r"
        the webhook is not signed: set the secret on the git server; GitHub sends X-Hub-Signature-256, GitLab X-Gitlab-Token, Gitea X-Gitea-Signature
        the webhook is signed with another secret: set the one from the settings on the git server
        the webhook's body is not JSON: have the git server send JSON
        the settings have no secret for webhooks
        ");
    }
}
