//! What Kafka clients need to connect to a cluster, as Kafka's client properties. Secrets are left out; the
//! text says where each is kept.

mod java;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::catalog::{ResolvedCluster, ResolvedUser};
use crate::component::health::Outputs;
use crate::component::{self, ClientAccess, Endpoint, Login, ServerTrust};
use crate::names::Domain;
use crate::spec::{IdentityProvider, certificate};

/// The client properties of one listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientProperties {
    pub listener: &'static str,
    /// For any JVM client from Kafka 4.0 on, ready to use.
    pub properties: BTreeMap<&'static str, String>,
    /// Properties that are secret or unknown here, each with a description of where to find its value.
    pub to_add: BTreeMap<&'static str, String>,
    /// Further advice, one sentence each.
    pub notes: Vec<String>,
}

/// The properties for each listener, in the order in which they are rendered. Of `known`, only the
/// certificate of the cluster's own authority is used. Addresses come from the spec: those that the operator
/// reports belong to the load balancers, and no certificate covers them.
///
/// With a user of the cluster, they are for that user, who can't log in to the administrator's listener.
pub fn client_properties(
    cluster: &ResolvedCluster,
    known: Option<&Outputs>,
    user: Option<&ResolvedUser>,
) -> Vec<ClientProperties> {
    let Some(clients) = component::clients(cluster) else { return Vec::new() };
    let of = |endpoint: &Endpoint| {
        let mut properties = ClientProperties {
            listener: endpoint.listener,
            properties: BTreeMap::from([("bootstrap.servers", endpoint.address.clone())]),
            to_add: BTreeMap::new(),
            notes: Vec::new(),
        };
        properties.trust(cluster, endpoint, &clients, known);
        match user {
            Some(user) => properties.log_in_as(cluster, endpoint, user),
            None => properties.log_in(cluster, endpoint, &clients),
        }
        properties
    };
    let left_out = usize::from(user.is_some());
    clients.endpoints.iter().rev().skip(left_out).rev().map(of).collect()
}

/// The properties for clients of the cluster's schema registry, as the serializers of Confluent read them; `None` without
/// one. They are for every user: what a token may do depends on its groups.
pub fn registry_properties(cluster: &ResolvedCluster) -> Option<ClientProperties> {
    let url = component::schema_registry_url(cluster)?;
    let (provider, domain) = (cluster.identity_provider.as_ref()?, cluster.domain.as_ref()?);
    let mut properties = ClientProperties {
        listener: "schema registry",
        properties: BTreeMap::from([
            ("bearer.auth.credentials.source", "OAUTHBEARER".to_owned()),
            ("schema.registry.url", url),
        ]),
        to_add: BTreeMap::from([
            ("bearer.auth.client.id", "the id of the client at the identity provider".to_owned()),
            ("bearer.auth.client.secret", "its secret there".to_owned()),
        ]),
        notes: Vec::new(),
    };
    const ISSUER: &str = "bearer.auth.issuer.endpoint.url";
    let allowed = match &provider.token_endpoint {
        Some(endpoint) => {
            properties.properties.insert(ISSUER, endpoint.clone());
            in_a_command(endpoint)
        }
        None => {
            properties.to_add.insert(ISSUER, UNKNOWN_ENDPOINT.to_owned());
            "URL"
        }
    };
    properties.notes.push(allowed_urls(allowed));
    match certificate::root(&domain.tls_cert) {
        Some(_) => {
            properties.properties.insert("schema.registry.ssl.truststore.type", "PEM".to_owned());
            let issuer = match provider.ca_cert {
                Some(_) => ", and with the identity provider's `ca_cert`",
                None => "",
            };
            let file = format!(
                "a file with the certificates that are `ssl.truststore.certificates` of the listener `external`{issuer}"
            );
            properties.to_add.insert("schema.registry.ssl.truststore.location", file);
        }
        None => properties.notes.push(unknown_issuer(&domain.domain)),
    }
    Some(properties)
}

/// The `client_properties` of a cluster's record.
pub(super) fn field(cluster: &ResolvedCluster, known: Option<&Outputs>) -> Value {
    let all = client_properties(cluster, known, None);
    let by_listener = |value: fn(&ClientProperties) -> Value| -> Value {
        all.iter().map(|it| (it.listener.to_owned(), value(it))).collect()
    };
    let clients = component::clients(cluster);
    let mut field = json!({
        "listeners": by_listener(|it| json!(it.properties)),
        "to_add": by_listener(|it| json!(it.to_add)),
        "admin_secret": clients.map(|it| format!("{}/{}", cluster.namespace, it.admin_secret)),
    });
    if let Some(registry) = registry_properties(cluster) {
        field["schema_registry"] = json!({"properties": registry.properties, "to_add": registry.to_add});
    }
    field
}

impl ClientProperties {
    /// The properties file for a JVM client (`--command-config`), with comments about what to add.
    pub fn to_java(&self) -> String {
        java::file(self)
    }

