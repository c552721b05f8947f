//! The objects for a Prometheus: its alerts by Prometheus' own `promtool`, its selection by the real API server.

mod alerts;
mod fires;
mod objects;
pub mod own;
mod scraped;
mod series;

use serde_json::Value;

use crate::support::Tree;

/// The manifests of `examples/monitoring`, by kind and name.
fn manifest(tree: &Tree, kind: &str, namespace: &str, name: &str) -> Value {
    let manifests = tree.output().into_iter().filter(|(path, _)| path.ends_with(".yaml"));
    let mut manifests = manifests.map(|(_, bytes)| serde_saphyr::from_slice::<Value>(&bytes).unwrap());
    let is_it = |it: &Value| {
        it["kind"] == kind && it["metadata"]["namespace"] == namespace && it["metadata"]["name"] == name
    };
    manifests.find(is_it).unwrap_or_else(|| panic!("there is no {kind} {namespace}/{name}"))
}
