//! The most that a cluster's pods may take.

use super::{KafkaContext, resources};
use crate::component::{QuotaShare, Resources, load_balancers};
use crate::spec::Operations;

/// A Deployment starts the new pod before it stops the old one, so each pod of the operators counts twice.
/// Brokers and controllers don't: Strimzi deletes the old pod before it starts the new one.
const SURGE: u64 = 2;
/// A broker that is being removed stays until its last partition has moved, and its disk stays longer. A
/// quota that shrank with the number of brokers would prevent such a broker from restarting while it still
/// has data. So there is room for twice the brokers, and the units can be halved in one change.
const REMOVED_BROKER_FACTOR: u64 = 2;

/// Every number is generous: Strimzi hangs under a quota that is too tight.
///
/// | limit | sum of |
/// |---|---|
/// | CPU, memory | brokers twice (`REMOVED_BROKER_FACTOR`), controllers, the operators' pods twice (`SURGE`) |
/// | pods | the same pods, counted |
/// | volume claims | one per broker, twice, and one per controller |
/// | load balancers | one per broker, twice, and one for the bootstrap address, if any |
pub fn quota(context: &KafkaContext) -> QuotaShare {
    let sizing = &context.sizing;
    let brokers = REMOVED_BROKER_FACTOR * u64::from(sizing.brokers);
    let controllers = u64::from(sizing.controllers);
    let operators = operators(context);
    let sum = |broker: u32, controller: u32, of: fn(Resources) -> u64| {
        let operators: u64 = operators.iter().map(|&pod| SURGE * of(pod)).sum();
        brokers * u64::from(broker) + controllers * u64::from(controller) + operators
    };
    QuotaShare {
        requests: Resources {
            cpu_millis: sum(sizing.broker_cpu_millis, sizing.controller_cpu_millis, |r| r.cpu_millis),
            memory_mib: sum(sizing.broker_memory_mib, sizing.controller_memory_mib, |r| r.memory_mib),
        },
        pods: brokers + controllers + SURGE * operators.len() as u64,
        volume_claims: brokers + controllers,
        load_balancers: if load_balancers::has_load_balancers(context.cluster) { brokers + 1 } else { 0 },
    }
}

/// The pods of Strimzi's Deployments. The entity operator's pod has a container for users, and optionally one
/// for topics.
fn operators(context: &KafkaContext) -> Vec<Resources> {
    // Metrics need no pods of their own.
    let Operations { metrics: _, kafka_exporter, topic_operator, console: _ } = context.operations;
    let Resources { cpu_millis, memory_mib } = resources::ENTITY_OPERATOR;
    let containers = 1 + u64::from(topic_operator);
    let entity_operator =
        Resources { cpu_millis: containers * cpu_millis, memory_mib: containers * memory_mib };
    let sizing = &context.sizing;
    let cruise_control = sizing.rebalances.then(|| resources::cruise_control(sizing));
    let exporter = kafka_exporter.then_some(resources::KAFKA_EXPORTER);
    std::iter::once(entity_operator).chain(cruise_control).chain(exporter).collect()
}
