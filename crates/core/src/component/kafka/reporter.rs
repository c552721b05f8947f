//! The metrics that brokers and controllers have.

use serde_json::{Value, json};

use super::KafkaContext;

/// The operator's own choice of names, `KafkaCluster.DEFAULT_METRICS_ALLOW_LIST` of Strimzi 1.2: a list in the
/// resource replaces it.
const DEFAULT: [&str; 16] = [
    "kafka_cluster_partition.*",
    "kafka_controller_kafkacontroller.*",
    "kafka_controller_controllerstats_uncleanleaderelectionspersec",
    "kafka_log_log_size",
    "kafka_network_requestmetrics.*",
    "kafka_network_socketserver_networkprocessoravgidlepercent",
    "kafka_server_app_info.*",
    "kafka_server_brokertopicmetrics.*",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent",
    "kafka_server_kafkaserver_brokerstate",
    "kafka_server_kafkaserver_clusterid",
    "kafka_server_kafkaserver_linux.*",
    "kafka_server_raft.*",
    "kafka_server_replicamanager.*",
    "kafka_server_request_queue_size",
    "kafka_server_socket_server.*",
];

/// The metrics that alerts and dashboards need beside it.
const FURTHER: [&str; 1] = ["kafka_log_logmanager_offlinelogdirectorycount"];

/// Strimzi's own reporter, which needs no list of rules as the JMX exporter does.
pub(super) fn metrics(context: &KafkaContext) -> Option<Value> {
    let is_read = context.cluster.fleet_spec.advanced_config.is_read();
    // Without a list the operator chooses, and another version of it may choose otherwise. A list restarts brokers once,
    // so nobody gets one without needing it.
    let list = is_read.then(|| json!({"allowList": allow_list()}));
    context.operations.metrics.then(|| json!({"type": "strimziMetricsReporter", "values": list}))
}

/// The names that are read where a Prometheus reads them, each a regular expression for the whole name.
pub fn allow_list() -> Vec<&'static str> {
    DEFAULT.into_iter().chain(FURTHER).collect()
}
