//! The certificate that a cluster presents to clients.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use crate::catalog::ResolvedCluster;
use crate::component::{Manifest, SecretEncoding, SecretSlot, Stage, labels, manifest};

pub const CERTIFICATE: &str = "tls.crt";
pub const KEY: &str = "tls.key";

pub fn name(cluster: &ResolvedCluster) -> String {
    format!("{}-tls", cluster.spec.identifier)
}

/// The Secret with chain and key; `None` for a cluster without a base domain. It is in the cluster's
/// namespace because Strimzi reads no other. The chain itself is public: every client receives it.
pub fn tls_secret(cluster: &ResolvedCluster) -> Option<Manifest> {
    let domain = cluster.domain.as_ref()?;
    let secret = Secret {
        metadata: labels::metadata(cluster, name(cluster)),
        type_: Some("kubernetes.io/tls".to_owned()),
        data: Some([(CERTIFICATE.to_owned(), ByteString(domain.tls_cert.clone().into_bytes()))].into()),
        ..Secret::default()
    };
    let key = SecretSlot::of(&domain.tls_key, SecretEncoding::Pkcs8).to_value();
    Some(manifest::with_data(cluster, Stage::Configuration, &secret, [(KEY, key)]))
}
