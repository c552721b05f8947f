//! The Gateway of a fleet with `exposure: tlsroute`. Clients name the host in clear text (SNI), and the
//! Gateway forwards the connection to that broker without terminating TLS, so the certificates stay on the
//! brokers.

pub mod health;
pub mod kinds;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::catalog::ResolvedFleet;
use crate::component::Verdict::InPlace;
use crate::component::consequence::*;
use crate::component::labels::{CLUSTER, FLEET, ORGANIZATION};
use crate::component::{Component, Manifest, ObjectFacts, ObjectRole, fleet_manifest, load_balancers};
use crate::names::{Json, ObjectKey};
use crate::spec::Exposure;
use kinds::{API_VERSION, GROUP};

pub static COMPONENT: Component = Component {
    kinds: &kinds::KINDS,
    is_installed: |extras| extras.gateway,
    in_fleet: |scope| gateway(scope.fleet),
    observe: health::observe,
    objects: &[ObjectFacts {
        kind: "Gateway",
        role: ObjectRole::Gateway,
        hosts,
        is_private,
        ..ObjectFacts::NONE
    }],
    consequences: Consequences { rows: ROWS, ..Consequences::NONE },
    ..Component::NONE
};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("Gateway", "/spec/gatewayClassName", CHANGES, InPlace, "{object} changes from class {before} to {after}: \
        clients outside of Kubernetes are cut off from every cluster of the fleet until it has a new address and \
        their host names lead to it"),
    row("Gateway", "/spec/listeners/*/allowedRoutes/**", CHANGES, InPlace, "{object} takes the routes of other namespaces of \
        the fleet; clients notice nothing"),
    row("Gateway", "/spec/**", CHANGES, InPlace, "{object} changes, through which clients outside of Kubernetes \
        reach every cluster of the fleet; they may have to reconnect"),
    row("Gateway", "", DELETED, InPlace, "{object} is deleted; no cluster can be reached through it any more"),
];

/// The port for clients. Strimzi advertises this port for every broker behind a TLSRoute.
pub const PORT: u16 = 443;

/// The namespace of the Gateway, and of what its controller creates for it.
pub const NAMESPACE: &str = "streamfleet-gateway";
const NAME: &str = "kafka";

pub fn parent() -> Value {
    json!({"group": GROUP, "kind": "Gateway", "namespace": NAMESPACE, "name": NAME, "sectionName": NAME})
}

/// The Gateway object of a fleet.
pub fn key() -> ObjectKey {
    ObjectKey {
        namespace: Some(NAMESPACE.to_owned()),
        kind: "Gateway".to_owned(),
        name: NAME.to_owned(),
        api_version: API_VERSION.to_owned(),
    }
}

/// Whether a Gateway object asks for a private load balancer.
fn is_private(gateway: &Json) -> bool {
    gateway
        .at("/spec/infrastructure/annotations")
        .is_some_and(|annotations| load_balancers::is_private(&annotations))
}

/// The domain under which it is reached, by listener.
fn hosts(gateway: &Json) -> BTreeMap<String, String> {
    let gateway = gateway.value();
    let listener = gateway.pointer("/spec/listeners/0");
    let text = |field: &str| Some(listener?.get(field)?.as_str()?.to_owned());
    text("hostname").map(|host| (NAME.to_owned(), host)).into_iter().collect()
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
                "namespaces": {"from": "Selector", "selector": routed_namespaces(fleet)},
            },
        }],
        // The controller of the GatewayClass copies them to the Service that it creates.
        "infrastructure": {"annotations": load_balancers::load_balancer(gateway.private)},
    });
    let gateway = json!({
        "apiVersion": API_VERSION,
        "kind": "Gateway",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": spec,
    });
    vec![fleet_manifest::namespace(fleet, NAMESPACE, "baseline"), fleet_manifest::object(fleet, gateway)]
}

/// Selects namespaces of the fleet only: a TLSRoute from elsewhere could hijack a broker's host. Beside those of clusters,
/// only that of the fleet's own Prometheus has routes.
fn routed_namespaces(fleet: &ResolvedFleet) -> Value {
    let mut selector = json!({"matchLabels": {ORGANIZATION: fleet.key.organization, FLEET: fleet.key.fleet}});
    if fleet.spec.advanced_config.own_prometheus().is_none() {
        selector["matchExpressions"] = json!([{"key": CLUSTER, "operator": "Exists"}]);
    }
    selector
}
