//! Settings that every program on Quarkus takes, as variables of its container.

use serde_json::{Value, json};

use super::PORT;
use crate::catalog::ResolvedCluster;
use crate::component::clients;
use crate::component::kafka::tls_secret;
use crate::component::mount::Mount;

const TLS_FOLDER: &str = "/mnt/tls";
/// The file with the CA of the brokers' certificates inside of Kubernetes.
pub const KAFKA_CA_FILE: &str = "/mnt/kafka-ca/ca.crt";
const KAFKA_CA_FOLDER: &str = "/mnt/kafka-ca";

pub type Variables = Vec<(&'static str, String)>;

pub fn environment(variables: Variables) -> impl Iterator<Item = Value> {
    variables.into_iter().map(|(name, value)| json!({"name": name, "value": value}))
}

/// The certificate is read anew while it runs, so a renewed one needs no restart.
pub fn https() -> Variables {
    let file = |name: &str| format!("{TLS_FOLDER}/{name}");
    vec![
        ("QUARKUS_SHUTDOWN_TIMEOUT", "10s".to_owned()),
        ("QUARKUS_HTTP_INSECURE_REQUESTS", "disabled".to_owned()),
        ("QUARKUS_HTTP_SSL_PORT", PORT.to_string()),
        ("QUARKUS_HTTP_SSL_CERTIFICATE_FILES", file(tls_secret::CERTIFICATE)),
        ("QUARKUS_HTTP_SSL_CERTIFICATE_KEY_FILES", file(tls_secret::KEY)),
        ("QUARKUS_HTTP_SSL_CERTIFICATE_RELOAD_PERIOD", "60s".to_owned()),
    ]
}

/// The files that [`https`] and [`KAFKA_CA_FILE`] name.
pub fn mounts(cluster: &ResolvedCluster) -> Vec<Mount> {
    let of_tls = Mount::secret("tls", tls_secret::name(cluster), TLS_FOLDER);
    let of_kafka = clients(cluster).map(|it| Mount::secret("kafka-ca", it.ca_secret, KAFKA_CA_FOLDER));
    [of_tls].into_iter().chain(of_kafka).collect()
}
