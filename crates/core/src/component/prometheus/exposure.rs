//! The way from outside of Kubernetes to Prometheus: through the fleet's Gateway, or by a load balancer of its own.

use serde_json::json;

use super::server::PORT;
use super::{NAME, PrometheusContext};
use crate::component::gateway::kinds::TLS_ROUTE;
use crate::component::{Manifest, gateway, load_balancers};
use crate::spec::Exposure;

pub fn objects(context: &PrometheusContext) -> Vec<Manifest> {
    let is_balanced = context.fleet.spec.advanced_config.exposure == Exposure::LoadBalancer;
    let selector = json!({"app.kubernetes.io/name": NAME});
    let mut service = json!({
        "spec": {
            "type": if is_balanced { "LoadBalancer" } else { "ClusterIP" },
            "selector": selector,
            "ports": [{"name": "https", "port": gateway::PORT, "targetPort": PORT, "protocol": "TCP"}],
        },
    });
    if is_balanced {
        let annotations =
            load_balancers::annotations(&context.resolved.domain, &context.host(), context.spec.private);
        service["metadata"]["annotations"] = json!(annotations);
    }
    // Clients come through the Gateway, whose pods may be in any namespace, or through the load balancer, and have to log in.
    let policy = json!({"spec": {
        "podSelector": {"matchLabels": selector},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": PORT, "protocol": "TCP"}]}],
    }});
    let mut objects = vec![
        context.object("v1", "Service", NAME, service),
        context.object("networking.k8s.io/v1", "NetworkPolicy", NAME, policy),
    ];
    if !is_balanced {
        let mut route = json!({
            "spec": {
                "parentRefs": [gateway::parent()],
                "hostnames": [context.host()],
                "rules": [{"backendRefs": [{"name": NAME, "port": gateway::PORT}]}],
            },
        });
        if let Some(annotations) = load_balancers::route_annotations(&context.resolved.domain) {
            route["metadata"]["annotations"] = json!(annotations);
        }
        objects.push(context.object(TLS_ROUTE.api_version, TLS_ROUTE.kind, NAME, route));
    }
    objects
}
