//! Kafka clusters on fleets.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::names::Identifier;
use crate::spec::{BrokerConfig, InfraType, SchemaRegistry, TenancyMode};

/// A Kafka cluster on a fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// The organization that owns the cluster. It can't change.
    pub organization: Identifier,
    /// The identifier of the fleet that hosts the cluster, in the same organization. It can't change.
    #[schemars(example = &"eu")]
    pub infrastructure: Identifier,
    /// The cluster's name, unique in its organization. It can't change.
    #[schemars(example = &"orders")]
    pub identifier: Identifier,
    /// The kind of cluster. It can't change.
    pub cluster_type: ClusterType,
    /// How the cluster is isolated; the same as the fleet's. It can't change.
    pub tenancy_mode: TenancyMode,
    /// How much throughput, storage and connections the cluster has. More units add brokers. Lowering it
    /// needs `advanced_config.scale_down_to`.
    #[schemars(range(min = 1, max = 256))]
    pub kafka_units: u32,
    /// The same as the fleet's `infra_type`.
    #[serde(default)]
    pub cloud_provider: Option<InfraType>,
    /// A label for people. Recorded only.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub region: Option<String>,
    /// Labels for people. Recorded only.
    #[serde(default)]
    #[schemars(length(max = 50))]
    pub tags: Vec<Tag>,
    /// Returned unchanged. Recorded only.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub provisioner_name: Option<String>,
    /// The layout, access and configuration of the cluster.
    pub advanced_config: ClusterAdvancedConfig,
    /// Leave the cluster as it is until this is false again.
    #[serde(default)]
    pub suspend: bool,
    /// Refuse to delete the cluster. Removing the file doesn't remove the protection.
    #[serde(default = "crate::spec::protected_by_default")]
    pub deletion_protection: bool,
}

/// The supported kinds of cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(extend("x-driver" = "cluster type"))]
pub enum ClusterType {
    /// Apache Kafka, run by the Strimzi operator.
    Kafka,
}

/// A label for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tag {
    /// The label's name.
    #[schemars(length(min = 1, max = 128))]
    pub key: String,
    /// The label's value.
    #[schemars(length(max = 256))]
    pub value: String,
}

/// The layout, access and configuration of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterAdvancedConfig {
    /// The number of zones that the brokers are spread over, the same number of brokers in each: 1, or at
    /// least the number of copies of a partition. Brokers wait for a zone that has no node yet.
    #[serde(default)]
    pub number_of_zones: ZoneCount,
    /// The clients that can reach the cluster.
    #[serde(default)]
    pub cluster_access: ClusterAccess,
    /// Give the external listener a private load balancer.
    #[serde(default)]
    pub private_access: bool,
    /// The Kafka version. An upgrade has two stages: when all brokers run the new version and are healthy,
    /// the metadata version follows. Until then, the upgrade can be reverted; after that, only to an older
    /// patch of the same release.
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+$"), extend("x-expected" = "a Kafka version: MAJOR.MINOR.PATCH"), example = &"4.3.1")]
    pub version: String,
    /// The identifier of the identity provider that clients log in with. By default, `authentication`
    /// applies.
    #[serde(default)]
    pub oauth: Option<Identifier>,
    /// How clients log in when `oauth` is not set. The administrator always has a password.
    #[serde(default)]
    pub authentication: Authentication,
    /// The bucket that stores the older part of the log. It can't change once it is in use.
    #[serde(default)]
    #[schemars(length(min = 3, max = 63), regex(pattern = r"^[a-z0-9][-a-z0-9.]*[a-z0-9]$"), extend("x-expected" = "the name of a bucket, in small letters, digits, dots and hyphens"), example = &"acme-kafka-history")]
    pub tiered_storage_bucket_name: Option<String>,
    /// The location of that bucket.
    #[serde(default)]
    pub tiered_storage_provider: Option<TieredStorageProvider>,
    /// Make the bucket with the keys of its cloud account: private, encrypted, with public access blocked. One that the
    /// account has already is used as it is. Streamfleet never deletes a bucket.
    #[serde(default)]
    pub tiered_storage_create_bucket: bool,
    /// Follow patch releases of Kafka automatically: starting from `version`, the newest one of the same
    /// release that the fleet's operator runs. Brokers restart one by one for it, one cluster of a fleet
    /// after the other, without approval. To stay at a version, turn it off and write the version that runs.
    /// Not on directory fleets.
    #[serde(default)]
    pub auto_upgrade: bool,
    /// The brokers' disks.
    #[serde(default)]
    pub storage: Storage,
    /// How the cluster is sized. It can't change.
    #[serde(default)]
    pub profile: Profile,
    /// Confirms that the cluster may lose brokers: the same number as `kafka_units`, which can otherwise only
    /// grow. Cruise Control first moves the partitions of these brokers to the others. At most half of the
    /// brokers are removed at a time.
    #[serde(default)]
    #[schemars(range(min = 1, max = 256))]
    pub scale_down_to: Option<u32>,
    /// Components beside the brokers that help to operate them.
    #[serde(default)]
    pub operations: Operations,
    /// A schema registry for the records of the cluster.
    #[serde(default)]
    pub schema_registry: SchemaRegistry,
    /// Broker options by Kafka's own names; they replace the defaults. Each option says what changing it
    /// does.
    #[serde(default)]
    pub config: BrokerConfig,
}

