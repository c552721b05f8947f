//! How the Strimzi operator of a fleet is.

use serde_json::Value;

use crate::catalog::ResourceStatus;
use crate::component::health::reading::{at, count, items, name, text};

/// The Strimzi operator of a fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OperatorState {
    #[default]
    Unknown,
    Missing,
    Found {
        /// `namespace/name`.
        name: String,
        wanted: u32,
        ready: u32,
    },
}

impl OperatorState {
    /// Selects the operator that watches a namespace from all Deployments that may be one. If none declares
    /// that it does, a running one is chosen: if it watches another namespace, the cluster is reported as not
    /// taken up.
    pub fn of_namespace<'a>(deployments: impl IntoIterator<Item = &'a Value>, namespace: &str) -> Self {
        let ready = |object: &Value| count(object, &["status", "readyReplicas"]).unwrap_or_default();
        let operators = deployments.into_iter().filter(|object| Self::is_one(object));
        Self::of(operators.max_by_key(|object| (watches(object, namespace), ready(object))))
    }

    /// Reads a Deployment; `None` means that it is missing.
    pub fn of(deployment: Option<&Value>) -> Self {
        let Some(object) = deployment else { return Self::Missing };
        let namespace = text(object, &["metadata", "namespace"]).unwrap_or_default();
        Self::Found {
            name: format!("{namespace}/{}", name(object).unwrap_or_default()),
            // Kubernetes' default.
            wanted: count(object, &["spec", "replicas"]).unwrap_or(1),
            ready: count(object, &["status", "readyReplicas"]).unwrap_or_default(),
        }
    }

    /// Whether a Deployment runs Strimzi's cluster operator, however it was installed.
    pub fn is_one(object: &Value) -> bool {
        let kind = at(object, &["spec", "template", "metadata", "labels", "strimzi.io/kind"]);
        let named = || name(object).is_some_and(|name| name.starts_with("strimzi-cluster-operator"));
        kind.and_then(Value::as_str).map_or_else(named, |kind| kind == "cluster-operator")
    }

    /// Whether the operator is known to be inactive.
    pub fn is_down(&self) -> bool {
        self.trouble().is_some()
    }

    pub fn trouble(&self) -> Option<&'static str> {
        match self {
            Self::Missing => Some("isn't installed"),
            Self::Found { ready: 0, .. } => Some("is down"),
            Self::Unknown | Self::Found { .. } => None,
        }
    }

    /// Why an operator that does nothing is a problem of its fleet, and the remedy.
    pub fn explanation(&self) -> String {
        let effect = "clusters keep running, but changes and lost pods wait";
        match self {
            Self::Found { name, wanted: 0, .. } => {
                format!("the Strimzi operator `{name}` is scaled to 0: {effect}; scale it up again")
            }
            Self::Found { name, wanted, .. } => format!(
                "the Strimzi operator `{name}` has no ready pod, {wanted} wanted: {effect}; find out why its pods don't \
                 start"
            ),
            Self::Missing | Self::Unknown => {
                format!(
                    "the Strimzi operator isn't installed: {effect}; install it, or set a version to install in \
                     `advanced_config.components.strimzi` of the fleet"
                )
            }
        }
    }
}

/// Whether this status says that the Strimzi operator isn't installed.
pub fn lacks_operator(status: &ResourceStatus) -> bool {
    status.reason.as_ref().is_some_and(|reason| *reason == OperatorState::Missing.explanation())
}

/// Whether an operator watches a namespace: `STRIMZI_NAMESPACE` is `*`, a list, or the operator's own
/// namespace.
fn watches(operator: &Value, namespace: &str) -> bool {
    let containers = items(operator, &["spec", "template", "spec", "containers"]);
    let mut variables = containers.flat_map(|container| items(container, &["env"]));
    let Some(variable) = variables.find(|it| it["name"] == "STRIMZI_NAMESPACE") else { return true };
    match text(variable, &["value"]) {
        Some(list) => list.split(',').map(str::trim).any(|it| it == "*" || it == namespace),
        None => text(operator, &["metadata", "namespace"]).as_deref() == Some(namespace),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_operator_of_a_namespace_is_found_wherever_it_runs() {
        let deployment = |name: &str, watched: Value, ready: u32| {
            json!({"metadata": {"name": name, "namespace": "ops"}, "status": {"readyReplicas": ready},
                "spec": {"template": {"metadata": {"labels": {"strimzi.io/kind": "cluster-operator"}},
                    "spec": {"containers": [{"env": [{"name": "STRIMZI_NAMESPACE", "value": watched}]}]}}}})
        };
        let own = json!(null);
        let all = [
            json!({"metadata": {"name": "grafana", "namespace": "ops"}}),
            deployment("own", own, 1),
            deployment("listed", json!("a, b"), 0),
            deployment("everywhere", json!("*"), 1),
        ];
        for (candidates, namespace, expected) in [
            (&all[..], "b", "ops/everywhere"),
            (&all[..3], "b", "ops/listed"),
            (&all[..3], "c", "ops/own"),
            (&all[..2], "ops", "ops/own"),
        ] {
            let OperatorState::Found { name, .. } = OperatorState::of_namespace(candidates, namespace) else {
                panic!()
            };
            assert_eq!(name, expected);
        }
        assert_eq!(OperatorState::of_namespace(&all[..1], "b"), OperatorState::Missing);
    }
}
