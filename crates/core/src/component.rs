//! The components of a fleet: one folder and one row of [`COMPONENTS`] each. The modules after this one ask the
//! table and know no component by name.

pub mod clients;
pub mod consequence;
mod console;
mod difference;
pub mod dns_records;
mod exposure;
mod extras;
pub mod fleet_manifest;
mod gateway;
pub mod health;
mod http_workload;
mod kafka;
pub mod kind;
pub mod labels;
pub mod leftovers;
mod load_balancers;
pub mod manifest;
mod monitoring;
mod mount;
pub mod object;
mod object_facts;
mod prometheus;
pub mod requests;
pub mod resources;
mod schema_registry;
mod size;
mod strimzi;
mod topics;
pub mod traffic;

#[cfg(test)]
pub(crate) mod fixtures;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalog::{Condition, HostNames, ResolvedCluster, ResolvedFleet};
use crate::config::Config;
use crate::names::ObjectKey;
pub use clients::{ClientAccess, Endpoint, Login, ServerTrust};
pub use consequence::{Consequences, Verdict};
pub use console::url as console_url;
pub use difference::{Difference, differences};
pub use extras::Extras;
pub use gateway::NAMESPACE as GATEWAY_NAMESPACE;
pub use gateway::kinds::{GATEWAY_CLASS, TLS_ROUTE};
use health::{AppliedCluster, AppliedClusters, FleetObservation, ReadObjects};
pub use kafka::{BROKER_CONTAINER, broker_of, broker_selector, federation, probe, requests_of_units};
pub use kind::KubernetesKind;
pub use labels::DEDICATED;
pub use leftovers::Leftovers;
pub use monitoring::NAMESPACE as MONITORING_NAMESPACE;
pub use monitoring::kinds::{API_VERSION as MONITORING_API, PROMETHEUS};
pub use monitoring::selectors::{PrometheusSelectors, Requirement, SelectedKind, Unselected};
pub use object::{Manifest, SecretEncoding, SecretSlot, Stage};
pub use object_facts::{
    Disk, ObjectFacts, ObjectRole, PlacementNeeds, facts, images_of_pod, images_of_template,
};
pub use prometheus::{
    NAME as PROMETHEUS_ACCOUNT, NAMESPACE as PROMETHEUS_NAMESPACE, follows_clusters, web_configuration,
};
pub use resources::Resources;
pub use schema_registry::url as schema_registry_url;
pub use size::Size;
pub use strimzi::NAMESPACE as OPERATOR_NAMESPACE;
pub use strimzi::kinds::{DEPLOYMENT as OPERATOR, SELECTOR as OPERATOR_SELECTOR};
pub use traffic::{OperatorTraffic, Traffic};

/// Every component, in the order in which their results are joined.
pub static COMPONENTS: &[&Component] = &[
    &strimzi::COMPONENT,
    &gateway::COMPONENT,
    &kafka::COMPONENT,
    &topics::COMPONENT,
    &http_workload::COMPONENT,
    &schema_registry::COMPONENT,
    &console::COMPONENT,
    &monitoring::COMPONENT,
    &prometheus::COMPONENT,
    &dns_records::COMPONENT,
];

/// The interface of a component. A row sets the parts that apply; [`Component::NONE`] has the others.
pub struct Component {
    /// Its Kubernetes kinds, each with what the engines do with it.
    pub kinds: &'static [&'static KubernetesKind],
    /// Whether Streamfleet installs it on a fleet with these extras. Every fleet has what isn't installed.
    pub is_installed: fn(Extras) -> bool,
    /// Its objects on a fleet, shared by all clusters.
    pub in_fleet: fn(&FleetScope) -> Vec<Manifest>,
    /// Its part of a cluster; `None` for a cluster that doesn't use it.
    pub in_cluster: fn(&ResolvedCluster, &Config) -> Option<ClusterPart>,
    /// Its objects in a cluster's namespace beside those of [`Component::in_cluster`], if no pod belongs to them.
    pub beside_cluster: fn(&ResolvedCluster) -> Vec<Manifest>,
    /// Its host names for each cluster that clients outside of Kubernetes reach.
    pub hosts: &'static [HostNames],
    /// Selects the Services by which clients outside of Kubernetes reach it, as a part of the URL's query.
    pub services: Option<&'static str>,
    /// The objects that its operator leaves behind of a cluster.
    pub leftovers: Option<&'static Leftovers>,
    /// Adds its part to the observation of a fleet's health, from the objects that `kinds` says are read for
    /// that. Parts are added in the order of the components.
    pub observe: fn(&AppliedClusters, &ReadObjects, &mut FleetObservation),
    /// What is wrong with it for a cluster at this moment. The judgement of the cluster tells it, and degrades
    /// the cluster by it once it has lasted.
    pub troubles: fn(&AppliedCluster, &ReadObjects) -> Vec<Condition>,
    /// The facts that its objects contain, by kind. A kind has one row, even if several components write it.
    pub objects: &'static [ObjectFacts],
    /// The effects of changes of its objects.
    pub consequences: Consequences,
    /// The API group whose resource definitions are installed with it.
    pub definitions: Option<&'static str>,
    /// The labels that only its pods have.
    pub pod_labels: &'static [&'static str],
    /// What Kafka clients of a cluster need to connect to it. The first component that answers is the cluster's.
    pub clients: fn(&ResolvedCluster) -> Option<ClientAccess>,
}

