//! Users of clusters, and their rights.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::names::Identifier;
use crate::spec::SecretValue;

/// A user of a cluster, with its rights. It logs in as the cluster says: with a name and a password, a client
/// certificate, or a token of the cluster's identity provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The organization that owns the user and its cluster. It can't change.
    pub organization: Identifier,
    /// The identifier of the cluster, in the same organization. It can't change.
    #[schemars(example = &"orders")]
    pub cluster: Identifier,
    /// The user's name, unique in its cluster. It can't change. With a client certificate the principal is
    /// `CN=<identifier>`; with tokens it is the name in the token.
    #[schemars(example = &"billing")]
    pub identifier: Identifier,
    /// The password, where users log in with a name and a password. Without it, the operator makes one. To give the
    /// user a new password, change it here.
    #[serde(default)]
    pub password: Option<SecretValue>,
    /// The topics that it may write to. A name with a `*` at its end is the beginning of names.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub produce: Vec<TopicPattern>,
    /// The topics that it may read, with the consumer groups that it may be in.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub consume: Vec<Consumption>,
    /// The transactional ids that its producers may have. An id with a `*` at its end is the beginning of ids.
    #[serde(default)]
    #[schemars(length(max = 200), inner(length(min = 1, max = 249)))]
    pub transactional_ids: Vec<String>,
    /// Further rights, as Kafka's access control lists have them.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub rules: Vec<AccessRule>,
    /// Take over a KafkaUser of this name that Streamfleet didn't make. The plan shows what that changes.
    #[serde(default)]
    pub adopt: bool,
}

/// A topic name, or the beginning of topic names with a `*` at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TopicPattern(String);

impl TopicPattern {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl JsonSchema for TopicPattern {
    fn schema_name() -> Cow<'static, str> {
        "TopicPattern".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "minLength": 1,
            "maxLength": 249,
            "pattern": r"^([a-zA-Z0-9._-]+\*?|\*)$",
            "x-expected": "a topic name, or the beginning of names with a `*` at its end",
        })
    }
}

/// Topics that a user may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Consumption {
    /// The topic. A name with a `*` at its end is the beginning of names.
    #[schemars(example = &"payments.*")]
    pub topic: TopicPattern,
    /// The consumer group that it may be in. A name with a `*` at its end is the beginning of names. Without it, the
    /// user reads without a group.
    #[serde(default)]
    #[schemars(length(min = 1, max = 249), example = &"billing")]
    pub group: Option<String>,
}

/// A rule of Kafka's access control lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessRule {
    /// What it is about.
    pub resource: AccessResource,
    /// The name of the topic, group or transactional id. With a `*` at its end it is the beginning of names. A rule
    /// about the cluster has none.
    #[serde(default)]
    #[schemars(length(min = 1, max = 249), example = &"payments.*")]
    pub name: Option<String>,
    /// The operations.
    #[schemars(length(min = 1, max = 12))]
    pub operations: Vec<AccessOperation>,
    /// The address that clients have to come from. By default any.
    #[serde(default)]
    #[schemars(length(min = 1, max = 45), regex(pattern = r"^(\*|[0-9a-fA-F.:]+)$"), extend("x-expected" = "an IP address, or `*`"))]
    pub host: Option<String>,
    /// Whether it allows or denies. What is denied stays denied, whatever else is allowed.
    #[serde(default)]
    pub effect: AccessEffect,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessResource {
    /// Topics.
    Topic,
    /// Consumer groups.
    Group,
    /// Transactional ids of producers.
    TransactionalId,
    /// The cluster as a whole.
    Cluster,
}

/// An operation of Kafka's access control lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum AccessOperation {
    /// All that the resource has.
    All,
    /// Change a topic's partitions or the cluster.
    Alter,
    /// Change options.
    AlterConfigs,
    /// Act as a broker.
    ClusterAction,
    /// Create topics.
    Create,
    /// Delete topics, or groups.
    Delete,
    /// See it.
    Describe,
    /// Read options.
    DescribeConfigs,
    /// Write with idempotence.
    IdempotentWrite,
    /// Read records, or be in a group.
    Read,
    /// Write records, or use a transactional id.
    Write,
}

/// Whether a rule allows or denies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccessEffect {
    /// The operations are allowed.
    #[default]
    Allow,
    /// The operations are denied.
    Deny,
}

impl AccessResource {
    /// The operations that Kafka knows of it, beside `All`.
    pub fn operations(self) -> &'static [AccessOperation] {
        use AccessOperation::*;
        match self {
            AccessResource::Topic => {
                &[Alter, AlterConfigs, Create, Delete, Describe, DescribeConfigs, Read, Write]
            }
            AccessResource::Group => &[AlterConfigs, Delete, Describe, DescribeConfigs, Read],
            AccessResource::TransactionalId => &[Describe, Write],
            AccessResource::Cluster => {
                &[Alter, AlterConfigs, ClusterAction, Create, Describe, DescribeConfigs, IdempotentWrite]
            }
        }
    }
}

/// The ends of identifiers, after the cluster's own, of Secrets and users that belong to the cluster.
pub const RESERVED_ENDS: [&str; 18] = [
    "-admin",
    "-clients-ca",
    "-clients-ca-cert",
    "-cluster-ca",
    "-cluster-ca-cert",
    "-cluster-operator-certs",
    "-cruise-control-api",
    "-cruise-control-certs",
    "-entity-operator-certs",
    "-entity-topic-operator-certs",
    "-entity-user-operator-certs",
    "-kafka-brokers",
    "-kafka-exporter-certs",
    "-oauth-ca",
    "-probe",
    "-registry",
    "-tiered-storage",
    "-tls",
];
