//! The client of a fleet's Kubernetes cluster. A kubeconfig comes from a tenant: it decides only the address and the
//! user, and never runs anything here.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::Limited;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::config::AuthInfo;
use kube::{Client, Config};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use secrecy::{ExposeSecret as _, SecretString};
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

use super::error::KubeError;
use super::{AccessField, in_cluster};
use crate::config::{AddressRange, judge_address};
use crate::spec::kubeconfig::{KubeAccess, KubeAuth};

/// The time limit for connecting, from DNS resolution to the end of the TLS handshake.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest response that is read, in bytes: many times a page of a list.
pub(super) const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// Builds a client for a kubeconfig's server. It follows no redirects; `retry` decides about retries.
///
/// # Errors
/// When the server's address is denied, or the credentials can't be used.
pub(super) fn client(access: &KubeAccess, allowed: &[AddressRange]) -> Result<Client, KubeError> {
    // The resolver is not asked about a host that is an IP address.
    if let Ok(address) = access.host.parse::<IpAddr>() {
        judge_address(address, allowed).map_err(KubeError::Denied)?;
    }
    install_cryptography();
    let allowed: Arc<[AddressRange]> = allowed.into();
    let resolver = tower::service_fn(move |name: Name| resolve(name, Arc::clone(&allowed)));
    let mut connector = HttpConnector::new_with_resolver(resolver);
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let config = config(access)?;
    let connector = config.rustls_https_connector_with_connector(connector).map_err(unusable)?;
    let connector = connector.map_future(|connection| Box::pin(in_time(connection)));
    let http: Http<_, Body> = Http::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(unusable)?)
        .option_layer(in_cluster::token_layer(access))
        .map_err(BoxError::from)
        .service(http.map_response(|answer| answer.map(|body| Limited::new(body, MAX_ANSWER))));
    Ok(Client::new(service, "default"))
}

/// Copies the used fields one by one. Everything else keeps its default: no exec plugin, no file, no proxy.
fn config(access: &KubeAccess) -> Result<Config, KubeError> {
    let mut config = Config::new(access.server.parse().map_err(unusable)?);
    if let Some(authority) = &access.certificate_authority {
        let certificates = CertificateDer::pem_slice_iter(authority.as_bytes());
        let certificates: Result<Vec<Vec<u8>>, _> =
            certificates.map(|certificate| certificate.map(|it| it.to_vec())).collect();
        config.root_cert = Some(certificates.map_err(unusable)?);
    }
    config.tls_server_name.clone_from(&access.tls_server_name);
    config.auth_info = match &access.auth {
        KubeAuth::Token(token) => AuthInfo { token: Some(token.clone()), ..AuthInfo::default() },
        // Each request reads it anew.
        KubeAuth::TokenFile(_) => AuthInfo::default(),
        KubeAuth::ClientCertificate { certificate, key } => AuthInfo {
            client_certificate_data: Some(STANDARD.encode(certificate)),
            client_key_data: Some(SecretString::from(STANDARD.encode(key.expose_secret()))),
            ..AuthInfo::default()
        },
    };
    Ok(config)
}

fn unusable(error: impl fmt::Display) -> KubeError {
    KubeError::NoAccess { field: AccessField::Kubeconfig, reason: error.to_string(), described: true }
}

fn install_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    }
}

/// Resolves a host to the addresses that may be connected to. This check runs at each connection, because DNS
/// may have changed since the last one.
pub(in crate::target) async fn resolve(
    name: Name,
    allowed: Arc<[AddressRange]>,
) -> Result<std::vec::IntoIter<SocketAddr>, BoxError> {
    let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
    let (may, denied): (Vec<_>, Vec<_>) =
        found.into_iter().map(|it| judge_address(it.ip(), &allowed).map(|()| it)).partition(Result::is_ok);
    match denied.into_iter().find_map(Result::err) {
        Some(denied) if may.is_empty() => Err(denied.into()),
        _ => Ok(may.into_iter().flatten().collect::<Vec<_>>().into_iter()),
    }
}

async fn in_time<C>(connection: impl Future<Output = Result<C, BoxError>>) -> Result<C, BoxError> {
    tokio::time::timeout(CONNECT_TIMEOUT, connection).await.unwrap_or_else(|_| Err(TookTooLong.into()))
}

#[derive(Debug, thiserror::Error)]
#[error("timed out")]
pub(super) struct TookTooLong;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DeniedAddress;

    #[tokio::test]
    async fn a_name_is_judged_by_what_it_resolves_to() {
        let denied = resolve("localhost".parse().unwrap(), [].into()).await.unwrap_err();
        assert!(denied.downcast_ref::<DeniedAddress>().is_some(), "{denied}");
    }
}
