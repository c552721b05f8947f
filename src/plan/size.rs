//! How large clusters are and become, by the node pools that hold them: what nodes have to have for them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::names::{Json, ResourceKey, quantity};
use crate::plan::preflight::{Facts, Room};
use crate::plan::site::Site;
use crate::plan::{Change, Step};

/// What the brokers and controllers of a cluster, or of a fleet, ask of Kubernetes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// How many nodes are brokers, be they controllers, too, or not.
    pub brokers: u64,
    /// How many nodes are controllers and nothing else.
    pub controllers: u64,
    /// Their processors, in millicores.
    pub cpu_millis: u64,
    /// Their memory, in MiB.
    pub memory_mib: u64,
    /// Their disks, in GiB.
    pub disk_gib: u64,
}

/// A size that changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeChange {
    /// As it is.
    pub before: Size,
    /// As it will be.
    pub after: Size,
}

/// The sizes on a fleet on which some change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// All clusters together, when everything that doesn't wait is done.
    pub fleet: SizeChange,
    /// The clusters that change, each as its spec asks for, whether it waits or not.
    pub clusters: BTreeMap<ResourceKey, SizeChange>,
    /// What the fleet's nodes have for pods, other people's too; none where that isn't known.
    pub room: Option<Room>,
}

/// What a KafkaNodePool says of the size of its nodes.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct NodePool {
    pub spec: Nodes,
}

/// The nodes of a pool.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Nodes {
    pub replicas: u64,
    pub roles: Vec<String>,
    resources: Resources,
    storage: Storage,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources {
    requests: BTreeMap<String, Value>,
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

/// The sizes on a fleet; none where no size changes.
pub(super) fn of(site: &Site, changes: &[Change], facts: Option<&Facts>) -> Option<Sizes> {
    let is_pool = |step: &&Step| step.object.kind == "KafkaNodePool";
    let resized = changes.iter().filter_map(|change| {
        let steps = || change.steps.iter().filter(is_pool);
        let before = steps().filter_map(|step| step.before.as_ref()).map(Size::of_pool).sum();
        let after = steps().filter_map(|step| step.after.as_ref()).map(|it| Size::of_pool(&it.body)).sum();
        (before != after).then_some((change, SizeChange { before, after }))
    });
    let resized: Vec<(&Change, SizeChange)> = resized.collect();
    if resized.is_empty() {
        return None;
    }
    let desired = by_owner(site);
    // What a step doesn't touch is as it should be already.
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
    Some(Sizes { fleet, clusters, room: facts.and_then(|facts| facts.room) })
}

fn by_owner<'a>(site: &Site<'a>) -> BTreeMap<&'a ResourceKey, Size> {
    let objects = site.desired.into_iter().flat_map(|objects| objects.values());
    let mut sizes: BTreeMap<&ResourceKey, Size> = BTreeMap::new();
    for pool in objects.filter(|object| object.key.kind == "KafkaNodePool") {
        let size = sizes.entry(&pool.owner).or_default();
        *size = size.plus(Size::of_pool(&pool.body));
    }
    sizes
}

impl Size {
    /// The size of a node pool. What can't be read counts nothing.
    pub(super) fn of_pool(pool: &Json) -> Size {
        let Nodes { replicas, roles, resources, storage } = pool.read::<NodePool>().unwrap_or_default().spec;
        let amount = |value: &Value| match value {
            Value::String(text) => quantity(text).filter(|amount| *amount >= 0.0),
            number => number.as_f64(),
        };
        let requested = |name: &str| resources.requests.get(name).and_then(amount).unwrap_or_default();
        // What is read as floating-point numbers are whole units, far from what they can't hold.
        let each = |size: f64| replicas.saturating_mul(size.round() as u64);
        let disk: f64 = storage.volumes.iter().filter_map(|volume| amount(&volume.size)).sum();
        let is_broker = roles.iter().any(|role| role == "broker");
        let [brokers, controllers] = if is_broker { [replicas, 0] } else { [0, replicas] };
        Size {
            brokers,
            controllers,
            cpu_millis: each(requested("cpu") * 1000.0),
            memory_mib: each(requested("memory") / f64::from(1 << 20)),
            disk_gib: each(disk / f64::from(1 << 30)),
        }
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

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Size>>(sizes: I) -> Size {
        sizes.fold(Size::default(), Size::plus)
    }
}
