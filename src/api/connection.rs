//! Connections, and how much of the process one of them may have: of time, of memory, and of their number.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower::ServiceExt as _;

use super::proposal;

/// How long the head of a request may take to come, and how long a connection may be idle.
const HEAD: Duration = Duration::from_secs(10);

/// The largest head of a request, in bytes.
const LARGEST_HEAD: usize = 16 << 10;

/// What one kind of caller may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How many connections there may be. Whoever comes then waits.
    connections: usize,
    /// How long an answer may take from the head of the request on, with the body that belongs to it.
    answer: Duration,
    /// How long a connection may last. After it, and what it takes to answer, the caller has to connect anew.
    lifetime: Duration,
    /// The largest body, in bytes.
    body: usize,
}

/// Whoever reaches the port, of whom nothing is known.
pub(super) const OF_NETWORK: Limits = Limits {
    connections: 64,
    answer: Duration::from_secs(10),
    lifetime: Duration::from_secs(60),
    body: 1 << 20,
};

/// Those who may read the state anyway. To plan for them may take a while.
pub(super) const OF_SOCKET: Limits = Limits {
    connections: 64,
    answer: Duration::from_secs(180),
    lifetime: Duration::from_secs(300),
    body: proposal::LARGEST,
};

impl Limits {
    /// Routes with the limits that hold for each request.
    pub(super) fn around(self, routes: Router) -> Router {
        routes.layer(DefaultBodyLimit::max(self.body)).layer(from_fn_with_state(self, within))
    }
}

async fn within(State(limits): State<Limits>, request: Request, next: Next) -> Response {
    let announced =
        request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > limits.body as u64) {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    }
    let answer = timeout(limits.answer, next.run(request)).await;
    answer.unwrap_or_else(|_| StatusCode::REQUEST_TIMEOUT.into_response())
}

/// Accepts connections for ever. What is known of who connects is found among each request's extensions; nobody of whom
/// nothing is known is let in.
pub(super) async fn accept<L: Listener, P: Clone + Send + Sync + 'static>(
    mut listener: L,
    routes: Router,
    limits: Limits,
    who: impl Fn(&L::Io) -> Option<P>,
) {
    let room = Arc::new(Semaphore::new(limits.connections));
    loop {
        // Nobody closes it.
        let Ok(seat) = Arc::clone(&room).acquire_owned().await else { return };
        let (stream, _) = listener.accept().await;
        let Some(peer) = who(&stream) else { continue };
        let routes = routes.clone();
        tokio::spawn(async move {
            answer(TokioIo::new(stream), routes, limits, peer).await;
            drop(seat);
        });
    }
}

async fn answer<I, P>(stream: I, routes: Router, limits: Limits, peer: P)
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    P: Clone + Send + Sync + 'static,
{
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        routes.clone().oneshot(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LARGEST_HEAD);
    let connection = builder.serve_connection(stream, service);
    tokio::pin!(connection);
    if timeout(limits.lifetime, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        // Whoever doesn't take what was answered is left.
        let _ = timeout(limits.answer, connection).await;
    }
}
