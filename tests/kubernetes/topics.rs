//! Topics and users on a real API server, with Strimzi's definitions.

use serde_json::{Value, json};

use crate::support::Tree;
use crate::support::approval_id;
use crate::support::control_plane::ControlPlane;

use super::{SANDBOX, on};

const PLAN: &str = "plan tree --config config.toml";
const APPLY: &str = "apply tree --yes --config config.toml";
const TOPIC: &str = "acme/topics/sandbox/payments.yaml";
const USER: &str = "acme/users/sandbox/billing.yaml";
const NAMESPACE: &str = "--namespace=kafka-acme--sandbox";

fn described(plane: &ControlPlane) -> Tree {
    let tree = on(plane);
    tree.write(
        TOPIC,
        "apiVersion: streamfleet/v1\nkind: Topic\norganization: acme\ncluster: sandbox\nname: Payments\n\
         partitions: 3\nconfig: {retention.ms: 604800000}\ndeletion_protection: false\n",
    );
    tree.write(
        USER,
        "apiVersion: streamfleet/v1\nkind: User\norganization: acme\ncluster: sandbox\nidentifier: billing\n\
         produce: [Payments]\nconsume: [{topic: \"Pay*\", group: billing}]\n\
         rules: [{resource: cluster, operations: [Describe]}]\n",
    );
    tree
}

fn topic(plane: &ControlPlane) -> Option<Value> {
    let list = plane.kubectl(&format!("get kafkatopics {NAMESPACE} --output=json"), "").expect(0).out;
    let list: Value = serde_json::from_str(&list).unwrap();
    list["items"].as_array().unwrap().iter().find(|topic| topic["spec"]["topicName"] == "Payments").cloned()
}

fn approve(tree: &Tree) {
    let plan = tree.run(PLAN).expect(3);
    tree.run(&format!("approve {} tree --config config.toml", approval_id(&plan.out))).expect(0);
}

#[test]
fn a_topic_and_a_user_are_made_changed_and_deleted_after_approval() {
    let mut plane = ControlPlane::lease();
    plane.run_controllers();
    let tree = described(&plane);
    tree.run(PLAN).expect(2).says(&[
        "+ topic sandbox/Payments",
        "makes a topic of 3 partitions",
        "rights that `billing` was given in Kafka by other means are taken away",
    ]);
    tree.run(APPLY).expect(0);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    let made = topic(&plane).unwrap();
    assert_eq!(made["metadata"]["labels"]["strimzi.io/cluster"], "sandbox");
    assert_eq!(made["spec"]["partitions"], 3);
    assert_eq!(made["spec"]["config"], json!({"retention.ms": 604_800_000}));
    let operator =
        format!("get kafka sandbox {NAMESPACE} --output=jsonpath={{.spec.entityOperator.topicOperator}}");
    plane.kubectl(&operator, "").expect(0).says(&["resources"]);
    plane.kubectl(&format!("get kafkauser billing {NAMESPACE}"), "").expect(0);

    // Fewer partitions are refused, with the line; more are made.
    tree.edit(TOPIC, "partitions: 3", "partitions: 2");
    tree.run(PLAN).expect(1).says(&[
        "would shrink from 3 to 2 partitions, and partitions only grow",
        "acme/topics/sandbox/payments.yaml:6",
        "restore `partitions`",
    ]);
    tree.edit(TOPIC, "partitions: 2", "partitions: 6");
    tree.run(APPLY).expect(0).says(&["grows from 3 to 6 partitions"]);
    assert_eq!(topic(&plane).unwrap()["spec"]["partitions"], 6);

    // What keeps less waits for approval.
    tree.edit(TOPIC, "604800000", "3600000");
    tree.run(APPLY).expect(3).says(&["records older than 1 hour are deleted (7 days before)"]);
    assert_eq!(topic(&plane).unwrap()["spec"]["config"]["retention.ms"], 604_800_000);
    approve(&tree);
    tree.run(APPLY).expect(0);
    assert_eq!(topic(&plane).unwrap()["spec"]["config"]["retention.ms"], 3_600_000);

    // The only topic is deleted after approval, and only then the topic operator.
    tree.remove(TOPIC);
    tree.run(APPLY).expect(3).says(&[
        "the topic is deleted with all its records",
        "limit of 0 topic deletions per fleet and hour",
    ]);
    assert!(topic(&plane).is_some());
    plane.kubectl(&operator, "").expect(0).says(&["resources"]);
    approve(&tree);
    tree.run(APPLY).expect(0);
    assert_eq!(topic(&plane), None);
    tree.run(APPLY).expect(0);
    assert_eq!(plane.kubectl(&operator, "").expect(0).out, "");
    tree.run(PLAN).expect(0);

    tree.remove(USER);
    tree.run(APPLY);
    plane.kubectl(&format!("get kafkauser billing {NAMESPACE}"), "").expect(1).says(&["not found"]);
    plane.kubectl(&format!("get kafkauser sandbox-admin {NAMESPACE}"), "").expect(0);
}

