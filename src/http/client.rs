//! A client for small answers of a server that the settings name: by TLS with the CA certificates of this host,
//! within limits of time and size, and without following redirects.

use std::error::Error;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

/// From the resolution of the name to the last byte of the answer.
const TIME: Duration = Duration::from_secs(10);

/// The largest answer, in bytes: many times the keys of a large identity provider.
const LARGEST: usize = 256 << 10;

pub struct Client {
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no whole answer within {} s", TIME.as_secs())]
    Time,
    #[error("the answer is larger than {} KiB", LARGEST >> 10)]
    Size,
    #[error("{0}")]
    Connection(String),
}

impl Client {
    /// Without CA certificates on this host, every connection by TLS fails.
    ///
    /// # Errors
    /// When this build supports no usual version of TLS.
    pub fn new() -> Result<Client, rustls::Error> {
        let mut roots = RootCertStore::empty();
        // Old certificates that can't be parsed are common among those of a host.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let config = ClientConfig::builder_with_provider(default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build();
        // Requests are rare, and a connection that was kept may be closed by the server meanwhile.
        let http = legacy::Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        Ok(Client { http })
    }

    /// Sends a request, and returns the status and the body of its answer.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), ClientError> {
        let answered = async {
            let answer = self.http.request(request).await.map_err(|error| failed(&error))?;
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, LARGEST).collect().await.map_err(|error| {
                match error.downcast_ref::<http_body_util::LengthLimitError>() {
                    Some(_) => ClientError::Size,
                    None => failed(&*error),
                }
            })?;
            Ok((parts.status, body.to_bytes()))
        };
        timeout(TIME, answered).await.unwrap_or(Err(ClientError::Time))
    }
}

/// The causes of an error, since the outermost one says only that something failed.
fn failed(error: &(dyn Error + 'static)) -> ClientError {
    let (mut words, mut cause) = (vec![error.to_string()], error.source());
    while let Some(error) = cause {
        words.push(error.to_string());
        cause = error.source();
    }
    words.dedup();
    ClientError::Connection(words.join(": "))
}