    fn trust(
        &mut self,
        cluster: &ResolvedCluster,
        endpoint: &Endpoint,
        clients: &ClientAccess,
        known: Option<&Outputs>,
    ) {
        let certificates = match (endpoint.trust, &cluster.domain) {
            (ServerTrust::BaseDomain, Some(domain)) => certificate::root(&domain.tls_cert),
            _ => known.and_then(|known| known.certificates.get(endpoint.listener).cloned()),
        };
        match (certificates, &cluster.domain) {
            (Some(certificates), _) => {
                self.properties.insert("ssl.truststore.certificates", certificates);
            }
            (None, Some(domain)) if endpoint.trust == ServerTrust::BaseDomain => {
                return self.notes.push(unknown_issuer(&domain.domain));
            }
            (None, _) => {
                let file = format!("a file with {}", key_of(cluster, "ca.crt", &clients.ca_secret));
                self.to_add.insert("ssl.truststore.location", file);
            }
        }
        self.properties.insert("ssl.truststore.type", "PEM".to_owned());
    }

    fn log_in(&mut self, cluster: &ResolvedCluster, endpoint: &Endpoint, clients: &ClientAccess) {
        self.use_protocol(endpoint.login);
        match (endpoint.login, &cluster.identity_provider) {
            (Login::Scram, _) => {
                let key = key_of(cluster, "sasl.jaas.config", &clients.admin_secret);
                self.to_add.insert("sasl.jaas.config", format!("{key}, or of another {}", clients.user_kind));
            }
            (Login::Mtls, _) => {
                let namespace = &cluster.namespace;
                let files = format!(
                    "a file with the values of `user.key` and `user.crt` in the Secret of a {} with \
                     `authentication: {{type: tls}}` in the namespace {namespace}",
                    clients.user_kind
                );
                self.to_add.insert("ssl.keystore.location", files);
            }
            (Login::OAuth, Some(provider)) => self.ask_for_tokens(provider, "the client"),
            (Login::OAuth, None) => {}
        }
    }

    fn log_in_as(&mut self, cluster: &ResolvedCluster, endpoint: &Endpoint, user: &ResolvedUser) {
        self.use_protocol(endpoint.login);
        let name = user.spec.identifier.as_str();
        match (endpoint.login, &cluster.identity_provider) {
            (Login::Scram, _) => {
                self.to_add.insert("sasl.jaas.config", key_of(cluster, "sasl.jaas.config", name));
            }
            (Login::Mtls, _) => {
                let namespace = &cluster.namespace;
                let files = format!(
                    "a file with the values of `user.key` and `user.crt` in the Secret {namespace}/{name}"
                );
                self.to_add.insert("ssl.keystore.location", files);
            }
            (Login::OAuth, Some(provider)) => {
                self.ask_for_tokens(provider, &format!("the client whose tokens name `{name}`"));
            }
            (Login::OAuth, None) => {}
        }
    }

    fn use_protocol(&mut self, login: Login) {
        let (protocol, mechanism) = match login {
            Login::Mtls => ("SSL", None),
            Login::Scram => ("SASL_SSL", Some("SCRAM-SHA-512")),
            Login::OAuth => ("SASL_SSL", Some("OAUTHBEARER")),
        };
        self.properties.insert("security.protocol", protocol.to_owned());
        self.properties.extend(mechanism.map(|mechanism| ("sasl.mechanism", mechanism.to_owned())));
        if login == Login::Mtls {
            self.properties.insert("ssl.keystore.type", "PEM".to_owned());
        }
    }

    /// Uses Kafka's built-in OAuth support, which needs no further library. `client` is a noun.
    fn ask_for_tokens(&mut self, provider: &IdentityProvider, client: &str) {
        const TOKEN_ENDPOINT: &str = "sasl.oauthbearer.token.endpoint.url";
        const MODULE: &str = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule";
        const HANDLER: &str = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler";
        self.properties.insert("sasl.login.callback.handler.class", HANDLER.to_owned());
        let login = format!(
            r#"`{MODULE} required clientId="ID" clientSecret="SECRET";`, with the id and secret of {client} at the identity provider"#
        );
        self.to_add.insert("sasl.jaas.config", login);
        let allowed = match &provider.token_endpoint {
            Some(endpoint) => {
                self.properties.insert(TOKEN_ENDPOINT, endpoint.clone());
                in_a_command(endpoint)
            }
            None => {
                self.to_add.insert(TOKEN_ENDPOINT, UNKNOWN_ENDPOINT.to_owned());
                "URL"
            }
        };
        self.notes.push(allowed_urls(allowed));
        if provider.ca_cert.is_some() {
            self.notes.push(
                "The identity provider's certificate is not signed by a public authority: set a file with its \
                 `ca_cert` in sasl.jaas.config too: ssl.truststore.type=\"PEM\" ssl.truststore.location=\"FILE\""
                    .to_owned(),
            );
        }
    }
}

/// Free text from the spec could inject commands when pasted into a shell.
fn in_a_command(endpoint: &str) -> &str {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b":/._~%-".contains(&b);
    if endpoint.bytes().all(is_plain) { endpoint } else { "URL" }
}

fn allowed_urls(allowed: &str) -> String {
    format!(
        "Kafka's client requests tokens only from addresses that the JVM allows: \
         -Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={allowed}"
    )
}

const UNKNOWN_ENDPOINT: &str =
    "the identity provider's address for tokens, its `token_endpoint`, which streamfleet doesn't know";

fn key_of(cluster: &ResolvedCluster, key: &str, secret: &str) -> String {
    format!("the value of `{key}` in the Secret {}/{secret}", cluster.namespace)
}

fn unknown_issuer(domain: &Domain) -> String {
    format!(
        "The certificate of {domain} doesn't contain the authority that signed it. A public one is trusted by the \
         client's system; otherwise add it to the end of the base domain's `tls_cert`, and it appears here."
    )
}

#[cfg(test)]
mod tests;
