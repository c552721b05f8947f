//! Redaction of secrets in observed objects.

use serde_json::{Map, Value};

use crate::render::SecretSlot;

const PLAIN: [&str; 5] = ["apiVersion", "immutable", "kind", "metadata", "type"];

/// Redacts everything in a Secret that could be secret. That includes annotations: kubectl stores the whole
/// object in one.
pub(super) fn redact(mut object: Map<String, Value>) -> Map<String, Value> {
    let annotations = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    annotations.into_iter().for_each(mask);
    object.iter_mut().filter(|(key, _)| !PLAIN.contains(&key.as_str())).for_each(|(_, value)| mask(value));
    object
}

fn mask(value: &mut Value) {
    let trace = || serde_json::json!({SecretSlot::KEY: {"present": true}});
    match value {
        Value::Object(values) => values.values_mut().for_each(|value| *value = trace()),
        value => *value = trace(),
    }
}
