//! The listeners: where clients connect, and how they log in.

use serde_json::{Map, Value, json};

use super::endpoints::{self, ADMIN, BROKERS, EXTERNAL, INTERNAL};
use super::{KafkaContext, oauth, tls_secret};
use crate::catalog::{ResolvedCluster, ResolvedDomain};
use crate::component::Login;
use crate::component::{gateway, load_balancers};
use crate::spec::Exposure;

pub const INTERNAL_PORT: u16 = 9093;
pub const EXTERNAL_PORT: u16 = 9094;
pub const ADMIN_PORT: u16 = 9095;
/// The most administrator connections per broker: enough for people and tools, too few to be misused by
/// clients.
const ADMIN_CONNECTIONS: u32 = 50;
pub fn listeners(context: &KafkaContext) -> Vec<Value> {
    let internal = context.access.is_internal().then(|| internal(context));
    let external = load_balancers::external_domain(context.cluster).map(|domain| external(context, domain));
    internal.into_iter().chain(external).chain([admin(context)]).collect()
}

/// Without the administrator's port.
pub fn client_ports(cluster: &ResolvedCluster) -> Vec<u16> {
    let internal = cluster.spec.advanced_config.cluster_access.is_internal().then_some(INTERNAL_PORT);
    let external = load_balancers::external_domain(cluster).map(|_| EXTERNAL_PORT);
    internal.into_iter().chain(external).collect()
}

fn internal(context: &KafkaContext) -> Value {
    listener(INTERNAL, INTERNAL_PORT, "internal", client_authentication(context), limits(context))
}

fn external(context: &KafkaContext, domain: &ResolvedDomain) -> Value {
    let mut configuration = limits(context);
    configuration.insert(
        "brokerCertChainAndKey".to_owned(),
        json!({
            "secretName": tls_secret::name(context.cluster),
            "certificate": tls_secret::CERTIFICATE,
            "key": tls_secret::KEY,
        }),
    );
    let (kind, mut exposed) = match context.cluster.fleet_spec.advanced_config.exposure {
        Exposure::LoadBalancer => ("loadbalancer", load_balancers(context, domain)),
        Exposure::TlsRoute => ("tlsroute", tls_routes(context, domain)),
    };
    configuration.append(&mut exposed);
    listener(EXTERNAL, EXTERNAL_PORT, kind, client_authentication(context), configuration)
}

/// A load balancer for the bootstrap address and one for each broker.
fn load_balancers(context: &KafkaContext, domain: &ResolvedDomain) -> Map<String, Value> {
    let brokers = broker_hosts(context, domain);
    let annotations = |host: &str| load_balancers::annotations(domain, host, context.private);
    let bootstrap = domain.bootstrap_host(&context.cluster.spec.identifier);
    object([
        (
            "bootstrap",
            json!({
                "alternativeNames": [bootstrap],
                "annotations": annotations(&bootstrap),
            }),
        ),
        ("perBrokerAnnotationsTemplate", json!(annotations(&brokers))),
        ("advertisedHostTemplate", json!(brokers)),
    ])
}

/// A TLSRoute for the bootstrap address and one for each broker, all on the fleet's Gateway. Whether it is
/// private is a setting of the fleet, not of a cluster.
fn tls_routes(context: &KafkaContext, domain: &ResolvedDomain) -> Map<String, Value> {
    let bootstrap = domain.bootstrap_host(&context.cluster.spec.identifier);
    object([
        ("parentRefs", json!([gateway::parent()])),
        ("bootstrap", json!({"host": bootstrap, "annotations": load_balancers::route_annotations(domain)})),
        ("perBrokerAnnotationsTemplate", json!(load_balancers::route_annotations(domain))),
        ("hostTemplate", json!(broker_hosts(context, domain))),
    ])
}

fn broker_hosts(context: &KafkaContext, domain: &ResolvedDomain) -> String {
    BROKERS.template(&context.cluster.spec.identifier, &domain.domain)
}

/// The administrator has its own listener, however clients log in: neither an identity provider that is down
/// nor clients that use up all connections may lock out the administrator. It accepts only pods in the
/// cluster's namespace.
fn admin(context: &KafkaContext) -> Value {
    let limits = object([("maxConnections", json!(ADMIN_CONNECTIONS))]);
    let mut listener = listener(ADMIN, ADMIN_PORT, "internal", scram(), limits);
    listener["networkPolicyPeers"] = json!([{"namespaceSelector": {"matchLabels": {
        "kubernetes.io/metadata.name": context.cluster.namespace,
    }}}]);
    listener
}

fn limits(context: &KafkaContext) -> Map<String, Value> {
    object([
        ("maxConnections", json!(context.sizing.connections)),
        ("maxConnectionCreationRate", json!(context.sizing.connection_rate)),
    ])
}

fn client_authentication(context: &KafkaContext) -> Value {
    match endpoints::login(context.cluster) {
        Login::OAuth => oauth::authentication(context).unwrap_or_else(scram),
        Login::Scram => scram(),
        Login::Mtls => json!({"type": "tls"}),
    }
}

fn scram() -> Value {
    json!({"type": "scram-sha-512"})
}

fn listener(
    name: &str,
    port: u16,
    kind: &str,
    authentication: Value,
    configuration: Map<String, Value>,
) -> Value {
    json!({
        "name": name,
        "port": port,
        "type": kind,
        "tls": true,
        "authentication": authentication,
        "configuration": configuration,
    })
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()
}
