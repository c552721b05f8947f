//! What a running process answers over HTTP.

use std::net::SocketAddr;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether and where `serve` answers over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApiConfig {
    /// The address and port that `serve` answers on: `/healthz`, `/readyz`, `/metrics` and, with
    /// `source.webhook_secret_file`, `/webhook`. By default it opens no port. There is no login: whoever reaches the
    /// address reads how many fleets and clusters there are and how they are, and no names.
    #[schemars(with = "Option<String>", example = &"127.0.0.1:3000")]
    pub listen: Option<SocketAddr>,
    /// The file of the socket on which commands such as `plan` and `approve` ask a running `serve`. Only the user that it
    /// runs as, and root, may. By default `socket` in the folder of the state.
    #[schemars(with = "Option<String>", example = &"/run/streamfleet/socket")]
    pub socket: Option<Utf8PathBuf>,
}
