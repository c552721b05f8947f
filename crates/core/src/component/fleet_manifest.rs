//! Builds a [`Manifest`] that belongs to a fleet and to none of its clusters.

use serde_json::{Value, json};

use crate::catalog::ResolvedFleet;
use crate::component::labels::{self, FLEET, ORGANIZATION};
use crate::component::{Manifest, facts};
use crate::names::{Json, ObjectKey};

/// A Namespace that enforces this pod security standard.
pub fn namespace(fleet: &ResolvedFleet, name: &str, pod_security: &str) -> Manifest {
    labelled_namespace(fleet, name, pod_security, &json!({}))
}

/// The same, with further labels.
pub fn labelled_namespace(fleet: &ResolvedFleet, name: &str, pod_security: &str, labels: &Value) -> Manifest {
    let mut labels = labels.clone();
    labels["pod-security.kubernetes.io/enforce"] = pod_security.into();
    let metadata = json!({"name": name, "labels": labels});
    object(fleet, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
}

/// Adds the fleet's labels to an object. Its pod template keeps its own labels: a new label would restart the
/// pods.
pub fn object(fleet: &ResolvedFleet, mut object: Value) -> Manifest {
    let ours = labels::map([
        ("app.kubernetes.io/managed-by", "streamfleet"),
        (ORGANIZATION, fleet.key.organization.as_str()),
        (FLEET, fleet.key.fleet.as_str()),
    ]);
    for (label, value) in ours {
        object["metadata"]["labels"][label] = value.into();
    }
    manifest(fleet, &object, Json::from(&object))
}

/// An unchanged object, shared by all fleets.
pub fn shared(fleet: &ResolvedFleet, body: Json) -> Manifest {
    manifest(fleet, &body.value(), body)
}

fn manifest(fleet: &ResolvedFleet, object: &Value, body: Json) -> Manifest {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let key = ObjectKey {
        namespace: text("/metadata/namespace"),
        kind: text("/kind").unwrap_or_default(),
        name: text("/metadata/name").unwrap_or_default(),
        api_version: text("/apiVersion").unwrap_or_default(),
    };
    Manifest { stage: facts(&key.kind).stage, key, owner: fleet.key.resource(), body }
}
