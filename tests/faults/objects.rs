//! The objects on an API server that a run may have created.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::proxy::Proxy;

const COLLECTIONS: [&str; 10] = [
    "/api/v1/configmaps",
    "/api/v1/limitranges",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/resourcequotas",
    "/api/v1/secrets",
    "/apis/networking.k8s.io/v1/networkpolicies",
    "/apis/kafka.strimzi.io/v1/kafkanodepools",
    "/apis/kafka.strimzi.io/v1/kafkas",
    "/apis/kafka.strimzi.io/v1/kafkausers",
    NAMESPACES,
];

pub const NAMESPACES: &str = "/api/v1/namespaces";

pub fn of(proxy: &Proxy) -> BTreeMap<String, Value> {
    let mut objects = BTreeMap::new();
    for collection in COLLECTIONS {
        let (code, list) = proxy.ask("GET", collection, &Value::Null);
        assert_eq!(code, 200, "{collection}");
        for object in list["items"].as_array().unwrap() {
            let path = path(collection, &object["metadata"]);
            if path.contains("/kafka-") || path.contains("/streamfleet-") {
                objects.insert(path, object.clone());
            }
        }
    }
    objects
}

/// Removes objects, and namespaces as controllers would.
pub fn remove(proxy: &Proxy, paths: impl Iterator<Item = String>) {
    let (namespaces, others): (Vec<_>, Vec<_>) = paths.partition(|path| path.matches('/').count() == 4);
    for path in others.iter().chain(&namespaces) {
        assert!(matches!(proxy.ask("DELETE", path, &Value::Null).0, 200 | 202), "{path}");
    }
    for path in &namespaces {
        let name = path.rsplit('/').next().unwrap();
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        assert_eq!(proxy.ask("PUT", &format!("{path}/finalize"), &body).0, 200, "{path}");
    }
}

/// Asserts that the inventory lists exactly the objects we created, by uid. Returns the uids.
pub fn assert_owned(ours: &BTreeMap<String, Value>) -> Vec<String> {
    let (own, others): (Vec<_>, Vec<_>) =
        ours.iter().partition(|(path, _)| path.contains("/streamfleet-system"));
    let texts = own.iter().filter_map(|(_, map)| map["data"]["inventory.json"].as_str());
    let mut known: Vec<String> = Vec::new();
    for text in texts {
        let inventory: Value = serde_json::from_str(text).unwrap();
        for (key, entry) in inventory["objects"].as_object().unwrap() {
            let uid = entry["written"]["uid"].as_str();
            known.push(uid.unwrap_or_else(|| panic!("{key} is only intended: {entry}")).to_owned());
            assert!(entry["intended"].is_null() && entry["deleting"] == false, "{key} is open: {entry}");
        }
    }
    let made = others.iter().filter(|(_, object)| object["metadata"]["annotations"].is_object());
    let mut made: Vec<String> =
        made.map(|(_, object)| object["metadata"]["uid"].as_str().unwrap().to_owned()).collect();
    known.sort();
    made.sort();
    assert_eq!(known, made, "the inventory has what is there\n{others:#?}");
    made
}

fn path(collection: &str, metadata: &Value) -> String {
    let name = metadata["name"].as_str().unwrap();
    match metadata["namespace"].as_str() {
        Some(namespace) => {
            let (root, plural) = collection.rsplit_once('/').unwrap();
            format!("{root}/namespaces/{namespace}/{plural}/{name}")
        }
        None => format!("{collection}/{name}"),
    }
}

/// An object without times, versions and uids, including references to uids.
pub fn comparable(mut object: Value, uids: &[String]) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
        metadata.remove(field);
    }
    for entry in metadata["managedFields"].as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("time");
    }
    if let Some(Value::String(text)) = object.pointer_mut("/data/inventory.json") {
        *text = uids.iter().fold(text.clone(), |text, uid| text.replace(uid, "…"));
    }
    object
}