/// Components beside the brokers that help to operate them. Whatever uses resources is off by default. The
/// user operator, which logins depend on, and Cruise Control, which adding and removing brokers depends on,
/// are part of every cluster, except that a single broker needs no Cruise Control.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Operations {
    /// Let Prometheus read the metrics of brokers and controllers, on the pods' port `tcp-prometheus`.
    #[serde(default)]
    pub metrics: bool,
    /// Run Kafka Exporter, which lets Prometheus read the lag of consumers, on its pod's port
    /// `tcp-prometheus`.
    #[serde(default)]
    pub kafka_exporter: bool,
    /// Run Strimzi's topic operator, which creates a topic for each KafkaTopic in the cluster's namespace.
    #[serde(default)]
    pub topic_operator: bool,
    /// Run a web console, StreamsHub Console, at `console--CLUSTER` below the base domain, over HTTPS. People log in with the name and the
    /// password of a user of the cluster, and may do there what that user may. It needs `cluster_access: Internal &
    /// External`, an image in the settings, and neither `oauth` nor `authentication: mtls`, whose users have no passwords.
    #[serde(default)]
    pub console: bool,
}

impl Cluster {
    /// Returns the units that it takes and is sized by: one with the `dev` profile.
    pub fn units(&self) -> u32 {
        match self.advanced_config.profile {
            Profile::Dev => 1,
            Profile::Standard => self.kafka_units,
        }
    }

    /// Whether the spec confirms the removal of brokers. An old confirmation that was left in the file
    /// matches no other number.
    pub fn may_scale_down(&self) -> bool {
        self.advanced_config.scale_down_to == Some(self.kafka_units)
    }
}

/// The location of a tiered storage bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TieredStorageProvider {
    /// The identifier of the cloud account that may use the bucket.
    pub cloud_account: Identifier,
    /// The region of the bucket. By default the cloud account's.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub cloud_region: Option<String>,
}

/// The brokers' disks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// The storage class. By default the fleet's. It can't change.
    #[serde(default)]
    #[schemars(length(max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"), extend("x-expected" = "the name of a StorageClass"), example = &"gp3")]
    pub class: Option<String>,
    /// The size of each broker's disk in GiB. By default it follows from the cluster's units. It can only
    /// grow.
    #[serde(default)]
    #[schemars(range(min = 1, max = 65_536))]
    pub size_gib: Option<u32>,
    /// Whether the disks are kept or deleted with the cluster.
    #[serde(default)]
    pub on_delete: OnDelete,
}

/// Whether a cluster's disks are kept or deleted with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-case-insensitive" = true))]
pub enum OnDelete {
    /// They are kept, and so is their namespace.
    #[default]
    Retain,
    /// They are deleted with the cluster, including their data.
    Delete,
}

/// How a cluster is sized.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Three brokers or more, three controllers, three copies of everything.
    #[default]
    Standard,
    /// One small node that is both broker and controller, and one copy. It counts as one unit.
    Dev,
}

/// How clients log in when no identity provider is named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Authentication {
    /// With a name and a password, which is never sent.
    #[default]
    #[serde(rename = "scram-sha-512")]
    ScramSha512,
    /// With a client certificate, from the Secret of a KafkaUser with `authentication: {type: tls}`.
    Mtls,
}

/// The clients that can reach a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-case-insensitive" = true))]
pub enum ClusterAccess {
    /// Those inside its Kubernetes cluster only.
    #[default]
    Internal,
    /// Those outside only.
    External,
    /// Both.
    #[serde(rename = "Internal & External")]
    InternalAndExternal,
}

impl ClusterAccess {
    pub fn is_external(self) -> bool {
        matches!(self, ClusterAccess::External | ClusterAccess::InternalAndExternal)
    }

    pub fn is_internal(self) -> bool {
        matches!(self, ClusterAccess::Internal | ClusterAccess::InternalAndExternal)
    }
}

/// A number of zones: written as an integer or as a string of digits, returned as a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZoneCount(u32);

impl ZoneCount {
    /// The most zones that a cluster is spread over. No large cloud has a region with more than six.
    pub const MAX: u32 = 9;

    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for ZoneCount {
    fn default() -> Self {
        Self(1)
    }
}

impl Serialize for ZoneCount {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ZoneCount {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Count;
        impl serde::de::Visitor<'_> for Count {
            type Value = ZoneCount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number of zones from 1 to {}", ZoneCount::MAX)
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<ZoneCount, E> {
                u32::try_from(number)
                    .ok()
                    .filter(|n| (1..=ZoneCount::MAX).contains(n))
                    .map(ZoneCount)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Unsigned(number), &self))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ZoneCount, E> {
                let number =
                    text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))?;
                self.visit_u64(number)
            }
        }
        deserializer.deserialize_any(Count)
    }
}

impl JsonSchema for ZoneCount {
    fn schema_name() -> Cow<'static, str> {
        "ZoneCount".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-expected": "a number of zones from 1 to 9",
            "default": "1",
            "oneOf": [
                {"type": "string", "pattern": "^[1-9]$"},
                {"type": "integer", "minimum": 1, "maximum": Self::MAX},
            ],
        })
    }
}
