//! Sizes of clusters by the requests of all their pods, which nodes have to satisfy.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::component::Resources;
use crate::names::{Json, ResourceKey};
use crate::plan::preflight::{NodeCapacity, PreflightFacts, amount, requested, requested_by_pod};
use crate::plan::site::FleetInputs;
use crate::plan::{Change, Step, Verb};

/// The requests of the pods of a cluster or of a fleet's clusters: brokers, controllers, the topic and user
/// operators, Cruise Control and Kafka Exporter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// The number of nodes that are brokers, including those that are controllers, too.
    pub brokers: u64,
    /// The number of nodes that are only controllers.
    pub controllers: u64,
    /// The processors that all pods request, in millicores.
    pub cpu_millis: u64,
    /// The memory that all pods request, in MiB.
    pub memory_mib: u64,
    /// The disks of brokers and controllers, in GiB.
    pub disk_gib: u64,
}

/// A change of size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeChange {
    /// The current size.
    pub before: Size,
    /// The new size.
    pub after: Size,
}

/// The sizes on a fleet on which some change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// All clusters together, once everything that doesn't wait is done.
    pub fleet: SizeChange,
    /// The changed clusters with the sizes that their specs ask for, whether they wait or not.
    pub clusters: BTreeMap<ResourceKey, SizeChange>,
    /// The capacity of the fleet's nodes for its clusters, less the requests of other pods; null if unknown.
    pub room: Option<NodeCapacity>,
}

/// The fields of a KafkaNodePool that determine its size.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PoolSize {
    pub spec: Nodes,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Nodes {
    pub replicas: u64,
    pub roles: Vec<String>,
    storage: Storage,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Storage {
    volumes: Vec<Volume>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Volume {
    size: Value,
}

/// The parts of a Kafka object with a container of their own, beside brokers and controllers.
const OPERATORS: [&str; 4] = [
    "/spec/entityOperator/topicOperator",
    "/spec/entityOperator/userOperator",
    "/spec/cruiseControl",
    "/spec/kafkaExporter",
];

pub(super) fn of(site: &FleetInputs, changes: &[Change], facts: Option<&PreflightFacts>) -> Option<Sizes> {
    let size = |step: &Step, body: Option<&Json>| body.map(|body| Size::of_object(&step.object.kind, body));
    let (deletions, others): (Vec<_>, Vec<_>) = changes.iter().partition(|it| it.verb == Verb::Delete);
    // Nothing is deleted while a deletion waits. Of a waiting change and its repair, only the change counts.
    let (going, staying): (Vec<_>, Vec<_>) = deletions.into_iter().partition(|it| it.waiting.is_empty());
    let mut counted = BTreeSet::new();
    let once = going.iter().chain(&others).copied().filter(|change| counted.insert(&change.resource));
    let resized = once.filter_map(|change| {
        let steps = || change.steps.iter();
        let before = steps().filter_map(|step| size(step, step.before.as_ref())).sum();
        let after = steps().filter_map(|step| size(step, step.after.as_ref().map(|it| &it.body))).sum();
        (before != after).then_some((change, SizeChange { before, after }))
    });
    let resized: Vec<(&Change, SizeChange)> = resized.collect();
    if resized.is_empty() {
        return None;
    }
    let mut desired = by_owner(site);
    // A deleted resource may still be rendered, and one that stays without a spec may not be.
    for change in staying {
        let there = || change.steps.iter().filter_map(|step| size(step, step.before.as_ref())).sum();
        desired.entry(&change.resource).or_insert_with(there);
    }
    for change in going {
        desired.remove(&change.resource);
    }
    // Objects without a step are already as they should be.
    let cluster = |(change, part): &(&Change, SizeChange)| {
        let wanted = desired.get(&change.resource).copied().unwrap_or_default();
        let before = wanted.less(part.after).plus(part.before);
        (change.resource.clone(), SizeChange { before, after: wanted })
    };
    let all: Size = desired.values().copied().sum();
    let fleet = resized.iter().fold(SizeChange { before: all, after: all }, |sum, (change, part)| {
        let back = |size: Size| size.less(part.after).plus(part.before);
        let after = if change.waiting.is_empty() { sum.after } else { back(sum.after) };
        SizeChange { before: back(sum.before), after }
    });
    let clusters = resized.iter().map(cluster).collect();
    Some(Sizes { fleet, clusters, room: facts.and_then(|facts| facts.room_beside(&namespaces(site))) })
}

fn by_owner<'a>(site: &FleetInputs<'a>) -> BTreeMap<&'a ResourceKey, Size> {
    let mut sizes: BTreeMap<&ResourceKey, Size> = BTreeMap::new();
    for object in site.desired.into_iter().flat_map(|objects| objects.values()) {
        let size = Size::of_object(&object.key.kind, &object.body);
        if size != Size::default() {
            let sum = sizes.entry(&object.owner).or_default();
            *sum = sum.plus(size);
        }
    }
    sizes
}

