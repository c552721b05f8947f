//! What runs on a fleet: one folder and one row of [`COMPONENTS`] each. The modules after this one ask the
//! table and know no component by name.

pub mod clients;
pub mod fleet_manifest;
mod gateway;
mod hosts;
mod kafka;
pub mod kind;
pub mod labels;
pub mod manifest;
pub mod object;
pub mod resources;
mod strimzi;
pub mod traffic;

#[cfg(test)]
pub(crate) mod fixtures;

use crate::catalog::{ResolvedCluster, ResolvedFleet};
use crate::config::Config;
pub use clients::{ClientAccess, Endpoint, Login, ServerTrust};
pub use gateway::{NAMESPACE as GATEWAY_NAMESPACE, is_private, is_routed};
pub use kafka::requests_of_units;
pub use kind::KubernetesKind;
pub use labels::DEDICATED;
pub use object::{Manifest, SecretEncoding, SecretSlot, Stage};
pub use resources::Resources;
pub use strimzi::NAMESPACE as OPERATOR_NAMESPACE;
pub use traffic::{OperatorTraffic, Traffic};

/// Every component, in the order in which their answers are joined.
pub static COMPONENTS: [&Component; 3] = [&strimzi::COMPONENT, &gateway::COMPONENT, &kafka::COMPONENT];

/// What the engines ask of a component. A row names what applies; the rest is in [`Component::NONE`].
pub struct Component {
    /// The Kubernetes kinds that it uses beside those that every cluster has.
    pub kinds: &'static [KubernetesKind],
    /// Its objects on a fleet, shared by all clusters.
    pub in_fleet: fn(&ResolvedFleet, &Config) -> Vec<Manifest>,
    /// Its part of a cluster; `None` for a cluster that doesn't use it.
    pub in_cluster: fn(&ResolvedCluster, &Config) -> Option<ClusterPart>,
    /// What clients of a cluster need to connect to it.
    pub clients: fn(&ResolvedCluster) -> Option<ClientAccess>,
}

impl Component {
    const NONE: Component =
        Component { kinds: &[], in_fleet: |_, _| Vec::new(), in_cluster: |_, _| None, clients: |_| None };
}

/// A component's part of one cluster, in the cluster's namespace.
pub struct ClusterPart {
    pub objects: Vec<Manifest>,
    pub traffic: Traffic,
    /// The most that its pods may take. Whatever else runs in the namespace is not included.
    pub quota: QuotaShare,
    /// Whether all its pods fit the pod security level `restricted`. Otherwise they fit `baseline`.
    pub is_restricted: bool,
}

/// A component's share of the quota of a cluster's namespace.
#[derive(Debug, Clone, Copy, Default)]
pub struct QuotaShare {
    pub requests: Resources,
    pub pods: u64,
    pub volume_claims: u64,
    pub load_balancers: u64,
}

/// What clients of a cluster need to connect.
pub fn clients(cluster: &ResolvedCluster) -> Option<ClientAccess> {
    COMPONENTS.iter().find_map(|component| (component.clients)(cluster))
}
