//! Removed objects are restored as they were applied, whatever their resource waits for.

use crate::support::Tree;

const KAFKA: &str = ".streamfleet/output/acme/eu/kafka-acme--orders/kafka-orders.yaml";
const ORDERS: &str = "acme/clusters/orders.yaml";

fn applied() -> Tree {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    tree
}

fn lose(tree: &Tree) -> String {
    let kafka = tree.read(KAFKA);
    tree.remove(KAFKA);
    kafka
}

#[test]
fn a_manifest_is_put_back_while_a_change_of_its_cluster_waits_for_approval() {
    let tree = applied();
    let spec = tree.read(ORDERS);
    tree.write(ORDERS, spec.clone() + "  config:\n    log.retention.ms: 3600000\n");
    let kafka = lose(&tree);
    let plan = tree.run("plan tree").expect(3).out;
    assert!(plan.contains("restores what was applied last, while the other change waits"), "{plan}");
    assert!(plan.contains("1 to change, 0 to create, 0 to delete, 1 waiting."), "{plan}");
    tree.run("apply tree --yes").expect(3);
    assert_eq!(tree.read(KAFKA), kafka, "as it was applied, to the byte");
    tree.run("plan tree").expect(3).says(&["on hold for approval", "log.retention.ms"]);
    // No part of the edit was recorded as applied.
    tree.write(ORDERS, spec);
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
}

#[test]
fn a_manifest_of_a_cluster_whose_deletion_waits_is_put_back_and_the_cluster_stays() {
    let tree = applied();
    let spec = tree.read(ORDERS);
    tree.remove(ORDERS);
    let kafka = lose(&tree);
    tree.run("apply tree --yes").expect(3).says(&["deletion protection is on"]);
    assert_eq!(tree.read(KAFKA), kafka);
    tree.run("plan tree")
        .expect(3)
        .says(&["deletion protection is on", "0 to change, 0 to create, 0 to delete, 1 waiting."]);
    tree.write(ORDERS, spec);
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
}

#[test]
fn a_manifest_is_put_back_while_the_spec_of_its_cluster_has_mistakes() {
    let tree = applied();
    tree.edit(ORDERS, "kafka_units", "kafka_unitz");
    let kafka = lose(&tree);
    tree.run("apply tree --yes").expect(1);
    assert_eq!(tree.read(KAFKA), kafka);
}
