//! Secrets as plans have what stands on a target: reduced to a trace.

use serde_json::{Map, Value};

use crate::render::SecretSlot;

/// What of a Secret is no secret.
const PLAIN: [&str; 5] = ["apiVersion", "immutable", "kind", "metadata", "type"];

/// Puts a trace in the place of everything in a Secret that could be one. Its annotations could: kubectl keeps the whole
/// object in one of them.
pub(super) fn redact(mut object: Map<String, Value>) -> Map<String, Value> {
    let annotations = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    annotations.into_iter().for_each(mask);
    object.iter_mut().filter(|(key, _)| !PLAIN.contains(&key.as_str())).for_each(|(_, value)| mask(value));
    object
}

/// Replaces a value, or each value of an object, by the trace of one.
fn mask(value: &mut Value) {
    let trace = || serde_json::json!({SecretSlot::KEY: {"present": true}});
    match value {
        Value::Object(values) => values.values_mut().for_each(|value| *value = trace()),
        value => *value = trace(),
    }
}
