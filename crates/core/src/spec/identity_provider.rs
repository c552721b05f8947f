//! Identity providers: how the clients of a cluster authenticate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Identifier;

/// An OAuth 2 issuer whose tokens a cluster accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdentityProvider {
    /// The organization that owns the identity provider. It can't change.
    pub organization: Identifier,
    /// The identity provider's name, unique in its organization. It can't change.
    pub identifier: Identifier,
    /// The issuer that tokens must name, an https URL.
    #[schemars(length(max = 2000), regex(pattern = r"^https://[^\s]+$"), extend("x-expected" = "an https URL"), example = &"https://login.example.com/realms/acme")]
    pub issuer: String,
    /// The https URL at which the issuer publishes its keys.
    #[schemars(length(max = 2000), regex(pattern = r"^https://[^\s]+$"), extend("x-expected" = "an https URL"), example = &"https://login.example.com/realms/acme/protocol/openid-connect/certs")]
    pub jwks_uri: String,
    /// The https URL at which clients get their tokens. It is shown to clients and not used by brokers.
    #[serde(default)]
    #[schemars(length(max = 2000), regex(pattern = r"^https://[^\s]+$"), extend("x-expected" = "an https URL"), example = &"https://login.example.com/realms/acme/protocol/openid-connect/token")]
    pub token_endpoint: Option<String>,
    /// The audience that tokens must name.
    #[schemars(length(min = 1, max = 500))]
    pub audience: String,
    /// The claim that names the user. By default `sub`.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub username_claim: Option<String>,
    /// The claim that lists the user's groups, as a JSON path. By default `$.groups`. Kafka's own authorizer
    /// ignores groups, so they grant no access.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub groups_claim: Option<String>,
    /// The CA certificates, in PEM, to verify the issuer's certificate with. By default the public ones.
    #[serde(default)]
    #[schemars(extend("x-lines" = true))]
    pub ca_cert: Option<String>,
}
