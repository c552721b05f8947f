//! The Kafka broker options that a spec may set, and what changing one does to running brokers.
//!
//! Types, bounds and update modes are those of Apache Kafka 4.3.1, as printed by the class
//! `kafka.server.KafkaConfig` in the jar `kafka_2.13`; a comment explains each narrower bound. Strimzi
//! changes an option whose mode isn't `read-only` while brokers run. For the others it restarts brokers; it
//! restarts dedicated controllers only for the options in
//! `KafkaConfigurationDiff.CONTROLLER_RELEVANT_PROPERTIES`.

mod lowered;
mod retention_loss;

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::Effect::{Brokers, Live, Restart};
use self::Takes::{Flag, Number, Word};
pub use self::lowered::refused_clients;
pub(super) use self::retention_loss::Unit;
pub use self::retention_loss::{all_deleted, deleted, keeps};

/// The options that a spec sets, by name. Names and values were checked when the spec was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BrokerConfig(BTreeMap<String, Value>);

#[derive(Debug, Clone, Copy)]
pub struct BrokerOption {
    pub name: &'static str,
    pub effect: Effect,
    takes: Takes,
    text: &'static str,
}

/// The effect of a changed option on a running cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Brokers apply the change while they run.
    Live,
    /// Brokers restart one by one; dedicated controllers don't.
    Brokers,
    /// Brokers and controllers restart one by one.
    Restart,
}

#[derive(Debug, Clone, Copy)]
enum Takes {
    Number(i64, i64),
    Flag,
    Word(&'static [&'static str]),
}

/// The largest Java `int`.
const INT: i64 = i32::MAX as i64;
/// The largest Java `long`.
const LONG: i64 = i64::MAX;
/// The largest request that a broker accepts, Kafka's default of `socket.request.max.bytes`.
const REQUEST: i64 = 104_857_600;
/// The partitions of one standard unit. No topic should have more by default.
const PARTITIONS: i64 = 1_500;

const fn option(name: &'static str, takes: Takes, effect: Effect, text: &'static str) -> BrokerOption {
    BrokerOption { name, effect, takes, text }
}

