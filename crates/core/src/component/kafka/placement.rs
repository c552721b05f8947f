//! The placement of pods on hosts and zones, and what is mounted into them.

use serde_json::{Map, Value, json};

use super::{KafkaContext, oauth, tiered_storage};
use crate::catalog::ResolvedCluster;
use crate::component::labels::{self, ZONE};
use crate::names::Digest;
use crate::spec::TenancyMode;

pub const HOST: &str = "kubernetes.io/hostname";

/// How long a broker may take to hand over its partitions before it is killed. The default of 30 s is too
/// short for the 1,500 replicas that a broker may have, and a killed broker reads its whole log on its next
/// start.
const SHUTDOWN_SECONDS: u32 = 120;

pub struct Mount {
    pub name: &'static str,
    pub source: (&'static str, Value),
    /// Strimzi allows only `/mnt` and below.
    pub path: &'static str,
    /// Changes with the content, which brokers read only at start.
    pub version: String,
}

/// Gives brokers their zone, so that Kafka puts the replicas of a partition into different zones. It doesn't
/// place pods.
pub fn rack(context: &KafkaContext) -> Option<Value> {
    (context.zones > 1).then(|| json!({"type": "topology-label", "topologyKey": ZONE}))
}

/// The pod template of a pool. It contains everything, and the Kafka has no template, since Strimzi doesn't
/// merge the two.
pub fn node_template(context: &KafkaContext, (pool, pods): (&str, u32), is_broker: bool) -> Value {
    let mounts: Vec<Mount> = if is_broker {
        oauth::mount(context).into_iter().chain(tiered_storage::mounts(context)).collect()
    } else {
        Vec::new()
    };
    json!({
        "pod": {
            "metadata": {
                "labels": {labels::TENANT: context.cluster.namespace},
                "annotations": mounted_versions(&mounts),
            },
            "terminationGracePeriodSeconds": is_broker.then_some(SHUTDOWN_SECONDS),
            "affinity": affinity(context.cluster, is_broker),
            "tolerations": tolerations(context.cluster),
            "topologySpreadConstraints": spread(context, pool, pods),
            "volumes": list(mounts.iter().map(volume)),
        },
        "kafkaContainer": (!mounts.is_empty()).then(|| json!({
            "volumeMounts": list(mounts.iter().map(|mount| json!({"name": mount.name, "mountPath": mount.path}))),
            "env": tiered_storage::env(context),
        })),
    })
}

/// The pod template of Strimzi's Deployments, which have to run on the same reserved nodes.
pub fn operator_template(context: &KafkaContext) -> Option<Value> {
    let tolerations = tolerations(context.cluster)?;
    Some(json!({"pod": {"affinity": affinity(context.cluster, false), "tolerations": tolerations}}))
}

/// Spreads the pods of a pool strictly over zones, as many as the spec says or as there are pods, because a
/// replica in each zone is the purpose of zones. Hosts are only preferred: a host that is too small or full
/// counts as an empty one, so a strict rule would keep a second broker from every large host. Hosts and zones
/// that are reserved for others don't count.
///
/// Strimzi limits how many pods may be away at once. It creates one PodDisruptionBudget for brokers and
/// controllers together that allows one disruption, and none for a single node, where it would block
/// maintenance of the host.
fn spread(context: &KafkaContext, pool: &str, pods: u32) -> Value {
    let constraint = |topology: &str, when_unsatisfiable: &str, domains: Option<u32>| {
        json!({
            "maxSkew": 1,
            "minDomains": domains,
            "nodeTaintsPolicy": "Honor",
            "topologyKey": topology,
            "whenUnsatisfiable": when_unsatisfiable,
            "labelSelector": {"matchLabels": {
                "strimzi.io/cluster": context.name(),
                "strimzi.io/pool-name": pool,
            }},
        })
    };
    let zones = (context.zones > 1).then(|| constraint(ZONE, "DoNotSchedule", Some(context.zones.min(pods))));
    zones.into_iter().chain([constraint(HOST, "ScheduleAnyway", None)]).collect()
}

pub fn affinity(cluster: &ResolvedCluster, is_broker: bool) -> Option<Value> {
    let tenant = &cluster.namespace;
    match cluster.spec.tenancy_mode {
        TenancyMode::Shared => None,
        // Kubernetes applies required anti-affinity in both directions: no broker of another cluster is
        // placed on the host of this one.
        TenancyMode::Isolated => is_broker.then(|| {
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
                "topologyKey": HOST,
                "namespaceSelector": {},
                "labelSelector": {"matchExpressions": [
                    {"key": "strimzi.io/component-type", "operator": "In", "values": ["kafka"]},
                    {"key": labels::TENANT, "operator": "NotIn", "values": [tenant]},
                ]},
            }]}})
        }),
        TenancyMode::Dedicated => Some(json!({"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": labels::DEDICATED, "operator": "In", "values": [tenant]},
            ]}]},
        }})),
    }
}

/// Lets pods run on nodes that are reserved for the cluster, whatever the effect of the taint.
pub fn tolerations(cluster: &ResolvedCluster) -> Option<Value> {
    (cluster.spec.tenancy_mode == TenancyMode::Dedicated)
        .then(|| json!([{"key": labels::DEDICATED, "operator": "Equal", "value": cluster.namespace}]))
}

/// An annotation that triggers a rolling restart of the brokers when a file that they read only at start
/// changes.
fn mounted_versions(mounts: &[Mount]) -> Option<Value> {
    let versions: Map<String, Value> =
        mounts.iter().map(|mount| (mount.name.to_owned(), json!(mount.version))).collect();
    (!versions.is_empty()).then(|| json!({labels::MOUNTED: Digest::of_json(&versions.into()).short()}))
}

fn volume(mount: &Mount) -> Value {
    let (kind, source) = &mount.source;
    json!({"name": mount.name, *kind: source})
}

/// Null instead of an empty list.
fn list(items: impl Iterator<Item = Value>) -> Option<Vec<Value>> {
    Some(items.collect::<Vec<_>>()).filter(|items| !items.is_empty())
}
