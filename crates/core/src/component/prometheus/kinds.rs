//! The Kubernetes kinds of Prometheus. A fleet without one of its own needs no right to write them.

use crate::component::gateway::kinds::TLS_ROUTE;
use crate::component::kind::{KubernetesKind, OWNS};

pub static KINDS: [&KubernetesKind; 4] = [&STATEFUL_SET, &SERVICE, &SERVICE_ACCOUNT, &TLS_ROUTE];

/// Selects its Service, as a part of the URL's query.
pub const SELECTOR: &str = "labelSelector=app.kubernetes.io%2Fname%3Dprometheus";

pub static STATEFUL_SET: KubernetesKind =
    KubernetesKind::new("apps/v1", "StatefulSet", "statefulsets", &[]).installed_with(OWNS);
static SERVICE: KubernetesKind = KubernetesKind::core("Service", "services", &[]).installed_with(OWNS);
static SERVICE_ACCOUNT: KubernetesKind =
    KubernetesKind::core("ServiceAccount", "serviceaccounts", &[]).installed_with(OWNS);
