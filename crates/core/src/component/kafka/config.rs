use serde_json::{Map, Value, json};

use super::{KafkaContext, oauth, tiered_storage};

/// The options of brokers and controllers. Everything else keeps Kafka's defaults: records are kept for a
/// week, and an out-of-sync replica never becomes the leader.
pub fn config(context: &KafkaContext) -> Map<String, Value> {
    let copies = context.sizing.replication_factor;
    let in_sync = context.sizing.min_insync_replicas;
    let mut config = Map::new();
    let mut set = |key: &str, value: Value| config.insert(key.to_owned(), value);
    // A misspelt topic name should be an error instead of a new topic.
    set("auto.create.topics.enable", json!(false));
    set("default.replication.factor", json!(copies));
    set("min.insync.replicas", json!(in_sync));
    // Kafka's own topics default to three replicas, which a single broker can't provide.
    set("offsets.topic.replication.factor", json!(copies));
    set("transaction.state.log.replication.factor", json!(copies));
    set("transaction.state.log.min.isr", json!(in_sync));
    set("share.coordinator.state.topic.replication.factor", json!(copies));
    set("share.coordinator.state.topic.min.isr", json!(in_sync));
    if context.zones > 1 {
        // Lets consumers that name their zone read from the replica in it.
        set("replica.selector.class", json!("org.apache.kafka.common.replica.RackAwareReplicaSelector"));
    }
    config.extend(oauth::config(context));
    config.extend(tiered_storage::config(context));
    config.extend(context.options.iter().map(|(name, value)| (name.clone(), value.clone())));
    config
}
