//! The way from outside of Kubernetes to a workload with TLS and a login of its own: through the fleet's Gateway, or by a
//! load balancer.

use serde_json::{Value, json};

use crate::component::{gateway, load_balancers};
use crate::spec::Exposure;

/// The spec of its Service.
pub fn service(exposure: Exposure, pods: &Value, port: u16) -> Value {
    json!({
        "type": match exposure {
            Exposure::LoadBalancer => "LoadBalancer",
            Exposure::TlsRoute => "ClusterIP",
        },
        "selector": pods,
        "ports": [{"name": "https", "port": gateway::PORT, "targetPort": port, "protocol": "TCP"}],
    })
}

/// Whether a Service is a load balancer.
pub fn is_balanced(service: &Value) -> bool {
    service.pointer("/spec/type").is_some_and(|kind| kind == "LoadBalancer")
}

/// Whether a Service is a load balancer for everybody.
pub fn is_public(service: &Value) -> bool {
    let annotations = service.pointer("/metadata/annotations");
    is_balanced(service) && !annotations.is_some_and(load_balancers::is_private)
}

/// The spec of its TLSRoute, from a host name to its Service.
pub fn route(host: &str, service: &str) -> Value {
    json!({
        "parentRefs": [gateway::parent()],
        "hostnames": [host],
        "rules": [{"backendRefs": [{"name": service, "port": gateway::PORT}]}],
    })
}
