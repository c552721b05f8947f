//! The observation of a fleet, assembled from those of its components.

use std::collections::BTreeMap;

use super::{AppliedCluster, ClusterObservation, GatewayWithoutAddress, OperatorState, ReadObjects};
use crate::catalog::{Condition, ResourceStatus};
use crate::component::COMPONENTS;
use crate::names::ResourceKey;

/// The clusters of a fleet as they were last applied.
pub type AppliedClusters = BTreeMap<ResourceKey, AppliedCluster>;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetObservation {
    pub operator: OperatorState,
    /// The clusters that could be observed. A missing one is neither healthy nor unhealthy.
    pub clusters: BTreeMap<ResourceKey, ClusterObservation>,
    /// The topics and users of clusters, as their operator judges them.
    pub on_clusters: BTreeMap<ResourceKey, ResourceStatus>,
    /// One for each kind that can't be observed, with the remedy.
    pub unobservable: Vec<Condition>,
    /// The address of the Gateway that clients connect through.
    pub gateway: Option<String>,
    /// Set if the Gateway exists and has no address.
    pub unserved: Option<GatewayWithoutAddress>,
}

/// The observation of a fleet, from everything that was read.
pub fn observation(wanted: &AppliedClusters, read: &ReadObjects) -> FleetObservation {
    let unobservable = read.refusals().cloned().collect();
    let mut seen = FleetObservation { unobservable, ..FleetObservation::default() };
    COMPONENTS.iter().for_each(|component| (component.observe)(wanted, read, &mut seen));
    for (key, cluster) in &mut seen.clusters {
        let wanted = wanted.get(key).into_iter();
        let of_component = wanted.flat_map(|it| COMPONENTS.iter().flat_map(|of| (of.troubles)(it, read)));
        cluster.troubles.extend(of_component);
    }
    seen
}
