//! Where clients find the listeners of a cluster, and what they log in with. Rendering and what clients are told both
//! take it from here, so that they can't differ.

use super::listeners::{ADMIN_PORT, EXTERNAL_PORT, INTERNAL_PORT};
use super::user;
use crate::catalog::ResolvedCluster;
use crate::render::cluster_type::{Clients, Endpoint, Login, ServerTrust};
use crate::render::{gateway, hosts};
use crate::spec::{Authentication, Exposure};

/// The listener for clients inside of Kubernetes.
pub const INTERNAL: &str = "tls";
/// The listener for clients outside of Kubernetes.
pub const EXTERNAL: &str = "external";
/// The listener for the administrator.
pub const ADMIN: &str = "admin";

/// Everything that clients are told: the same listeners, in the same order, as are rendered.
pub fn clients(cluster: &ResolvedCluster) -> Clients {
    let internal = cluster.spec.advanced_config.cluster_access.is_internal();
    let internal = internal.then(|| inside(cluster, INTERNAL, INTERNAL_PORT, login(cluster)));
    let external = hosts::external_domain(cluster).map(|domain| Endpoint {
        listener: EXTERNAL,
        address: format!("{}:{}", domain.bootstrap_host, external_port(cluster)),
        login: login(cluster),
        trust: ServerTrust::BaseDomain,
    });
    let admin = inside(cluster, ADMIN, ADMIN_PORT, Login::Scram);
    Clients {
        endpoints: internal.into_iter().chain(external).chain([admin]).collect(),
        admin_secret: user::admin_name(cluster),
        ca_secret: format!("{}-cluster-ca-cert", cluster.spec.identifier),
    }
}

/// How clients log in, other than the administrator at the listener of its own.
pub fn login(cluster: &ResolvedCluster) -> Login {
    match (&cluster.identity_provider, cluster.spec.advanced_config.authentication) {
        (Some(_), _) => Login::OAuth,
        (None, Authentication::ScramSha512) => Login::Scram,
        (None, Authentication::Mtls) => Login::Mtls,
    }
}

/// The address that Strimzi's Service for starting has in all namespaces of the Kubernetes cluster. The name is in the
/// certificates that Strimzi makes for brokers.
fn inside(cluster: &ResolvedCluster, listener: &'static str, port: u16, login: Login) -> Endpoint {
    let (name, namespace) = (&cluster.spec.identifier, &cluster.namespace);
    let address = format!("{name}-kafka-bootstrap.{namespace}.svc:{port}");
    Endpoint { listener, address, login, trust: ServerTrust::ClusterCa }
}

/// The port that clients connect to from outside: the listener's own at a load balancer, the Gateway's at a Gateway.
fn external_port(cluster: &ResolvedCluster) -> u16 {
    match cluster.fleet_spec.advanced_config.exposure {
        Exposure::LoadBalancer => EXTERNAL_PORT,
        Exposure::TlsRoute => gateway::PORT,
    }
}
