//! The Kubernetes kinds of the Prometheus operator.

use crate::component::kind::{KubernetesKind, LISTS, OWNS};

pub static KINDS: [&KubernetesKind; 3] = [&POD_MONITOR, &PROMETHEUS_RULE, &PROMETHEUS];

pub static POD_MONITOR: KubernetesKind = written("PodMonitor", "podmonitors");
pub static PROMETHEUS_RULE: KubernetesKind = written("PrometheusRule", "prometheusrules");

/// Read for what it selects.
pub static PROMETHEUS: KubernetesKind =
    KubernetesKind::new(API_VERSION, "Prometheus", "prometheuses", &[]).custom().installed_with(LISTS);

pub const API_VERSION: &str = "monitoring.coreos.com/v1";

const fn written(kind: &'static str, plural: &'static str) -> KubernetesKind {
    KubernetesKind::new(API_VERSION, kind, plural, &[]).custom().installed_with(OWNS).optional()
}
