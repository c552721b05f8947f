//! The Kubernetes kinds of the operator.

use super::health::OperatorState;
use crate::component::health::source::{HealthSource, ReadWhen};
use crate::component::kind::{KubernetesKind, OWNS, RBAC, READS};

pub static KINDS: [&KubernetesKind; 6] = [
    &DEPLOYMENT,
    // Definitions are never deleted: that would delete every Kafka on the Kubernetes cluster.
    &KubernetesKind::new(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        &[],
    )
    .installed_with(&["get", "list", "watch", "create", "patch"]),
    &KubernetesKind::new(RBAC, "ClusterRole", "clusterroles", &[]).installed_with(OWNS),
    &KubernetesKind::new(RBAC, "ClusterRoleBinding", "clusterrolebindings", &[])
        .installed_with(&["create", "patch"]),
    &KubernetesKind::new(RBAC, "RoleBinding", "rolebindings", &[])
        .installed_with(&["get", "list", "watch", "patch", "delete"]),
    &KubernetesKind::core("ServiceAccount", "serviceaccounts", &[]).installed_with(OWNS),
];

/// The label of the operator's Deployment in Strimzi's own manifests and chart.
pub const SELECTOR: &str = "labelSelector=app%3Dstrimzi";

/// Read by the label of Strimzi's own manifests and chart. If nothing has it, any Deployment may be the
/// operator.
pub static DEPLOYMENT: KubernetesKind = KubernetesKind::new("apps/v1", "Deployment", "deployments", READS)
    .installed_with(&["create", "patch", "delete"])
    .judged_by(HealthSource {
        selector: SELECTOR,
        else_all: true,
        includes: OperatorState::is_one,
        ..HealthSource::new(
            ReadWhen::Always,
            &[&[
                &["spec", "replicas"],
                &["spec", "template", "metadata", "labels", "strimzi.io/kind"],
                &["spec", "template", "spec", "containers", "*", "env"],
                &["status", "readyReplicas"],
            ]],
        )
        .anywhere()
    });
