//! The addresses of a cluster's listeners, and how clients log in. Both the renderer and the output for
//! clients use this module, so they can't differ.

use super::kinds::USER;
use super::listeners::{ADMIN_PORT, EXTERNAL_PORT, INTERNAL_PORT};
use super::user;
use crate::catalog::{HostNames, ResolvedCluster};
use crate::component::{ClientAccess, Endpoint, Login, ServerTrust};
use crate::component::{gateway, load_balancers};
use crate::spec::{Authentication, Exposure};

pub const INTERNAL: &str = "tls";
pub const EXTERNAL: &str = "external";
pub const ADMIN: &str = "admin";

/// Node pools assign the numbers 0 to 999 to brokers.
pub const BROKERS: HostNames =
    HostNames { owner: "brokers", prefix: "broker-{nodeId}--", last: 999, is_used: |_| true };

/// Returns the same listeners, in the same order, as are rendered.
pub fn clients(cluster: &ResolvedCluster) -> ClientAccess {
    let internal = cluster.spec.advanced_config.cluster_access.is_internal();
    let internal = internal.then(|| inside(cluster, INTERNAL, INTERNAL_PORT, login(cluster)));
    let external = load_balancers::external_domain(cluster).map(|domain| Endpoint {
        listener: EXTERNAL,
        address: format!("{}:{}", domain.bootstrap_host(&cluster.spec.identifier), external_port(cluster)),
        login: login(cluster),
        trust: ServerTrust::BaseDomain,
    });
    let admin = inside(cluster, ADMIN, ADMIN_PORT, Login::Scram);
    ClientAccess {
        endpoints: internal.into_iter().chain(external).chain([admin]).collect(),
        admin_secret: user::admin_name(cluster),
        user_kind: USER.kind,
        ca_secret: format!("{}-cluster-ca-cert", cluster.spec.identifier),
    }
}

/// How clients log in, except for the administrator on its own listener.
pub fn login(cluster: &ResolvedCluster) -> Login {
    match (&cluster.identity_provider, cluster.spec.advanced_config.authentication) {
        (Some(_), _) => Login::OAuth,
        (None, Authentication::ScramSha512) => Login::Scram,
        (None, Authentication::Mtls) => Login::Mtls,
    }
}

/// The address of Strimzi's bootstrap Service from any namespace of the Kubernetes cluster. The name is
/// included in the certificates that Strimzi creates for brokers.
fn inside(cluster: &ResolvedCluster, listener: &'static str, port: u16, login: Login) -> Endpoint {
    let (name, namespace) = (&cluster.spec.identifier, &cluster.namespace);
    let address = format!("{name}-kafka-bootstrap.{namespace}.svc:{port}");
    Endpoint { listener, address, login, trust: ServerTrust::ClusterCa }
}

/// The port for clients from outside: the listener's own at a load balancer, the Gateway's otherwise.
fn external_port(cluster: &ResolvedCluster) -> u16 {
    match cluster.fleet_spec.advanced_config.exposure {
        Exposure::LoadBalancer => EXTERNAL_PORT,
        Exposure::TlsRoute => gateway::PORT,
    }
}
