//! Sizes by the requests of all pods, which nodes have to satisfy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Resources;
use super::requests::requested_by_pod;
use crate::names::Json;

/// The requests of the pods of a cluster or of a fleet's clusters: brokers, controllers, the topic and user
/// operators, Cruise Control, Kafka Exporter, the schema registry and the console.
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
    /// The listeners that clients reach through load balancers: one for the bootstrap address, and one for each
    /// broker.
    #[serde(default)]
    pub balanced_listeners: u64,
    /// The load balancers beside those of brokers.
    #[serde(default)]
    pub other_load_balancers: u64,
    /// The number of pods.
    #[serde(default)]
    pub pods: u64,
}

impl Size {
    pub fn of_deployment(deployment: &Json) -> Size {
        let deployment = deployment.value();
        let replicas = deployment.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
        let pod = deployment.pointer("/spec/template/spec").map(requested_by_pod).unwrap_or_default();
        let each = |amount: u64| amount.saturating_mul(replicas);
        Size {
            cpu_millis: each(pod.cpu_millis),
            memory_mib: each(pod.memory_mib),
            pods: replicas,
            ..Size::default()
        }
    }

    fn both(self, other: Size, join: fn(u64, u64) -> u64) -> Size {
        Size {
            brokers: join(self.brokers, other.brokers),
            controllers: join(self.controllers, other.controllers),
            cpu_millis: join(self.cpu_millis, other.cpu_millis),
            memory_mib: join(self.memory_mib, other.memory_mib),
            disk_gib: join(self.disk_gib, other.disk_gib),
            balanced_listeners: join(self.balanced_listeners, other.balanced_listeners),
            other_load_balancers: join(self.other_load_balancers, other.other_load_balancers),
            pods: join(self.pods, other.pods),
        }
    }

    /// The size without load balancers.
    pub fn of_pods(self) -> Size {
        Size { balanced_listeners: 0, other_load_balancers: 0, ..self }
    }

    /// The number of load balancers, of the size of one cluster.
    pub fn load_balancers(self) -> u64 {
        let of_brokers = self.balanced_listeners.saturating_mul(self.brokers.saturating_add(1));
        of_brokers.saturating_add(self.other_load_balancers)
    }

    /// The IP addresses that pods and load balancers take, of the size of one cluster.
    pub fn addresses(self) -> u64 {
        self.pods.saturating_add(self.load_balancers())
    }

    pub fn plus(self, other: Size) -> Size {
        self.both(other, u64::saturating_add)
    }

    pub fn less(self, other: Size) -> Size {
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
