//! The settings of Apicurio Registry 3.3, as variables of its container.

use serde_json::{Value, json};

use super::user::{self, EVENTS, GROUPS, JOURNAL, SNAPSHOTS};
use super::{HEAP_MIB, RegistryContext};
use crate::component::clients;
use crate::component::http_workload::quarkus::{self, KAFKA_CA_FILE, Variables};
use crate::component::kafka::{OAUTH_CA_FILE, USERNAME_CLAIM, endpoints};
use crate::spec::IdentityProvider;

pub const OAUTH_CA_FOLDER: &str = "/mnt/oauth-ca";

/// The key in the Secret of a KafkaUser with its whole login.
const LOGIN: &str = "sasl.jaas.config";

/// More errors than there are in a minute, for which they are counted.
const NEVER: &str = "1000000";

pub fn environment(context: &RegistryContext) -> Vec<Value> {
    let plain = [kafka(context), quarkus::https(), tokens(context.provider), roles(context)].concat();
    let login = json!({
        "name": "APICURIO_KAFKA_COMMON_SASL_JAAS_CONFIG",
        "valueFrom": {"secretKeyRef": {"name": user::name(context.cluster), "key": LOGIN}},
    });
    quarkus::environment(plain).chain([login]).collect()
}

/// A text as it has to be in the variable of a container so that Quarkus reads it unchanged, whoever wrote it. Quarkus
/// replaces `${…}` by other settings, secrets among them, and Kubernetes `$(…)` by other variables.
fn scalar(text: &str) -> String {
    text.replace('$', "\\$$")
}

/// The same for a setting that is a list, in which a comma separates items.
fn item(text: &str) -> String {
    scalar(&text.replace('\\', "\\\\").replace(',', "\\,"))
}

fn kafka(context: &RegistryContext) -> Variables {
    let admin = clients(context.cluster)
        .and_then(|clients| clients.endpoints.into_iter().find(|it| it.listener == endpoints::ADMIN));
    let bootstrap = admin.map(|admin| admin.address).unwrap_or_default();
    vec![
        ("APICURIO_STORAGE_KIND", "kafkasql".to_owned()),
        ("APICURIO_KAFKASQL_BOOTSTRAP_SERVERS", bootstrap),
        ("APICURIO_KAFKA_COMMON_SECURITY_PROTOCOL", "SASL_SSL".to_owned()),
        ("APICURIO_KAFKA_COMMON_SASL_MECHANISM", "SCRAM-SHA-512".to_owned()),
        ("APICURIO_KAFKA_COMMON_SSL_TRUSTSTORE_TYPE", "PEM".to_owned()),
        ("APICURIO_KAFKA_COMMON_SSL_TRUSTSTORE_LOCATION", KAFKA_CA_FILE.to_owned()),
        ("APICURIO_KAFKASQL_TOPIC", JOURNAL.to_owned()),
        ("APICURIO_KAFKASQL_SNAPSHOTS_TOPIC", SNAPSHOTS.to_owned()),
        ("APICURIO_EVENTS_KAFKA_TOPIC", EVENTS.to_owned()),
        // The other two take this over. They get three copies, or as many as there are brokers at that moment: 3.3 passes its
        // own setting for that on to brokers, which refuse it. A schema is in as many copies as other records before it counts
        // as registered, or is refused.
        ("APICURIO_KAFKASQL_TOPIC_PARTITIONS", "1".to_owned()),
        ("APICURIO_KAFKASQL_TOPIC_MIN_INSYNC_REPLICAS", context.in_sync.to_string()),
        ("APICURIO_KAFKASQL_CONSUMER_GROUP_PREFIX", GROUPS.to_owned()),
        // How often it looks for new schemas of other replicas; the default of 5 s delays the start, too.
        ("APICURIO_KAFKASQL_CONSUMER_POLL_TIMEOUT", "1000".to_owned()),
        // Without brokers, a write fails after 15 s instead of two minutes. No number of slow and failed ones takes the pod from
        // its clients or restarts it: it still answers what it has read, and could not start again.
        ("APICURIO_KAFKASQL_PRODUCER_DELIVERY_TIMEOUT_MS", "15000".to_owned()),
        ("APICURIO_KAFKASQL_PRODUCER_REQUEST_TIMEOUT_MS", "10000".to_owned()),
        ("APICURIO_KAFKASQL_PRODUCER_MAX_BLOCK_MS", "15000".to_owned()),
        ("APICURIO_METRICS_RESPONSE_ERROR_LIVENESS_CHECK_ERROR_THRESHOLD", NEVER.to_owned()),
        ("APICURIO_METRICS_PERSISTENCE_EXCEPTION_LIVENESS_CHECK_ERROR_THRESHOLD", NEVER.to_owned()),
        ("APICURIO_METRICS_RESPONSE_TIMEOUT_READINESS_CHECK_ERROR_THRESHOLD", NEVER.to_owned()),
        ("APICURIO_METRICS_PERSISTENCE_TIMEOUT_READINESS_CHECK_ERROR_THRESHOLD", NEVER.to_owned()),
        ("APICURIO_RULES_GLOBAL_COMPATIBILITY", context.spec.compatibility.as_str().to_owned()),
        // Otherwise an administrator of the registry could let everybody read without a login.
        ("APICURIO_CONFIG_DYNAMIC_ALLOW_ALL", "false".to_owned()),
        ("JAVA_TOOL_OPTIONS", format!("-Xmx{HEAP_MIB}m -XX:+ExitOnOutOfMemoryError")),
    ]
}

