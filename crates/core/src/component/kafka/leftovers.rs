//! Objects that outlive a Kafka cluster: the disks of brokers that were removed earlier, and the
//! ClusterRoleBinding by which brokers learn their zone.

use super::kinds::{KAFKA, NODE_POOL, ZONE_BINDING};
use crate::component::leftovers::Leftovers;
use crate::names::ObjectKey;

pub static LEFTOVERS: Leftovers = Leftovers {
    label: "strimzi.io/cluster",
    cluster: &KAFKA,
    nodes: &NODE_POOL,
    disks_id: &["status", "clusterId"],
    binding: |namespace, cluster| ObjectKey {
        namespace: None,
        kind: ZONE_BINDING.kind.to_owned(),
        name: format!("strimzi-{namespace}-{cluster}-kafka-init"),
        api_version: ZONE_BINDING.api_version.to_owned(),
    },
    is_binding: |key| {
        key.kind == ZONE_BINDING.kind && key.name.starts_with("strimzi-") && key.name.ends_with("-kafka-init")
    },
};
