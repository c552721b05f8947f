//! The way from outside of Kubernetes to Prometheus: through the fleet's Gateway, or by a load balancer of its own.

use serde_json::json;

use super::server::PORT;
use super::{NAME, PrometheusContext};
use crate::component::gateway::kinds::TLS_ROUTE;
use crate::component::{Manifest, exposure, load_balancers};
use crate::spec::Exposure;

pub fn objects(context: &PrometheusContext) -> Vec<Manifest> {
    let exposure = context.fleet.spec.advanced_config.exposure;
    let is_balanced = exposure == Exposure::LoadBalancer;
    let pods = json!({"app.kubernetes.io/name": NAME});
    let mut service = json!({"spec": exposure::service(exposure, &pods, PORT)});
    if is_balanced {
        let annotations =
            load_balancers::annotations(&context.resolved.domain, &context.host(), context.spec.private);
        service["metadata"]["annotations"] = json!(annotations);
    }
    // Clients come through the Gateway, whose pods may be in any namespace, or through the load balancer, and have to log in.
    let policy = json!({"spec": {
        "podSelector": {"matchLabels": pods},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": PORT, "protocol": "TCP"}]}],
    }});
    let mut objects = vec![
        context.object("v1", "Service", NAME, service),
        context.object("networking.k8s.io/v1", "NetworkPolicy", NAME, policy),
    ];
    if !is_balanced {
        let mut route = json!({"spec": exposure::route(&context.host(), NAME)});
        if let Some(annotations) = load_balancers::route_annotations(&context.resolved.domain) {
            route["metadata"]["annotations"] = json!(annotations);
        }
        objects.push(context.object(TLS_ROUTE.api_version, TLS_ROUTE.kind, NAME, route));
    }
    objects
}
