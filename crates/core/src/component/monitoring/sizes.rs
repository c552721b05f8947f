//! The sizes of a cluster as series, which alerts and dashboards compare with. No broker tells them.

use serde_json::{Value, json};

use super::kinds::PROMETHEUS_RULE;
use super::series_labels;
use crate::catalog::ResolvedCluster;
use crate::component::kafka::federation;
use crate::component::{Manifest, labels, manifest};
use crate::config::UnitCatalogue;
use crate::spec::Monitoring;
use crate::spec::certificate::Certificate;

/// How many pods of brokers and controllers have metrics.
pub const PODS: &str = "streamfleet_kafka_pods";

/// The end of the certificate that clients outside of Kubernetes see.
pub const CERTIFICATE: &str = "streamfleet_certificate_expiry_timestamp_seconds";

pub fn rule(cluster: &ResolvedCluster, monitoring: &Monitoring, units: &UnitCatalogue) -> Manifest {
    let mut metadata = labels::metadata(cluster, cluster.spec.identifier.as_str());
    metadata.labels.get_or_insert_default().extend(monitoring.labels.clone());
    let labels = labels_of_series(cluster);
    let mut rules = rules(cluster, units);
    rules.iter_mut().for_each(|rule| rule["labels"] = labels.clone());
    let groups = json!([{"name": "streamfleet-sizes", "rules": rules}]);
    manifest::untyped(cluster, &PROMETHEUS_RULE, &metadata, json!({"groups": groups}))
}

/// The rules of a cluster among those of others, for Prometheus 3.0 or newer: the labels of a whole group keep a file with
/// a thousand clusters within what a ConfigMap may have.
pub fn group(cluster: &ResolvedCluster, units: &UnitCatalogue) -> Value {
    let name = &cluster.spec.identifier;
    json!({"name": name, "labels": labels_of_series(cluster), "rules": rules(cluster, units)})
}

fn rules(cluster: &ResolvedCluster, units: &UnitCatalogue) -> Vec<Value> {
    let recorded = |(name, value): (&str, i64)| json!({"record": name, "expr": format!("vector({value})")});
    series(cluster, units).into_iter().map(recorded).collect()
}

/// Alerts find the sizes of a series by its namespace.
fn labels_of_series(cluster: &ResolvedCluster) -> Value {
    let mut labels = json!({"namespace": cluster.namespace});
    for (label, value) in series_labels(cluster) {
        labels[label] = value.into();
    }
    labels
}

fn series(cluster: &ResolvedCluster, units: &UnitCatalogue) -> Vec<(&'static str, i64)> {
    let sizes = federation::sizes(cluster, units);
    let mut series: Vec<_> =
        sizes.into_iter().map(|(name, value)| (name, i64::try_from(value).unwrap_or(i64::MAX))).collect();
    if cluster.spec.advanced_config.operations.metrics {
        series.push((PODS, federation::pods(cluster, units).into()));
    }
    let certificate = cluster.domain.as_ref().and_then(|domain| Certificate::read(&domain.tls_cert));
    series.extend(certificate.map(|certificate| (CERTIFICATE, certificate.not_after.as_second())));
    series
}
