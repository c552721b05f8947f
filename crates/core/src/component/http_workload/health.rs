//! Whether a program beside the brokers serves.

use serde_json::Value;

use super::kinds::{COMPONENT_LABEL, DEPLOYMENT};
use crate::catalog::Condition;
use crate::component::health::reading::{conditions, items, number, text};
use crate::component::health::words::brief;
use crate::component::health::{AppliedCluster, ReadObjects};
use crate::names::Json;

/// How the troubles of a workload are told.
pub struct WorkloadWords {
    /// The label of its objects.
    pub name: &'static str,
    /// As in "the schema registry".
    pub noun: &'static str,
    /// The beginning of the types of conditions.
    pub condition: &'static str,
    /// Whether a cluster is Degraded while it doesn't serve. Kafka itself works on.
    pub degrades: bool,
}

/// The trouble of a cluster's workload, whose objects have this name.
pub fn troubles(
    words: &WorkloadWords,
    object: &str,
    wanted: &AppliedCluster,
    read: &ReadObjects,
) -> Vec<Condition> {
    let Some(deployments) = read.of(&DEPLOYMENT).filter(|_| wanted.deployments.contains(object)) else {
        return Vec::new();
    };
    let metadata = |it: &Value, field: &str| text(it, &["metadata", field]);
    let is_it = |it: &Value| {
        metadata(it, "namespace").as_ref() == Some(&wanted.namespace)
            && metadata(it, "name").as_deref() == Some(object)
    };
    let deployment = deployments.map(Json::value).find(is_it);
    trouble(words, deployment.as_ref(), &wanted.namespace).into_iter().collect()
}

/// The reasons of the condition `Progressing` during a rollout, which fails after ten minutes.
const STARTING: [&str; 3] = ["NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated"];

/// `None` stands for a Deployment that is gone.
fn trouble(words: &WorkloadWords, deployment: Option<&Value>, namespace: &str) -> Option<Condition> {
    let WorkloadWords { name, noun, condition, degrades } = words;
    let nothing = Value::Null;
    let deployment = deployment.unwrap_or(&nothing);
    let count = |path: &[&str]| number::<u64>(deployment, path);
    let (wanted, ready) = (count(&["spec", "replicas"]), count(&["status", "readyReplicas"]).unwrap_or(0));
    let progress = conditions(deployment).into_iter().find(|it| it.kind == "Progressing");
    let is_starting = progress.as_ref().is_some_and(|it| it.holds && STARTING.contains(&it.reason.as_str()));
    let is_stuck = progress.is_some_and(|it| !it.holds);
    let (kind, what) = match (ready, wanted) {
        (0, _) if is_starting => ("Starting", "is starting".to_owned()),
        (0, _) => ("Unavailable", "doesn't serve: none of its pods is ready".to_owned()),
        (ready, Some(wanted)) if ready < wanted => ("Incomplete", format!("has {ready} of {wanted} pods")),
        _ if is_stuck => (
            "Outdated",
            "has new pods that don't start, and old ones that serve with the old settings".to_owned(),
        ),
        _ => return None,
    };
    let is_bad = |it: &&Value| it["status"] == if it["type"] == "ReplicaFailure" { "True" } else { "False" };
    let says = items(deployment, &["status", "conditions"]).filter(is_bad);
    let says = says.filter_map(|it| text(it, &["message"])).find(|says| !says.is_empty());
    let says = says.map(|says| format!("; Kubernetes says: {}", brief(&says))).unwrap_or_default();
    Some(Condition {
        kind: format!("{condition}{kind}"),
        degraded: *degrades && kind == "Unavailable",
        message: format!(
            "the {noun} {what}{says}; see: kubectl describe pods --namespace={namespace} \
             --selector={COMPONENT_LABEL}={name}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const WORDS: WorkloadWords = WorkloadWords {
        name: "schema-registry",
        noun: "schema registry",
        condition: "Registry",
        degrades: true,
    };

    fn told(wanted: u64, status: Value) -> Option<(bool, String)> {
        let deployment =
            json!({"metadata": {"name": "orders-registry"}, "spec": {"replicas": wanted}, "status": status});
        trouble(&WORDS, Some(&deployment), "kafka-acme--orders").map(|it| (it.degraded, it.message))
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
                    "the schema registry has new pods that don't start, and old ones that serve with the old settings; {how}"
                )
            ))
        );
        assert!(trouble(&WORDS, None, "kafka-acme--orders").is_some_and(|it| it.degraded));
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
