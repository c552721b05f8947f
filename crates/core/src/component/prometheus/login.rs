//! TLS and the login of Prometheus. It reads these files anew for each connection.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{NAME, PrometheusContext};
use crate::component::{Manifest, SecretEncoding, SecretSlot};

pub const TLS: &str = "prometheus-tls";
pub const WEB: &str = "prometheus-web";

pub const TLS_FOLDER: &str = "/etc/prometheus/tls";
pub const WEB_FOLDER: &str = "/etc/prometheus/web";
pub const WEB_FILE: &str = "web.yml";

pub fn secrets(context: &PrometheusContext) -> Vec<Manifest> {
    let domain = &context.resolved.domain;
    let key = SecretSlot::of(&domain.tls_key, SecretEncoding::Pkcs8).to_value();
    let chain = STANDARD.encode(&domain.tls_cert);
    let tls = json!({"type": "kubernetes.io/tls", "data": {"tls.crt": chain, "tls.key": key}});
    let web = SecretSlot::of(&context.resolved.password, SecretEncoding::PrometheusLogin).to_value();
    vec![
        context.object("v1", "Secret", TLS, tls),
        context.object("v1", "Secret", WEB, json!({"data": {WEB_FILE: web}})),
    ]
}

/// The web configuration of Prometheus for the password with this bcrypt hash.
pub fn web_configuration(hash: &str) -> String {
    let text = json!({
        "tls_server_config": {
            "cert_file": format!("{TLS_FOLDER}/tls.crt"),
            "key_file": format!("{TLS_FOLDER}/tls.key"),
            "min_version": "TLS12",
        },
        "basic_auth_users": {NAME: hash},
    });
    // YAML contains JSON.
    text.to_string()
}
