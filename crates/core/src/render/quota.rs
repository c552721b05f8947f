//! Limits of a cluster's namespace.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    LimitRange, LimitRangeItem, LimitRangeSpec, ResourceQuota, ResourceQuotaSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::catalog::ResolvedCluster;
use crate::render::resources::{Resources, count, mebibytes, millis};
use crate::render::sizing::Sizing;
use crate::render::{Manifest, Stage, hosts, labels, manifest};
use crate::spec::Operations;

/// Pods beside brokers, controllers and operators: a shell, a job that creates topics.
const SPARE_PODS: u64 = 10;
const SPARE: Resources = Resources { cpu_millis: 1_000, memory_mib: 2_048 };
/// A Deployment starts the new pod before it stops the old one, so each pod of the operators counts twice.
/// Brokers and controllers don't: Strimzi deletes the old pod before it starts the new one.
const SURGE: u64 = 2;
/// A broker that is being removed stays until its last partition has moved, and its disk stays longer. A
/// quota that shrank with the number of brokers would prevent such a broker from restarting while it still
/// has data. So there is room for twice the brokers, and the units can be halved in one change.
const REMOVED_BROKER_FACTOR: u64 = 2;

/// The ResourceQuota. It keeps a mistake in one namespace from starving the others. It isn't a second place
/// to size a cluster, so every number is generous: Strimzi hangs under a quota that is too tight.
///
/// | limit | sum of |
/// |---|---|
/// | `requests.cpu`, `*.memory` | brokers twice (`LEAVING`), controllers, the operators' pods twice (`SURGE`), spare |
/// | `pods` | the same pods, counted |
/// | `persistentvolumeclaims` | one per broker, twice, and one per controller |
/// | `services.loadbalancers` | one per broker, twice, and one for the bootstrap address, if any |
///
/// `requests.storage` is not limited: claims of removed brokers stay and would keep other volumes from
/// growing.
pub fn resource_quota(cluster: &ResolvedCluster, sizing: &Sizing) -> Manifest {
    let brokers = REMOVED_BROKER_FACTOR * u64::from(sizing.brokers);
    let controllers = u64::from(sizing.controllers);
    let operators = operators(&cluster.spec.advanced_config.operations, sizing);
    let sum = |broker: u32, controller: u32, of: fn(Resources) -> u64| {
        let operators: u64 = operators.iter().map(|&pod| SURGE * of(pod)).sum();
        brokers * u64::from(broker) + controllers * u64::from(controller) + operators + of(SPARE)
    };
    let cpu = sum(sizing.broker_cpu_millis, sizing.controller_cpu_millis, |r| r.cpu_millis);
    let memory = sum(sizing.broker_memory_mib, sizing.controller_memory_mib, |r| r.memory_mib);
    let pods = brokers + controllers + SURGE * operators.len() as u64 + SPARE_PODS;
    let load_balancers = if hosts::has_load_balancers(cluster) { brokers + 1 } else { 0 };
    let spec = ResourceQuotaSpec {
        hard: Some(quantities([
            ("requests.cpu", millis(cpu)),
            ("requests.memory", mebibytes(memory)),
            ("limits.memory", mebibytes(memory)),
            ("pods", count(pods)),
            ("persistentvolumeclaims", count(brokers + controllers)),
            ("services.loadbalancers", count(load_balancers)),
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

/// The pods of Strimzi's Deployments. The entity operator's pod has a container for users, and optionally one
/// for topics.
fn operators(operations: &Operations, sizing: &Sizing) -> Vec<Resources> {
    // Metrics need no pods of their own.
    let Operations { metrics: _, kafka_exporter, topic_operator } = *operations;
    let Resources { cpu_millis, memory_mib } = Resources::ENTITY_OPERATOR;
    let containers = 1 + u64::from(topic_operator);
    let entity_operator =
        Resources { cpu_millis: containers * cpu_millis, memory_mib: containers * memory_mib };
    let cruise_control = sizing.rebalances.then(|| Resources::cruise_control(sizing));
    let exporter = kafka_exporter.then_some(Resources::KAFKA_EXPORTER);
    std::iter::once(entity_operator).chain(cruise_control).chain(exporter).collect()
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
