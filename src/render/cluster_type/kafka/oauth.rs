//! Logging in with tokens of an identity provider.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Map, Value, json};

use super::jaas::{self, JaasOption};
use super::placement::Mount;
use super::{Context, user};
use crate::catalog::ResolvedCluster;
use crate::names::Digest;
use crate::render::{Manifest, Stage, labels, manifest};
use crate::spec::IdentityProvider;

/// The folder of the certificates that the identity provider's may be signed by.
const CA_FOLDER: &str = "/mnt/oauth-ca";
/// The file of them, in the ConfigMap and in the folder.
const CA_FILE: &str = "ca.crt";
/// The claim that names a user where the provider's settings name none; the subject, in every token.
const USERNAME_CLAIM: &str = "sub";
/// The claim that names a client which acts for itself, used when a token has no user.
const CLIENT_CLAIM: &str = "client_id";
/// Where the groups are, where the provider's settings don't say.
const GROUPS_CLAIM: &str = "$.groups";
/// The names that no KafkaUser can have, with the `CN=` of one that logs in by a certificate or without: what isn't small letters,
/// digits and dashes between dots.
const NO_KAFKA_USER: &str = "(?!(CN=)?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$).+";
/// How long a connection lives without a new token, in milliseconds: an hour. A token that ends sooner ends it sooner.
const REAUTHENTICATION_MS: u32 = 3_600_000;

/// The authentication of client listeners; none where clients don't log in with tokens.
///
/// Strimzi 1.x has no type of its own for it, but its image still has the library.
pub fn authentication(context: &Context) -> Option<Value> {
    let provider = context.cluster.identity_provider.as_ref()?;
    let module = jaas::login_module(
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
        &options(context, provider),
    );
    Some(json!({
        "type": "custom",
        "sasl": true,
        "listenerConfig": {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "oauthbearer.sasl.server.callback.handler.class":
                "io.strimzi.kafka.oauth.server.JaasServerOauthValidatorCallbackHandler",
            "oauthbearer.sasl.jaas.config": module,
            "connections.max.reauth.ms": REAUTHENTICATION_MS,
        },
    }))
}

/// What brokers call for it. Clients call the rest.
pub fn calls(cluster: &ResolvedCluster) -> impl Iterator<Item = String> {
    cluster.identity_provider.iter().map(|provider| provider.jwks_uri.clone())
}

/// The broker options that go with it.
pub fn config(context: &Context) -> Map<String, Value> {
    let builder = json!("io.strimzi.kafka.oauth.server.OAuthKafkaPrincipalBuilder");
    let entry = ("principal.builder.class".to_owned(), builder);
    context.cluster.identity_provider.iter().map(|_| entry.clone()).collect()
}

/// The container of the user operator: it takes the rights away of every user without a KafkaUser of that name, but for those
/// whose name none can have. A provider's names may be such, and their rights are given with Kafka's own tools.
pub fn user_operator(context: &Context) -> Option<Value> {
    let environment = json!([{"name": "STRIMZI_IGNORED_USERS_PATTERN", "value": NO_KAFKA_USER}]);
    context.cluster.identity_provider.as_ref().map(|_| json!({"env": environment}))
}