/// Returns the namespaces of the fleet's own pods, whose requests are part of the sizes already.
pub(super) fn namespaces<'a>(site: &FleetInputs<'a>) -> BTreeSet<&'a str> {
    let objects = site.desired.into_iter().flat_map(|objects| objects.keys());
    objects.filter_map(|key| key.namespace.as_deref()).collect()
}

impl Size {
    /// Returns the requests of the pods of an object. An unreadable object counts as nothing.
    pub(super) fn of_object(kind: &str, body: &Json) -> Size {
        match kind {
            "KafkaNodePool" => Size::of_pool(body),
            "Kafka" => Size::of_operators(body),
            _ => Size::default(),
        }
    }

    fn of_pool(pool: &Json) -> Size {
        let Nodes { replicas, roles, storage } = pool.read::<PoolSize>().unwrap_or_default().spec;
        let node = pool.value().pointer("/spec").map(requested).unwrap_or_default();
        let each = |amount: u64| replicas.saturating_mul(amount);
        let disk: f64 = storage.volumes.iter().filter_map(|volume| amount(&volume.size)).sum();
        let is_broker = roles.iter().any(|role| role == "broker");
        let [brokers, controllers] = if is_broker { [replicas, 0] } else { [0, replicas] };
        Size {
            brokers,
            controllers,
            cpu_millis: each(node.cpu_millis),
            memory_mib: each(node.memory_mib),
            // The value is whole GiB, far below the limit of exact floating-point integers.
            disk_gib: each((disk / f64::from(1 << 30)).round() as u64),
        }
    }

    fn of_operators(kafka: &Json) -> Size {
        let kafka = kafka.value();
        OPERATORS.iter().filter_map(|part| kafka.pointer(part)).map(|part| Size::from(requested(part))).sum()
    }

    pub(super) fn of_deployment(deployment: &Json) -> Size {
        let deployment = deployment.value();
        let replicas = deployment.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
        let pod = deployment.pointer("/spec/template/spec").map(requested_by_pod).unwrap_or_default();
        let each = |amount: u64| amount.saturating_mul(replicas);
        Size { cpu_millis: each(pod.cpu_millis), memory_mib: each(pod.memory_mib), ..Size::default() }
    }

    fn both(self, other: Size, join: fn(u64, u64) -> u64) -> Size {
        Size {
            brokers: join(self.brokers, other.brokers),
            controllers: join(self.controllers, other.controllers),
            cpu_millis: join(self.cpu_millis, other.cpu_millis),
            memory_mib: join(self.memory_mib, other.memory_mib),
            disk_gib: join(self.disk_gib, other.disk_gib),
        }
    }

    fn plus(self, other: Size) -> Size {
        self.both(other, u64::saturating_add)
    }

    fn less(self, other: Size) -> Size {
        self.both(other, u64::saturating_sub)
    }
}

impl From<Resources> for Size {
    fn from(Resources { cpu_millis, memory_mib }: Resources) -> Size {
        Size { cpu_millis, memory_mib, ..Size::default() }
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Size>>(sizes: I) -> Size {
        sizes.fold(Size::default(), Size::plus)
    }
}
