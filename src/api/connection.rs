//! Connections, and how much of the process one of them may have: of time, of memory, and of their number.
//!
//! Where there is no room, whoever has been idle for longest gives way ([`Room`]). A head, a body, an answer and a whole
//! connection have a deadline each, and so has whoever takes nothing of an answer ([`Patient`]). What is sent as two requests by
//! one reading and as one by another (RFC 9112, section 6.3) is refused by hyper; a length beside chunks it leaves out of account, and
//! ends the connection with the answer (section 6.1).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower::ServiceExt as _;

use super::measured::{Bulk, Cut, Measured};
use super::patient::Patient;
use super::problem::{self, Problem};
use super::proposal;
use super::rest;
use super::room::{Full, Place, Room};
use super::tls::Handshake;
use crate::config::ApiConfig;

/// How long the head of a request may take to come, and how long a connection may be idle.
const HEAD: Duration = Duration::from_secs(10);

/// The largest head of a request, in bytes.
const LARGEST_HEAD: usize = 16 << 10;

/// The most headers of a request.
const MOST_HEADERS: usize = 100;

/// How many at a time are told that there is no room for them, and how long each may take to read it.
const REFUSALS: usize = 32;
const REFUSAL: Duration = Duration::from_secs(1);

/// What one kind of caller may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How many connections there may be.
    connections: usize,
    /// How many of them there may be from one address.
    of_one_address: usize,
    /// How long a body may take to come.
    sending: Duration,
    /// How long an answer may take from the head of the request on, with the body that belongs to it.
    answer: Duration,
    /// How long a connection may last. After it, and what it takes to answer, the caller has to connect anew.
    lifetime: Duration,
    /// The largest body, in bytes.
    body: usize,
    /// The largest body with a tree of specs that is to be planned, in bytes, and how long that may take to come.
    proposal: (usize, Duration),
    /// The path below which the API is, without a slash at its end.
    base: &'static str,
    /// How much all large bodies together may have, in bytes.
    bulk: usize,
}

/// Those who may read the state anyway. To plan for them may take a while.
pub(super) const OF_SOCKET: Limits = Limits {
    connections: 64,
    of_one_address: 64,
    sending: Duration::from_secs(60),
    answer: Duration::from_secs(180),
    lifetime: Duration::from_secs(300),
    body: proposal::LARGEST,
    proposal: (proposal::LARGEST, Duration::from_secs(60)),
    base: "",
    bulk: 4 * proposal::LARGEST,
};

/// The address from which a request over the network came, among its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote(pub SocketAddr);

impl Limits {
    /// Whoever reaches the port, of whom nothing is known at first.
    pub fn of_network(config: &ApiConfig) -> Limits {
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let proposal = number(config.max_proposal_mib).max(1) << 20;
        Limits {
            connections: number(config.max_connections),
            of_one_address: number(config.max_connections_per_address),
            sending: Duration::from_secs(10),
            // A write may wait for a git server.
            answer: Duration::from_secs(120),
            lifetime: Duration::from_secs(60),
            body: 1 << 20,
            proposal: (proposal, Duration::from_secs(60)),
            // It is the same for as long as the process lives.
            base: config.base_path().to_owned().leak(),
            bulk: (4 * proposal).max(64 << 20),
        }
    }

    /// Routes with the limits that hold for each request, and with [`problem::identified`] around all.
    pub fn around(self, routes: Router) -> Router {
        let within = from_fn_with_state((self, Bulk::new(self.bulk)), within);
        let routes = routes.layer(DefaultBodyLimit::disable()).layer(within);
        problem::identified(routes, self.base)
    }
}

async fn within(State((limits, bulk)): State<(Limits, Arc<Bulk>)>, request: Request, next: Next) -> Response {
    let limits = match rest::is_proposal(&request) {
        true => Limits { body: limits.proposal.0, sending: limits.proposal.1, ..limits },
        false => limits,
    };
    let announced =
        request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > limits.body as u64) {
        return Problem::too_large(limits.body).into_response();
    }
    let (parts, body) = request.into_parts();
    let (body, fate) = Measured::new(body, limits.body, limits.sending, bulk);
    let request = Request::from_parts(parts, axum::body::Body::new(body));
    let answered = timeout(limits.answer, next.run(request)).await;
    match (fate.cut(), answered) {
        (Some(Cut::TooLarge), _) => Problem::too_large(limits.body).into_response(),
        (Some(Cut::Crowded), _) => {
            let why = "others send more at the moment than there is room for";
            Problem::unavailable(why, Duration::from_secs(5)).into_response()
        }
        (Some(Cut::Late), _) => {
            let seconds = limits.sending.as_secs();
            Problem::late(format!("the body did not come within {seconds} s")).into_response()
        }
        (None, Ok(answer)) => answer,
        (None, Err(_)) => Problem::timed_out(limits.answer).into_response(),
    }
}

/// Accepts connections for ever, over TLS where there is a handshake to be made. What is known of who connects is found among
/// each request's extensions; nobody of whom nothing is known is let in.
pub(super) async fn accept<L: Listener, P: Clone + Send + Sync + 'static>(
    mut listener: L,
    routes: Router,
    limits: Limits,
    handshake: Option<Handshake>,
    who: impl Fn(&L::Io, &L::Addr) -> Option<(P, Option<IpAddr>)>,
) {
    let room = Room::new(limits.connections, limits.of_one_address);
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    loop {
        let (stream, address) = listener.accept().await;
        let Some((peer, address)) = who(&stream, &address) else { continue };
        let place = match room.enter(address).await {
            Ok(place) => place,
            // In the clear, nobody understands it who speaks TLS.
            Err(full) if handshake.is_none() => {
                if let Ok(seat) = Arc::clone(&refusals).try_acquire_owned() {
                    tokio::spawn(async move {
                        refuse(stream, full, limits.base).await;
                        drop(seat);
                    });
                }
                continue;
            }
            Err(_) => continue,
        };
        let (routes, handshake) = (routes.clone(), handshake.clone());
        tokio::spawn(async move {
            let stream = Patient::new(stream);
            let answered = async {
                match handshake {
                    None => answer(stream, routes, limits, peer, &place).await,
                    Some(handshake) => {
                        if let Some(stream) = handshake.shake(stream, limits.base).await {
                            answer(stream, routes, limits, peer, &place).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = answered => {}
                () = place.is_gone() => {}
            }
        });
    }
}

/// Says that there is no room.
async fn refuse(mut stream: impl AsyncWrite + Unpin, full: Full, base: &str) {
    let why = match full {
        Full::Wholly => "there are as many connections as there may be",
        Full::ForAddress => "there are as many connections from this address as there may be",
    };
    let answer = Problem::unavailable(why, Duration::from_secs(1)).written(base);
    let _ = timeout(REFUSAL, async {
        stream.write_all(&answer).await?;
        stream.shutdown().await
    })
    .await;
}

async fn answer<S, P>(stream: S, routes: Router, limits: Limits, peer: P, place: &Place)
where
    S: AsyncRead + AsyncWrite + Unpin,
    P: Clone + Send + Sync + 'static,
{
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        let answer = routes.clone().oneshot(request);
        async {
            place.is_busy();
            let answered = answer.await;
            place.is_idle();
            answered
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
    builder.max_buf_size(LARGEST_HEAD).max_headers(MOST_HEADERS);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    if timeout(limits.lifetime, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        // Whoever doesn't take what was answered is left.
        let _ = timeout(limits.answer, connection).await;
    }
}
