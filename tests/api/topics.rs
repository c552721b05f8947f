//! The topics of a cluster, as an editor of its organization calls for them.

use serde_json::{Value, json};

use super::{Api, new_token};
use crate::support::Tree;

const TOPICS: &str = "/organizations/acme/topics";
const REFUNDS: &str = "/organizations/acme/topics/orders%2Frefunds";
const FILE: &str = "acme/topics/orders/refunds.yaml";

#[test]
fn a_topic_is_created_and_changed_and_stays_while_it_is_protected() {
    let tree = Tree::example("topics");
    let api = Api::start(&tree);
    api.settle();
    let editor = new_token(&tree, "payments@acme.example.com", "acme", "write");
    let call = |what: &str, body: Value| api.call_as(&editor, what, &[], body);
    let written = |expected: &str| {
        api.serve.until("the KafkaTopic is written", || {
            let object = tree.beside("output/acme/main/kafka-acme--orders/kafkatopic-refunds.yaml");
            std::fs::read_to_string(object).ok()?.contains(expected).then_some(())
        });
    };

    let body = json!({"cluster": "orders", "name": "refunds", "partitions": 3});
    let made = call(&format!("POST {TOPICS}"), body.clone()).expect(201);
    assert_eq!((&made.body["partitions"], &made.body["deletion_protection"]), (&json!(3), &json!(true)));
    assert_eq!(
        tree.read(FILE),
        "apiVersion: streamfleet/v1\nkind: Topic\norganization: acme\ncluster: orders\nname: refunds\npartitions: 3\n"
    );
    written("partitions: 3\n");
    call(&format!("POST {TOPICS}"), body).expect(409);

    call(&format!("PATCH {REFUNDS}"), json!({"partitions": 6})).expect(200);
    assert!(tree.read(FILE).contains("\npartitions: 6\n"), "{}", tree.read(FILE));
    written("partitions: 6\n");
    let mut whole = call(&format!("GET {REFUNDS}"), Value::Null).expect(200).body;
    whole["config"] = json!({"max.message.bytes": 1_048_576});
    call(&format!("PUT {REFUNDS}"), whole).expect(200);
    written("max.message.bytes: 1048576\n");
    let id = call(&format!("GET {REFUNDS}"), Value::Null).expect(200).body["id"].clone();
    let by_id = call(&format!("GET {TOPICS}/{}", id.as_str().unwrap()), Value::Null).expect(200).body;
    assert_eq!((&by_id["name"], &by_id["cluster"]), (&json!("refunds"), &json!("orders")));
    let count = |cluster: &str| {
        let list = call(&format!("GET {TOPICS}?cluster={cluster}"), Value::Null).expect(200).body;
        list["items"].as_array().unwrap().len()
    };
    assert_eq!((count("orders"), count("none")), (3, 0));

    let properties =
        |user: &str| call(&format!("GET /v1/clusters/orders/client-properties?user={user}"), Value::Null);
    let listeners = properties("billing").expect(200).body["listeners"].clone();
    assert_eq!((listeners.as_array().unwrap().len(), &listeners[0]["listener"]), (1, &json!("tls")));
    assert!(listeners.to_string().contains("kafka-acme--orders/billing"), "{listeners:#}");
    let unknown = "cluster acme/orders has no user `nobody` that was applied";
    properties("nobody").refused(404, "not_found", unknown);

    let kept = tree.read(FILE);
    call(&format!("PATCH {REFUNDS}"), json!({"name": "repayments"})).expect(422);
    call(&format!("DELETE {REFUNDS}"), Value::Null).refused(
        409,
        "protected",
        "topic acme/orders/refunds is protected against deletion",
    );
    assert_eq!(tree.read(FILE), kept);
    written("partitions: 6\n");
    assert_eq!(api.serve.stop(), Some(0));
}
