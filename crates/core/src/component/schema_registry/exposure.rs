//! The way from outside of Kubernetes to the registry: through the fleet's Gateway, or by a load balancer of its own. TLS
//! ends at the registry.

use serde_json::json;

use super::RegistryContext;
use super::deployment::{PORT, metadata};
use super::kinds::{COMPONENT, NAME, SERVICE};
use crate::component::gateway::kinds::TLS_ROUTE;
use crate::component::{Manifest, exposure, labels, load_balancers, manifest};
use crate::spec::Exposure;

pub fn objects(context: &RegistryContext) -> Vec<Manifest> {
    let Some(domain) = &context.cluster.domain else { return Vec::new() };
    let exposure = context.cluster.fleet_spec.advanced_config.exposure;
    let is_balanced = exposure == Exposure::LoadBalancer;
    let mut of_service = metadata(context);
    if is_balanced {
        let private = context.cluster.spec.advanced_config.private_access;
        of_service =
            labels::annotate(of_service, load_balancers::annotations(domain, &context.host, private));
    }
    let pods = json!({labels::CLUSTER: context.cluster.spec.identifier, COMPONENT: NAME});
    let service = exposure::service(exposure, &pods, PORT);
    let mut objects = vec![manifest::untyped(context.cluster, &SERVICE, &of_service, service)];
    if !is_balanced {
        let annotations = load_balancers::route_annotations(domain).unwrap_or_default();
        let route = exposure::route(&context.host, &context.name());
        let metadata = labels::annotate(metadata(context), annotations);
        objects.push(manifest::untyped(context.cluster, &TLS_ROUTE, &metadata, route));
    }
    objects
}
