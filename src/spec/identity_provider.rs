//! An identity provider: how the clients of a cluster prove who they are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Identifier;

/// An OAuth 2 issuer whose tokens a cluster accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdentityProvider {
    /// The organization that owns the identity provider. It can't change.
    pub organization: Identifier,
    /// Its name, unique in its organization. It can't change.
    pub identifier: Identifier,
    /// The issuer that tokens must name, an https URL.
    #[schemars(length(max = 2000), regex(pattern = r"^https://[^\s]+$"), extend("x-expected" = "an https URL"), example = &"https://login.example.com/realms/acme")]
    pub issuer: String,
    /// Where the issuer publishes its keys, an https URL.
    #[schemars(length(max = 2000), regex(pattern = r"^https://[^\s]+$"), extend("x-expected" = "an https URL"), example = &"https://login.example.com/realms/acme/protocol/openid-connect/certs")]
    pub jwks_uri: String,
    /// Where clients get their tokens, an https URL. Told to clients, never to brokers.
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
    /// The claim that lists the user's groups, as a JSON path. By default `$.groups`. Kafka's own authorizer doesn't look at
    /// groups, so that nobody has rights by them.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub groups_claim: Option<String>,
    /// The certificates, in PEM, that the issuer's own may be signed by. By default the public ones.
    #[serde(default)]
    #[schemars(extend("x-lines" = true))]
    pub ca_cert: Option<String>,
}
