//! The Kafka topic options that a spec may set, and what a change of one does to records and clients.
//!
//! Types and bounds are those of Apache Kafka 4.3.1, as printed by the class
//! `org.apache.kafka.storage.internals.log.LogConfig` in the jar `kafka-storage`; a comment explains each
//! narrower bound. Brokers use every one of them without a restart.

mod change;

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::Takes::{Flag, Number, Word};
pub use self::change::{deleted, effect_of, keeps, refused_clients};

/// The options that a spec sets, by name. Names and values were checked when the spec was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TopicConfig(BTreeMap<String, Value>);

#[derive(Debug, Clone, Copy)]
pub struct TopicOption {
    pub name: &'static str,
    takes: Takes,
    text: &'static str,
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

const fn option(name: &'static str, takes: Takes, text: &'static str) -> TopicOption {
    TopicOption { name, takes, text }
}

#[rustfmt::skip]
const OPTIONS: &[TopicOption] = &[
    option("cleanup.policy", Word(&["delete", "compact", "delete,compact"]), "What happens to old records: they are deleted, \
        compacted, or both."),
    option("compression.gzip.level", Number(-1, 9), "How hard gzip compresses; -1 is its default."),
    option("compression.lz4.level", Number(1, 17), "How hard lz4 compresses."),
    option("compression.type", Word(&["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]), "How records are \
        compressed on disk."),
    option("compression.zstd.level", Number(-131_072, 22), "How hard zstd compresses."),
    option("delete.retention.ms", Number(0, LONG), "How many milliseconds a compacted topic keeps the markers of deleted \
        records."),
    option("file.delete.delay.ms", Number(0, LONG), "How many milliseconds a removed segment stays on the disk."),
    option("flush.messages", Number(1, LONG), "After how many records they are forced to the disk. Kafka's copies make this \
        unnecessary."),
    option("flush.ms", Number(0, LONG), "After how many milliseconds records are forced to the disk. Kafka's copies make this \
        unnecessary."),
    option("index.interval.bytes", Number(0, INT), "After how many bytes of records the index gets an entry."),
    option("local.retention.bytes", Number(-2, LONG), "How many bytes of a partition stay on disks with tiered storage; -2 is \
        as many as `retention.bytes`."),
    option("local.retention.ms", Number(-2, LONG), "How many milliseconds records stay on disks with tiered storage; -2 is as \
        long as they are kept."),
    option("max.compaction.lag.ms", Number(1, LONG), "After how many milliseconds a record is compacted at the latest."),
    // A larger batch couldn't be sent at all.
    option("max.message.bytes", Number(0, REQUEST), "The largest batch of records that brokers accept, in bytes."),
    option("message.timestamp.after.max.ms", Number(0, LONG), "How many milliseconds a record's timestamp may be in the future."),
    option("message.timestamp.before.max.ms", Number(0, LONG), "How many milliseconds a record's timestamp may be in the past."),
    option("message.timestamp.type", Word(&["CreateTime", "LogAppendTime"]), "Which timestamp a record gets: its producer's or \
        its broker's."),
    option("min.compaction.lag.ms", Number(0, LONG), "For how many milliseconds a record is not compacted."),
    // No topic has more than nine copies.
    option("min.insync.replicas", Number(1, 9), "How many copies must have a record before it counts as written. The number of \
        copies must be larger."),
    option("preallocate", Flag, "Reserve the disk space of a segment when it is created."),
    option("remote.log.copy.disable", Flag, "Move no further records to tiered storage."),
    option("remote.storage.enable", Flag, "Move old records to the cluster's tiered storage. It can't be turned off again."),
    option("retention.bytes", Number(-1, LONG), "How many bytes of a partition are kept; -1 is without a limit."),
    option("retention.ms", Number(-1, LONG), "How many milliseconds records are kept; -1 is without a limit."),
    option("segment.bytes", Number(1_048_576, INT), "The size of a segment of a partition, in bytes."),
    option("segment.index.bytes", Number(4, INT), "The size of the index of a segment, in bytes."),
    option("segment.jitter.ms", Number(0, LONG), "The most milliseconds by which a new segment begins earlier, at random."),
    option("segment.ms", Number(1, LONG), "After how many milliseconds a new segment begins, even if the last one isn't full."),
    option("unclean.leader.election.enable", Flag, "Let a copy that lacks records become the leader, so that written records \
        may be lost."),
];

/// Options of Kafka that a spec can't set, as prefixes of their names, with the reason.
#[rustfmt::skip]
const REFUSED: &[(&[&str], &str)] = &[
    (&["follower.replication.throttled", "leader.replication.throttled"], "Cruise Control sets it while it moves partitions"),
    (&["min.cleanable.dirty.ratio"], "a fraction can't be set here; use `max.compaction.lag.ms` to say when records are \
        compacted"),
    (&["remote.log.delete.on.disable"], "tiered storage of a topic can't be turned off here, because that deletes the records \
        in it"),
    (&["message.downconversion.enable", "message.format.version"], "Kafka 4 no longer has it"),
    (&["log."], "this is an option of brokers; topics have the same one without `log.` in front, under a similar name"),
];

pub fn find(name: &str) -> Option<&'static TopicOption> {
    OPTIONS.iter().find(|option| option.name == name)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().map(|option| option.name)
}

/// Returns why an option may not be set; `None` for unknown options.
pub fn refused(name: &str) -> Option<&'static str> {
    let begins = |prefixes: &&[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    REFUSED.iter().find(|(prefixes, _)| begins(prefixes)).map(|(_, reason)| *reason)
}

impl TopicConfig {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter()
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.0.get(name)?.as_i64()
    }
}

impl TopicOption {
    fn schema(&self) -> Value {
        let mut schema = match self.takes {
            Number(least, LONG) => json!({"type": "integer", "minimum": least}),
            Number(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
            Flag => json!({"type": "boolean"}),
            Word(words) => json!({"type": "string", "enum": words}),
        };
        schema["description"] = json!(self.text);
        schema
    }
}

impl JsonSchema for TopicConfig {
    fn schema_name() -> Cow<'static, str> {
        "TopicConfig".into()
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
    fn what_may_be_set_is_not_refused() {
        for option in OPTIONS {
            assert_eq!(refused(option.name), None, "{}", option.name);
        }
        for name in ["min.cleanable.dirty.ratio", "log.retention.ms", "message.format.version"] {
            assert!(find(name).is_none() && refused(name).is_some(), "{name}");
        }
    }
}