impl Component {
    const NONE: Component = Component {
        kinds: &[],
        is_installed: |_| false,
        in_fleet: |_| Vec::new(),
        in_cluster: |_, _| None,
        beside_cluster: |_| Vec::new(),
        hosts: &[],
        services: None,
        leftovers: None,
        observe: |_, _, _| {},
        troubles: |_, _| Vec::new(),
        objects: &[],
        consequences: Consequences::NONE,
        definitions: None,
        pod_labels: &[],
        clients: |_| None,
    };
}

/// A fleet with its clusters.
pub struct FleetScope<'a> {
    pub fleet: &'a ResolvedFleet,
    pub clusters: &'a [&'a Arc<ResolvedCluster>],
    pub config: &'a Config,
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

/// The connection data of a cluster's Kafka clients.
pub fn clients(cluster: &ResolvedCluster) -> Option<ClientAccess> {
    COMPONENTS.iter().find_map(|component| (component.clients)(cluster))
}

/// The host names that components give to every cluster, for [`crate::catalog::resolve`], which checks them.
pub fn host_names() -> Vec<HostNames> {
    COMPONENTS.iter().flat_map(|component| component.hosts).copied().collect()
}

/// Every Kubernetes kind that Streamfleet uses, once for each component that does.
pub fn kinds() -> impl Iterator<Item = &'static KubernetesKind> {
    let of_components = COMPONENTS.iter().flat_map(|component| component.kinds);
    kind::OF_KUBERNETES.iter().chain(of_components).copied()
}

/// Whether an object is of an API group that only components define. Their operators act on its objects,
/// whether Streamfleet writes the kind or not.
pub fn is_custom(object: &ObjectKey) -> bool {
    kinds().any(|kind| kind.custom && kind.group() == object.group())
}

/// Whether everything else goes on where the definition of an object isn't installed.
pub fn is_optional(object: &ObjectKey) -> bool {
    kinds().any(|kind| kind.optional && kind.group() == object.group() && kind.kind == object.kind)
}

/// The rows of a kind by whose objects health is judged, and which the daemon therefore watches: one for each
/// component that judges some of them.
pub fn judged_kinds(api_version: &str, kind: &str) -> impl Iterator<Item = &'static KubernetesKind> {
    kinds().filter(move |it| {
        (it.api_version, it.kind) == (api_version, kind)
            && it.health.is_some_and(|source| source.is_watched())
    })
}

/// The objects that operators leave behind of clusters.
pub fn leftovers() -> impl Iterator<Item = &'static Leftovers> {
    COMPONENTS.iter().filter_map(|component| component.leftovers)
}

/// The API versions of kinds that Streamfleet writes on a fleet with these extras and that have to be installed
/// there.
pub fn written_versions(extras: Extras) -> BTreeSet<&'static str> {
    let written = COMPONENTS.iter().flat_map(|component| {
        let installs = (component.is_installed)(extras);
        let is_written = move |kind: &KubernetesKind| {
            kind.is_written() || installs && kind.install_verbs.contains(&"create")
        };
        component.kinds.iter().filter(move |kind| kind.custom && is_written(kind))
    });
    written.map(|kind| kind.api_version).collect()
}

/// Whether the definitions of an API group are installed with a component.
pub fn has_definitions(group: &str) -> bool {
    COMPONENTS.iter().any(|component| component.definitions == Some(group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::OF_FLEETS;

    #[test]
    fn no_host_name_of_a_component_can_be_that_of_another_cluster_or_component() {
        let hosts = host_names();
        let all = || hosts.iter().map(|names| names.prefix).chain(OF_FLEETS);
        let prefixes: BTreeSet<_> = all().collect();
        assert_eq!(prefixes.len(), all().count(), "{prefixes:?}");
        assert!(
            prefixes.iter().all(|prefix| prefix.ends_with("--") && !prefix.contains('.')),
            "{prefixes:?}"
        );
    }
}
