//! The Kafka resource: the cluster as a whole.

use serde_json::{Value, json};

use super::{Context, config, listeners, oauth, placement, tiered_storage, user};
use crate::catalog::versions;
use crate::names::Digest;
use crate::render::resources::{Resources, millis};
use crate::render::{Manifest, labels, manifest};

/// The Kafka.
pub fn kafka(context: &Context) -> Manifest {
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
            // Strimzi puts `User:` in front.
            "authorization": {"type": "simple", "superUsers": [user::admin_name(context.cluster)]},
            "config": config::config(context),
            "quotas": quotas(context),
            "tieredStorage": tiered_storage::tiered_storage(context),
            "metricsConfig": metrics(context),
        },
        "entityOperator": entity_operator(context),
        "cruiseControl": cruise_control(context),
        "kafkaExporter": kafka_exporter(context),
    });
    manifest::strimzi(context.cluster, "Kafka", &metadata, spec)
}

/// What all clients together may send to and read from each broker. Producers are slowed down when a disk has no more free than
/// what was never meant for records, because a broker whose disk is full can't be repaired while it runs. Of a disk so small that
/// this would be much of it, a tenth is kept free.
fn quotas(context: &Context) -> Value {
    let sizing = context.sizing;
    let is_little = sizing.reserve_bytes < (u64::from(sizing.storage_gib) << 30) / 10;
    json!({
        "type": "strimzi",
        "producerByteRate": sizing.ingress_bytes_per_second,
        "consumerByteRate": sizing.egress_bytes_per_second,
        "minAvailableBytesPerVolume": is_little.then_some(sizing.reserve_bytes),
        "minAvailableRatioPerVolume": (!is_little).then_some(0.1),
    })
}

/// Strimzi's own reporter, which needs no list of rules as the JMX exporter does. Which metrics it gives is the
/// operator's choice, on which Strimzi's dashboards rely.
fn metrics(context: &Context) -> Option<Value> {
    context.operations.metrics.then(|| json!({"type": "strimziMetricsReporter"}))
}

/// The exporter of what consumers have yet to read.
fn kafka_exporter(context: &Context) -> Option<Value> {
    context.operations.kafka_exporter.then(|| {
        json!({
            "resources": Resources::KAFKA_EXPORTER.to_value(),
            "template": placement::operator_template(context),
        })
    })
}

/// The operator of users, who include the administrator, and that of topics where it is asked for: whoever has no
/// KafkaTopics would pay for nothing, and finalizers of forgotten ones keep namespaces from going.
fn entity_operator(context: &Context) -> Value {
    let operator = json!({"resources": Resources::ENTITY_OPERATOR.to_value()});
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

/// Cruise Control, which moves partitions onto brokers that are added and off those that are taken away. It is told
/// what each broker can do, since its own assumption of 10 MB/s is far less than our brokers take, and it refuses to
/// plan for a cluster that does more than it believes possible.
fn cruise_control(context: &Context) -> Option<Value> {
    let sizing = context.sizing;
    sizing.rebalances.then(|| {
        json!({
            "autoRebalance": [{"mode": "add-brokers"}, {"mode": "remove-brokers"}],
            "brokerCapacity": {
                "cpu": millis(sizing.broker_cpu_millis.into()),
                "inboundNetwork": kib_per_second(sizing.inbound_bytes_per_second()),
                "outboundNetwork": kib_per_second(sizing.outbound_bytes_per_second()),
            },
            "resources": Resources::cruise_control(sizing).to_value(),
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
