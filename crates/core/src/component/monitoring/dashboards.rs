//! The dashboards for Grafana. Nothing in them names a cluster: the person chooses one of those that Grafana's data
//! source shows.

use serde_json::{Value, json};

pub struct Dashboard {
    /// The name of the ConfigMap and of the file in it.
    pub name: &'static str,
    pub json: Value,
}

struct Panel {
    title: &'static str,
    /// As Grafana names units.
    unit: &'static str,
    /// Each with the legend of its series.
    queries: &'static [(&'static str, &'static str)],
}

const fn panel(
    title: &'static str,
    unit: &'static str,
    queries: &'static [(&'static str, &'static str)],
) -> Panel {
    Panel { title, unit, queries }
}

pub fn all() -> Vec<Dashboard> {
    vec![
        Dashboard { name: "streamfleet-kafka", json: dashboard("streamfleet-kafka", "Kafka cluster", KAFKA) },
        Dashboard {
            name: "streamfleet-topics",
            json: dashboard("streamfleet-topics", "Kafka topics and consumers", TOPICS),
        },
    ]
}

#[rustfmt::skip]
const KAFKA: &[Panel] = &[
    panel("Brokers and controllers that are read", "none", &[
        (r#"count(up{namespace="$namespace", component="kafka"} == 1)"#, "read"),
        (r#"streamfleet_kafka_pods{namespace="$namespace"}"#, "expected"),
    ]),
    panel("Active controllers", "none", &[
        (r#"sum(kafka_controller_kafkacontroller_activecontrollercount{namespace="$namespace"})"#, "active"),
    ]),
    panel("Partitions in trouble", "none", &[
        (r#"max(kafka_controller_kafkacontroller_offlinepartitionscount{namespace="$namespace"})"#, "without a leader"),
        (r#"sum(kafka_server_replicamanager_underminisrpartitioncount{namespace="$namespace"})"#, "with too few copies in sync"),
        (r#"sum(kafka_server_replicamanager_underreplicatedpartitions{namespace="$namespace"})"#, "that lack copies"),
        (r#"sum(kafka_log_logmanager_offlinelogdirectorycount{namespace="$namespace"})"#, "disks offline"),
    ]),
    panel("Written, by broker", "Bps", &[
        (r#"sum by (pod) (rate(kafka_server_brokertopicmetrics_bytesinpersec_total{namespace="$namespace", topic=""}[5m]))"#, "{{pod}}"),
        (r#"streamfleet_broker_produce_limit_bytes{namespace="$namespace"}"#, "limit"),
    ]),
    panel("Read, by broker", "Bps", &[
        (r#"sum by (pod) (rate(kafka_server_brokertopicmetrics_bytesoutpersec_total{namespace="$namespace", topic=""}[5m]))"#, "{{pod}}"),
        (r#"streamfleet_broker_fetch_limit_bytes{namespace="$namespace"}"#, "limit"),
    ]),
    panel("Slowed down by quotas, a request", "ms", &[
        (r#"sum by (pod, request) (rate(kafka_network_requestmetrics_throttletimems_sum{namespace="$namespace", request=~"Produce|FetchConsumer"}[5m])) / sum by (pod, request) (rate(kafka_network_requestmetrics_throttletimems_count{namespace="$namespace", request=~"Produce|FetchConsumer"}[5m]))"#, "{{pod}} {{request}}"),
    ]),
    panel("Connections, by listener", "none", &[
        (r#"sum by (pod, listener) (kafka_server_socket_server_metrics_connection_count{namespace="$namespace"})"#, "{{pod}} {{listener}}"),
        (r#"streamfleet_broker_connections_limit{namespace="$namespace"}"#, "limit of a listener"),
    ]),
    panel("Request handlers idle", "percentunit", &[
        (r#"rate(kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total{namespace="$namespace"}[5m]) / 1e9"#, "{{pod}}"),
    ]),
    panel("Free disk", "percentunit", &[
        (r#"kubelet_volume_stats_available_bytes{namespace="$namespace"} / kubelet_volume_stats_capacity_bytes"#, "{{persistentvolumeclaim}}"),
    ]),
    panel("Time of a request, 99 %", "ms", &[
        (r#"max by (request) (kafka_network_requestmetrics_totaltimems{namespace="$namespace", request=~"Produce|FetchConsumer", quantile="0.99"})"#, "{{request}}"),
    ]),
];

#[rustfmt::skip]
const TOPICS: &[Panel] = &[
    panel("Records written, by topic", "wps", &[
        (r#"sum by (topic) (rate(kafka_server_brokertopicmetrics_messagesinpersec_total{namespace="$namespace", topic!=""}[5m]))"#, "{{topic}}"),
    ]),
    panel("Written, by topic", "Bps", &[
        (r#"sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesinpersec_total{namespace="$namespace", topic!=""}[5m]))"#, "{{topic}}"),
    ]),
    panel("Read, by topic", "Bps", &[
        (r#"sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesoutpersec_total{namespace="$namespace", topic!=""}[5m]))"#, "{{topic}}"),
    ]),
    panel("Size on all brokers, by topic", "bytes", &[
        (r#"sum by (topic) (kafka_log_log_size{namespace="$namespace"})"#, "{{topic}}"),
    ]),
    panel("Lag, by group and topic", "none", &[
        (r#"sum by (consumergroup, topic) (kafka_consumergroup_lag{namespace="$namespace"})"#, "{{consumergroup}} {{topic}}"),
    ]),
    panel("Partitions", "none", &[
        (r#"max(kafka_controller_kafkacontroller_globalpartitioncount{namespace="$namespace"})"#, "there"),
        (r#"streamfleet_partitions_limit{namespace="$namespace"}"#, "limit"),
    ]),
];

/// The width of Grafana's grid, and the size of a panel in it.
const GRID: usize = 24;
const PANEL: (usize, usize) = (12, 8);

fn dashboard(uid: &str, title: &str, panels: &[Panel]) -> Value {
    let source = json!({"type": "prometheus", "uid": "${source}"});
    let placed = |(index, panel): (usize, &Panel)| {
        let (width, height) = PANEL;
        let targets = panel.queries.iter().enumerate().map(|(index, (query, legend))| {
            json!({"refId": format!("Q{index}"), "expr": query, "legendFormat": legend, "datasource": source})
        });
        json!({
            "id": index + 1,
            "type": "timeseries",
            "title": panel.title,
            "datasource": source,
            "gridPos": {"w": width, "h": height, "x": index * width % GRID, "y": index * width / GRID * height},
            "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
            "targets": targets.collect::<Vec<_>>(),
        })
    };
    json!({
        "uid": uid,
        "title": title,
        "tags": ["streamfleet"],
        "schemaVersion": 39,
        "editable": false,
        "refresh": "1m",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [
            {"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
            {
                "name": "namespace",
                "label": "Cluster",
                "type": "query",
                "datasource": source,
                "query": "label_values(up{component=\"kafka\", fleet!=\"\"}, namespace)",
                "refresh": 2,
                "sort": 1,
            },
        ]},
        "panels": panels.iter().enumerate().map(placed).collect::<Vec<_>>(),
    })
}
