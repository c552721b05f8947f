//! The inventory on the cluster is always respected, and never forgotten while it exists.

use crate::support::control_plane::ControlPlane;
use crate::support::proxy::{Fault, Proxy, Rule};

use super::{FLEET, SANDBOX, on, reached_with};

const ORDERS: &str = "acme/clusters/orders.yaml";
const APPLY: &str = "apply tree --yes --config config.toml";

/// Ids are assigned before the fleet is observed, and could differ without the cluster's memory.
#[test]
fn a_fleet_that_could_not_tell_what_it_remembers_is_out_of_reach_though_it_answers_a_moment_later() {
    let plane = ControlPlane::lease();
    let proxy = Proxy::before(&plane);
    let tree = reached_with(&proxy.kubeconfig());
    let refused = Fault::refusal(401, "Unauthorized", "");
    proxy.inject(Rule::always(refused).on("GET", "/namespaces/kube-system").times(1));
    tree.run(APPLY).expect(3).says(&[
        "byok, Unreachable",
        "cannot read the namespace kube-system: the server refused it with 401 Unauthorized",
    ]);
    plane.kubectl("get namespace kafka-acme--orders", "").expect(1).says(&["not found"]);
    tree.run(APPLY).expect(0);
    plane.kubectl("get namespace kafka-acme--orders", "").expect(0);
}

#[test]
fn a_fleet_is_not_forgotten_while_its_cluster_can_be_reached_and_remembers_it() {
    let mut plane = ControlPlane::lease();
    let tree = on(&plane);
    tree.run(APPLY).expect(0);
    let forget = "forget acme/eu tree --yes --config config.toml";
    let refused = [
        "cannot forget fleet acme/eu: its target still exists, and `ConfigMap streamfleet-system/inventory` lists \
         streamfleet's objects",
        "to delete its clusters, remove their specs and apply; to leave the objects there, delete the namespace of \
            that ConfigMap on the Kubernetes cluster, then forget the fleet",
    ];
    tree.run(forget).expect(1).says(&refused);
    tree.run("plan tree --config config.toml").expect(0).says(&["Nothing to do"]);

    // The stored kubeconfig is used as well; without an answer the cluster may be gone.
    [FLEET, SANDBOX, ORDERS].iter().for_each(|file| tree.remove(file));
    tree.run(forget).expect(1).says(&refused);
    plane.stop();
    tree.run(forget).expect(0).says(&["Forgot cluster acme/orders.", "Forgot fleet acme/eu."]);
}
