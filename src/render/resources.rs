//! What containers ask of a node.

use serde_json::{Value, json};

use crate::render::sizing::Sizing;

/// The size of a container: processor in millicores, memory in MiB. Memory is requested and limited alike;
/// processor is only requested, since a limit makes a broker that has to catch up wait for nothing.
#[derive(Debug, Clone, Copy)]
pub struct Resources {
    /// Processor, in millicores.
    pub cpu_millis: u64,
    /// Memory, in MiB.
    pub memory_mib: u64,
}

impl Resources {
    /// Each of the two containers of the entity operator: the topic operator and the user operator. Strimzi's example
    /// of a sized entity operator.
    pub const ENTITY_OPERATOR: Resources = Resources { cpu_millis: 100, memory_mib: 512 };

    /// Cruise Control: its model holds every replica of every broker, so its memory grows with them.
    pub fn cruise_control(sizing: &Sizing) -> Resources {
        Resources { cpu_millis: 200, memory_mib: 1024 + 32 * u64::from(sizing.brokers) }
    }

    /// As a container's `resources` in one of Strimzi's kinds.
    pub fn to_value(self) -> Value {
        let (cpu, memory) = (millis(self.cpu_millis), mebibytes(self.memory_mib));
        json!({"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}})
    }
}

/// Millicores as Kubernetes writes them.
pub fn millis(amount: u64) -> String {
    format!("{amount}m")
}

/// MiB as Kubernetes writes them.
pub fn mebibytes(amount: u64) -> String {
    format!("{amount}Mi")
}
