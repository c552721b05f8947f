//! The Kafka resource: the cluster as a whole.

use serde_json::{Value, json};

use super::kinds::KAFKA;
use super::{
    KafkaContext, config, listeners, oauth, placement, probe, renewal_windows, reporter, resources,
    tiered_storage, user,
};
use crate::catalog::versions;
use crate::component::resources::millis;
use crate::component::{Manifest, labels, manifest};
use crate::names::Digest;

pub fn kafka(context: &KafkaContext) -> Manifest {
    let mut metadata = labels::annotate(
        labels::strimzi_metadata(context.cluster, context.name()),
        labels::protection(context.cluster),
    );
    if let Some(domain) = &context.cluster.domain {
        let digest = Digest::of(&domain.tls_cert);
        metadata = labels::annotate(metadata, labels::map([(labels::CERTIFICATE, digest.short())]));
    }
    let spec = json!({
        "kafka": {
            "version": context.version,
            "metadataVersion": versions::metadata_version(context.version),
            "rack": placement::rack(context),
            "listeners": listeners::listeners(context),
            // Strimzi adds the prefix `User:`.
            "authorization": {"type": "simple", "superUsers": [user::admin_name(context.cluster)]},
            "config": config::config(context),
            "quotas": quotas(context),
            "tieredStorage": tiered_storage::tiered_storage(context),
            "metricsConfig": reporter::metrics(context),
        },
        "entityOperator": entity_operator(context),
        "cruiseControl": cruise_control(context),
        "kafkaExporter": kafka_exporter(context),
        "maintenanceTimeWindows": renewal_windows::cron(context.maintenance),
    });
    manifest::untyped(context.cluster, &KAFKA, &metadata, spec)
}

/// The quotas of all clients together on each broker. Producers are throttled when the free space of a disk
/// falls below the part that isn't meant for records, because a broker with a full disk can't be repaired
/// while it runs. If that part would be more than a tenth of the disk, a tenth is kept free instead.
fn quotas(context: &KafkaContext) -> Value {
    let sizing = &context.sizing;
    let is_little = sizing.reserve_bytes < (u64::from(sizing.storage_gib) << 30) / 10;
    json!({
        "type": "strimzi",
        "producerByteRate": sizing.ingress_bytes_per_second,
        "consumerByteRate": sizing.egress_bytes_per_second,
        "minAvailableBytesPerVolume": is_little.then_some(sizing.reserve_bytes),
        "minAvailableRatioPerVolume": (!is_little).then_some(0.1),
    })
}

/// Exports consumer lag.
fn kafka_exporter(context: &KafkaContext) -> Option<Value> {
    context.operations.kafka_exporter.then(|| {
        json!({
            "resources": resources::KAFKA_EXPORTER.to_value(),
            "template": placement::operator_template(context),
        })
    })
}

/// The user operator, which creates the administrator, and optionally the topic operator. The topic operator
/// is off by default: without KafkaTopics it only costs memory, and finalizers of forgotten KafkaTopics block
/// the deletion of namespaces.
fn entity_operator(context: &KafkaContext) -> Value {
    let operator = json!({"resources": resources::ENTITY_OPERATOR.to_value()});
    let mut template = placement::operator_template(context).unwrap_or_default();
    if let Some(container) = oauth::user_operator(context) {
        template["userOperatorContainer"] = container;
    }
    json!({
        "topicOperator": context.operations.topic_operator.then_some(&operator),
        "userOperator": operator,
        "template": (!template.is_null()).then_some(template),
    })
}

/// Cruise Control, which moves partitions to added brokers and away from removed ones. It needs the capacity
/// of each broker: its default assumption of 10 MB/s is far below what our brokers handle, and it refuses to
/// plan for a cluster whose load exceeds the capacity.
fn cruise_control(context: &KafkaContext) -> Option<Value> {
    let sizing = &context.sizing;
    // Each partition of the probe's topic belongs to one broker. Cruise Control ignores this for brokers that are removed.
    let config =
        user::probe(context).map(|_| json!({"topics.excluded.from.partition.movement": probe::TOPIC}));
    sizing.rebalances.then(|| {
        json!({
            "config": config,
            "autoRebalance": [{"mode": "add-brokers"}, {"mode": "remove-brokers"}],
            "brokerCapacity": {
                "cpu": millis(sizing.broker_cpu_millis.into()),
                "inboundNetwork": kib_per_second(sizing.inbound_bytes_per_second()),
                "outboundNetwork": kib_per_second(sizing.outbound_bytes_per_second()),
            },
            "resources": resources::cruise_control(sizing).to_value(),
            "template": placement::operator_template(context),
        })
    })
}

fn kib_per_second(bytes_per_second: u64) -> String {
    format!("{}KiB/s", bytes_per_second.div_ceil(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_whole_kib() {
        assert_eq!(kib_per_second(1), "1KiB/s");
        assert_eq!(kib_per_second(2048), "2KiB/s");
    }
}
