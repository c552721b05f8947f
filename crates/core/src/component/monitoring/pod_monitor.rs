//! The metrics that a Prometheus reads of a cluster.

use serde_json::{Value, json};

use super::kinds::POD_MONITOR;
use super::series_labels;
use crate::catalog::ResolvedCluster;
use crate::component::{Manifest, labels, manifest};
use crate::spec::Monitoring;

/// The names that Strimzi gives to ports: of brokers, controllers and Kafka Exporter, and of the entity operator's
/// containers, with their numbers. Cruise Control has no metrics, since none are configured.
const KAFKA: &str = "tcp-prometheus";
const USER_OPERATOR: (&str, u16) = ("healthcheck-uo", 8081);
const TOPIC_OPERATOR: (&str, u16) = ("healthcheck-to", 8080);

/// Alerts look at five minutes of a counter, which takes several samples.
pub const INTERVAL: &str = "30s";
/// Kafka Exporter asks the brokers for every group on each scrape.
pub const TIMEOUT: &str = "25s";

pub fn pod_monitor(cluster: &ResolvedCluster, monitoring: &Monitoring) -> Manifest {
    let mut metadata = labels::metadata(cluster, cluster.spec.identifier.as_str());
    metadata.labels.get_or_insert_default().extend(monitoring.labels.clone());
    let ports = std::iter::once(KAFKA).chain(operators(cluster).map(|(name, _)| name));
    let endpoints: Vec<Value> = ports
        .map(|port| {
            json!({
                "port": port,
                "path": "/metrics",
                "interval": INTERVAL,
                "scrapeTimeout": TIMEOUT,
                "relabelings": relabelings(cluster),
            })
        })
        .collect();
    let spec = json!({
        "selector": {"matchLabels": {"strimzi.io/cluster": cluster.spec.identifier}},
        "podMetricsEndpoints": endpoints,
    });
    manifest::untyped(cluster, &POD_MONITOR, &metadata, spec)
}

/// The names of all ports with metrics that pods of a cluster may have.
pub const PORT_NAMES: [&str; 3] = [KAFKA, USER_OPERATOR.0, TOPIC_OPERATOR.0];

/// The ports of the operators' metrics.
pub fn operator_ports(cluster: &ResolvedCluster) -> Vec<u16> {
    operators(cluster).map(|(_, number)| number).collect()
}

fn operators(cluster: &ResolvedCluster) -> impl Iterator<Item = (&'static str, u16)> {
    let topics = cluster.spec.advanced_config.operations.topic_operator || cluster.has_topics;
    std::iter::once(USER_OPERATOR).chain(topics.then_some(TOPIC_OPERATOR))
}

/// Prometheus adds `namespace` and `pod` itself.
fn relabelings(cluster: &ResolvedCluster) -> Vec<Value> {
    let fixed = series_labels(cluster);
    let fixed = fixed
        .into_iter()
        .map(|(label, value)| json!({"action": "replace", "targetLabel": label, "replacement": value}));
    let component = json!({
        "action": "replace",
        "sourceLabels": ["__meta_kubernetes_pod_label_strimzi_io_component_type"],
        "targetLabel": "component",
    });
    fixed.chain([component]).collect()
}
