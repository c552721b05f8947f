//! A Kafka object deleted by hand while its node pools and disks exist.

use super::{QUOTA, SANDBOX, on};
use crate::support::control_plane::ControlPlane;

const PLAN: &str = "plan tree --config config.toml";
const APPLY: &str = "apply tree --yes --config config.toml";
const KAFKA: &str = "kafka sandbox --namespace=kafka-acme--sandbox";

#[test]
fn a_kafka_that_is_gone_is_put_back_at_once_where_its_pools_have_its_id() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    tree.run(APPLY).expect(0);
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\n\
         metadata: {name: data-0-sandbox-dual-0, namespace: kafka-acme--sandbox, labels: {strimzi.io/cluster: sandbox}}\n\
         spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
    plane.kubectl("apply -f -", claim).expect(0);
    plane.kubectl(&format!("delete {KAFKA}"), "").expect(0);
    // The disks may be an earlier cluster's.
    tree.run(PLAN).expect(3).says(&[
        "on hold for approval: it would be created over the disks of an earlier cluster with this name",
    ]);

    let pool =
        "patch kafkanodepool dual --namespace=kafka-acme--sandbox --subresource=status --type=merge --patch";
    plane
        .kubectl(&format!("{pool} {{\"status\":{{\"clusterId\":\"Dlh03qARSBOMFVj_zx0Olw\"}}}}"), "")
        .expect(0);
    tree.run(PLAN)
        .expect(2)
        .says(&["the cluster keeps its id and its data. Its certificate authorities were deleted with its Kafka object, \
                 and the operator creates new ones. The operator can't talk to the running brokers until their pods are \
                 recreated: delete them one by one, each when the one before is ready again (kubectl get pods -n"]);
    tree.run(APPLY).expect(0);
    plane.kubectl(&format!("get {KAFKA}"), "").expect(0);
}

#[test]
fn what_is_deleted_by_hand_is_put_back_while_a_change_waits_for_approval() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    tree.run(APPLY).expect(0);
    tree.write(SANDBOX, tree.read(SANDBOX) + "  config: {log.retention.ms: 3600000}\n");
    let user = "kafkauser sandbox-admin --namespace=kafka-acme--sandbox";
    for object in [QUOTA, user] {
        plane.kubectl(&format!("delete {object}"), "").expect(0);
    }
    tree.run(PLAN)
        .expect(3)
        .says(&["on hold for approval", "restores what was applied last, while the other change waits"]);
    tree.run(APPLY).expect(3);
    for object in [QUOTA, user] {
        plane.kubectl(&format!("get {object}"), "").expect(0);
    }
    tree.run(PLAN).expect(3).says(&["on hold for approval"]).says_nothing_of(&["puts back"]);
}
