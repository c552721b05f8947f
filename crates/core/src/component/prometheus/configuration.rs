//! The files that Prometheus follows: what it reads, and the rules that it judges by.

use serde_json::{Value, json};

use super::PrometheusContext;
use crate::component::labels::{CLUSTER, FLEET, ORGANIZATION};
use crate::component::monitoring::{alerts, pod_monitor, sizes};
use crate::component::mount::Mount;
use crate::component::{FleetScope, Manifest};

/// The names of the ConfigMaps, and of the files in them.
const CONFIGURATION: &str = "prometheus";
pub const SIZES: &str = "prometheus-sizes";

const FOLDER: &str = "/etc/prometheus/config";
const SIZES_FOLDER: &str = "/etc/prometheus/sizes";
pub const FILE: &str = "/etc/prometheus/config/prometheus.yml";

/// The files of a service account in a pod.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

pub fn objects(context: &PrometheusContext, scope: &FleetScope) -> Vec<Manifest> {
    let monitoring = context.fleet.spec.advanced_config.monitoring.as_ref();
    let has_alerts = monitoring.is_some_and(|monitoring| monitoring.alerts);
    let groups = if has_alerts { alerts::groups() } else { json!([]) };
    let sizes = scope.clusters.iter().map(|cluster| sizes::group(cluster, &scope.config.units));
    let sizes: Vec<Value> = sizes.collect();
    let configuration = json!({
        "prometheus.yml": configuration(context).to_string(),
        "alerts.yml": json!({"groups": groups}).to_string(),
    });
    let sizes = json!({"sizes.yml": json!({"groups": sizes}).to_string()});
    vec![
        context.object("v1", "ConfigMap", CONFIGURATION, json!({"data": configuration})),
        context.object("v1", "ConfigMap", SIZES, json!({"data": sizes})),
    ]
}

pub fn mounts() -> [Mount; 2] {
    [Mount::config_map("config", CONFIGURATION, FOLDER), Mount::config_map("sizes", SIZES, SIZES_FOLDER)]
}

fn configuration(context: &PrometheusContext) -> Value {
    json!({
        "global": {
            "scrape_interval": pod_monitor::INTERVAL,
            "scrape_timeout": pod_monitor::TIMEOUT,
            "evaluation_interval": pod_monitor::INTERVAL,
        },
        "rule_files": [format!("{FOLDER}/alerts.yml"), format!("{SIZES_FOLDER}/*.yml")],
        "scrape_configs": [pods(context), disks()],
    })
}

/// The pods of the fleet's clusters, as the PodMonitors of an existing Prometheus select them.
fn pods(context: &PrometheusContext) -> Value {
    let meta = |label: &str| format!("__meta_kubernetes_pod_label_{}", sanitized(label));
    let keep =
        |label: String, regex: &str| json!({"action": "keep", "source_labels": [label], "regex": regex});
    let copy = |label: String, target: &str| json!({"source_labels": [label], "target_label": target});
    let key = &context.fleet.key;
    json!({
        "job_name": "kafka",
        // For pods that don't say what they answer with.
        "fallback_scrape_protocol": "PrometheusText0.0.4",
        // Several pods of a cluster have a port of this kind, each with a name that Strimzi gives it.
        "kubernetes_sd_configs": [{"role": "pod", "selectors": [{
            "role": "pod",
            "label": format!("{ORGANIZATION}={},{FLEET}={},{CLUSTER}", key.organization, key.fleet),
        }]}],
        "relabel_configs": [
            keep("__meta_kubernetes_pod_container_port_name".to_owned(), &pod_monitor::PORT_NAMES.join("|")),
            {"action": "drop", "source_labels": ["__meta_kubernetes_pod_phase"], "regex": "Failed|Succeeded"},
            copy("__meta_kubernetes_namespace".to_owned(), "namespace"),
            copy("__meta_kubernetes_pod_name".to_owned(), "pod"),
            copy(meta(ORGANIZATION), "organization"),
            copy(meta(CLUSTER), "cluster"),
            copy(meta(FLEET), "fleet"),
            copy(meta("strimzi.io/component-type"), "component"),
        ],
    })
}

/// The disks of brokers and controllers, which only the kubelet of their node knows.
fn disks() -> Value {
    json!({
        "job_name": "disks",
        "scheme": "https",
        // Most kubelets sign their certificates themselves. The token that they are shown has few rights.
        "tls_config": {"ca_file": format!("{ACCOUNT}/ca.crt"), "insecure_skip_verify": true},
        "authorization": {"credentials_file": format!("{ACCOUNT}/token")},
        "kubernetes_sd_configs": [{"role": "node"}],
        "relabel_configs": [
            {"source_labels": ["__meta_kubernetes_node_name"], "target_label": "node"},
        ],
        "metric_relabel_configs": [{
            "action": "keep",
            "source_labels": ["__name__", "persistentvolumeclaim"],
            "regex": format!("kubelet_volume_stats_(available|capacity)_bytes;{}", alerts::CLAIMS),
        }],
    })
}

/// A label as Prometheus spells it in the name of one of its own.
fn sanitized(label: &str) -> String {
    let fits = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    label.chars().map(fits).collect()
}
