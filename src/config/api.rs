//! What a running process answers over HTTP.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether and where `serve` answers over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApiConfig {
    /// The address and port that `serve` answers on: `/healthz`, `/readyz` and `/metrics`. By default it opens no port.
    /// There is no login: whoever reaches the address reads how many fleets and clusters there are and how they are, and
    /// no names.
    #[schemars(with = "Option<String>", example = &"127.0.0.1:3000")]
    pub listen: Option<SocketAddr>,
}
