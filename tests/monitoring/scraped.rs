//! A real Prometheus reads a real broker by what the rendered objects come to, and judges the rendered alerts.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use super::alerts::rules;
use super::manifest;
use crate::kafka::broker_with;
use crate::support::control_plane::until;
use crate::support::prometheus::{Server, metrics_option};
use crate::support::{Tree, free_port};

/// What the Prometheus operator makes of a relabeling.
fn written(relabeling: &Value) -> Value {
    let names = [
        ("action", "action"),
        ("targetLabel", "target_label"),
        ("replacement", "replacement"),
        ("sourceLabels", "source_labels"),
    ];
    let fields = relabeling.as_object().unwrap().iter();
    let named = |name: &str| names.iter().find(|(theirs, _)| *theirs == name).unwrap().1.to_owned();
    fields.map(|(name, value)| (named(name), value.clone())).collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn a_prometheus_reads_a_broker_and_judges_every_alert() {
    let metrics = free_port();
    let broker = broker_with(&[metrics_option(metrics)]);
    let tree = Tree::example("monitoring");
    tree.run("apply tree --yes").expect(0);
    let monitor = manifest(&tree, "PodMonitor", "kafka-acme--orders", "orders");
    let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
    // As of a pod that it discovers.
    let pod = json!({"namespace": "kafka-acme--orders", "pod": "orders-broker-0",
        "__meta_kubernetes_pod_label_strimzi_io_component_type": "kafka"});
    let relabelings: Vec<Value> = endpoint["relabelings"].as_array().unwrap().iter().map(written).collect();
    let config = json!({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.json"],
        "scrape_configs": [{"job_name": "orders", "metrics_path": endpoint["path"], "relabel_configs": relabelings,
            "static_configs": [{"targets": [format!("127.0.0.1:{metrics}")], "labels": pod}]}],
    });
    fs::write(tree.beside("rules.json"), rules().to_string()).unwrap();
    fs::write(tree.beside("prometheus.json"), config.to_string()).unwrap();
    let prometheus = Server::start(&tree.beside(""), "prometheus.json");
    // The value of the only series of a metric, with its labels.
    let series = |metric: &str| -> Option<(BTreeMap<String, String>, String)> {
        let found = prometheus.asked(&format!("query?query={metric}"))["result"].as_array()?.first()?.clone();
        Some((
            serde_json::from_value(found["metric"].clone()).unwrap(),
            found["value"][1].as_str()?.to_owned(),
        ))
    };

    let (labels, up) = until("the broker is read", || series("up").filter(|(_, up)| up == "1"));
    for (label, value) in [
        ("organization", "acme"),
        ("fleet", "eu"),
        ("cluster", "orders"),
        ("component", "kafka"),
        ("pod", "orders-broker-0"),
    ] {
        assert_eq!(labels.get(label).map(String::as_str), Some(value), "{labels:?}");
    }
    assert_eq!(up, "1");
    for (metric, value) in [
        ("kafka_controller_kafkacontroller_activecontrollercount", "1"),
        ("kafka_controller_kafkacontroller_offlinepartitionscount", "0"),
        ("kafka_server_replicamanager_underreplicatedpartitions", "0"),
        ("kafka_server_replicamanager_underminisrpartitioncount", "0"),
    ] {
        assert_eq!(series(metric).map(|(_, value)| value).as_deref(), Some(value), "{metric}");
    }

    // One of the pods that the cluster has is read, and of nothing else is there a reason to worry.
    let judged = prometheus.judged();
    assert_eq!(judged.len(), 12);
    let worries: Vec<&Value> =
        judged.iter().filter(|rule| rule["state"] != "inactive").map(|rule| &rule["name"]).collect();
    assert_eq!(worries, ["KafkaBrokerLost"]);

    drop(broker);
    until("the broker is gone", || series("up").filter(|(_, up)| up == "0"));
}
