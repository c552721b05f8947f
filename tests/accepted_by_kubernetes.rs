//! A real API server accepts every manifest: it knows each field, warns of none, and stores what it was sent.

use serde_json::{Value, json};

use crate::support::control_plane::ControlPlane;
use crate::support::{Tree, settings, stories};

/// The manifests of an example, as they are written for a directory fleet.
fn manifests(story: &str) -> Vec<Value> {
    let tree = Tree::example(story);
    tree.run(&format!("apply tree --yes{}", settings(story))).expect(0);
    let files = tree.output().into_iter().filter(|(path, _)| path.ends_with(".yaml"));
    let mut manifests: Vec<Value> =
        files.map(|(_, bytes)| serde_saphyr::from_slice(&bytes).unwrap()).collect();
    // Namespaces first: the other manifests are in them.
    manifests.sort_by_key(|manifest| manifest["kind"] != "Namespace");
    manifests
}

pub fn documents(manifests: &[Value]) -> String {
    manifests.iter().map(|manifest| format!("{manifest}\n---\n")).collect()
}

fn stored(plane: &ControlPlane, manifests: &[Value]) -> Vec<Value> {
    let list = plane.kubectl("get -f - -o json", &documents(manifests)).expect(0);
    match serde_json::from_str(&list.out).unwrap() {
        Value::Object(mut list) if list["kind"] == "List" => match list.remove("items") {
            Some(Value::Array(items)) => items,
            items => panic!("{items:?}"),
        },
        one => vec![one],
    }
}

/// Paths where `stored` lacks a value of `sent` or has a different one. Extra values are allowed.
pub fn lost(sent: &Value, stored: &Value, path: &str) -> Vec<String> {
    match (sent, stored) {
        (Value::Object(sent), Value::Object(stored)) => sent
            .iter()
            .flat_map(|(name, sent)| {
                let path = format!("{path}.{name}");
                stored
                    .get(name)
                    .map_or_else(|| vec![format!("{path} is gone")], |stored| lost(sent, stored, &path))
            })
            .collect(),
        (Value::Array(sent), Value::Array(stored)) if sent.len() == stored.len() => {
            let items = sent.iter().zip(stored).enumerate();
            items
                .flat_map(|(index, (sent, stored))| lost(sent, stored, &format!("{path}[{index}]")))
                .collect()
        }
        _ if sent == stored => vec![],
        _ => vec![format!("{path} was sent as {sent} and is stored as {stored}")],
    }
}

fn kafka(namespace: &str) -> Value {
    let mut kafka = manifests("quickstart")
        .into_iter()
        .find(|manifest| manifest["kind"] == "Kafka" && manifest["metadata"]["name"] == "orders")
        .unwrap();
    kafka["metadata"]["namespace"] = namespace.into();
    kafka
}

#[test]
fn every_manifest_of_every_example_is_taken_and_stored_as_it_is() {
    let plane = ControlPlane::shared();
    plane.serve_gateways();
    plane.serve_monitoring();
    for story in stories() {
        let manifests = manifests(&story);
        let applied = plane.apply(&documents(&manifests)).expect(0);
        assert_eq!(applied.err, "", "{story}: the server warns");
        assert_eq!(applied.out.lines().count(), manifests.len(), "{story}\n{}", applied.out);
        let stored = stored(plane, &manifests);
        assert_eq!(stored.len(), manifests.len());
        for (sent, stored) in manifests.iter().zip(&stored) {
            let name = format!("{story}: {} {}", sent["kind"], sent["metadata"]["name"]);
            assert_eq!(lost(sent, stored, ""), [""; 0], "{name}");
        }
    }
}

#[test]
fn a_field_that_kafka_does_not_have_is_refused() {
    let plane = ControlPlane::shared();
    let cases: [(&str, Value, &str); 4] = [
        ("replicas", 3.into(), ".spec.kafka.replicas: field not declared in schema"),
        ("metadataVersion", 4.3.into(), "spec.kafka.metadataVersion: expected string"),
        ("listeners", Value::Array(vec![]), "spec.kafka.listeners in body should have at least 1 items"),
        ("authorization", json!({"type": "keycloak"}), r#"Unsupported value: "keycloak""#),
    ];
    for (field, value, why) in cases {
        let mut kafka = kafka(&plane.namespace());
        kafka["spec"]["kafka"][field] = value;
        plane.apply(&kafka.to_string()).expect(1).says(&[why]);
    }
}

#[test]
fn what_the_server_drops_or_changes_or_warns_of_is_found() {
    let plane = ControlPlane::shared();
    let namespace = plane.namespace();
    let metadata = json!({"name": "old", "namespace": namespace});
    let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata});
    assert_ne!(plane.apply(&endpoints.to_string()).expect(0).err, "");

    let mut kafka = kafka(&namespace);
    kafka["spec"]["kafka"]["replicas"] = 3.into();
    // Server-side apply refuses unknown fields in any case; other requests ask for it.
    plane.kubectl("create --validate=ignore -f -", &kafka.to_string()).expect(0);
    let stored = stored(plane, std::slice::from_ref(&kafka));
    assert_eq!(lost(&kafka, &stored[0], ""), [".spec.kafka.replicas is gone"]);
    kafka["spec"]["kafka"]["listeners"][0]["port"] = 9999.into();
    let changed = ".spec.kafka.listeners[0].port was sent as 9999 and is stored as 9093";
    assert_eq!(lost(&kafka, &stored[0], ""), [changed, ".spec.kafka.replicas is gone"]);
}
