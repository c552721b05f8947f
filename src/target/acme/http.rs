//! Requests to an authority: by TLS, within limits of time and size, and without following redirects.

use std::pin::Pin;
use std::time::Duration;

use camino::Utf8Path;
use http::header::USER_AGENT;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;
use tokio::time::timeout;

use super::AcmeFault;
use crate::target::tls;

/// From the resolution of the name to the last byte of the answer.
const TIME: Duration = Duration::from_secs(15);

/// The largest answer, in bytes: many times a chain of certificates.
const LARGEST: usize = 256 << 10;

#[derive(Clone)]
pub struct Http {
    client: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Http {
    /// # Errors
    /// If the file of roots can't be used.
    pub fn new(roots: Option<&Utf8Path>) -> Result<Http, AcmeFault> {
        let roots = roots.map_or_else(|| Ok(tls::roots_of_host()), roots_in)?;
        let config = tls::trusting(roots).map_err(|error| AcmeFault::Unreached(error.to_string()))?;
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1().build();
        Ok(Http {
            client: legacy::Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector),
        })
    }

    /// # Errors
    /// If there is no answer in JSON.
    pub async fn get(&self, url: &str) -> Result<Value, AcmeFault> {
        let unreadable = || AcmeFault::Unreached("its answer can't be read".to_owned());
        let request = Request::get(url)
            .header(USER_AGENT, "streamfleet")
            .body(Bytes::new())
            .map_err(|_| unreadable())?;
        let (parts, body) = self.exchange(request).await?;
        match parts.status {
            StatusCode::OK => serde_json::from_slice(&body).map_err(|_| unreadable()),
            status => Err(AcmeFault::Unreached(format!("it answers with status {status}"))),
        }
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<(http::response::Parts, Bytes), Error> {
        let answered = async {
            let answer = self.client.request(request.map(Full::from)).await.map_err(innermost)?;
            let (parts, body) = answer.into_parts();
            let body = Limited::new(body, LARGEST).collect().await;
            let body = body.map_err(|_| other("its answer ends early, or is larger than 256 KiB"))?;
            Ok((parts, body.to_bytes()))
        };
        timeout(TIME, answered).await.unwrap_or_else(|_| Err(other("no whole answer within 15 s")))
    }
}

impl HttpClient for Http {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let (parts, body) = client.exchange(Request::from_parts(parts, body)).await?;
            // An authority describes its errors; another server has pages for them.
            if !parts.status.is_success() && serde_json::from_slice::<Value>(&body).is_err() {
                return Err(other(format!("it answers with status {}", parts.status)));
            }
            Ok(BytesResponse { parts, body: Box::new(body) })
        })
    }
}

fn roots_in(path: &Utf8Path) -> Result<RootCertStore, AcmeFault> {
    let text = std::fs::read(path).map_err(|_| AcmeFault::NoRoots("can't be read"))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let mut roots = RootCertStore::empty();
    match found.is_ok_and(|found| roots.add_parsable_certificates(found).0 > 0) {
        true => Ok(roots),
        false => Err(AcmeFault::NoRoots("has no certificates in PEM")),
    }
}

fn other(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Other(why.into())
}

/// The innermost cause: the outer ones say only that something failed.
fn innermost(error: legacy::Error) -> Error {
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    other(cause.to_string())
}
