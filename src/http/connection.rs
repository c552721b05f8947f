//! Connections, with limits on their number, time and memory.
//!
//! When the pool (`ConnectionPool`) is full, the connection that has been idle, or uploading a body, for
//! longest is closed. The head, the body and the decision on an answer have a deadline each, and a client that
//! stops reading is disconnected. A connection's lifetime ends between requests: an answer that takes longer,
//! such as a stream of events, goes on while the client reads it. Meanwhile the connection counts as idle, so
//! it can't keep others out. hyper refuses requests that could be smuggled
//! (RFC 9112, section 6.3); where a request has both a length and chunks, hyper ignores the length and closes
//! the connection after the answer (section 6.1).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::Method;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::serve::Listener;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt as _;

use super::connection_pool::{ConnectionPool, ConnectionSlot, Full, SlotActivity};
use super::limited_body::{BodyLimitError, LimitedBody};
use super::peer::Peer;
use super::problem::{self, ProblemDocument, code};
use super::tls::Handshake;
use crate::config::ApiConfig;

/// The deadline for the head of a request, and how long a connection may be idle.
const HEAD: Duration = Duration::from_secs(10);

/// In bytes.
const LARGEST_HEAD: usize = 16 << 10;

const MOST_HEADERS: usize = 100;

/// How long a client may leave an answer unread.
const STALL: Duration = Duration::from_secs(10);

/// How many refusals are sent at a time, and how long each client gets to read its refusal.
const REFUSALS: usize = 32;
const REFUSAL: Duration = Duration::from_secs(1);

/// Limits of one listener.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    connections: usize,
    of_one_address: usize,
    /// The deadline for a body.
    sending: Duration,
    /// The deadline for the head of an answer, from the head of the request on, including the body.
    answer: Duration,
    /// The age from which a connection takes no more requests. The request in progress is still answered, and
    /// then the client has to reconnect.
    lifetime: Duration,
    /// In bytes.
    body: usize,
    /// Which requests may have a larger body, by method and path, how large it may be in bytes, and its deadline.
    is_large: fn(&Method, &str) -> bool,
    large: (usize, Duration),
    /// The path prefix of the API, without a trailing slash.
    base: &'static str,
    /// The total of all large bodies in memory, in bytes.
    bulk: usize,
}

/// The largest body of most requests on the port, in bytes.
pub const LARGEST_BODY: usize = 1 << 20;

impl Limits {
    /// Callers on the socket could read the state anyway, so the limits are generous. Planning for them may take
    /// a while.
    pub const fn of_socket(largest: usize) -> Limits {
        Limits {
            connections: 64,
            of_one_address: 64,
            sending: Duration::from_secs(60),
            answer: Duration::from_secs(180),
            lifetime: Duration::from_secs(300),
            body: largest,
            is_large: |_, _| false,
            large: (largest, Duration::from_secs(60)),
            base: "",
            bulk: 4 * largest,
        }
    }

    pub fn of_network(config: &ApiConfig, is_large: fn(&Method, &str) -> bool) -> Limits {
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let largest = number(config.max_proposal_mib).max(1) << 20;
        Limits {
            connections: number(config.max_connections),
            of_one_address: number(config.max_connections_per_address),
            sending: Duration::from_secs(10),
            // A write may wait for a git server.
            answer: Duration::from_secs(120),
            lifetime: Duration::from_secs(60),
            body: LARGEST_BODY,
            is_large,
            large: (largest, Duration::from_secs(60)),
            // Leaked once per process, since the setting never changes.
            base: config.base_path().to_owned().leak(),
            bulk: (4 * largest).max(64 << 20),
        }
    }

    /// Adds the limits to routes, with [`problem::identified`] outermost.
    pub fn around(self, routes: Router) -> Router {
        let within = from_fn_with_state((self, Arc::new(Semaphore::new(self.bulk))), within);
        let routes = routes.layer(DefaultBodyLimit::disable()).layer(within);
        problem::identified(routes, self.base)
    }
}

