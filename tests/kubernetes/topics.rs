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
        "to keep it as it is, remove the spec; to have streamfleet take it over, add `adopt: true`",
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
fn the_status_of_topics_and_users_is_what_the_operator_says() {
    let plane = ControlPlane::lease();
    let tree = described(&plane);
    tree.run(APPLY).expect(0);
    let status = |kind: &str, resource: &str, conditions: Value| {
        let list = plane.kubectl(&format!("get {kind} {NAMESPACE} --output=json"), "").expect(0).out;
        let list: Value = serde_json::from_str(&list).unwrap();
        let is_it = |object: &&Value| {
            object["spec"]["topicName"] == "Payments" || object["metadata"]["name"] == "billing"
        };
        let object = list["items"].as_array().unwrap().iter().find(is_it).unwrap();
        let (name, generation) =
            (object["metadata"]["name"].as_str().unwrap(), &object["metadata"]["generation"]);
        let told = json!({"status": {"observedGeneration": generation, "conditions": conditions}});
        let patch = format!(
            "patch {kind} {name} {NAMESPACE} --subresource=status --type=merge --patch-file=/dev/stdin"
        );
        plane.kubectl(&patch, &told.to_string()).expect(0);
        let shown =
            tree.run(&format!("get {resource} tree --format json --config config.toml")).expect(0).out;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        (shown["status"].clone(), shown["status_reason"].clone())
    };
    let (topic, user) = ("topic/acme/sandbox/Payments", "user/acme/sandbox/billing");
    let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T11:02:26Z"}]);
    assert_eq!(status("kafkatopic", topic, json!([])).0, "Updating");
    assert_eq!(status("kafkatopic", topic, ready.clone()), (json!("Healthy"), Value::Null));
    assert_eq!(status("kafkauser", user, ready), (json!("Healthy"), Value::Null));
    let refused = json!([{"type": "Ready", "status": "False", "reason": "NotSupported",
        "message": "Replication factor change not supported"}]);
    assert_eq!(
        status("kafkatopic", topic, refused),
        (
            json!("Degraded"),
            json!("the topic operator can't make this change: Replication factor change not supported")
        )
    );
    tree.run("get topics tree --config config.toml").says(&["Degraded"]);
}

#[test]
fn a_user_gets_the_password_of_its_spec_and_a_new_one_when_that_changes() {
    let plane = ControlPlane::lease();
    let tree = described(&plane);
    let spec = tree.read(USER);
    let secret = format!("get secret billing.password {NAMESPACE} --output=jsonpath={{.data.password}}");
    let password = |value: &str| tree.write(USER, format!("{spec}password: {value}\n"));
    let never_told = |run: &crate::support::Run| {
        for value in ["correct-horse", "battery-staple", "Y29ycmVjdC1ob3JzZQ==", "YmF0dGVyeS1zdGFwbGU="] {
            assert!(!format!("{}{}", run.out, run.err).contains(value), "{}{}", run.out, run.err);
        }
    };
    password("correct-horse");
    never_told(&tree.run(APPLY).expect(0));
    assert_eq!(plane.kubectl(&secret, "").expect(0).out, "Y29ycmVjdC1ob3JzZQ==");
    let reference = ".spec.authentication.password.valueFrom.secretKeyRef";
    let user = format!("get kafkauser billing {NAMESPACE} --output=jsonpath={{{reference}}}");
    plane.kubectl(&user, "").expect(0).says(&["\"key\":\"password\"", "\"name\":\"billing.password\""]);

    password("battery-staple");
    let plan = tree.run(PLAN).expect(2).says(&[
        "password",
        "the user gets another password within two minutes: from then on its clients need it to connect",
    ]);
    never_told(&plan);
    never_told(&tree.run(&format!("{PLAN} --format json")));
    never_told(&tree.run(APPLY).expect(0));
    assert_eq!(plane.kubectl(&secret, "").expect(0).out, "YmF0dGVyeS1zdGFwbGU=");
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    never_told(&tree.run("get user/acme/sandbox/billing tree --format json --config config.toml").expect(0));

    // Without it, the operator keeps the password that the user has.
    tree.write(USER, &spec);
    tree.run(APPLY).expect(0);
    assert_eq!(plane.kubectl(&user, "").expect(0).out, "");
    plane.kubectl(&secret, "").expect(1).says(&["not found"]);
}

