use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use serde_json::{Value, json};

use crate::catalog::ResolvedCluster;
use crate::component::fixtures::{catalog, cluster};
use crate::component::kafka::reporter::allow_list;
use crate::names::Kind;
use crate::render::render;
use crate::spec::{Fleet, TenancyMode};

/// A cluster with metrics, on a fleet with this in `monitoring`.
fn monitored(operations: Value, monitoring: Value) -> ResolvedCluster {
    let mut cluster = cluster(json!({"advanced_config": {"operations": operations}}));
    let fleet: &mut Fleet = Arc::make_mut(&mut cluster.fleet_spec);
    fleet.advanced_config.monitoring = serde_json::from_value(monitoring).unwrap();
    cluster
}

/// The objects, by kind, namespace and name.
fn objects(cluster: ResolvedCluster) -> BTreeMap<String, Value> {
    let fleets = render(&catalog([cluster])).fleets.into_values().flatten();
    fleets.map(|(key, manifest)| (key.to_string(), manifest.body.value())).collect()
}

const METRICS: &str = r#"{"metrics": true, "kafka_exporter": true}"#;

fn metrics() -> Value {
    serde_json::from_str(METRICS).unwrap()
}

const POD_MONITOR: &str = "PodMonitor kafka-acme--orders/orders";
const SIZES: &str = "PrometheusRule kafka-acme--orders/orders";
const ALERTS: &str = "PrometheusRule streamfleet-monitoring/streamfleet-kafka";
const DASHBOARDS: [&str; 2] = [
    "ConfigMap streamfleet-monitoring/streamfleet-kafka",
    "ConfigMap streamfleet-monitoring/streamfleet-topics",
];

#[test]
fn a_fleet_that_says_nothing_of_a_prometheus_has_nothing_for_one() {
    let without = objects(monitored(metrics(), Value::Null));
    assert_eq!(
        without["Kafka kafka-acme--orders/orders"]["spec"]["kafka"]["metricsConfig"],
        json!({
            "type": "strimziMetricsReporter",
        })
    );
    for monitoring in [json!({}), json!({"federate": true}), json!({"prometheus": "none"})] {
        assert_eq!(objects(monitored(metrics(), monitoring)), without);
    }
}

#[test]
fn every_object_has_the_labels_of_the_fleet() {
    let objects = objects(monitored(
        metrics(),
        json!({"prometheus": "existing", "labels": {"release": "stack", "app.kubernetes.io/part-of": "stack"}}),
    ));
    for name in [POD_MONITOR, SIZES, ALERTS].iter().chain(&DASHBOARDS) {
        let labels = &objects[*name]["metadata"]["labels"];
        assert_eq!(labels["release"], "stack", "{name}");
        assert_eq!(labels["app.kubernetes.io/part-of"], "stack", "{name}");
        assert_eq!(labels["app.kubernetes.io/managed-by"], "streamfleet", "{name}");
    }
    assert_eq!(objects[DASHBOARDS[0]]["metadata"]["labels"]["grafana_dashboard"], "1");
}

#[test]
fn alerts_and_dashboards_are_where_and_if_the_fleet_says() {
    let there = |monitoring: Value, operations: Value| {
        let objects = objects(monitored(operations, monitoring));
        let is_ours = |name: &&String| {
            ["PodMonitor", "PrometheusRule", "ConfigMap"].iter().any(|kind| name.starts_with(kind))
                || name.contains("monitoring")
        };
        objects.keys().filter(is_ours).cloned().collect::<Vec<_>>()
    };
    let namespace = "Namespace streamfleet-monitoring";
    let [kafka, topics] = DASHBOARDS;
    assert_eq!(
        there(json!({"prometheus": "existing"}), metrics()),
        [kafka, topics, namespace, POD_MONITOR, SIZES, ALERTS]
    );
    assert_eq!(
        there(json!({"prometheus": "existing", "dashboards": false}), metrics()),
        [namespace, POD_MONITOR, SIZES, ALERTS]
    );
    assert_eq!(
        there(json!({"prometheus": "existing", "dashboards": false, "alerts": false}), metrics()),
        [POD_MONITOR]
    );
    // Without metrics there is nothing to read, and the certificate still expires.
    assert_eq!(
        there(json!({"prometheus": "existing", "dashboards": false}), json!({})),
        [namespace, SIZES, ALERTS]
    );
    assert_eq!(
        there(json!({"prometheus": "existing", "namespace": "ops", "alerts": false}), json!({})),
        ["ConfigMap ops/streamfleet-kafka", "ConfigMap ops/streamfleet-topics", SIZES]
    );
}

/// Text that others than the organization may see names neither a cluster nor the organization.
#[test]
fn nothing_outside_of_a_clusters_namespace_names_it() {
    let objects = objects(monitored(metrics(), json!({"prometheus": "existing"})));
    for name in [ALERTS].iter().chain(&DASHBOARDS) {
        let mut object = objects[*name].clone();
        let labels = object["metadata"]["labels"].as_object_mut().unwrap();
        labels.retain(|label, _| !label.starts_with("streamfleet.io/"));
        let text = object.to_string();
        for hidden in ["orders", "acme", "\"eu\""] {
            assert!(!text.contains(hidden), "{name} names {hidden}: {text}");
        }
    }
}

