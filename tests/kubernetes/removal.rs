//! Removed fleets and clusters, with all their objects.

use std::fs;

use crate::support::control_plane::ControlPlane;
use crate::support::{approval_id, files};

use super::{FLEET, SANDBOX, on};

const PLAN: &str = "plan tree --config config.toml";
const APPLY: &str = "apply tree --yes --config config.toml";

#[test]
fn a_fleet_whose_spec_is_gone_is_emptied_with_the_kubeconfig_that_is_kept() {
    let mut plane = ControlPlane::lease();
    plane.run_controllers();
    let tree = on(&plane);
    tree.remove("acme/clusters/orders.yaml");
    let fleet = tree.read(FLEET).replace("infra_type:", "deletion_protection: false\ninfra_type:");
    tree.write(FLEET, fleet);
    tree.run(APPLY).expect(0);

    // The kubeconfig is stored, and nowhere in clear text.
    let state = tree.path().join(".streamfleet/state");
    let kubeconfig = plane.kubeconfig();
    let token = kubeconfig.split("\"token\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let holds = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(&token);
    assert!(holds(kubeconfig.as_bytes()) && token.len() > 8);
    assert!(state.join("kubeconfigs.json").exists());
    for (name, bytes) in files(&tree.path().join(".streamfleet")) {
        assert!(!holds(&bytes), "{name} holds the token");
    }

    // A run without work doesn't rewrite it, and a backup contains it.
    let before = fs::read(state.join("kubeconfigs.json")).unwrap();
    tree.run(APPLY).expect(0);
    assert_eq!(fs::read(state.join("kubeconfigs.json")).unwrap(), before);
    tree.run("backup saved.tar tree").expect(0);
    fs::remove_dir_all(&state).unwrap();
    tree.run("restore saved.tar tree").expect(0);
    assert_eq!(fs::read(state.join("kubeconfigs.json")).unwrap(), before);
    tree.run(APPLY).expect(0);

    // Removing cluster and fleet together needs approval: the cluster is deleted first, then the fleet, then
    // the kubeconfig.
    tree.remove(SANDBOX);
    tree.remove(FLEET);
    let approve = || {
        let plan = tree.run(PLAN).expect(3);
        tree.run(&format!("approve {} tree --config config.toml", approval_id(&plan.out))).expect(0);
        plan
    };
    approve().says(&["waiting: cluster acme/sandbox must be deleted first", "! cluster sandbox"]);
    tree.run(APPLY).expect(3).says(&["Applied 1 resource"]);
    plane.kubectl("get namespace kafka-acme--sandbox", "").expect(1).says(&["not found"]);
    assert!(state.join("kubeconfigs.json").exists());
    approve().says(&["! fleet eu"]);
    tree.run(APPLY).expect(0);
    let left = plane.kubectl("get configmaps --namespace=streamfleet-system --output=name", "").expect(0).out;
    assert!(!left.contains("inventory"), "{left}");
    assert!(!state.join("kubeconfigs.json").exists());
    tree.run(PLAN).expect(0);
}

/// What the operator leaves behind: disks of brokers removed earlier, and a binding.
pub const LEFT_BY_THE_OPERATOR: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-sandbox-dual-7, namespace: kafka-acme--sandbox, labels: {strimzi.io/cluster: sandbox}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: strimzi-kafka-acme--sandbox-sandbox-kafka-init, labels: {strimzi.io/cluster: sandbox}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: strimzi-kafka-broker}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: strimzi-kafka-acme--other-sandbox-kafka-init, labels: {strimzi.io/cluster: sandbox}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: strimzi-kafka-broker}
";

const FOREIGN_CLAIM: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: theirs, namespace: kafka-acme--sandbox}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";

const CLAIM: &str = "PersistentVolumeClaim kafka-acme--sandbox/data-sandbox-dual-7";
const BINDING: &str = "ClusterRoleBinding strimzi-kafka-acme--sandbox-sandbox-kafka-init";

#[test]
fn what_the_operator_leaves_behind_goes_with_the_cluster_and_its_data_only_when_it_may() {
    let mut plane = ControlPlane::lease();
    plane.run_controllers();
    let tree = on(&plane);
    tree.run(APPLY).expect(0);
    plane.kubectl("apply -f -", LEFT_BY_THE_OPERATOR).expect(0);
    tree.run(PLAN).expect(0);

    // Retained data stays, in its namespace; the binding is deleted.
    tree.edit(SANDBOX, "on_delete: Delete", "on_delete: Retain");
    tree.run(APPLY).expect(0);
    let spec = tree.read(SANDBOX);
    tree.remove(SANDBOX);
    tree.run(PLAN)
        .expect(2)
        .says(&["its namespace and disks are kept: kafka-acme--sandbox", &format!("- {BINDING}")])
        .says_nothing_of(&[&format!("- {CLAIM}"), "- Namespace"]);

    // Data that may be deleted is deleted, but no one else's.
    tree.write(SANDBOX, spec.replace("on_delete: Retain", "on_delete: Delete"));
    tree.run(APPLY).expect(0);
    tree.remove(SANDBOX);
    tree.run(PLAN).expect(2).says(&[
        &format!("- {CLAIM}"),
        &format!("- {BINDING}"),
        "- Namespace kafka-acme--sandbox",
    ]);
    plane.kubectl("apply -f -", FOREIGN_CLAIM).expect(0);
    let stays = "its namespace kafka-acme--sandbox is kept: it contains PersistentVolumeClaim kafka-acme--sandbox/theirs, \
                 which isn't managed by streamfleet";
    tree.run(PLAN).expect(2).says(&[&format!("- {CLAIM}"), stays]).says_nothing_of(&["- Namespace"]);
    tree.run(APPLY).expect(0);
    let get = |what: &str| plane.kubectl(&format!("get {what}"), "");
    get("pvc theirs --namespace=kafka-acme--sandbox").expect(0);
    get("pvc data-sandbox-dual-7 --namespace=kafka-acme--sandbox").expect(1).says(&["not found"]);
    get("clusterrolebinding strimzi-kafka-acme--sandbox-sandbox-kafka-init").expect(1).says(&["not found"]);
    get("clusterrolebinding strimzi-kafka-acme--other-sandbox-kafka-init").expect(0);
    // Objects left on purpose aren't reported.
    tree.run(PLAN).expect(0).says_nothing_of(&["sandbox"]);
}

#[test]
fn a_token_that_no_longer_holds_is_said_to_be_one() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    let token = tree.read(FLEET).split("\"token\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    tree.edit(FLEET, &token, "expired");
    for verb in [PLAN, APPLY] {
        tree.run(verb).expect(3).says(&[
            "byok, Unreachable",
            "cannot read the namespace kube-system: the server refused it with 401 Unauthorized",
            "put a valid token or certificate in the fleet's `kubeconfig`",
        ]);
    }
}
