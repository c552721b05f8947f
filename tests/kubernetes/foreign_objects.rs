//! Whatever others write, replace or remove on a cluster, only objects created by us are deleted.

use serde_json::json;

use crate::support::control_plane::ControlPlane;

use super::{SANDBOX, on};

const PLAN: &str = "plan tree --config config.toml";
const APPLY: &str = "apply tree --yes --config config.toml";
/// The ConfigMap with the inventory of the cluster `sandbox`, by the digest of its namespace's name.
const INVENTORY: &str = "inventory-34";
const KAFKA: &str = "kafka sandbox --namespace=kafka-acme--sandbox";

/// A name in the inventory isn't enough for ownership: the object itself must have fields of ours.
#[test]
fn an_inventory_that_somebody_else_wrote_deletes_nothing() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    tree.run(APPLY).expect(0);
    plane.kubectl("create configmap victim --namespace=kube-system", "").expect(0);
    plane.kubectl("create namespace prod", "").expect(0);
    let map = format!("get configmap {INVENTORY} --namespace=streamfleet-system --output=json");
    let ours: serde_json::Value = serde_json::from_str(&plane.kubectl(&map, "").expect(0).out).unwrap();
    let text = ours["data"]["inventory.json"].as_str().unwrap();
    for (name, key, get) in [
        ("inventory-08", "v1|ConfigMap|kube-system|victim", "configmap victim --namespace=kube-system"),
        ("inventory-27", "v1|Namespace||prod", "namespace prod"),
        ("inventory-prod", "v1|Namespace||prod", "namespace prod"),
        ("intents-7", "v1|Namespace||prod", "namespace prod"),
    ] {
        let uid = plane.kubectl(&format!("get {get} --output=jsonpath={{.metadata.uid}}"), "").expect(0).out;
        let mut inventory: serde_json::Value = serde_json::from_str(text).unwrap();
        let digest =
            inventory["objects"].as_object().unwrap().values().next().unwrap()["written"]["applied"].clone();
        let written = json!({"uid": uid, "applied": digest, "fields": null});
        inventory["objects"] = json!({key: {"owner": "Cluster/acme/sandbox", "written": written, "intended": null, "deleting": true}});
        let labels =
            json!({"streamfleet.io/inventory": "true", "app.kubernetes.io/managed-by": "streamfleet"});
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "streamfleet-system", "labels": labels},
            "data": {"inventory.json": inventory.to_string()},
        });
        plane.kubectl("apply -f -", &map.to_string()).expect(0);
        tree.run(APPLY);
    }
    tree.remove(SANDBOX);
    tree.run(APPLY);
    plane.kubectl("get configmap victim --namespace=kube-system", "").expect(0);
    let phase = plane.kubectl("get namespace prod --output=jsonpath={.status.phase}", "").expect(0);
    assert_eq!(phase.out, "Active");
}

#[test]
fn what_others_put_into_a_namespace_or_in_the_place_of_a_cluster_stays() {
    let mut plane = ControlPlane::lease();
    plane.run_controllers();
    let tree = on(&plane);
    tree.run(APPLY).expect(0);
    let spec = tree.read(SANDBOX);

    // A foreign object keeps the namespace.
    plane.kubectl("create configmap mine --namespace=kafka-acme--sandbox", "").expect(0);
    tree.remove(SANDBOX);
    tree.run(PLAN).expect(2).says(&[
        "its namespace kafka-acme--sandbox is kept: it contains ConfigMap kafka-acme--sandbox/mine, which isn't managed by \
         streamfleet",
    ]);
    tree.run(APPLY).expect(0);
    plane.kubectl("get configmap mine --namespace=kafka-acme--sandbox", "").expect(0);
    plane.kubectl(&format!("get {KAFKA}"), "").expect(1).says(&["not found"]);

    // A foreign Kafka in the place of ours keeps everything, above all the disks.
    tree.write(SANDBOX, spec);
    tree.run(APPLY).expect(0);
    let kafka = plane.kubectl(&format!("get {KAFKA} --output=json"), "").expect(0).out;
    let mut kafka: serde_json::Value = serde_json::from_str(&kafka).unwrap();
    kafka["metadata"] = json!({"name": "sandbox", "namespace": "kafka-acme--sandbox"});
    plane.kubectl(&format!("delete {KAFKA}"), "").expect(0);
    plane.kubectl("create -f -", &kafka.to_string()).expect(0);
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\n\
         metadata: {name: data-0-sandbox-dual-0, namespace: kafka-acme--sandbox, labels: {strimzi.io/cluster: sandbox}}\n\
         spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
    plane.kubectl("apply -f -", claim).expect(0);
    tree.remove(SANDBOX);
    tree.run(PLAN)
        .expect(3)
        .says(&["Kafka kafka-acme--sandbox/sandbox exists and isn't managed by streamfleet"]);
    tree.run(APPLY).expect(3);
    plane.kubectl(&format!("get {KAFKA}"), "").expect(0);
    let claim = "get pvc data-0-sandbox-dual-0 --namespace=kafka-acme--sandbox --output=jsonpath={.metadata.deletionTimestamp}";
    assert_eq!(plane.kubectl(claim, "").expect(0).out, "");
}

/// Objects missing from the cluster's memory don't count as deleted.
#[test]
fn a_cluster_whose_inventory_is_lost_is_not_forgotten() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    tree.run(APPLY).expect(0);
    plane.kubectl(&format!("delete configmap {INVENTORY} --namespace=streamfleet-system"), "").expect(0);
    tree.run("status tree --config config.toml").says(&["Degraded"]);
    tree.remove(SANDBOX);
    tree.run(PLAN).expect(3).says(&["cluster sandbox", "waiting"]);
    tree.run(APPLY).expect(3);
    std::fs::remove_dir_all(tree.path().join(".streamfleet/state/cache-v1")).unwrap();
    tree.run(APPLY).expect(3);
    plane.kubectl(&format!("get {KAFKA}"), "").expect(0);
    tree.run("status tree --config config.toml").says(&["sandbox"]);
}