#[test]
fn what_others_made_is_taken_over_when_its_spec_says_so() {
    let plane = ControlPlane::lease();
    let tree = described(&plane);
    tree.remove(TOPIC);
    tree.remove(USER);
    tree.run(APPLY).expect(0);
    let metadata = |name: &str| {
        json!({"name": name, "namespace": "kafka-acme--sandbox", "labels": {"strimzi.io/cluster": "sandbox"},
            "annotations": {"strimzi.io/managed": "false"}})
    };
    let options = json!({"retention.ms": 3_600_000, "segment.bytes": 1_048_576});
    let topic = json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaTopic", "metadata": metadata("theirs"),
        "spec": {"partitions": 7, "config": options}});
    let rule = json!({"resource": {"type": "topic", "name": "theirs"}, "operations": ["All"]});
    let user = json!({"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaUser", "metadata": metadata("someone"),
        "spec": {"authorization": {"type": "simple", "acls": [rule]}}});
    for theirs in [&topic, &user] {
        plane.kubectl("create -f -", &theirs.to_string()).expect(0);
    }
    let get = |what: &str| -> Value {
        let found = plane.kubectl(&format!("get {what} {NAMESPACE} --output=json"), "").expect(0).out;
        serde_json::from_str(&found).unwrap()
    };
    let uid = get("kafkatopic theirs")["metadata"]["uid"].clone();
    let (topic, user) = ("acme/topics/sandbox/theirs.yaml", "acme/users/sandbox/someone.yaml");
    let of_cluster = "organization: acme\ncluster: sandbox\nadopt: true\n";
    let spec = |partitions: u32, retention: u64| {
        format!(
            "apiVersion: streamfleet/v1\nkind: Topic\n{of_cluster}name: theirs\npartitions: {partitions}\nconfig:\n  \
             retention.ms: {retention}\n"
        )
    };
    tree.write(user, format!("apiVersion: streamfleet/v1\nkind: User\n{of_cluster}identifier: someone\n"));

    // Nothing is taken over that would lose partitions or, without approval, records.
    tree.write(topic, spec(6, 3_600_000));
    tree.run(PLAN).expect(1).says(&["would shrink from 7 to 6 partitions"]);
    tree.write(topic, spec(8, 60_000));
    tree.run(APPLY).expect(3).says(&[
        "records older than 1 minute are deleted (1 hour before)",
        "takes over KafkaUser kafka-acme--sandbox/someone, which streamfleet didn't make",
        "the rights of KafkaUser kafka-acme--sandbox/someone change",
    ]);
    assert_eq!(get("kafkatopic theirs")["spec"]["partitions"], 7);
    assert_eq!(get("kafkauser someone")["spec"]["authorization"]["acls"], json!([]));

    tree.write(topic, spec(8, 7_200_000));
    let plan = tree.run(PLAN).expect(2).out;
    for says in [
        "takes over KafkaTopic kafka-acme--sandbox/theirs, which streamfleet didn't make",
        "grows from 7 to 8 partitions",
        "~ KafkaTopic kafka-acme--sandbox/theirs: adopted",
        "-   partitions: 7",
        "+   partitions: 8",
    ] {
        assert!(plan.contains(says), "no `{says}` in\n{plan}");
    }
    tree.run(APPLY).expect(0);
    let taken = get("kafkatopic theirs");
    assert_eq!(taken["metadata"]["uid"], uid);
    assert_eq!(taken["metadata"]["annotations"]["strimzi.io/managed"], "true");
    assert_eq!(taken["spec"]["partitions"], 8);
    // An option that the spec doesn't name stays.
    assert_eq!(taken["spec"]["config"], json!({"retention.ms": 7_200_000, "segment.bytes": 1_048_576}));
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);

    // From now on it is one of ours: protected, and repaired.
    let change = "--type=merge --patch={\"spec\":{\"config\":{\"retention.ms\":1}}}";
    plane.kubectl(&format!("patch kafkatopic theirs {NAMESPACE} {change}"), "").expect(0);
    tree.run(APPLY).expect(0);
    assert_eq!(get("kafkatopic theirs")["spec"]["config"]["retention.ms"], 7_200_000);
    tree.remove(topic);
    tree.run(APPLY).expect(3).says(&["deletion protection is on"]);
    assert_eq!(get("kafkatopic theirs")["metadata"]["uid"], uid);
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
