//! Webhooks: push notifications of git servers.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Extension, Router};
use secrecy::{ExposeSecret as _, SecretString};

use crate::http::peer::Peer;
use crate::http::problem::{Plain, ProblemDocument};
use crate::http::rate_limits::RateLimits;
use crate::parallel::locked;
use crate::source::git::webhook::{Notice, WebhookRefusal, judge};

pub struct Hook {
    secret: Mutex<SecretString>,
    branch: String,
    pushed: Box<dyn Fn() + Send + Sync>,
    /// The reasons for refusals that were logged since the last accepted one.
    refused: Mutex<Vec<WebhookRefusal>>,
}

impl Hook {
    /// `pushed` is called when a sender with the secret reports a push to the branch.
    pub fn new(secret: SecretString, branch: String, pushed: impl Fn() + Send + Sync + 'static) -> Hook {
        Hook { secret: Mutex::new(secret), branch, pushed: Box::new(pushed), refused: Mutex::default() }
    }

    /// Replaces the secret; returns whether it is a different one.
    pub fn renew(&self, secret: SecretString) -> bool {
        let mut known = locked(&self.secret);
        let is_another = known.expose_secret() != secret.expose_secret();
        *known = secret;
        is_another
    }

    /// Logs each reason for a refusal once. The sender isn't told.
    fn tell(&self, refused: Option<WebhookRefusal>) {
        let mut told = locked(&self.refused);
        match refused {
            None => told.clear(),
            Some(why) if told.contains(&why) => {}
            Some(why) => {
                tracing::warn!("webhook refused: {why}");
                told.push(why);
            }
        }
    }
}

pub(super) fn routes(hook: Arc<Hook>, rate_limits: Arc<RateLimits>) -> Router {
    Router::new().route("/webhook", post(webhook)).with_state((hook, rate_limits))
}

async fn webhook(
    State((hook, rate_limits)): State<(Arc<Hook>, Arc<RateLimits>)>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let secret = locked(&hook.secret).clone();
    let judged = judge(&headers, &body, &secret);
    hook.tell(judged.as_ref().err().copied());
    let (status, told) = match judged {
        Ok(Notice::Branch(branch)) if branch == hook.branch => {
            tracing::debug!(branch, "webhook received: push");
            (hook.pushed)();
            (StatusCode::ACCEPTED, "fetching the branch\n")
        }
        Ok(_) => (StatusCode::OK, "nothing to fetch\n"),
        Err(WebhookRefusal::Body) => (StatusCode::BAD_REQUEST, ""),
        // The signature was checked first, so a valid sender isn't locked out by others behind the same
        // address.
        Err(_) => {
            let counted = peer.address().map(|from| rate_limits.count_unauthenticated(from, Instant::now()));
            match counted {
                Some(Err(refused)) => return ProblemDocument::from(refused).into_response(),
                _ => (StatusCode::UNAUTHORIZED, ""),
            }
        }
    };
    // The sender gets no details.
    (status, Extension(Plain), told).into_response()
}