async fn within(
    State((limits, bulk)): State<(Limits, Arc<Semaphore>)>,
    request: Request,
    next: Next,
) -> Response {
    let limits = match (limits.is_large)(request.method(), request.uri().path()) {
        true => Limits { body: limits.large.0, sending: limits.large.1, ..limits },
        false => limits,
    };
    let announced =
        request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > limits.body as u64) {
        return ProblemDocument::too_large(limits.body).into_response();
    }
    let (mut parts, body) = request.into_parts();
    let activity = parts.extensions.remove::<SlotActivity>();
    let (body, outcome) = LimitedBody::new(body, (limits.body, limits.sending), bulk, activity);
    let request = Request::from_parts(parts, axum::body::Body::new(body));
    let answered = timeout(limits.answer, next.run(request)).await;
    match (outcome.cut(), answered) {
        (Some(BodyLimitError::TooLarge), _) => ProblemDocument::too_large(limits.body).into_response(),
        (Some(BodyLimitError::Crowded), _) => {
            let why = "other requests use all the memory for bodies";
            ProblemDocument::unavailable(why, Duration::from_secs(5)).into_response()
        }
        (Some(BodyLimitError::Late), _) => {
            let seconds = limits.sending.as_secs();
            let why = format!("the body did not arrive within {seconds} s");
            ProblemDocument::new(&code::LATE, why).into_response()
        }
        (None, Ok(answer)) => answer,
        (None, Err(_)) => {
            // The work may still complete.
            let why = format!("timed out after {} s", limits.answer.as_secs());
            let hint = "check whether it was done before you repeat it";
            ProblemDocument::new(&code::TIMED_OUT, why).hint(hint).into_response()
        }
    }
}

/// Accepts connections for ever, with a TLS handshake if one is given. `who` identifies the peer, which
/// becomes an extension of each request. Unknown peers are refused.
pub async fn accept<L: Listener>(
    mut listener: L,
    routes: Router,
    limits: Limits,
    handshake: Option<Handshake>,
    who: impl Fn(&L::Io, &L::Addr) -> Option<Peer>,
) {
    let pool = ConnectionPool::new(limits.connections, limits.of_one_address);
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    loop {
        let (stream, address) = listener.accept().await;
        let Some(peer) = who(&stream, &address) else { continue };
        let place = match pool.enter(peer.address()).await {
            Ok(place) => place,
            // Only without TLS: a TLS client couldn't read the plain-text refusal.
            Err(full) if handshake.is_none() => {
                if let Ok(slot) = Arc::clone(&refusals).try_acquire_owned() {
                    tokio::spawn(async move {
                        refuse(stream, full, limits.base).await;
                        drop(slot);
                    });
                }
                continue;
            }
            Err(_) => continue,
        };
        let (routes, handshake) = (routes.clone(), handshake.clone());
        tokio::spawn(async move {
            let stream = with_stall_timeout(stream);
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
                () = place.evicted() => {}
            }
        });
    }
}

async fn refuse(mut stream: impl AsyncWrite + Unpin, full: Full, base: &str) {
    let why = match full {
        Full::Wholly => "the limit of connections is reached",
        Full::ForAddress => "the limit of connections from this address is reached",
    };
    let answer = ProblemDocument::unavailable(why, Duration::from_secs(1)).written(base);
    let _ = timeout(REFUSAL, async {
        stream.write_all(&answer).await?;
        stream.shutdown().await
    })
    .await;
}

async fn answer<S>(stream: S, routes: Router, limits: Limits, peer: Peer, place: &ConnectionSlot)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let activity = place.activity();
        // A connection that is still uploading a body stays first in line to be closed.
        if request.body().is_end_stream() {
            activity.mark_busy();
        } else {
            request.extensions_mut().insert(activity.clone());
        }
        let answer = routes.clone().oneshot(request);
        async {
            let answered = answer.await;
            activity.mark_idle();
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
        let _ = connection.await;
    }
}

