//! Cloud accounts: access to what clusters use outside of their fleet, which are buckets and DNS zones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Identifier;
use crate::spec::SecretValue;

const DNS_PORT: &str = "53";

/// Access to a cloud's storage, for tiered storage, or to DNS zones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CloudAccount {
    /// The organization that owns the account. It can't change.
    pub organization: Identifier,
    /// The account's name, unique in its organization. It can't change.
    pub identifier: Identifier,
    /// The cloud.
    pub provider: CloudProvider,
    /// The region of buckets that name none.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub region: Option<String>,
    /// With `s3`, the https URL of a service that is compatible with S3. With `rfc2136`, the DNS server of the zone as
    /// `dns://HOST` or `dns://HOST:PORT`; it has to take TCP.
    #[serde(default)]
    #[schemars(length(max = 2000), regex(pattern = r"^(https|dns)://[^\s]+$"), extend("x-expected" = "an https URL, or `dns://` with a host"), example = &"https://minio.example.com:9000")]
    pub endpoint: Option<String>,
    /// The access keys, in the format of an AWS credentials file: a `[default]` section with
    /// `aws_access_key_id` and `aws_secret_access_key`, and with `aws_session_token` if they are valid for some time. With `rfc2136`, the key as BIND's tools write it:
    /// `key "NAME" { algorithm hmac-sha256; secret "…"; };`.
    pub credentials: SecretValue,
}

/// The supported clouds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(extend("x-driver" = "cloud provider"))]
pub enum CloudProvider {
    /// A service that is compatible with S3, at its own endpoint.
    S3,
    /// Amazon Web Services: S3, and Route 53.
    Aws,
    /// A DNS server that takes signed updates, such as BIND, Knot DNS or PowerDNS.
    Rfc2136,
}

impl CloudAccount {
    /// Returns host and port of the DNS server in `endpoint`; `None` if it names none.
    pub fn dns_server(&self) -> Option<(&str, u16)> {
        let place = self.endpoint.as_deref()?.strip_prefix("dns://")?.trim_end_matches('/');
        let (host, port) = match place.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                (host, port.strip_prefix(':').or(port.is_empty().then_some(DNS_PORT))?)
            }
            None => place.rsplit_once(':').unwrap_or((place, DNS_PORT)),
        };
        let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        (!host.is_empty() && host.chars().all(is_host)).then_some(())?;
        Some((host, port.parse().ok().filter(|port| *port != 0)?))
    }
}
