//! What a running process answers over HTTP.

use std::net::SocketAddr;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether and where `serve` answers over HTTP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApiConfig {
    /// The address and port that `serve` answers on: `/healthz`, `/readyz`, `/metrics` and, with
    /// `source.webhook_secret_file`, `/webhook`. By default it opens no port. There is no login: whoever reaches the
    /// address reads how many fleets and clusters there are and how they are, and no names.
    #[schemars(with = "Option<String>", example = &"127.0.0.1:3000")]
    pub listen: Option<SocketAddr>,
    /// The file of the certificate that `listen` shows, in PEM, followed by the intermediate ones. It and `tls_key_file` may
    /// be credentials of the systemd service. When the files change, or on SIGHUP, they are read anew. By default there is
    /// no TLS, and whoever is on the way reads everything.
    #[schemars(with = "Option<String>", example = &"/etc/streamfleet/tls.crt")]
    pub tls_cert_file: Option<Utf8PathBuf>,
    /// The file of that certificate's private key, in PEM, not encrypted.
    #[schemars(with = "Option<String>", example = &"/etc/streamfleet/tls.key")]
    pub tls_key_file: Option<Utf8PathBuf>,
    /// How many connections `listen` has at a time. When there are as many, whoever has been idle for longest is cut off for
    /// whoever comes.
    #[schemars(range(min = 1, max = 65536))]
    pub max_connections: u32,
    /// How many of them there may be from one address, so that nobody takes all. Raise it where a proxy stands in front.
    #[schemars(range(min = 1, max = 65536))]
    pub max_connections_per_address: u32,
    /// The file of the socket on which commands such as `plan` and `approve` ask a running `serve`. Only the user that it
    /// runs as, and root, may. By default `socket` in the folder of the state.
    #[schemars(with = "Option<String>", example = &"/run/streamfleet/socket")]
    pub socket: Option<Utf8PathBuf>,
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self {
            listen: None,
            tls_cert_file: None,
            tls_key_file: None,
            max_connections: 512,
            max_connections_per_address: 128,
            socket: None,
        }
    }
}

impl ApiConfig {
    /// The first thing that is wrong with it.
    pub(super) fn out_of_bounds(&self) -> Option<String> {
        let numbers = [
            ("max_connections", self.max_connections),
            ("max_connections_per_address", self.max_connections_per_address),
        ];
        let number = numbers.into_iter().find(|(_, value)| !(1..=65536).contains(value));
        if let Some((key, value)) = number {
            return Some(format!("`api.{key}` is {value}, and it has to be from 1 to 65536"));
        }
        let half = match (&self.tls_cert_file, &self.tls_key_file) {
            (Some(_), None) => ("tls_cert_file", "`api.tls_key_file`, the certificate's private key"),
            (None, Some(_)) => ("tls_key_file", "`api.tls_cert_file`, the certificate of that key"),
            _ => return None,
        };
        Some(format!("`api.{}` takes {}, and it is not set", half.0, half.1))
    }

    /// What is likely not meant, each as a sentence.
    pub fn doubts(&self) -> Vec<String> {
        let clear =
            self.listen.filter(|it| self.tls_cert_file.is_none() && !it.ip().to_canonical().is_loopback());
        let clear = clear.map(|address| {
            format!(
                "`api.listen` is {address}, which other machines may reach, and there is no TLS: tokens and secrets are \
                 sent in the clear; set `api.tls_cert_file` and `api.tls_key_file`"
            )
        });
        let unheard = (self.listen.is_none() && self.tls_cert_file.is_some()).then(|| {
            "`api.tls_cert_file` and `api.tls_key_file` are without effect, since `api.listen` names no address"
                .to_owned()
        });
        clear.into_iter().chain(unheard).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn parsed(text: &str) -> Result<ApiConfig, String> {
        let config = Config::parse(&format!("[api]\n{text}\n")).map(|config| config.api);
        config.map_err(|error| error.to_string().trim_end().to_owned())
    }

    #[test]
    fn what_is_wrong_is_refused_by_its_name() {
        for (text, expected) in [
            ("max_connections = 0", "`api.max_connections` is 0, and it has to be from 1 to 65536"),
            (
                "max_connections_per_address = 65537",
                "`api.max_connections_per_address` is 65537, and it has to be from 1 to 65536",
            ),
            (
                "tls_cert_file = \"a\"",
                "`api.tls_cert_file` takes `api.tls_key_file`, the certificate's private key, and it is not set",
            ),
            (
                "tls_key_file = \"a\"",
                "`api.tls_key_file` takes `api.tls_cert_file`, the certificate of that key, and it is not set",
            ),
        ] {
            assert_eq!(parsed(text).unwrap_err(), expected);
        }
    }

    #[test]
    fn a_port_that_others_reach_wants_tls() {
        let tls = "tls_cert_file = \"a\"\ntls_key_file = \"b\"";
        let doubts = |text: &str| parsed(text).unwrap().doubts();
        let expected = "`api.listen` is 0.0.0.0:3000, which other machines may reach, and there is no TLS: tokens and secrets \
                        are sent in the clear; set `api.tls_cert_file` and `api.tls_key_file`";
        assert_eq!(doubts("listen = \"0.0.0.0:3000\""), [expected]);
        for sound in ["listen = \"127.0.0.1:3000\"", "listen = \"[::1]:3000\"", ""] {
            assert_eq!(doubts(sound), [""; 0], "{sound}");
        }
        assert_eq!(doubts(&format!("listen = \"0.0.0.0:3000\"\n{tls}")), [""; 0]);
        let expected = "`api.tls_cert_file` and `api.tls_key_file` are without effect, since `api.listen` names no address";
        assert_eq!(doubts(tls), [expected]);
    }
}
