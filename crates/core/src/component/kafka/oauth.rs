//! Authentication with tokens of an identity provider.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Map, Value, json};

use super::jaas::{self, JaasOption};
use super::placement::Mount;
use super::{KafkaContext, user};
use crate::catalog::ResolvedCluster;
use crate::component::{Manifest, Stage, labels, manifest, schema_registry};
use crate::names::Digest;
use crate::spec::IdentityProvider;

/// The folder of the CA certificates for the identity provider.
const CA_FOLDER: &str = "/mnt/oauth-ca";
pub const CA_FILE: &str = "ca.crt";
/// The default claim with the user's name: the subject, which every token has.
pub const USERNAME_CLAIM: &str = "sub";
/// The claim with the client's name, for tokens without a user.
const CLIENT_CLAIM: &str = "client_id";
/// Matches names that no KafkaUser can have, also with the prefix `CN=` of certificate logins: everything but
/// dot-separated labels of lowercase letters, digits and dashes.
const NO_KAFKA_USER: &str = "(?!(CN=)?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$).+";
/// How long a connection lives without a new token: an hour. A token that expires sooner ends it sooner.
const REAUTHENTICATION_MS: u32 = 3_600_000;

/// The authentication of client listeners; `None` without an identity provider.
///
/// Strimzi 1.x has no type for it any more, but its image still contains the library.
pub fn authentication(context: &KafkaContext) -> Option<Value> {
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

/// The URLs that brokers call. Clients call the others.
pub fn calls(cluster: &ResolvedCluster) -> impl Iterator<Item = String> {
    cluster.identity_provider.iter().map(|provider| provider.jwks_uri.clone())
}

pub fn config(context: &KafkaContext) -> Map<String, Value> {
    let builder = json!("io.strimzi.kafka.oauth.server.OAuthKafkaPrincipalBuilder");
    let entry = ("principal.builder.class".to_owned(), builder);
    context.cluster.identity_provider.iter().map(|_| entry.clone()).collect()
}

/// Configures the user operator, which revokes the rights of all users without a KafkaUser, to ignore names
/// that no KafkaUser can have. Identity providers may use such names; their rights are granted with Kafka's
/// own tools.
pub fn user_operator(context: &KafkaContext) -> Option<Value> {
    let environment = json!([{"name": "STRIMZI_IGNORED_USERS_PATTERN", "value": NO_KAFKA_USER}]);
    context.cluster.identity_provider.as_ref().map(|_| json!({"env": environment}))
}

fn options(context: &KafkaContext, provider: &IdentityProvider) -> Vec<JaasOption> {
    let IdentityProvider {
        organization: _,
        identifier: _,
        issuer,
        jwks_uri,
        // Only clients need it.
        token_endpoint: _,
        audience,
        username_claim,
        groups_claim: _,
        ca_cert,
    } = provider;
    let username_claim = username_claim.as_deref().unwrap_or(USERNAME_CLAIM);
    let mut options: Vec<JaasOption> = vec![
        // The module requires an option here on brokers, which have no login of their own, and doesn't use
        // it.
        ("unsecuredLoginStringClaim_sub", "unused".to_owned()),
        ("oauth.valid.issuer.uri", issuer.clone()),
        ("oauth.jwks.endpoint.uri", jwks_uri.clone()),
        ("oauth.check.audience", "true".to_owned()),
        // On a broker, this is the expected audience.
        ("oauth.client.id", audience.clone()),
        // Not every provider sets the token type as Keycloak does; issuer and audience are checked instead.
        ("oauth.check.access.token.type", "false".to_owned()),
        ("oauth.username.claim", username_claim.to_owned()),
        ("oauth.fallback.username.claim", CLIENT_CLAIM.to_owned()),
        ("oauth.custom.claim.check", nobody_has_a_refused_name(context, username_claim)),
        ("oauth.groups.claim", provider.groups_claim().to_owned()),
        // An identity provider that is briefly down must not keep a broker from starting.
        ("oauth.fail.fast", "false".to_owned()),
    ];
    if ca_cert.is_some() {
        options.push(("oauth.ssl.truststore.location", format!("{CA_FOLDER}/{CA_FILE}")));
        options.push(("oauth.ssl.truststore.type", "PEM".to_owned()));
    }
    options
}

/// A condition on every token: its user has none of these names. Kafka identifies users by name only, so anyone
/// who could choose such a name at the identity provider would control the cluster, or all schemas.
fn nobody_has_a_refused_name(context: &KafkaContext, username_claim: &str) -> String {
    let names: Vec<String> = refused_names(context).iter().map(|name| format!("'{name}'")).collect();
    let names = names.join(", ");
    let check = |claim: &str| format!("{} nin [{names}]", json_path(claim));
    format!("{} && {}", check(username_claim), check(CLIENT_CLAIM))
}

/// The names that no token may have: those of the super users, which are our administrator and those that Strimzi adds
/// for itself, and that of the user of a schema registry.
fn refused_names(context: &KafkaContext) -> Vec<String> {
    let name = context.name();
    let own = ["kafka", "entity-topic-operator", "entity-user-operator", "kafka-exporter", "cruise-control"];
    let certificates = own.iter().map(|component| format!("CN={name}-{component},O=io.strimzi"));
    std::iter::once(user::admin_name(context.cluster))
        // On every cluster: otherwise brokers would restart where a registry is added.
        .chain([schema_registry::user_name(context.cluster)])
        .chain(certificates)
        .chain(["CN=cluster-operator,O=io.strimzi".to_owned()])
        .collect()
}

/// Converts a claim to the library's syntax for conditions. A claim that starts with a bracket is already a
/// path, as in the library's setting of the user claim.
fn json_path(claim: &str) -> String {
    if claim.starts_with('[') {
        return format!("@{claim}");
    }
    format!("@['{}']", claim.replace('\\', "\\\\").replace('\'', "\\'"))
}

pub fn trusted_certificates(context: &KafkaContext) -> Option<Manifest> {
    let map = ConfigMap {
        metadata: labels::metadata(context.cluster, ca_name(context.cluster)),
        data: Some([(CA_FILE.to_owned(), ca_cert(context)?.to_owned())].into()),
        ..ConfigMap::default()
    };
    Some(manifest::typed(context.cluster, Stage::Configuration, &map))
}

/// The mount of that ConfigMap. The library reads it only when a broker starts.
pub fn mount(context: &KafkaContext) -> Option<Mount> {
    ca_cert(context).map(|certificates| Mount {
        name: "oauth-ca",
        source: ("configMap", json!({"name": ca_name(context.cluster)})),
        path: CA_FOLDER,
        version: Digest::of(certificates).as_str().to_owned(),
    })
}

fn ca_cert<'a>(context: &KafkaContext<'a>) -> Option<&'a str> {
    context.cluster.identity_provider.as_ref()?.ca_cert.as_deref()
}

/// The ConfigMap with the CA certificates for the identity provider.
pub fn ca_name(cluster: &ResolvedCluster) -> String {
    format!("{}-oauth-ca", cluster.spec.identifier)
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
