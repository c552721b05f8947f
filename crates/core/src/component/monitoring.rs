//! The objects for a Prometheus that is on the Kubernetes cluster already: what it reads of each cluster, alerts, and
//! dashboards for Grafana.
//!
//! Others than the organization may see the namespace of alerts and dashboards, so nothing there names a cluster or a
//! user. What does is in the cluster's own namespace: its PodMonitor, and a PrometheusRule with its sizes, which the
//! alerts compare with.

pub mod alerts;
mod dashboards;
pub mod kinds;
pub mod pod_monitor;
pub mod selectors;
pub mod sizes;

use serde_json::{Value, json};

use crate::catalog::{ResolvedCluster, ResolvedFleet};
use crate::component::consequence::{CHANGES, Consequences, DELETED, Row, row};
use crate::component::{ClusterPart, Component, Manifest, QuotaShare, Traffic, Verdict, fleet_manifest};
use crate::config::Config;
use kinds::{API_VERSION, PROMETHEUS_RULE};

pub static COMPONENT: Component = Component {
    kinds: &kinds::KINDS,
    is_installed: |extras| extras.monitoring,
    in_fleet: |scope| in_fleet(scope.fleet),
    in_cluster,
    consequences: Consequences { rows: ROWS, ..Consequences::NONE },
    ..Component::NONE
};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("PodMonitor", "/spec/**", CHANGES, Verdict::InPlace, "Prometheus reads other metrics of the cluster; clients notice nothing"),
    row("PodMonitor", "", DELETED, Verdict::InPlace, "Prometheus no longer reads metrics of the cluster"),
    row("PrometheusRule", "/spec/**", CHANGES, Verdict::InPlace, "alerts or the sizes that they compare with change; clients notice nothing"),
    row("PrometheusRule", "", DELETED, Verdict::InPlace, "{object} is deleted, and its alerts with it"),
];

/// The namespace of alerts and dashboards of a fleet that names none.
pub const NAMESPACE: &str = "streamfleet-monitoring";

/// The name of the fleet's alerts. A Kubernetes cluster has one fleet, and the fleet's name would be seen by others.
const ALERTS: &str = "streamfleet-kafka";

fn in_fleet(fleet: &ResolvedFleet) -> Vec<Manifest> {
    let Some(monitoring) = fleet.spec.advanced_config.prometheus() else { return Vec::new() };
    let namespace = monitoring.namespace.as_deref().unwrap_or(NAMESPACE);
    let mut objects = Vec::new();
    if monitoring.namespace.is_none() && (monitoring.alerts || monitoring.dashboards) {
        objects.push(fleet_manifest::namespace(fleet, namespace, "restricted"));
    }
    let metadata = |name: &str| json!({"name": name, "namespace": namespace, "labels": monitoring.labels});
    if monitoring.alerts {
        let body = rule(&metadata(ALERTS), &alerts::groups());
        objects.push(fleet_manifest::object(fleet, body));
    }
    if monitoring.dashboards {
        objects.extend(dashboards(fleet, namespace, &json!(monitoring.labels)));
    }
    objects
}

/// The dashboards as ConfigMaps, which Grafana finds by their label.
pub fn dashboards(fleet: &ResolvedFleet, namespace: &str, labels: &Value) -> Vec<Manifest> {
    let map = |dashboard: dashboards::Dashboard| {
        let metadata = json!({"name": dashboard.name, "namespace": namespace, "labels": labels});
        let mut body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        body["metadata"]["labels"]["grafana_dashboard"] = "1".into();
        body["data"][format!("{}.json", dashboard.name)] = dashboard.json.to_string().into();
        fleet_manifest::object(fleet, body)
    };
    dashboards::all().into_iter().map(map).collect()
}

fn rule(metadata: &Value, groups: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": PROMETHEUS_RULE.kind, "metadata": metadata, "spec": {"groups": groups}})
}

fn in_cluster(cluster: &ResolvedCluster, config: &Config) -> Option<ClusterPart> {
    let fleet = &cluster.fleet_spec.advanced_config;
    if !fleet.is_read() {
        return None;
    }
    let mut objects = Vec::new();
    let operations = cluster.spec.advanced_config.operations;
    let is_read = operations.metrics || operations.kafka_exporter;
    if let Some(existing) = fleet.prometheus() {
        objects.extend(is_read.then(|| pod_monitor::pod_monitor(cluster, existing)));
        let is_compared = existing.alerts || existing.dashboards;
        objects.extend(is_compared.then(|| sizes::rule(cluster, existing, &config.units)));
    }
    // A Prometheus of the fleet's own finds the operators by their ports, whatever the cluster says.
    let metrics_ports = if is_read || fleet.own_prometheus().is_some() {
        pod_monitor::operator_ports(cluster)
    } else {
        Vec::new()
    };
    Some(ClusterPart {
        objects,
        traffic: Traffic { metrics_ports, ..Traffic::default() },
        quota: QuotaShare::default(),
        is_restricted: true,
    })
}

/// The labels that every series of a cluster has, beside those of Prometheus.
fn series_labels(cluster: &ResolvedCluster) -> [(&'static str, String); 3] {
    [
        ("organization", cluster.spec.organization.to_string()),
        ("cluster", cluster.spec.identifier.to_string()),
        ("fleet", cluster.fleet.fleet.to_string()),
    ]
}

#[cfg(test)]
mod tests;