fn options(context: &Context, provider: &IdentityProvider) -> Vec<JaasOption> {
    let IdentityProvider {
        organization: _,
        identifier: _,
        issuer,
        jwks_uri,
        // Where clients get their tokens is told to clients and not to brokers.
        token_endpoint: _,
        audience,
        username_claim,
        groups_claim,
        ca_cert,
    } = provider;
    let username_claim = username_claim.as_deref().unwrap_or(USERNAME_CLAIM);
    let mut options: Vec<JaasOption> = vec![
        // The module wants it where there is no login of its own, and doesn't use it.
        ("unsecuredLoginStringClaim_sub", "unused".to_owned()),
        ("oauth.valid.issuer.uri", issuer.clone()),
        ("oauth.jwks.endpoint.uri", jwks_uri.clone()),
        ("oauth.check.audience", "true".to_owned()),
        // For a broker this is the audience that it expects.
        ("oauth.client.id", audience.clone()),
        // Not every provider writes the type that is checked, as Keycloak does; issuer and audience protect.
        ("oauth.check.access.token.type", "false".to_owned()),
        ("oauth.username.claim", username_claim.to_owned()),
        ("oauth.fallback.username.claim", CLIENT_CLAIM.to_owned()),
        ("oauth.custom.claim.check", nobody_is_a_super_user(context, username_claim)),
        ("oauth.groups.claim", groups_claim.as_deref().unwrap_or(GROUPS_CLAIM).to_owned()),
        // A provider that is away for a moment must not keep a broker from starting.
        ("oauth.fail.fast", "false".to_owned()),
    ];
    if ca_cert.is_some() {
        options.push(("oauth.ssl.truststore.location", format!("{CA_FOLDER}/{CA_FILE}")));
        options.push(("oauth.ssl.truststore.type", "PEM".to_owned()));
    }
    options
}

/// A condition that every token must meet: its user has none of the names that are super users here. Kafka knows a
/// user by name only, so whoever could choose such a name at the identity provider would own the cluster.
fn nobody_is_a_super_user(context: &Context, username_claim: &str) -> String {
    let names: Vec<String> = super_users(context).iter().map(|name| format!("'{name}'")).collect();
    let names = names.join(", ");
    let check = |claim: &str| format!("{} nin [{names}]", json_path(claim));
    format!("{} && {}", check(username_claim), check(CLIENT_CLAIM))
}

/// The super users: our administrator, and those that Strimzi adds for itself.
fn super_users(context: &Context) -> Vec<String> {
    let name = context.name();
    let own = ["kafka", "entity-topic-operator", "entity-user-operator", "kafka-exporter", "cruise-control"];
    let certificates = own.iter().map(|component| format!("CN={name}-{component},O=io.strimzi"));
    std::iter::once(user::admin_name(context.cluster))
        .chain(certificates)
        .chain(["CN=cluster-operator,O=io.strimzi".to_owned()])
        .collect()
}

/// A claim as the library's conditions name it. One that starts with a bracket is a path already, as the library has
/// it for the name of the user.
fn json_path(claim: &str) -> String {
    if claim.starts_with('[') {
        return format!("@{claim}");
    }
    format!("@['{}']", claim.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// The ConfigMap with the certificates that the identity provider's may be signed by.
pub fn trusted_certificates(context: &Context) -> Option<Manifest> {
    let map = ConfigMap {
        metadata: labels::metadata(context.cluster, ca_name(context)),
        data: Some([(CA_FILE.to_owned(), ca_cert(context)?.to_owned())].into()),
        ..ConfigMap::default()
    };
    Some(manifest::typed(context.cluster, Stage::Configuration, &map))
}

/// The mount of that ConfigMap. The library reads it only when a broker starts.
pub fn mount(context: &Context) -> Option<Mount> {
    ca_cert(context).map(|certificates| Mount {
        name: "oauth-ca",
        source: ("configMap", json!({"name": ca_name(context)})),
        path: CA_FOLDER,
        version: Digest::of(certificates).as_str().to_owned(),
    })
}

fn ca_cert<'a>(context: &Context<'a>) -> Option<&'a str> {
    context.cluster.identity_provider.as_ref()?.ca_cert.as_deref()
}

fn ca_name(context: &Context) -> String {
    format!("{}-oauth-ca", context.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_become_paths() {
        for (claim, path) in [
            ("sub", "@['sub']"),
            ("https://example.com/name", "@['https://example.com/name']"),
            ("it's", r"@['it\'s']"),
            ("['user'].['id']", "@['user'].['id']"),
        ] {
            assert_eq!(json_path(claim), path);
        }
    }
}
