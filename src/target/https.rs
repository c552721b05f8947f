//! Requests to services beside the fleets: by TLS, within limits of time and size, and without following redirects.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use super::kubernetes::resolve;
use crate::config::{AddressRange, DeniedAddress, judge_address};
use crate::names::one_line;

#[derive(Clone)]
pub struct HttpsClient {
    tls: ClientConfig,
    /// The addresses that may be connected to beside public ones.
    allowed: Arc<[AddressRange]>,
    limits: HttpsLimits,
}

#[derive(Debug, Clone, Copy)]
pub struct HttpsLimits {
    /// From the resolution of the name to the last byte of the answer.
    pub time: Duration,
    /// The largest answer, in bytes.
    pub size: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpsFault {
    /// Its address may not be connected to.
    Denied(DeniedAddress),
    Connection(String),
    Silent(Duration),
}

/// A clause.
impl fmt::Display for HttpsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpsFault::Denied(denied) => write!(f, "its address {denied}"),
            HttpsFault::Connection(why) => f.write_str(why),
            HttpsFault::Silent(time) => write!(f, "no whole answer within {} s", time.as_secs()),
        }
    }
}

impl HttpsClient {
    /// # Errors
    /// If this build supports no usual version of TLS.
    pub fn new(
        roots: RootCertStore,
        allowed: &[AddressRange],
        limits: HttpsLimits,
    ) -> Result<HttpsClient, HttpsFault> {
        let versions = ClientConfig::builder_with_provider(default_provider().into())
            .with_safe_default_protocol_versions();
        let tls = versions.map_err(|error| HttpsFault::Connection(error.to_string()))?;
        let tls = tls.with_root_certificates(roots).with_no_client_auth();
        Ok(HttpsClient { tls, allowed: allowed.into(), limits })
    }

    /// # Errors
    /// If there is no whole answer.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, HttpsFault> {
        let time = self.limits.time;
        timeout(time, self.exchange(request)).await.unwrap_or(Err(HttpsFault::Silent(time)))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, HttpsFault> {
        // The resolver is not asked about a host that is an IP address.
        let host = request.uri().host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = host.parse::<IpAddr>() {
            judge_address(address, &self.allowed).map_err(HttpsFault::Denied)?;
        }
        let allowed = Arc::clone(&self.allowed);
        let resolver = tower::service_fn(move |name: Name| resolve(name, Arc::clone(&allowed)));
        let mut connector = HttpConnector::new_with_resolver(resolver);
        connector.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls.clone())
            .https_only()
            .enable_http1()
            .wrap_connector(connector);
        let http = legacy::Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        let answer = http.request(request).await.map_err(|error| unreached(&error))?;
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, self.limits.size).collect().await.map_err(|_| {
            let kibibytes = self.limits.size >> 10;
            HttpsFault::Connection(format!("its answer ends early, or is larger than {kibibytes} KiB"))
        })?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    }
}

/// The authorities that this host trusts.
pub fn roots_of_host() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // Old certificates that can't be parsed are common among those of a host.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// The innermost cause: the outer ones say only that something failed.
fn unreached(error: &(dyn Error + 'static)) -> HttpsFault {
    let mut cause = error;
    loop {
        if let Some(denied) = cause.downcast_ref::<DeniedAddress>() {
            return HttpsFault::Denied(denied.clone());
        }
        match cause.source() {
            Some(inner) => cause = inner,
            None => return HttpsFault::Connection(one_line(&cause.to_string(), 200).into_owned()),
        }
    }
}
