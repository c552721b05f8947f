//! The Gateway of a fleet with `exposure: tlsroute`. Clients name the host in clear text (SNI), and the
//! Gateway forwards the connection to that broker without terminating TLS, so the certificates stay on the
//! brokers.

pub mod health;
pub mod kinds;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::catalog::ResolvedFleet;
use crate::component::labels::{CLUSTER, FLEET, ORGANIZATION};
use crate::component::{Component, Manifest, Stage, fleet_manifest, hosts};
use crate::names::Json;
use crate::spec::Exposure;
use kinds::{API_VERSION, GROUP};

pub static COMPONENT: Component = Component {
    kinds: &kinds::KINDS,
    is_installed: |extras| extras.gateway,
    in_fleet: |fleet, _| gateway(fleet),
    ..Component::NONE
};

/// The port for clients. Strimzi advertises this port for every broker behind a TLSRoute.
pub const PORT: u16 = 443;

/// The namespace of the Gateway, and of what its controller creates for it.
pub const NAMESPACE: &str = "streamfleet-gateway";
const NAME: &str = "kafka";

pub fn parent() -> Value {
    json!({"group": GROUP, "kind": "Gateway", "namespace": NAMESPACE, "name": NAME, "sectionName": NAME})
}

/// Whether a Kafka object is exposed through a Gateway; false if it can't be parsed.
pub fn is_routed(kafka: &Json) -> bool {
    #[derive(Deserialize)]
    struct KafkaListener {
        spec: KafkaSpec,
    }
    #[derive(Deserialize)]
    struct KafkaSpec {
        kafka: Listeners,
    }
    #[derive(Deserialize)]
    struct Listeners {
        #[serde(default)]
        listeners: Vec<Listener>,
    }
    #[derive(Deserialize)]
    struct Listener {
        r#type: String,
    }
    let listeners = kafka.read::<KafkaListener>().map(|kafka| kafka.spec.kafka.listeners).unwrap_or_default();
    listeners.iter().any(|listener| listener.r#type == "tlsroute")
}

/// Whether a Gateway object asks for a private load balancer.
pub fn is_private(gateway: &Json) -> bool {
    gateway.value().pointer("/spec/infrastructure/annotations").is_some_and(hosts::is_private)
}

/// The Gateway of a fleet and its namespace; empty without `exposure: tlsroute`.
///
/// The Gateway belongs to the fleet and depends on no cluster. A cluster whose document was removed runs
/// until its deletion is approved, and until then must not lose its Gateway or find it turned public.
fn gateway(fleet: &ResolvedFleet) -> Vec<Manifest> {
    let config = &fleet.spec.advanced_config;
    let (Exposure::TlsRoute, Some(gateway), Some(domain)) = (config.exposure, &config.gateway, &fleet.domain)
    else {
        return Vec::new();
    };
    let spec = json!({
        "gatewayClassName": gateway.class,
        "listeners": [{
            "name": NAME,
            "port": PORT,
            "protocol": "TLS",
            "hostname": format!("*.{}", domain.name),
            "tls": {"mode": "Passthrough"},
            "allowedRoutes": {
                "kinds": [{"group": GROUP, "kind": "TLSRoute"}],
                "namespaces": {"from": "Selector", "selector": cluster_namespaces(fleet)},
            },
        }],
        // The controller of the GatewayClass copies them to the Service that it creates.
        "infrastructure": {"annotations": hosts::load_balancer(gateway.private)},
    });
    let gateway = json!({
        "apiVersion": API_VERSION,
        "kind": "Gateway",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": spec,
    });
    vec![
        fleet_manifest::namespace(fleet, NAMESPACE, "baseline"),
        fleet_manifest::object(fleet, Stage::Configuration, gateway),
    ]
}

/// Selects the namespaces of the fleet's clusters only: a TLSRoute from elsewhere could hijack a broker's
/// host.
fn cluster_namespaces(fleet: &ResolvedFleet) -> Value {
    json!({
        "matchLabels": {ORGANIZATION: fleet.key.organization, FLEET: fleet.key.fleet},
        "matchExpressions": [{"key": CLUSTER, "operator": "Exists"}],
    })
}