/// The same tokens as brokers accept. The provider is never asked for its addresses: they are in the spec.
fn tokens(provider: &IdentityProvider) -> Variables {
    let IdentityProvider {
        organization: _,
        identifier: _,
        issuer,
        jwks_uri,
        // Only clients need it.
        token_endpoint: _,
        audience,
        username_claim,
        // As a path.
        groups_claim: _,
        ca_cert,
    } = provider;
    // Apicurio takes the user's name from a claim of the token itself, and only shows it.
    let user = username_claim.as_deref().filter(|claim| !claim.starts_with('['));
    let groups = provider.groups_path().map(|names| claim_path(&names)).unwrap_or_default();
    let mut variables = vec![
        ("QUARKUS_OIDC_TENANT_ENABLED", "true".to_owned()),
        ("QUARKUS_OIDC_DISCOVERY_ENABLED", "false".to_owned()),
        ("QUARKUS_OIDC_AUTH_SERVER_URL", scalar(issuer)),
        ("QUARKUS_OIDC_JWKS_PATH", scalar(jwks_uri)),
        ("QUARKUS_OIDC_TOKEN_ISSUER", scalar(issuer)),
        ("QUARKUS_OIDC_TOKEN_AUDIENCE", item(audience)),
        ("QUARKUS_OIDC_TOKEN_PRINCIPAL_CLAIM", scalar(user.unwrap_or(USERNAME_CLAIM))),
        ("QUARKUS_OIDC_ROLES_ROLE_CLAIM_PATH", item(&groups)),
    ];
    if ca_cert.is_some() {
        variables.push(("QUARKUS_OIDC_TLS_TLS_CONFIGURATION_NAME", "issuer".to_owned()));
        let file = format!("{OAUTH_CA_FOLDER}/{OAUTH_CA_FILE}");
        variables.push(("QUARKUS_TLS_ISSUER_TRUST_STORE_PEM_CERTS", file));
    }
    variables
}

fn roles(context: &RegistryContext) -> Variables {
    let spec = context.spec;
    vec![
        ("APICURIO_AUTH_ROLE_BASED_AUTHORIZATION", "true".to_owned()),
        ("APICURIO_AUTH_ROLE_SOURCE", "token".to_owned()),
        ("APICURIO_AUTH_ROLES_ADMIN", scalar(&spec.admin_group)),
        ("APICURIO_AUTH_ROLES_DEVELOPER", scalar(&spec.developer_group)),
        ("APICURIO_AUTH_ROLES_READONLY", scalar(&spec.reader_group)),
    ]
}

/// A path of claims, as Quarkus writes one: names with a slash between them.
fn claim_path(names: &[&str]) -> String {
    let quoted = |name: &&str| if name.contains('/') { format!("\"{name}\"") } else { (*name).to_owned() };
    names.iter().map(quoted).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_no_expression() {
        assert_eq!(scalar("${a:b} $(c) \\"), "\\$${a:b} \\$$(c) \\");
        assert_eq!(item("a,b\\$"), "a\\,b\\\\\\$$");
    }

    #[test]
    fn a_claim_with_a_slash_is_quoted() {
        assert_eq!(claim_path(&["realm_access", "roles"]), "realm_access/roles");
        assert_eq!(claim_path(&["https://example.com/groups"]), "\"https://example.com/groups\"");
    }
}
