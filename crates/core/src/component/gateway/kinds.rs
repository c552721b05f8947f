//! The Kubernetes kinds of the Gateway.

use crate::component::health::source::{HealthSource, ReadWhen};
use crate::component::kind::{KubernetesKind, LISTS, OWNS};

pub static KINDS: [&KubernetesKind; 2] = [&GATEWAY, &GATEWAY_CLASS];

pub static GATEWAY: KubernetesKind = KubernetesKind::new(API_VERSION, "Gateway", "gateways", LISTS)
    .custom()
    .installed_with(&["get", "watch", "create", "patch", "delete"])
    .judged_by(HealthSource::new(ReadWhen::Routed, &[&[&["status", "addresses"]]]).anywhere());

pub static GATEWAY_CLASS: KubernetesKind =
    KubernetesKind::new(API_VERSION, "GatewayClass", "gatewayclasses", LISTS).custom();

/// Strimzi makes those of brokers. A component makes its own, and has this row.
pub static TLS_ROUTE: KubernetesKind =
    KubernetesKind::new(API_VERSION, "TLSRoute", "tlsroutes", &[]).custom().installed_with(OWNS);

pub const GROUP: &str = "gateway.networking.k8s.io";
pub const API_VERSION: &str = "gateway.networking.k8s.io/v1";
