//! Our identity towards the server, and reads of many objects.

use crate::support::control_plane::ControlPlane;

use super::{FLEET, SANDBOX, on};

const PLAN: &str = "plan tree --config config.toml";
const APPLY: &str = "apply tree --yes --config config.toml";

/// From sixteen objects of a kind on they are listed; objects that lost our label are found all the same.
#[test]
fn a_client_certificate_does_as_well_as_a_token_and_many_objects_are_seen_as_they_are() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    tree.edit(FLEET, &plane.kubeconfig(), &plane.kubeconfig_with_certificate());
    tree.edit(FLEET, "max_tenants: 5", "max_tenants: 40");
    tree.edit(FLEET, "max_kafka_units: 10", "max_kafka_units: 40");
    tree.edit("organizations.yaml", "clusters: 10", "clusters: 40");
    tree.edit("organizations.yaml", "kafka_units: 20", "kafka_units: 40");
    for number in 0..16 {
        let text = tree.read(SANDBOX).replace("identifier: sandbox", &format!("identifier: many-{number}"));
        tree.write(&format!("acme/clusters/many-{number}.yaml"), text);
    }
    tree.run(APPLY).expect(0);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);

    let quota = "resourcequota many-7 --namespace=kafka-acme--many-7";
    plane.kubectl(&format!("label {quota} app.kubernetes.io/managed-by-"), "").expect(0);
    let changed = ["1 to change, 0 to create", "~ ResourceQuota kafka-acme--many-7/many-7"];
    tree.run(PLAN).expect(2).says(&changed).says(&["+     app.kubernetes.io/managed-by: streamfleet"]);
    plane.kubectl(&format!("delete {quota}"), "").expect(0);
    tree.run(PLAN).expect(2).says(&["+ ResourceQuota kafka-acme--many-7/many-7"]);
    tree.run(APPLY).expect(0);
    tree.run(PLAN).expect(0);
}
