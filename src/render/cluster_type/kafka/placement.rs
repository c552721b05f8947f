//! On which hosts and in which zones pods run, and what is mounted into them.

use serde_json::{Map, Value, json};

use super::{Context, oauth, tiered_storage};
use crate::names::Digest;
use crate::render::labels;
use crate::spec::TenancyMode;

/// The label of nodes that says in which zone they are.
const ZONE: &str = "topology.kubernetes.io/zone";
/// The label of nodes that says which host they are.
const HOST: &str = "kubernetes.io/hostname";

/// How long a broker has to hand over its partitions before it is killed. The default of 30 s is too short for the
/// 1,500 replicas that a broker may have, and one that was killed reads its whole log again when it starts.
const SHUTDOWN_SECONDS: u32 = 120;

/// A volume of broker pods: where it comes from and where it is mounted.
pub struct Mount {
    /// Its name in the pod.
    pub name: &'static str,
    /// Its source, as a pod template has it.
    pub source: (&'static str, Value),
    /// The folder. Strimzi allows only `/mnt` and what is below.
    pub path: &'static str,
    /// What changes with the content, where brokers read it only at start.
    pub version: String,
}

/// Tells brokers their zone, so that Kafka puts the copies of a partition into different ones. It doesn't place pods.
pub fn rack(context: &Context) -> Option<Value> {
    (context.zones > 1).then(|| json!({"type": "topology-label", "topologyKey": ZONE}))
}

/// The template of a pool's pods. Everything is here and nothing in the Kafka's own template, since Strimzi doesn't
/// merge the two.
pub fn node_template(context: &Context, (pool, pods): (&str, u32), is_broker: bool) -> Value {
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
            "affinity": affinity(context, is_broker),
            "tolerations": tolerations(context),
            "topologySpreadConstraints": spread(context, pool, pods),
            "volumes": list(mounts.iter().map(volume)),
        },
        "kafkaContainer": (!mounts.is_empty()).then(|| json!({
            "volumeMounts": list(mounts.iter().map(|mount| json!({"name": mount.name, "mountPath": mount.path}))),
            "env": tiered_storage::env(context),
        })),
    })
}

/// The template of the pods of Strimzi's Deployments: they have to run on the same reserved nodes.
pub fn operator_template(context: &Context) -> Option<Value> {
    let tolerations = tolerations(context)?;
    Some(json!({"pod": {"affinity": affinity(context, false), "tolerations": tolerations}}))
}

/// Spreads the pods of a pool: strictly over as many zones as the spec says, or as there are pods, since a copy in each zone
/// is what the zones are for; over hosts as well as possible. Hosts that are too small for a broker, or full, count as
/// empty ones, so that a strict rule would keep a second broker from every large host. Hosts and zones that are reserved
/// for others don't count.
///
/// How many pods may be away at once is left to Strimzi, which makes a PodDisruptionBudget for brokers and controllers
/// together that lets one go at a time, and for a single node none that would hold up its host's maintenance.
fn spread(context: &Context, pool: &str, pods: u32) -> Value {
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

/// Where a pod may run, by tenancy mode.
fn affinity(context: &Context, is_broker: bool) -> Option<Value> {
    let tenant = &context.cluster.namespace;
    match context.tenancy() {
        TenancyMode::Shared => None,
        // Kubernetes keeps such a rule in both directions: no other cluster's node comes to where this broker is.
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

/// Lets pods onto nodes that are reserved for the cluster, whatever the effect of the taint.
fn tolerations(context: &Context) -> Option<Value> {
    (context.tenancy() == TenancyMode::Dedicated)
        .then(|| json!([{"key": labels::DEDICATED, "operator": "Equal", "value": context.cluster.namespace}]))
}

/// An annotation that restarts brokers, one by one, when a file that they read only at start has changed.
fn mounted_versions(mounts: &[Mount]) -> Option<Value> {
    let versions: Map<String, Value> =
        mounts.iter().map(|mount| (mount.name.to_owned(), json!(mount.version))).collect();
    (!versions.is_empty()).then(|| json!({labels::MOUNTED: Digest::of_json(&versions.into()).short()}))
}

fn volume(mount: &Mount) -> Value {
    let (kind, source) = &mount.source;
    json!({"name": mount.name, *kind: source})
}

/// A list, or null where it would be empty.
fn list(items: impl Iterator<Item = Value>) -> Option<Vec<Value>> {
    Some(items.collect::<Vec<_>>()).filter(|items| !items.is_empty())
}