/// Adds the timeout for writes without progress.
fn with_stall_timeout<S: AsyncRead + AsyncWrite>(stream: S) -> Pin<Box<TimeoutStream<S>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(STALL));
    Box::pin(stream)
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};
    use std::net::SocketAddr;

    use axum::body::{Body, Bytes};
    use axum::routing::{get, post};
    use futures_util::stream::{self, StreamExt as _};
    use tokio::io::{AsyncReadExt as _, duplex};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::sleep;

    use super::*;

    const LIMITS: Limits = Limits {
        connections: 8,
        of_one_address: 2,
        sending: Duration::from_secs(60),
        answer: Duration::from_secs(60),
        lifetime: Duration::from_secs(60),
        body: 100,
        is_large: |_, _| false,
        large: (100, Duration::from_secs(60)),
        base: "",
        bulk: 100,
    };

    async fn begin(address: SocketAddr, request: &str, sees: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut seen = vec![0; sees.len()];
        stream.read_exact(&mut seen).await.unwrap();
        assert_eq!(String::from_utf8(seen).unwrap(), sees);
        stream
    }

    async fn rest(mut stream: TcpStream) -> String {
        let mut rest = String::new();
        let _ = stream.read_to_string(&mut rest).await;
        rest
    }

    #[tokio::test]
    async fn who_is_answered_stays_and_who_takes_their_time_to_send_gives_way() {
        let (begun, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (begins, goes_on) = (Arc::clone(&begun), Arc::clone(&go_on));
        let held = move || async move {
            begins.add_permits(1);
            goes_on.acquire().await.unwrap().forget();
        };
        let routes = Router::new()
            .route("/held", get(held))
            .route("/taken", post(|_: axum::body::Bytes| async {}))
            .route("/quick", get(|| async {}));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(accept(listener, LIMITS.around(routes), LIMITS, None, |_, address: &SocketAddr| {
            Some(Peer::Remote(*address))
        }));
        let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let held = [begin(address, &get("/held"), "").await, begin(address, &get("/held"), "").await];
        begun.acquire_many(2).await.unwrap().forget();
        let refused = rest(begin(address, &get("/quick"), "HTTP/1.1 503 ").await).await;
        assert!(refused.contains("Retry-After: 1\r\n"), "{refused}");
        assert!(
            refused.contains(r#""detail":"the limit of connections from this address is reached""#),
            "{refused}"
        );
        go_on.add_permits(2);
        for stream in held {
            assert!(rest(stream).await.starts_with("HTTP/1.1 200 "));
        }
        let post = "POST /taken HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
        let first = begin(address, post, "HTTP/1.1 100 Continue\r\n\r\n").await;
        let mut second = begin(address, post, "HTTP/1.1 100 Continue\r\n\r\n").await;
        rest(begin(address, &get("/quick"), "HTTP/1.1 200 ").await).await;
        assert_eq!(rest(first).await, "", "it was cut off");
        second.write_all(b"hello").await.unwrap();
        let mut answered = [0; 13];
        second.read_exact(&mut answered).await.unwrap();
        assert_eq!(&answered, b"HTTP/1.1 200 ");
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_not_waited_for() {
        let (mut near, far) = duplex(4);
        let mut stream = with_stall_timeout(far);
        let error = stream.write_all(b"abcdefgh").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        // A slow reader is served as long as it makes progress.
        let reads = tokio::spawn(async move {
            let mut read = Vec::new();
            let mut byte = [0];
            while near.read(&mut byte).await.unwrap() > 0 {
                read.push(byte[0]);
                sleep(STALL / 2).await;
            }
            read
        });
        stream.write_all(b"ijklmnop").await.unwrap();
        drop(stream);
        assert_eq!(reads.await.unwrap(), b"abcdijklmnop");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_events_goes_on_while_it_is_read_and_gives_way_to_others() {
        const EVENTS: usize = 600;
        let event = |_| async {
            sleep(LIMITS.lifetime / 10).await;
            Ok::<_, io::Error>(Bytes::from_static(b"event\n"))
        };
        let events = move || async move { Body::from_stream(stream::iter(0..EVENTS).then(event)) };
        let routes = LIMITS.around(Router::new().route("/events", get(events)));
        let pool = ConnectionPool::new(1, 1);
        let connect = async || {
            let (mut near, far) = duplex(64);
            let slot = pool.enter(None).await.unwrap_or_else(|full| panic!("{full:?}"));
            let routes = routes.clone();
            let served = tokio::spawn(async move {
                tokio::select! {
                    () = answer(with_stall_timeout(far), routes, LIMITS, Peer::Local { uid: 0 }, &slot) => true,
                    () = slot.evicted() => false,
                }
            });
            near.write_all(b"GET /events HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
            (near, served)
        };
        let (mut near, served) = connect().await;
        let mut answer = String::new();
        near.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer.matches("event\n").count(), EVENTS, "{answer}");
        assert!(served.await.unwrap(), "the connection ends with the answer");
        // A client that stops reading is not waited for.
        let (near, served) = connect().await;
        assert!(served.await.unwrap());
        drop(near);
        let (mut near, served) = connect().await;
        near.read_exact(&mut [0; 200]).await.unwrap();
        let _next = connect().await;
        assert!(!served.await.unwrap(), "it counts as idle");
    }
}