#[test]
fn a_protected_topic_stays_and_one_that_others_made_is_not_touched() {
    let plane = ControlPlane::lease();
    let tree = described(&plane);
    tree.remove(TOPIC);
    tree.run(APPLY).expect(0);
    let theirs = json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaTopic",
        "metadata": {"name": "theirs", "namespace": "kafka-acme--sandbox", "labels": {"strimzi.io/cluster": "sandbox"}},
        "spec": {"partitions": 7}});
    plane.kubectl("create -f -", &theirs.to_string()).expect(0);
    let other = "apiVersion: streamfleet/v1\nkind: Topic\norganization: acme\ncluster: sandbox\n";
    tree.write("acme/topics/sandbox/theirs.yaml", format!("{other}name: theirs\npartitions: 9\n"));
    tree.write("acme/topics/sandbox/ours.yaml", format!("{other}name: ours\n"));
    tree.run(APPLY).expect(3).says(&[
        "KafkaTopic kafka-acme--sandbox/theirs exists and isn't managed by streamfleet",
        "to keep it as it is, remove the topic's spec",
    ]);
    let partitions = format!("get kafkatopic theirs {NAMESPACE} --output=jsonpath={{.spec.partitions}}");
    assert_eq!(plane.kubectl(&partitions, "").expect(0).out, "7");
    plane.kubectl(&format!("get kafkatopic ours {NAMESPACE}"), "").expect(0);
    tree.remove("acme/topics/sandbox/theirs.yaml");
    tree.run(APPLY).expect(0);
    assert_eq!(plane.kubectl(&partitions, "").expect(0).out, "7");

    tree.remove("acme/topics/sandbox/ours.yaml");
    tree.run(APPLY).expect(3).says(&["deletion protection is on"]);
    plane.kubectl(&format!("get kafkatopic ours {NAMESPACE}"), "").expect(0);
}

#[test]
fn a_topic_is_let_go_with_its_records_in_place() {
    let mut plane = ControlPlane::lease();
    plane.run_controllers();
    let tree = described(&plane);
    tree.run(APPLY).expect(0);
    let spec = tree.read(TOPIC);
    tree.write(TOPIC, format!("{spec}on_delete: Retain\n"));
    tree.run(APPLY).expect(0);
    tree.remove(TOPIC);
    tree.run(PLAN).says(&["the topic stays in Kafka with its records, and is no longer managed"]);
    tree.run(APPLY);
    assert_eq!(topic(&plane).unwrap()["metadata"]["annotations"]["strimzi.io/managed"], "false");
    tree.run(APPLY);
    assert_eq!(topic(&plane), None);
    tree.run(PLAN);
}

#[test]
fn the_topics_of_a_cluster_that_goes_are_let_go_before_it() {
    let mut plane = ControlPlane::lease();
    plane.run_controllers();
    let tree = described(&plane);
    tree.write(TOPIC, tree.read(TOPIC).replace("deletion_protection: false\n", ""));
    tree.run(APPLY).expect(0);
    // The cluster alone can't go.
    let cluster = tree.read(SANDBOX);
    tree.remove(SANDBOX);
    tree.run(APPLY).says(&["acme/sandbox"]);
    plane.kubectl(&format!("get kafka sandbox {NAMESPACE}"), "").expect(0);
    assert_eq!(topic(&plane).unwrap()["metadata"]["annotations"].get("strimzi.io/managed"), None);
    tree.write(SANDBOX, cluster);
    tree.run(APPLY).expect(0);

    tree.remove(TOPIC);
    tree.remove(USER);
    tree.remove(SANDBOX);
    tree.run(APPLY);
    let annotations = |topic: &Value| topic["metadata"]["annotations"]["strimzi.io/managed"].clone();
    assert!(topic(&plane).is_none_or(|topic| annotations(&topic) == "false"));
    let mut rounds = 0;
    while plane.kubectl("get namespace kafka-acme--sandbox", "").code == 0 {
        let plan = tree.run(PLAN);
        if plan.out.contains("approve ") {
            tree.run(&format!("approve {} tree --config config.toml", approval_id(&plan.out)));
        }
        tree.run(APPLY);
        rounds += 1;
        assert!(rounds < 6, "{}{}", plan.out, plan.err);
    }
}
