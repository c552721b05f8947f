//! Topics of clusters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Identifier;
use crate::spec::TopicConfig;

/// A topic of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Topic {
    /// The organization that owns the topic and its cluster. It can't change.
    pub organization: Identifier,
    /// The identifier of the cluster, in the same organization. It can't change.
    #[schemars(example = &"orders")]
    pub cluster: Identifier,
    /// The topic's name in Kafka, unique in its cluster. It can't change. Names that begin with `__` belong to
    /// Kafka and to programs.
    #[schemars(
        length(min = 1, max = 249),
        regex(pattern = r"^(\.*[a-zA-Z0-9_-][a-zA-Z0-9._-]*|\.{3,})$"),
        extend("x-expected" = "a topic name: letters, digits, `.`, `_` and `-`, at most 249"),
        example = &"payments.events.v1"
    )]
    pub name: String,
    /// How many partitions the topic has. It only grows. Without it, a new topic gets the cluster's
    /// `num.partitions`.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100_000))]
    pub partitions: Option<u32>,
    /// How many copies of each record there are, at most one per broker. Without it, a new topic gets as many
    /// as the cluster's `profile` says.
    #[serde(default)]
    #[schemars(range(min = 1, max = 9))]
    pub replicas: Option<u32>,
    /// Topic options, by their names in Kafka. Brokers use them without a restart. An option that is left out has
    /// the cluster's value.
    #[serde(default)]
    pub config: TopicConfig,
    /// Take over a KafkaTopic of this name that Streamfleet didn't make. The plan shows what that changes. Options
    /// that the spec doesn't name stay as they are.
    #[serde(default)]
    pub adopt: bool,
    /// What happens to the topic in Kafka when its spec is removed.
    #[serde(default)]
    pub on_delete: TopicOnDelete,
    /// Refuse to delete the topic. Removing the file doesn't remove the protection.
    #[serde(default = "crate::spec::protected_by_default")]
    pub deletion_protection: bool,
}

/// What happens to a topic in Kafka when its spec is removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-case-insensitive" = true))]
pub enum TopicOnDelete {
    /// It is deleted with all its records, after approval.
    #[default]
    Delete,
    /// It stays with its records, and Streamfleet no longer manages it. Not on fleets that are folders.
    Retain,
}

/// Beginnings of the names of topics that belong to Kafka, to Streamfleet or to the cluster's other components.
pub const RESERVED_TOPICS: [&str; 2] = ["__", "strimzi.cruisecontrol."];
