//! Limits of a cluster's namespace.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    LimitRange, LimitRangeItem, LimitRangeSpec, ResourceQuota, ResourceQuotaSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::catalog::ResolvedCluster;
use crate::component::resources::{count, mebibytes, millis};
use crate::component::{ClusterPart, Manifest, QuotaShare, Resources, Stage, labels, manifest};

/// Pods beside those of the components: a shell, a job that creates topics.
const SPARE_PODS: u64 = 10;
const SPARE: Resources = Resources { cpu_millis: 1_000, memory_mib: 2_048 };

/// The ResourceQuota: the shares of all components, and some to spare. It keeps a mistake in one namespace
/// from starving the others. It isn't a second place to size a cluster.
///
/// `requests.storage` is not limited: claims of removed brokers stay and would keep other volumes from
/// growing.
pub fn resource_quota(cluster: &ResolvedCluster, parts: &[ClusterPart]) -> Manifest {
    let sum = |of: fn(&QuotaShare) -> u64| parts.iter().map(|part| of(&part.quota)).sum::<u64>();
    let memory = mebibytes(sum(|share| share.requests.memory_mib) + SPARE.memory_mib);
    let spec = ResourceQuotaSpec {
        hard: Some(quantities([
            ("requests.cpu", millis(sum(|share| share.requests.cpu_millis) + SPARE.cpu_millis)),
            ("requests.memory", memory.clone()),
            ("limits.memory", memory),
            ("pods", count(sum(|share| share.pods) + SPARE_PODS)),
            ("persistentvolumeclaims", count(sum(|share| share.volume_claims))),
            ("services.loadbalancers", count(sum(|share| share.load_balancers))),
        ])),
        ..ResourceQuotaSpec::default()
    };
    let quota = ResourceQuota {
        metadata: labels::metadata(cluster, cluster.spec.identifier.as_str()),
        spec: Some(spec),
        ..ResourceQuota::default()
    };
    manifest::typed(cluster, Stage::Configuration, &quota)
}

/// The LimitRange. A namespace with a quota refuses containers without a size, such as Strimzi's init
/// containers or a shell, so they get a default that is enough for them.
pub fn limit_range(cluster: &ResolvedCluster) -> Manifest {
    let item = LimitRangeItem {
        type_: "Container".to_owned(),
        default: Some(quantities([("memory", mebibytes(256))])),
        default_request: Some(quantities([("cpu", millis(50)), ("memory", mebibytes(256))])),
        ..LimitRangeItem::default()
    };
    let limits = LimitRange {
        metadata: labels::metadata(cluster, cluster.spec.identifier.as_str()),
        spec: Some(LimitRangeSpec { limits: vec![item] }),
    };
    manifest::typed(cluster, Stage::Configuration, &limits)
}

fn quantities<const N: usize>(entries: [(&str, String); N]) -> BTreeMap<String, Quantity> {
    entries.map(|(name, amount)| (name.to_owned(), Quantity(amount))).into()
}
