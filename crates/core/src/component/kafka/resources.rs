//! The sizes of the containers beside brokers and controllers, and of a whole cluster.

use super::sizing::Sizing;
use crate::component::Resources;
use crate::config::UnitSizes;

/// Each of the two containers of the entity operator, topic operator and user operator. From Strimzi's
/// example of a sized entity operator.
pub const ENTITY_OPERATOR: Resources = Resources { cpu_millis: 100, memory_mib: 512 };

/// Kafka Exporter. The memory is that of the standard clusters of Red Hat's open-source fleet manager.
pub const KAFKA_EXPORTER: Resources = Resources { cpu_millis: 200, memory_mib: 256 };

/// Cruise Control. Its model contains every replica of every broker, so its memory grows with the brokers.
pub fn cruise_control(sizing: &Sizing) -> Resources {
    Resources { cpu_millis: 200, memory_mib: 1024 + 32 * u64::from(sizing.brokers) }
}

/// The requests of all pods of a cluster of this many units: brokers, controllers, the user operator and
/// Cruise Control.
pub fn requests_of_units(units: u32, sizes: &UnitSizes) -> Resources {
    let sizing = Sizing::by_units(units, sizes);
    let cruise_control = sizing.rebalances.then(|| cruise_control(&sizing));
    let beside = std::iter::once(ENTITY_OPERATOR).chain(cruise_control);
    let sum = |broker: u32, controller: u32, of: fn(Resources) -> u64| {
        let (brokers, controllers) = (u64::from(sizing.brokers), u64::from(sizing.controllers));
        let beside: u64 = beside.clone().map(of).sum();
        brokers * u64::from(broker) + controllers * u64::from(controller) + beside
    };
    Resources {
        cpu_millis: sum(sizing.broker_cpu_millis, sizing.controller_cpu_millis, |it| it.cpu_millis),
        memory_mib: sum(sizing.broker_memory_mib, sizing.controller_memory_mib, |it| it.memory_mib),
    }
}
