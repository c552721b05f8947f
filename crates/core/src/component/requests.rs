//! Resource requests as manifests and pods have them.

use serde_json::Value;

use super::Resources;
use crate::names;

pub fn amount(value: &Value) -> Option<f64> {
    let amount = match value {
        Value::String(text) => names::quantity(text),
        number => number.as_f64(),
    };
    amount.filter(|amount| *amount >= 0.0)
}

/// The requests in the `resources` of a container.
pub fn requested(resources: &Value) -> Resources {
    let requested = |name: &str, unit: f64| {
        let value = resources.get("requests")?.get(name)?;
        // The values are whole millicores and MiB, far below the limits of exact floating-point integers.
        Some((amount(value)? * unit).round() as u64)
    };
    Resources {
        cpu_millis: requested("cpu", 1000.0).unwrap_or_default(),
        memory_mib: requested("memory", 1.0 / 1_048_576.0).unwrap_or_default(),
    }
}

fn requested_in(holder: &Value) -> Resources {
    requested(&holder["resources"])
}

/// Counts like the scheduler: the sum of the containers, but at least the largest init container.
pub fn requested_by_pod(spec: &Value) -> Resources {
    let containers = |list: &str| spec.get(list).and_then(Value::as_array).into_iter().flatten();
    let is_sidecar = |container: &&Value| container["restartPolicy"] == "Always";
    let running = containers("containers").chain(containers("initContainers").filter(is_sidecar));
    let running = running.map(requested_in).fold(Resources::default(), Resources::plus);
    let before = containers("initContainers").filter(|it| !is_sidecar(it)).map(requested_in);
    // A pod may request more for itself than its containers do.
    before.chain([requested_in(spec)]).fold(running, Resources::max)
}
