//! TLS and the login of Prometheus. It reads these files anew for each connection.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{NAME, PrometheusContext};
use crate::component::mount::Mount;
use crate::component::{Manifest, SecretEncoding, SecretSlot};

const TLS: &str = "prometheus-tls";
const WEB: &str = "prometheus-web";

const TLS_FOLDER: &str = "/etc/prometheus/tls";
pub const WEB_FOLDER: &str = "/etc/prometheus/web";
pub const WEB_FILE: &str = "web.yml";
const CHAIN_FILE: &str = "chain.pem";
const KEY_FILE: &str = "key.pem";

pub fn secrets(context: &PrometheusContext) -> Vec<Manifest> {
    let domain = &context.resolved.domain;
    let key = SecretSlot::of(&domain.tls_key, SecretEncoding::Pkcs8).to_value();
    let chain = STANDARD.encode(&domain.tls_cert);
    // Under the names of a TLS Secret it would pass for that of brokers, which restart for a new one.
    let tls = json!({"data": {CHAIN_FILE: chain, KEY_FILE: key}});
    let web = SecretSlot::of(&context.resolved.password, SecretEncoding::PrometheusLogin).to_value();
    vec![
        context.object("v1", "Secret", TLS, tls),
        context.object("v1", "Secret", WEB, json!({"data": {WEB_FILE: web}})),
    ]
}

pub fn mounts() -> [Mount; 2] {
    [Mount::secret("tls", TLS, TLS_FOLDER), Mount::secret("web", WEB, WEB_FOLDER)]
}

/// The web configuration of Prometheus for the password with this bcrypt hash.
pub fn web_configuration(hash: &str) -> String {
    let text = json!({
        "tls_server_config": {
            "cert_file": format!("{TLS_FOLDER}/{CHAIN_FILE}"),
            "key_file": format!("{TLS_FOLDER}/{KEY_FILE}"),
            "min_version": "TLS12",
        },
        "basic_auth_users": {NAME: hash},
    });
    // YAML contains JSON.
    text.to_string()
}
