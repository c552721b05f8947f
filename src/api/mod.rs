//! What a running process answers over HTTP: probes and metrics.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::vitals::Vitals;

/// The version of Prometheus' text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// An address that is listened on.
pub struct Api {
    listener: TcpListener,
}

impl Api {
    /// Listens on an address. Nothing is answered yet.
    ///
    /// # Errors
    /// When somebody else does, or the address is not of this host.
    pub async fn bind(address: SocketAddr) -> io::Result<Api> {
        Ok(Api { listener: TcpListener::bind(address).await? })
    }

    /// Where it listens, with the port that the system chose where none was asked for.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until it is time to stop.
    pub async fn answer(self, vitals: Arc<Vitals>, stop: impl Future<Output = ()> + Send + 'static) {
        let served = axum::serve(self.listener, routes(vitals)).with_graceful_shutdown(stop).await;
        if let Err(error) = served {
            tracing::error!(%error, "nothing is answered over HTTP any more");
        }
    }
}

fn routes(vitals: Arc<Vitals>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(vitals)
}

/// Whether the process goes on. A cluster that is not well, or a git server that is away, is no reason to start it anew.
async fn healthz(State(vitals): State<Arc<Vitals>>) -> impl IntoResponse {
    match vitals.stuck() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(since) => {
            let text = format!("nothing has gone on for {} s\n", since.as_secs());
            (StatusCode::SERVICE_UNAVAILABLE, text)
        }
    }
}

/// Whether it knows what should be.
async fn readyz(State(vitals): State<Arc<Vitals>>) -> impl IntoResponse {
    if vitals.is_ready() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the specs are not read yet\n")
    }
}

async fn metrics(State(vitals): State<Arc<Vitals>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, METRICS)], vitals.metrics())
}
