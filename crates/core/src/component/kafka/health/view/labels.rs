//! The labels that Strimzi gives to the objects of a cluster.

/// Strimzi's label with the cluster that an object belongs to.
pub(super) const CLUSTER: &str = "strimzi.io/cluster";
/// Strimzi's label with the node pool that an object belongs to.
pub(super) const POOL: &str = "strimzi.io/pool-name";
