//! What a running process answers over HTTP: probes, metrics, webhooks and the API ([`rest`]) where the settings have it listen,
//! and the API and what commands ask for on a socket of this host ([`commands`]).
//!
//! What callers ask for changes specs and tokens: who may do what is decided here, files and commits are written ([`writing`]),
//! and tokens made and revoked. Nothing here touches a cluster. What takes a plan that is carried out, as an approval does, is laid on
//! the [`Desk`], from where whoever makes plans takes it.

pub mod answer;
pub mod authenticate;
pub mod caller;
mod commands;
mod connection;
mod desk;
pub mod gate;
pub mod limiter;
mod line;
mod measured;
pub mod openapi;
mod patient;
pub mod problem;
pub mod proposal;
mod query;
mod rest;
mod room;
pub mod route;
pub mod socket;
pub mod tags;
mod tls;
pub mod tokens;
mod webhook;
pub mod writing;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router};
use camino::Utf8PathBuf;
use tokio::net::TcpListener;
use tokio::runtime::Handle;

use crate::config::ApiConfig;
use crate::vitals::Vitals;
use connection::{Limits, OF_SOCKET};
use gate::Gate;
use problem::Plain;
use rest::{Base, Service};
use socket::Socket;
use tls::{Handshake, Tls};

pub use connection::Remote;
pub use desk::{Desk, Given, Made, Question, Unanswered, Wants};
pub use tls::{Files, Unusable};
pub use webhook::Hook;

/// The version of Prometheus' text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Where a process answers, and with what.
pub struct Office {
    /// Whether it opens a port, which, and with what.
    pub config: ApiConfig,
    /// The file of the socket.
    pub socket: Utf8PathBuf,
    /// How the process is.
    pub vitals: Arc<Vitals>,
    /// Where commands leave what they ask for.
    pub desk: Arc<Desk>,
    /// Who is told of pushes; none where the settings have no secret for that.
    pub hook: Option<Arc<Hook>>,
}

/// Why nothing can be answered.
#[derive(Debug, thiserror::Error)]
pub enum Closed {
    /// Somebody else listens on the port, or the address is not of this host.
    #[error("could not listen on {address}")]
    Address {
        /// Where the settings want it to be.
        address: SocketAddr,
        /// Why it can't be.
        source: io::Error,
    },
    /// The certificate or its key can't be used.
    #[error(transparent)]
    Certificate(#[from] Unusable),
    /// Somebody else listens on the socket, or it can't be made.
    #[error("could not listen on the socket `{path}`")]
    Socket {
        /// Its file.
        path: Utf8PathBuf,
        /// Why it can't be.
        source: io::Error,
    },
}

impl Closed {
    /// What to do next.
    pub fn hint(&self) -> &str {
        match self {
            Closed::Certificate(unusable) => &unusable.hint,
            Closed::Address { .. } => {
                "name another address by `api.listen` in the config file, or end what listens there"
            }
            Closed::Socket { .. } => {
                "name another path by `api.socket` in the config file, in a folder that streamfleet may write"
            }
        }
    }
}

/// What others ask at: as long as this lives, the socket has its file.
pub struct Doors {
    _socket: Socket,
    tls: Option<Arc<Tls>>,
}

impl Doors {
    /// Reads the certificate and its key anew, where there are any.
    pub fn reload(&self) {
        if let Some(tls) = &self.tls {
            tls.reload();
        }
    }
}

/// Listens where the settings say so, and answers as long as the runtime runs: also while what is being done is finished after
/// a signal to stop. The socket's file goes with what this gives.
///
/// # Errors
/// When somebody else listens there, the address is not of this host, the socket can't be made, or the certificate can't be used.
pub fn begin(office: Office, runtime: &Handle) -> Result<Doors, Closed> {
    let Office { config, socket: path, vitals, desk, hook } = office;
    let _inside = runtime.enter();
    let closed = |source| Closed::Socket { path: path.clone(), source };
    let (socket, listener) = socket::listen(&path).map_err(closed)?;
    let is_admitted = socket.admits();
    let (gate, state) = (Arc::new(Gate::of(&config)), desk.state.clone());
    let service = Service::of(&desk, Arc::clone(&gate)).map(Arc::new);
    let rest = |base: Base| service.as_ref().map(|service| rest::routes(service, base)).unwrap_or_default();
    let commands = commands::routes(desk);
    let routes = probes(Arc::clone(&vitals)).merge(rest(Base::default())).nest("/commands", commands);
    tracing::debug!(socket = %path, "answers commands");
    runtime.spawn(connection::accept(
        listener,
        OF_SOCKET.around(routes),
        OF_SOCKET,
        None,
        move |stream, _| {
            let peer = socket::peer(stream).filter(|peer| is_admitted(peer));
            peer.map(|peer| (peer, None))
        },
    ));
    config.doubts().iter().for_each(|doubt| tracing::warn!("{doubt}"));
    let Some(address) = config.listen else { return Ok(Doors { _socket: socket, tls: None }) };
    let tls = Files::of(&config).map(Tls::open).transpose()?;
    let handshake = tls
        .clone()
        .map(Handshake::new)
        .transpose()
        .map_err(|error| Closed::Address { address, source: io::Error::other(error) })?;
    let closed = |source| Closed::Address { address, source };
    let listener = runtime.block_on(TcpListener::bind(address)).map_err(closed)?;
    let address = listener.local_addr().map_err(closed)?;
    tracing::info!(%address, tls = tls.is_some(), "answers over HTTP");
    let hook = hook.map(|hook| webhook::routes(hook, Arc::clone(&gate))).unwrap_or_default();
    let routes = probes(vitals).merge(hook).merge(rest(Base::of(&config)));
    let routes = rest::counted(routes, &gate, state.as_ref());
    let limits = Limits::of_network(&config);
    runtime.spawn(connection::accept(listener, limits.around(routes), limits, handshake, |_, address| {
        Some((Remote(*address), Some(address.ip())))
    }));
    Ok(Doors { _socket: socket, tls })
}

fn probes(vitals: Arc<Vitals>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(vitals)
}

/// Whether the process goes on. A cluster that is not well, or a git server that is away, is no reason to start it anew.
async fn healthz(State(vitals): State<Arc<Vitals>>) -> impl IntoResponse {
    match vitals.stuck() {
        None => (StatusCode::OK, Extension(Plain), "ok\n".to_owned()),
        Some(since) => {
            let text = format!("nothing has gone on for {} s\n", since.as_secs());
            (StatusCode::SERVICE_UNAVAILABLE, Extension(Plain), text)
        }
    }
}

/// Whether it knows what should be.
async fn readyz(State(vitals): State<Arc<Vitals>>) -> impl IntoResponse {
    if vitals.is_ready() {
        (StatusCode::OK, Extension(Plain), "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, Extension(Plain), "the specs are not read yet\n")
    }
}

async fn metrics(State(vitals): State<Arc<Vitals>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, METRICS)], vitals.metrics())
}
