//! Whether the registry serves.

use serde_json::Value;

use super::kinds::DEPLOYMENT;
use crate::catalog::Condition;
use crate::component::health::reading::{conditions, items, number, text};
use crate::component::health::words::brief;
use crate::component::health::{AppliedCluster, ReadObjects};
use crate::names::Json;

/// The trouble of a cluster's registry. A cluster without its registry is Degraded: Kafka itself works on.
pub fn troubles(wanted: &AppliedCluster, read: &ReadObjects) -> Vec<Condition> {
    let Some(deployments) = read.of(&DEPLOYMENT).filter(|_| wanted.kinds.contains(DEPLOYMENT.kind)) else {
        return Vec::new();
    };
    let is_ours = |it: &Value| text(it, &["metadata", "namespace"]).as_ref() == Some(&wanted.namespace);
    let deployment = deployments.map(Json::value).find(is_ours);
    trouble(deployment.as_ref(), &wanted.namespace).into_iter().collect()
}

/// The reasons of the condition `Progressing` during a rollout, which fails after ten minutes.
const STARTING: [&str; 3] = ["NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated"];

/// `None` stands for a Deployment that is gone.
fn trouble(deployment: Option<&Value>, namespace: &str) -> Option<Condition> {
    let nothing = Value::Null;
    let deployment = deployment.unwrap_or(&nothing);
    let count = |path: &[&str]| number::<u64>(deployment, path);
    let (wanted, ready) = (count(&["spec", "replicas"]), count(&["status", "readyReplicas"]).unwrap_or(0));
    let progress = conditions(deployment).into_iter().find(|it| it.kind == "Progressing");
    let is_starting = progress.as_ref().is_some_and(|it| it.holds && STARTING.contains(&it.reason.as_str()));
    let is_stuck = progress.is_some_and(|it| !it.holds);
    let (kind, what) = match (ready, wanted) {
        (0, _) if is_starting => ("RegistryStarting", "the schema registry is starting".to_owned()),
        (0, _) => {
            ("RegistryUnavailable", "the schema registry doesn't serve: none of its pods is ready".to_owned())
        }
        (ready, Some(wanted)) if ready < wanted => {
            ("RegistryIncomplete", format!("the schema registry has {ready} of {wanted} pods"))
        }
        _ if is_stuck => (
            "RegistryOutdated",
            "the schema registry's new pods don't start, and the old ones serve with the old settings"
                .to_owned(),
        ),
        _ => return None,
    };
    let is_bad = |it: &&Value| it["status"] == if it["type"] == "ReplicaFailure" { "True" } else { "False" };
    let says = items(deployment, &["status", "conditions"]).filter(is_bad);
    let says = says.filter_map(|it| text(it, &["message"])).find(|says| !says.is_empty());
    let says = says.map(|says| format!("; Kubernetes says: {}", brief(&says))).unwrap_or_default();
    Some(Condition {
        kind: kind.to_owned(),
        degraded: kind == "RegistryUnavailable",
        message: format!(
            "{what}{says}; see: kubectl describe pods --namespace={namespace} \
             --selector=streamfleet.io/component=schema-registry"
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(wanted: u64, status: Value) -> Option<(bool, String)> {
        let deployment =
            json!({"metadata": {"name": "orders-registry"}, "spec": {"replicas": wanted}, "status": status});
        trouble(Some(&deployment), "kafka-acme--orders").map(|it| (it.degraded, it.message))
    }

    #[test]
    fn a_registry_without_a_ready_pod_degrades_its_cluster() {
        let how = "see: kubectl describe pods --namespace=kafka-acme--orders \
                   --selector=streamfleet.io/component=schema-registry";
        assert_eq!(told(2, json!({"readyReplicas": 2})), None);
        let stuck = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
        assert_eq!(
            told(2, json!({"readyReplicas": 2, "conditions": stuck})),
            Some((
                false,
                format!(
                    "the schema registry's new pods don't start, and the old ones serve with the old settings; {how}"
                )
            ))
        );
        assert!(trouble(None, "kafka-acme--orders").is_some_and(|it| it.degraded));
        assert_eq!(
            told(2, json!({"readyReplicas": 1})),
            Some((false, format!("the schema registry has 1 of 2 pods; {how}")))
        );
        let conditions = json!([
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "fine"},
            {"type": "ReplicaFailure", "status": "True", "message": "pods \"orders-registry-x\" is forbidden"},
        ]);
        let starting = json!([{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}]);
        assert_eq!(
            told(1, json!({"conditions": starting})),
            Some((false, format!("the schema registry is starting; {how}")))
        );
        assert_eq!(
            told(1, json!({"conditions": conditions})),
            Some((
                true,
                format!(
                    "the schema registry doesn't serve: none of its pods is ready; Kubernetes says: pods \
                     \"orders-registry-x\" is forbidden; {how}"
                )
            ))
        );
    }
}
