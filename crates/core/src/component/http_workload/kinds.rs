//! The Kubernetes kinds of programs beside the brokers. A fleet without any needs no right to write them.

use crate::component::gateway::kinds::TLS_ROUTE;
use crate::component::health::source::{HealthSource, ReadWhen};
use crate::component::kind::{KubernetesKind, OWNS, READS};

pub static KINDS: [&KubernetesKind; 4] = [&DEPLOYMENT, &SERVICE, &TLS_ROUTE, &DISRUPTION_BUDGET];

/// The label of their objects, by the workload's name. Strimzi deletes Services with labels of its own that it didn't make.
pub const COMPONENT_LABEL: &str = "streamfleet.io/component";

pub static DEPLOYMENT: KubernetesKind =
    KubernetesKind::new("apps/v1", "Deployment", "deployments", READS).installed_with(OWNS).judged_by(
        HealthSource::new(
            ReadWhen::Applied,
            &[&[&["spec", "replicas"], &["status", "readyReplicas"], &["status", "conditions"]]],
        )
        .selecting("labelSelector=streamfleet.io%2Fcomponent"),
    );
pub static SERVICE: KubernetesKind = KubernetesKind::core("Service", "services", &[]).installed_with(OWNS);
pub static DISRUPTION_BUDGET: KubernetesKind =
    KubernetesKind::new("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", &[]).installed_with(OWNS);
