//! Topics and users in a tree of files: what is refused, what a plan says, and that no mistake deletes a topic.

use std::fs;

use crate::mistaken_deletions::{Mistake, deletes_nothing, paths, rename};
use crate::support::{Tree, approval_id, copy};

const TOPIC: &str = "acme/topics/orders/payments.events.v1.yaml";
const STATE: &str = "acme/topics/orders/Payments_State.yaml";
const USER: &str = "acme/users/orders/billing.yaml";
const CLUSTER: &str = "acme/clusters/orders.yaml";

/// The example without any protection.
fn applied() -> Tree {
    let tree = Tree::example("topics");
    for path in [TOPIC, STATE, CLUSTER, "acme/fleets/main.yaml"] {
        tree.write(path, tree.read(path) + "deletion_protection: false\n");
    }
    tree.run("apply tree --yes").expect(0);
    tree
}

fn is_there(tree: &Tree, name: &str) -> bool {
    paths(tree).iter().any(|path| path.to_lowercase().contains("kafkatopic") && path.contains(name))
}

#[test]
fn no_mistake_deletes_a_topic_or_a_user() {
    let mistakes: [(Mistake, &str); 12] = [
        (|tree| tree.write(TOPIC, ""), "payments.events.v1.yaml was emptied"),
        (|tree| tree.write(TOPIC, "kind: ["), "can't be read"),
        (|tree| tree.edit(TOPIC, "partitions: 12", "partitons: 12"), "unknown key `partitons`"),
        (|tree| tree.edit(TOPIC, "name: payments", "name: payment"), "can't be renamed"),
        (|tree| tree.edit(TOPIC, "cluster: orders", "cluster: order"), "can't be renamed"),
        (|tree| tree.edit(USER, "identifier: billing", "identifier: bill"), "can't be renamed"),
        (|tree| rename(tree, TOPIC, "acme/topics/orders/payments.yaml.bak"), "is not read, may contain it"),
        (
            |tree| fs::remove_dir_all(tree.path().join("acme/topics")).unwrap(),
            "the whole folder acme/topics/orders disappeared",
        ),
        (
            |tree| fs::remove_dir_all(tree.path().join("acme/users")).unwrap(),
            "the whole folder acme/users/orders disappeared",
        ),
        (
            |tree| fs::remove_dir_all(tree.path().join("acme")).unwrap(),
            "all resources of organization acme disappeared at once",
        ),
        (|tree| tree.remove("organizations.yaml"), "organization"),
        (|tree| tree.remove(CLUSTER), "orders"),
    ];
    for (mistake, says) in mistakes {
        let tree = applied();
        mistake(&tree);
        deletes_nothing(&tree, &[says]);
    }
}

#[test]
fn a_cluster_that_comes_back_has_its_topics() {
    let tree = applied();
    let (before, cluster) = (paths(&tree), tree.read(CLUSTER));
    tree.remove(CLUSTER);
    deletes_nothing(&tree, &["cluster orders"]);
    tree.write(CLUSTER, cluster);
    tree.run("apply tree --yes").expect(0);
    assert_eq!(paths(&tree), before);
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
}

#[test]
fn another_tree_deletes_no_topic_of_the_first() {
    let tree = applied();
    let other = tree.beside("other");
    copy(&tree.path(), &other);
    fs::remove_dir_all(other.join("acme/topics")).unwrap();
    let before = paths(&tree);
    let apply = "apply other --yes --state-dir tree/.streamfleet/state --output-dir tree/.streamfleet/output";
    for _ in 0..3 {
        tree.run(apply).expect(3).says(&["the spec tree was"]);
        assert_eq!(paths(&tree), before);
    }
}

#[test]
fn a_topic_is_deleted_after_approval_alone() {
    let tree = applied();
    tree.remove(TOPIC);
    let plan = tree.run("plan tree").expect(3).says(&[
        "the topic is deleted with all its records",
        "limit of 0 topic deletions per fleet and hour",
    ]);
    tree.run("apply tree --yes").expect(3);
    assert!(is_there(&tree, "payments.events.v1"));
    tree.run(&format!("approve {} tree", approval_id(&plan.out))).expect(0);
    tree.run("apply tree --yes").expect(0);
    assert!(!is_there(&tree, "payments.events.v1"));
    assert!(is_there(&tree, "payments-state"));
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
}

#[test]
fn the_settings_may_allow_deletions_of_topics() {
    let tree = applied();
    fs::write(tree.beside("config.toml"), "[policy]\ntopic_deletions_per_hour = 1\n").unwrap();
    for path in [TOPIC, STATE] {
        tree.remove(path);
        // A folder that is gone as a whole would be a mistake.
        tree.write("acme/topics/orders/kept.yaml", KEPT);
        tree.run("apply tree --yes --config config.toml");
    }
    let left = [is_there(&tree, "payments.events.v1"), is_there(&tree, "payments-state")];
    assert_eq!(left.iter().filter(|left| **left).count(), 1, "{left:?}");
}

const KEPT: &str =
    "apiVersion: streamfleet/v1\nkind: Topic\norganization: acme\ncluster: orders\nname: kept\n";

#[test]
fn what_a_cluster_has_no_room_for_waits() {
    let tree = Tree::example("topics");
    tree.edit(TOPIC, "partitions: 12", "partitions: 1495");
    tree.run("plan tree").expect(3).says(&[
        "cluster acme/orders has partitions 1500",
        "to continue: give cluster acme/orders more `kafka_units`, or use fewer partitions",
    ]);
    tree.edit(TOPIC, "partitions: 1495", "partitions: 1494");
    tree.run("plan tree").expect(2);
}

#[test]
fn topics_and_users_are_listed_and_printed() {
    let tree = applied();
    let topics = tree.run("get topics tree").expect(0).out;
    assert_eq!(topics.lines().count(), 2, "{topics}");
    tree.run("get topic/acme/orders/payments.events.v1 tree --format json").expect(0).says(&[
        "\"partitions\": 12",
        "\"status\":",
        "\"on_delete\": \"Delete\"",
    ]);
    tree.run("get users tree").expect(0).says(&["acme/orders/auditor", "acme/orders/billing"]);
    tree.run("get topic/acme/orders/none tree").says(&["none"]);
}