#[rustfmt::skip]
const OPTIONS: &[BrokerOption] = &[
    option("auto.create.topics.enable", Flag, Restart, "Create a topic when a client first names it. By default false, so \
                                                        that a misspelt name is an error."),
    option("compression.type", Word(&["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]), Live, "How records are compressed on disk."),
    option("connections.max.idle.ms", Number(1_000, LONG), Restart, "After how many milliseconds an idle connection is closed."),
    option("delete.topic.enable", Flag, Restart, "Let clients delete topics."),
    option("fetch.max.bytes", Number(1_024, INT), Brokers, "The most bytes that one fetch returns."),
    option("group.initial.rebalance.delay.ms", Number(0, INT), Brokers, "How many milliseconds a new consumer group waits for more members."),
    option("group.max.session.timeout.ms", Number(6_000, INT), Brokers, "The longest session timeout that a member of a consumer group may ask for, in milliseconds."),
    option("group.max.size", Number(1, INT), Brokers, "The most members of a consumer group."),
    option("log.cleaner.delete.retention.ms", Number(0, LONG), Live, "How many milliseconds a compacted topic keeps the \
                                                                      markers of deleted records."),
    option("log.cleaner.max.compaction.lag.ms", Number(1, LONG), Live, "After how many milliseconds a record is compacted at the latest."),
    option("log.cleaner.min.compaction.lag.ms", Number(0, LONG), Live, "For how many milliseconds a record is not compacted."),
    option("log.cleanup.policy", Word(&["delete", "compact", "delete,compact"]), Live, "What happens to old records: they \
         are deleted, compacted, or both."),
    option("log.local.retention.bytes", Number(-2, LONG), Live, "How many bytes of a partition stay on disks with tiered storage; -2 is as many as `log.retention.bytes`."),
    option("log.local.retention.ms", Number(-2, LONG), Live, "How many milliseconds records stay on disks with tiered \
                                                              storage; -2 is as long as they are kept."),
    option("log.message.timestamp.after.max.ms", Number(0, LONG), Live, "How many milliseconds a record's timestamp may be \
         in the future."),
    option("log.message.timestamp.before.max.ms", Number(0, LONG), Live, "How many milliseconds a record's timestamp may \
         be in the past."),
    option("log.message.timestamp.type", Word(&["CreateTime", "LogAppendTime"]), Live, "Which timestamp a record gets: its \
         producer's or its broker's."),
    option("log.retention.bytes", Number(-1, LONG), Live, "How many bytes of a partition are kept; -1 is without a limit."),
    option("log.retention.check.interval.ms", Number(1_000, LONG), Brokers, "How often brokers look for records to delete, \
         in milliseconds."),
    option("log.retention.ms", Number(-1, LONG), Live, "How many milliseconds records are kept; -1 is without a limit."),
    option("log.roll.ms", Number(60_000, LONG), Live, "After how many milliseconds a new segment begins, even if the last \
                                                       one isn't full."),
    option("log.segment.bytes", Number(1_048_576, INT), Live, "The size of a segment of a partition, in bytes."),
    option("log.segment.delete.delay.ms", Number(0, LONG), Live, "How many milliseconds a removed segment stays on the disk."),
    // A larger record couldn't be sent at all.
    option("message.max.bytes", Number(1_024, REQUEST), Live, "The largest batch of records that brokers accept, in bytes."),
    option("min.insync.replicas", Number(1, 9), Live, "How many copies must have a record before it counts as written. The \
                                                       number of copies must be larger."),
    option("num.partitions", Number(1, PARTITIONS), Restart, "How many partitions a topic gets if its creator doesn't say."),
    option("offsets.retention.minutes", Number(1, INT), Brokers, "How many minutes the offsets of an empty consumer group are kept."),
    option("producer.id.expiration.ms", Number(1, INT), Live, "After how many milliseconds an idle producer's id is forgotten."),
    option("remote.log.manager.copy.max.bytes.per.second", Number(1, LONG), Live, "How many bytes a second a broker copies to tiered storage."),
    option("remote.log.manager.fetch.max.bytes.per.second", Number(1, LONG), Live, "How many bytes a second a broker reads from tiered storage."),
    option("replica.fetch.max.bytes", Number(1_024, REQUEST), Brokers, "How many bytes of a partition a broker fetches \
         from another one at once."),
    option("replica.lag.time.max.ms", Number(1_000, LONG), Brokers, "How many milliseconds a copy may lag before it counts as out of sync."),
    option("transaction.max.timeout.ms", Number(1, INT), Brokers, "The longest that a transaction may take, in milliseconds."),
    option("transactional.id.expiration.ms", Number(1, INT), Brokers, "After how many milliseconds an unused transactional id is forgotten."),
];

/// Options that are derived from other settings, as prefixes of their names, and what they are derived from.
#[rustfmt::skip]
const DERIVED_OPTIONS: &[(&[&str], &str)] = &[
    (&["listener", "advertised.", "inter.broker.", "early.start.listeners"], "listeners follow from `cluster_access`, `private_access` and the fleet's `exposure`"),
    (&["sasl.", "principal.builder.class", "connections.max.reauth.ms"], "how clients log in follows from `oauth`"),
    (&["ssl.", "security.", "password."], "certificates follow from the fleet's `domain`"),
    (&["authorizer.", "super.user"], "Kafka's own authorizer keeps the access rights, whose administrator is created \
                                      with the cluster"),
    (&["broker.", "node.id", "process.roles", "controller.", "reserved.broker", "metadata.log"], "the operator decides how \
         nodes find each other"),
    (&["log.dir", "zookeeper.", "inter.broker.protocol"], "the operator sets it, or Kafka 4 no longer has it"),
    (&["default.replication.factor", "offsets.topic.replication", "transaction.state.log.", "share.coordinator.state.topic.", "replica.selector"], "the copies follow from `profile`"),
    (&["max.connection", "quota.", "client.quota"], "limits follow from `kafka_units`"),
    (&["num.io.", "num.network.", "num.replica.", "background.threads", "queued.max"], "a broker's threads and queues have \
         Kafka's defaults; with more `kafka_units` there are more brokers"),
    (&["remote.log.", "rsm.config.", "rlmm.config."], "tiered storage follows from `tiered_storage_bucket_name` and `tiered_storage_provider`"),
    (&["metric", "kafka.metrics", "cruise.control."], "metrics and rebalancing are set with the cluster's other components"),
    (&["unclean.leader.election"], "it loses written records; set it for single topics if you accept that"),
    (&["log.retention.hours", "log.retention.minutes"], "use `log.retention.ms`, which changes without a restart"),
    (&["log.roll.hours"], "use `log.roll.ms`, which changes without a restart"),
];

pub fn find(name: &str) -> Option<&'static BrokerOption> {
    OPTIONS.iter().find(|option| option.name == name)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().map(|option| option.name)
}

/// Returns why an option may not be set and what to set instead; `None` for unknown options.
pub fn follows_from(name: &str) -> Option<&'static str> {
    let begins = |prefixes: &&[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    DERIVED_OPTIONS.iter().find(|(prefixes, _)| begins(prefixes)).map(|(_, reason)| *reason)
}

impl BrokerConfig {
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter()
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_i64()
    }
}

impl BrokerOption {
    fn schema(&self) -> Value {
        let mut schema = match self.takes {
            Number(least, LONG) => json!({"type": "integer", "minimum": least}),
            Number(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
            Flag => json!({"type": "boolean"}),
            Word(words) => json!({"type": "string", "enum": words}),
        };
        let texts =
            [Some(self.text.to_owned()), Some(self.effect.text().to_owned()), lowered::text(self.name)];
        schema["description"] = json!(texts.into_iter().flatten().collect::<Vec<_>>().join(" "));
        schema
    }
}

impl Effect {
    fn text(self) -> &'static str {
        match self {
            Live => "Brokers use it without a restart.",
            Brokers => "Brokers restart one by one.",
            Restart => "Brokers and controllers restart one by one.",
        }
    }
}

impl JsonSchema for BrokerConfig {
    fn schema_name() -> Cow<'static, str> {
        "BrokerConfig".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let properties: Map<String, Value> =
            OPTIONS.iter().map(|option| (option.name.to_owned(), option.schema())).collect();
        json_schema!({"type": "object", "properties": properties, "additionalProperties": false})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_sorted_and_each_is_there_once() {
        assert!(OPTIONS.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn what_may_be_set_follows_from_nothing_else() {
        // These prefixes belong to groups in which some options may be set.
        let shared = ["remote.log.manager."];
        for option in OPTIONS.iter().filter(|option| !shared.iter().any(|it| option.name.starts_with(it))) {
            assert_eq!(follows_from(option.name), None, "{}", option.name);
        }
    }

    /// Options that Strimzi ignores silently must be refused here with a reason: `FORBIDDEN_PREFIXES` of
    /// Strimzi 1.2.
    #[test]
    fn everything_that_strimzi_ignores_is_refused_with_a_reason() {
        for name in [
            "listeners",
            "advertised.listeners",
            "broker.id",
            "listener.security.protocol.map",
            "inter.broker.listener.name",
            "sasl.enabled.mechanisms",
            "ssl.keystore.location",
            "security.inter.broker.protocol",
            "password.encoder.secret",
            "log.dirs",
            "zookeeper.connect",
            "authorizer.class.name",
            "super.users",
            "cruise.control.metrics.topic",
            "node.id",
            "process.roles",
            "controller.quorum.voters",
            "metadata.log.dir",
        ] {
            assert!(find(name).is_none() && follows_from(name).is_some(), "{name}");
        }
    }

    #[test]
    fn options_are_written_as_they_were_read() {
        let given = json!({"log.retention.ms": -1, "auto.create.topics.enable": true});
        let config: BrokerConfig = serde_json::from_value(given.clone()).unwrap();
        assert_eq!(config.number("log.retention.ms"), Some(-1));
        assert_eq!(config.number("num.partitions"), None);
        assert_eq!(serde_json::to_value(config).unwrap(), given);
    }
}
