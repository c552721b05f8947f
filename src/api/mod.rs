//! What a running process answers over HTTP: probes and metrics.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::runtime::Handle;

use crate::config::ApiConfig;
use crate::vitals::Vitals;

/// The version of Prometheus' text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Listens where the settings say so, and answers as long as the runtime runs: also while what is being done is finished after
/// a signal to stop.
///
/// # Errors
/// When somebody else listens there, or the address is not of this host.
pub fn begin(config: &ApiConfig, vitals: &Arc<Vitals>, runtime: &Handle) -> io::Result<()> {
    let Some(address) = config.listen else { return Ok(()) };
    let listener = runtime.block_on(TcpListener::bind(address))?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "answers over HTTP");
    runtime.spawn(answer(listener, Arc::clone(vitals)));
    Ok(())
}

async fn answer(listener: TcpListener, vitals: Arc<Vitals>) {
    if let Err(error) = axum::serve(listener, routes(vitals)).await {
        tracing::error!(%error, "nothing is answered over HTTP any more");
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
