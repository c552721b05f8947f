//! Requests to an authority.

use std::pin::Pin;
use std::time::Duration;

use camino::Utf8Path;
use http::header::USER_AGENT;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;

use super::AcmeFault;
use crate::config::AddressRange;
use crate::target::https::{HttpsClient, HttpsFault, HttpsLimits, roots_of_host};

/// An answer has many times the size of a chain of certificates.
const LIMITS: HttpsLimits = HttpsLimits { time: Duration::from_secs(15), size: 256 << 10 };

#[derive(Clone)]
pub struct Http {
    client: HttpsClient,
}

impl Http {
    /// # Errors
    /// If the file of roots can't be used.
    pub fn new(roots: Option<&Utf8Path>) -> Result<Http, AcmeFault> {
        let roots = roots.map_or_else(|| Ok(roots_of_host()), roots_in)?;
        // The settings name the authority, and no tenant.
        Ok(Http { client: HttpsClient::new(roots, &AddressRange::ALL, LIMITS).map_err(unreached)? })
    }

    /// # Errors
    /// If there is no answer in JSON.
    pub async fn get(&self, url: &str) -> Result<Value, AcmeFault> {
        let unreadable = || AcmeFault::Unreached("its answer can't be read".to_owned());
        let request = Request::get(url)
            .header(USER_AGENT, "streamfleet")
            .body(Full::default())
            .map_err(|_| unreadable())?;
        let answer = self.client.send(request).await.map_err(unreached)?;
        match answer.status() {
            StatusCode::OK => serde_json::from_slice(answer.body()).map_err(|_| unreadable()),
            status => Err(AcmeFault::Unreached(format!("it answers with status {status}"))),
        }
    }
}

impl HttpClient for Http {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.client.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let answer = client.send(Request::from_parts(parts, Full::from(body))).await;
            let (parts, body) = answer.map_err(|fault| other(fault.to_string()))?.into_parts();
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

fn unreached(fault: HttpsFault) -> AcmeFault {
    other(fault.to_string()).into()
}
