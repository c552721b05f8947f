//! HTTP: probes, metrics and the API ([`rest`]), on the configured port for everyone and on a local Unix socket
//! for the command line; webhooks on the port.
//!
//! This module authorizes callers, has specs written ([`crate::writing`]), and creates and revokes tokens. It
//! never touches a cluster: a request that needs a plan carried out, such as an approval, goes into the
//! `RequestQueue`, which the daemon's planning loop empties.

pub mod answer;
pub mod caller;
pub mod local;
pub mod oidc;
pub mod openapi;
mod organization_queue;
pub mod proposal;
mod request_queue;
mod rest;
pub mod route;
mod sign_in;
mod webhook;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
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

use crate::config::{ApiConfig, ListenAddress};
use crate::http::connection::{self, Limits};
use crate::http::problem::Plain;
use crate::http::rate_limits::RateLimits;
use crate::http::socket::Socket;
use crate::http::tls::{Handshake, Tls};
use crate::vitals::Vitals;
use oidc::OpenIdConnect;
use rest::{Base, Service};
use sign_in::SignInSettings;

pub use crate::http::peer::Peer;
pub use crate::http::tls::{Files, UnusableCertificate};
pub use request_queue::{NoReply, PendingRequest, RequestQueue};
pub use webhook::Hook;

/// The content type of Prometheus' text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The hint where the address can't be had.
const ANOTHER_ADDRESS: &str = "choose another address with `--listen`, the variable STREAMFLEET_LISTEN or `api.listen` \
    in the config file, or stop the program that listens there";

