//! The resource requests of pods, by which Kubernetes decides whether another pod fits on a node.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::name::{name, name_of};
use super::node::takes_pods;
use crate::component::requests::requested_by_pod;
use crate::component::{COMPONENTS, Resources};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRequest {
    pub node: String,
    /// Its namespace, if it belongs to a Kafka cluster or a Strimzi operator.
    pub kafka: Option<String>,
    pub request: Resources,
}

/// The requests of all pods on nodes that accept our pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// Pods of Kafka clusters and Strimzi operators, by namespace.
    pub kafka: BTreeMap<String, Resources>,
    pub others: Resources,
}

impl PodRequest {
    /// Parses a Pod; `None` if it occupies no node, because it isn't scheduled or has ended.
    pub fn of(pod: &Value) -> Option<PodRequest> {
        let text = |pointer: &str| name(pod.pointer(pointer)?.as_str()?);
        let has_ended = ["Succeeded", "Failed"].map(Value::from).contains(&pod["status"]["phase"]);
        let labels = pod.pointer("/metadata/labels");
        let is_of_kafka = COMPONENTS
            .iter()
            .flat_map(|it| it.pod_labels)
            .any(|label| labels.is_some_and(|labels| labels.get(label).is_some()));
        let node = text("/spec/nodeName").filter(|_| !has_ended)?;
        let kafka = text("/metadata/namespace").filter(|_| is_of_kafka);
        Some(PodRequest { node, kafka, request: requested_by_pod(pod.get("spec")?) })
    }
}

impl Requests {
    pub fn of<'a>(pods: &[PodRequest], nodes: impl IntoIterator<Item = &'a Value>) -> Requests {
        let usable = nodes.into_iter().filter(|node| takes_pods(node));
        let usable: BTreeSet<String> = usable.filter_map(name_of).collect();
        let mut requests = Requests::default();
        for PodRequest { kafka, request, .. } in pods.iter().filter(|pod| usable.contains(&pod.node)) {
            let sum = match kafka {
                Some(namespace) => requests.kafka.entry(namespace.clone()).or_default(),
                None => &mut requests.others,
            };
            *sum = sum.plus(*request);
        }
        requests
    }

    pub(super) fn beside(&self, namespaces: &BTreeSet<&str>) -> Resources {
        let kafka = self.kafka.iter().filter(|(namespace, _)| !namespaces.contains(namespace.as_str()));
        kafka.map(|(_, request)| *request).fold(self.others, Resources::plus)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container(cpu: &str, memory: &str) -> Value {
        json!({"resources": {"requests": {"cpu": cpu, "memory": memory}}})
    }

    #[test]
    fn a_pod_requests_what_the_scheduler_counts() {
        let spec = json!({
            "containers": [container("100m", "512Mi"), container("0.1", "512Mi"), {}],
            "initContainers": [container("150m", "3Gi"), {"restartPolicy": "Always",
                "resources": {"requests": {"cpu": "50m"}}}],
        });
        assert_eq!(requested_by_pod(&spec), Resources { cpu_millis: 250, memory_mib: 3072 });
        let whole = json!({"containers": [{}], "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}});
        assert_eq!(requested_by_pod(&whole), Resources { cpu_millis: 2000, memory_mib: 1024 });
        assert_eq!(requested_by_pod(&json!({"containers": [container("-1", "many")]})), Resources::default());
    }

    #[test]
    fn only_pods_on_nodes_that_take_ours_and_that_have_not_ended_count() {
        let pod = |namespace: &str, labels: Value, node: Value, phase: &str| {
            json!({"metadata": {"namespace": namespace, "labels": labels}, "status": {"phase": phase},
                "spec": {"nodeName": node, "containers": [container("100m", "100Mi")]}})
        };
        let of_kafka = json!({"strimzi.io/cluster": "orders"});
        let pods = [
            pod("kafka-acme--orders", of_kafka.clone(), json!("a"), "Running"),
            pod("kafka-acme--orders", json!({}), json!("a"), "Running"),
            pod("theirs", of_kafka, json!("a"), "Pending"),
            pod("kube-system", json!({}), json!("a"), "Running"),
            pod("kube-system", json!({}), json!("a"), "Succeeded"),
            pod("kube-system", json!({}), json!("cordoned"), "Running"),
            pod("kube-system", json!({}), Value::Null, "Pending"),
        ];
        let nodes = [
            json!({"metadata": {"name": "a"}}),
            json!({"metadata": {"name": "cordoned"}, "spec": {"unschedulable": true}}),
        ];
        let pods: Vec<PodRequest> = pods.iter().filter_map(PodRequest::of).collect();
        let requests = Requests::of(&pods, &nodes);
        let times = |count: u64| Resources { cpu_millis: count * 100, memory_mib: count * 100 };
        assert_eq!(requests.others, times(2));
        assert_eq!(requests.beside(&["kafka-acme--orders"].into()), times(3));
        assert_eq!(requests.beside(&BTreeSet::new()), times(4));
    }
}