#[test]
fn a_cluster_tells_what_is_read_of_it_and_its_sizes() {
    let mut of_topics = metrics();
    of_topics["topic_operator"] = true.into();
    let objects = objects(monitored(of_topics, json!({"prometheus": "existing"})));
    insta::assert_json_snapshot!("pod_monitor", objects[POD_MONITOR]["spec"]);
    insta::assert_json_snapshot!("sizes", objects[SIZES]["spec"]);
    insta::assert_json_snapshot!("alerts", objects[ALERTS]["spec"]);
}

#[test]
fn policies_let_a_prometheus_reach_every_port_that_it_reads() {
    let mut cluster = monitored(metrics(), json!({"prometheus": "existing"}));
    Arc::make_mut(&mut cluster.spec).tenancy_mode = TenancyMode::Isolated;
    // The first topic of a cluster starts the topic operator.
    cluster.has_topics = true;
    let objects = objects(cluster);
    let rules = &objects["NetworkPolicy kafka-acme--orders/allow-metrics"]["spec"]["ingress"];
    let ports: Vec<_> =
        rules.as_array().unwrap().iter().map(|rule| rule["ports"][0]["port"].clone()).collect();
    assert_eq!(ports, [9404, 8081, 8080]);
}

/// The names of metrics in an expression.
fn names(expression: &str) -> Vec<String> {
    let names = Regex::new(r"\b(kafka|kubelet|streamfleet)_[a-z0-9_]+\b|\bup\b").unwrap();
    // Values of labels are no names.
    let bare = Regex::new(r#""[^"]*""#).unwrap().replace_all(expression, "");
    names.find_iter(&bare).map(|name| name.as_str().to_owned()).collect()
}

/// A metric that the list of the reporter leaves out would make an alert that never fires.
#[test]
fn every_metric_of_alerts_and_dashboards_exists() {
    let objects = objects(monitored(metrics(), json!({"prometheus": "existing"})));
    let rules = |name: &str| {
        let groups = objects[name]["spec"]["groups"].as_array().unwrap().iter();
        groups.flat_map(|group| group["rules"].as_array().unwrap()).collect::<Vec<_>>()
    };
    let recorded: Vec<&str> = [ALERTS, SIZES]
        .iter()
        .flat_map(|name| rules(name))
        .filter_map(|rule| rule["record"].as_str())
        .collect();
    // The certificate of a cluster that is reached from outside.
    let of_certificate = "streamfleet_certificate_expiry_timestamp_seconds";
    let mut expressions: Vec<String> =
        rules(ALERTS).iter().map(|rule| rule["expr"].as_str().unwrap().to_owned()).collect();
    for name in DASHBOARDS {
        let files = objects[name]["data"].as_object().unwrap();
        for dashboard in
            files.values().map(|json| serde_json::from_str::<Value>(json.as_str().unwrap()).unwrap())
        {
            let panels = dashboard["panels"].as_array().unwrap().iter();
            let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
            expressions.extend(targets.map(|target| target["expr"].as_str().unwrap().to_owned()));
        }
    }
    // The reporter looks at a name without what Prometheus adds to it.
    let suffix = Regex::new("_(total|sum|count)$").unwrap();
    let is_allowed = |name: &str| {
        let is_it = |list: &str, name: &str| Regex::new(&format!("^(?:{list})$")).unwrap().is_match(name);
        let bare = suffix.replace(name, "");
        allow_list().iter().any(|list| is_it(list, name) || is_it(list, &bare))
    };
    let mut seen = 0;
    for name in expressions.iter().flat_map(|expression| names(expression)) {
        let exists = match name.as_str() {
            // Of Prometheus, the nodes and Kafka Exporter.
            "up"
            | "kubelet_volume_stats_available_bytes"
            | "kubelet_volume_stats_capacity_bytes"
            | "kafka_consumergroup_lag" => true,
            name if name.starts_with("streamfleet_") => recorded.contains(&name) || name == of_certificate,
            name => is_allowed(name),
        };
        assert!(exists, "no cluster has {name}");
        seen += 1;
    }
    assert!(seen > 40, "{seen}");
    assert!(!is_allowed("kafka_server_delayedoperationpurgatory_purgatorysize"));
}

#[test]
fn a_rule_of_the_fleet_is_the_fleets_and_that_of_a_cluster_the_clusters() {
    let rendered = render(&catalog([monitored(metrics(), json!({"prometheus": "existing"}))]));
    for manifest in rendered.fleets.values().flat_map(|objects| objects.values()) {
        let is_of_cluster =
            manifest.key.namespace.as_deref().is_some_and(|namespace| namespace.starts_with("kafka-"));
        if manifest.key.api_version == super::API_VERSION {
            assert_eq!(manifest.owner.kind == Kind::Cluster, is_of_cluster, "{}", manifest.key);
        }
    }
}