pub struct ServerSetup {
    /// Whether a port is opened, which one, and its TLS and limits.
    pub config: ApiConfig,
    pub socket: Utf8PathBuf,
    /// The actor of the process's own decisions, for the audit trail.
    pub actor: String,
    pub vitals: Arc<Vitals>,
    pub request_queue: Arc<RequestQueue>,
    /// Receives pushes; `None` when the settings have no webhook secret.
    pub hook: Option<Arc<Hook>>,
    /// Adds the pages of the web UI, which call the given routes of the API.
    pub pages: fn(Router, &ApiConfig, Option<Arc<OpenIdConnect>>) -> Router,
    /// Shows refusals below the path of the pages as pages, too.
    pub refused_pages: fn(Router, &ApiConfig) -> Router,
}

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The port is in use, or the address doesn't belong to this host.
    #[error("cannot listen on {address}")]
    Address { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Certificate(#[from] UnusableCertificate),
    /// Sign-in by OpenID Connect could not work.
    #[error("cannot offer sign-in by OpenID Connect: {0}")]
    SignIn(String),
    /// Another process listens on the socket, or it can't be created.
    #[error("cannot listen on the socket `{path}`")]
    Socket { path: Utf8PathBuf, source: io::Error },
}

impl ListenError {
    pub fn hint(&self) -> &str {
        match self {
            ListenError::Certificate(unusable) => &unusable.hint,
            ListenError::SignIn(_) => {
                "correct `api.oidc` in the config file; the user of the daemon needs to be able to read the file of the \
                 secret"
            }
            ListenError::Address { .. } => ANOTHER_ADDRESS,
            ListenError::Socket { .. } => {
                "set another path in `api.socket` in the config file, in a folder that streamfleet may write to"
            }
        }
    }
}

/// The listening sockets. The Unix socket's file is removed when this is dropped.
pub struct ListeningSockets {
    _socket: Socket,
    tls: Option<Arc<Tls>>,
}

impl ListeningSockets {
    pub fn reload(&self) {
        if let Some(tls) = &self.tls {
            tls.reload();
        }
    }
}

/// The open port.
struct Port {
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    handshake: Option<Handshake>,
    /// The link of the web UI.
    ui: String,
}

/// Listens on the configured addresses, and answers as long as the runtime runs, which includes the time
/// between a signal to stop and the end of the current work.
///
/// # Errors
/// When a configured address is in use or doesn't belong to this host, the socket can't be created, or the
/// certificate can't be used.
pub fn begin(setup: ServerSetup, runtime: &Handle) -> Result<ListeningSockets, ListenError> {
    let ServerSetup { config, socket: path, actor, vitals, request_queue, hook, pages, refused_pages } =
        setup;
    let _inside = runtime.enter();
    let closed = |source| ListenError::Socket { path: path.clone(), source };
    let (socket, listener) = crate::http::socket::listen(&path).map_err(closed)?;
    config.doubts().iter().for_each(|doubt| tracing::warn!("{doubt}"));
    let port = open_port(&config, runtime)?;
    let admit = socket.admits();
    let limits = Limits::of_socket(proposal::LARGEST);
    let (rate_limits, state) = (Arc::new(RateLimits::of(&config)), request_queue.state.clone());
    let ui = port.as_ref().map(|port| port.ui.clone());
    let sign_in = SignInSettings { ui, super_users: config.super_user_emails.clone() };
    if let Some(state) = &state {
        sign_in::log_first_link(state, &sign_in, &actor);
    }
    let service = Service::of(&request_queue, Arc::clone(&rate_limits), sign_in).map(Arc::new);
    let rest = |base: Base| service.as_ref().map(|service| rest::routes(service, base)).unwrap_or_default();
    let routes = probes(Arc::clone(&vitals)).merge(rest(Base::default()));
    tracing::debug!(socket = %path, "listening for commands");
    let routes = local::named(limits.around(routes));
    runtime.spawn(connection::accept(listener, routes, limits, None, move |stream, _| admit(stream)));
    let Some(port) = port else { return Ok(ListeningSockets { _socket: socket, tls: None }) };
    let Port { listener, tls, handshake, ui } = port;
    let oidc = service.as_ref().map(|service| OpenIdConnect::of(&config.oidc, &ui, service)).transpose();
    let oidc = oidc.map_err(ListenError::SignIn)?.flatten().map(Arc::new);
    let hook = hook.map(|hook| webhook::routes(hook, Arc::clone(&rate_limits))).unwrap_or_default();
    let rest = rest(Base::of(&config));
    let routes = probes(vitals).merge(hook).merge(pages(rest.clone(), &config, oidc)).merge(rest);
    let routes = rest::open::counted(routes, &rate_limits, state.as_ref());
    let limits = Limits::of_network(&config, route::is_proposal);
    let routes = refused_pages(limits.around(routes), &config);
    runtime.spawn(connection::accept(listener, routes, limits, handshake, |_, address| {
        Some(Peer::Remote(*address))
    }));
    Ok(ListeningSockets { _socket: socket, tls })
}

/// Opens the port; `None` if there is none to open, or another program has the default one.
fn open_port(config: &ApiConfig, runtime: &Handle) -> Result<Option<Port>, ListenError> {
    let Some(ListenAddress { address, is_default }) = config.address() else { return Ok(None) };
    let tls = Files::of(config).map(Tls::open).transpose()?;
    let closed = |source| ListenError::Address { address, source };
    let handshake = tls.clone().map(Handshake::new).transpose();
    let handshake = handshake.map_err(|error| closed(io::Error::other(error)))?;
    let listener = match runtime.block_on(bind(address)) {
        Ok(listener) => listener,
        // This port was not chosen by anybody, so another one may need it, such as a second daemon on this host.
        Err(error) if is_default => {
            let why = format!("cannot listen on {address}, the default address of the web UI and the API");
            tracing::warn!(%error, hint = ANOTHER_ADDRESS, "{why}; the daemon goes on without a port");
            return Ok(None);
        }
        Err(error) => return Err(closed(error)),
    };
    let address = listener.local_addr().map_err(closed)?;
    let ui = config.ui_link(address);
    tracing::info!(%address, tls = tls.is_some(), "listening for HTTP");
    tracing::info!("the web UI is at {ui}");
    if config.super_user_emails.is_empty() && config.oidc.issuer.is_none() {
        tracing::info!(
            "no super users are named, so no link to sign in is made; streamfleet sign-in EMAIL makes one for a member"
        );
    }
    Ok(Some(Port { listener, tls, handshake, ui }))
}

/// Binds to all addresses of a host without IPv6, too.
async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(error) if is_without_ipv6(&error) && address.ip() == Ipv6Addr::UNSPECIFIED => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    }
}

fn is_without_ipv6(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

fn probes(vitals: Arc<Vitals>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(vitals)
}

/// Liveness: fails only when the main loop is stuck. An unhealthy cluster or an unreachable git server is no
/// reason to restart the process.
async fn healthz(State(vitals): State<Arc<Vitals>>) -> impl IntoResponse {
    probe(vitals.stuck().map(|since| format!("no progress for {} s\n", since.as_secs())))
}

/// Readiness: the specs have been read.
async fn readyz(State(vitals): State<Arc<Vitals>>) -> impl IntoResponse {
    probe((!vitals.is_ready()).then(|| "the specs have not been read yet\n".to_owned()))
}

fn probe(fault: Option<String>) -> impl IntoResponse {
    let status = if fault.is_some() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    (status, Extension(Plain), fault.unwrap_or_else(|| "ok\n".to_owned()))
}

async fn metrics(State(vitals): State<Arc<Vitals>>) -> impl IntoResponse {
    // Counting takes a moment with thousands of clusters.
    let page = tokio::task::spawn_blocking(move || vitals.metrics()).await.unwrap_or_default();
    ([(CONTENT_TYPE, METRICS)], page)
}
