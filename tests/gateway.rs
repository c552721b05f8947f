//! A fleet whose clusters are reached through one Gateway, on a real control plane with the real definitions
//! of the Gateway API.

use serde_json::Value;

use crate::kubernetes::reached_with;
use crate::rights::tenant;
use crate::support::Tree;
use crate::support::control_plane::{ControlPlane, Lease};

const FLEET: &str = "acme/fleets/eu.yaml";
const APPLY: &str = "apply tree --yes --config config.toml";
const PLAN: &str = "plan tree --config config.toml";
const ROUTED: &str = "  exposure: tlsroute\n  gateway: {class: envoy}\n";

const CLASS: &str = "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: envoy}\n\
                     spec: {controllerName: example.com/envoy}\n";

/// A control plane with controllers, the Gateway API and a GatewayClass.
pub fn with_gateways() -> Lease {
    let mut plane = ControlPlane::lease();
    plane.run_controllers();
    plane.serve_gateways();
    plane.kubectl("apply -f -", CLASS).expect(0);
    plane
}

/// Has clients reach the clusters of the fleet through a Gateway of that class.
pub fn route(tree: &Tree) {
    let advanced = "advanced_config:\n";
    tree.edit(FLEET, advanced, &format!("{advanced}{ROUTED}"));
}

fn gateway(plane: &ControlPlane) -> Option<Value> {
    let run = plane.kubectl("get gateway kafka --namespace=streamfleet-gateway --output=json", "");
    (run.code == 0).then(|| serde_json::from_str(&run.out).unwrap())
}

#[test]
fn a_gateway_comes_before_its_clusters_and_goes_after_the_last_of_them_left_it() {
    let plane = &mut ControlPlane::lease();
    plane.run_controllers();
    let tree = reached_with(&tenant(plane, "--gateway"));
    route(&tree);

    // Without the Gateway API, nothing is created in part.
    tree.run(APPLY).expect(3).says(&["! GatewayMissing: the cluster doesn't have the Gateway API"]);
    plane.kubectl("get namespace streamfleet-gateway kafka-acme--orders", "").expect(1);
    plane.serve_gateways();
    tree.run(PLAN)
        .expect(3)
        .says(&["! GatewayMissing: there is no GatewayClass envoy; install an implementation"]);
    plane.kubectl("apply -f -", CLASS).expect(0);
    tree.run(APPLY)
        .expect(0)
        .says(&["+ Gateway streamfleet-gateway/kafka"])
        .says_nothing_of(&["Permissions"]);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    let made = gateway(plane).unwrap();
    assert_eq!(made["spec"]["listeners"][0]["hostname"], "*.kafka.acme.example.com");
    tree.run("client-properties orders tree --config config.toml")
        .expect(0)
        .says(&["bootstrap.servers=orders.kafka.acme.example.com:443"]);

    // Manual changes are reverted.
    let patch = r#"patch gateway kafka --namespace=streamfleet-gateway --type=json --patch=[{"op":"replace","path":"/spec/gatewayClassName","value":"other"}]"#;
    plane.kubectl(patch, "").expect(0);
    tree.run(APPLY).expect(0).says(&["~ Gateway streamfleet-gateway/kafka"]);
    assert_eq!(gateway(plane).unwrap()["spec"]["gatewayClassName"], "envoy");

    // The Gateway stays until the last cluster has left it.
    tree.edit(FLEET, ROUTED, "");
    tree.run(APPLY).expect(0).says(&[
        "Gateway streamfleet-gateway/kafka is kept while clients reach cluster acme/orders through it",
        "clients may need other settings to connect",
    ]);
    assert!(gateway(plane).is_some());
    tree.run(APPLY).expect(0).says(&[
        "- Gateway streamfleet-gateway/kafka",
        "is deleted; no cluster can be reached through it any more",
    ]);
    assert_eq!(gateway(plane), None);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
}
