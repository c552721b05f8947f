//! The rows. The first one that fits decides.

use crate::plan::Verdict;
use crate::plan::Verdict::{InPlace, NoOp, RollingRestart, StorageGrowth};

/// What a change of one field, or of a whole object, comes to.
pub(super) struct Row {
    /// The kind of the object; `*` is any.
    pub kind: &'static str,
    /// Which objects of the kind.
    pub of: Of,
    /// The field, as a JSON pointer in which `*` is one part and a last `**` is any number of them. Empty for a whole
    /// object.
    pub path: &'static str,
    /// In which direction.
    pub when: When,
    /// What it comes to.
    pub outcome: Outcome,
}

/// Which objects of a kind a row is about.
#[derive(Clone, Copy)]
pub(super) enum Of {
    Any,
    /// Node pools with controllers in them, brokers beside them or not.
    Controllers,
    /// Secrets that hold a certificate.
    Tls,
}

/// What a row says.
#[derive(Clone, Copy)]
pub(super) enum Outcome {
    /// It is done, and this follows from it. In the words `{before}`, `{after}`, `{brokers}` and `{object}` are filled
    /// in; empty words say nothing.
    Does(Verdict, &'static str),
    /// It is never done.
    Refuses { code: &'static str, why: &'static str, hint: &'static str },
}

/// How a field or an object changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The object is made.
    Created,
    /// The object is deleted though its resource stays.
    Deleted,
    /// The object is written anew without it being known what is there.
    Rewritten,
    /// A number, size or version grows.
    Up,
    /// A number, size or version shrinks.
    Down,
    /// It becomes true.
    On,
    /// It is true no longer.
    Off,
    /// Anything else.
    Other,
}

/// For which directions a row holds.
#[derive(Clone, Copy)]
pub(super) enum When {
    /// For this one.
    Is(Direction),
    /// For every change of a field.
    Changes,
}

impl When {
    pub fn fits(self, direction: Direction) -> bool {
        match self {
            When::Is(only) => only == direction,
            When::Changes => {
                !matches!(direction, Direction::Created | Direction::Deleted | Direction::Rewritten)
            }
        }
    }
}

const fn row(
    kind: &'static str,
    path: &'static str,
    when: When,
    verdict: Verdict,
    words: &'static str,
) -> Row {
    Row { kind, of: Of::Any, path, when, outcome: Outcome::Does(verdict, words) }
}

const fn refused(
    kind: &'static str,
    of: Of,
    path: &'static str,
    when: When,
    [code, why, hint]: [&'static str; 3],
) -> Row {
    Row { kind, of, path, when, outcome: Outcome::Refuses { code, why, hint } }
}

const CHANGES: When = When::Changes;
const UP: When = When::Is(Direction::Up);
const DOWN: When = When::Is(Direction::Down);
const DELETED: When = When::Is(Direction::Deleted);
const REWRITTEN: When = When::Is(Direction::Rewritten);

const ROLLS: &str = "brokers and controllers restart one by one; clients reconnect and go on";
const ROLLS_POOL: &str = "the nodes of {object} restart one by one; clients reconnect and go on";
const NEW_CLUSTER: &str = "make a new cluster and move the topics to it";
const CONTROLLERS: [&str; 3] = [
    "controllers-changed",
    "the controllers of {object} would change from {before} to {after}, and a running quorum can't change its size",
    NEW_CLUSTER,
];
const ROLES: [&str; 3] = [
    "roles-changed",
    "the roles of {object} would change, and running nodes can't change their roles",
    NEW_CLUSTER,
];
const FEWER_BROKERS: [&str; 3] = [
    "brokers-removed",
    "{object} would go from {before} to {after} brokers, and the ones removed may hold the only copies of data",
    "put `kafka_units` back, or make a smaller cluster and move the topics to it",
];
const SMALLER_DISKS: [&str; 3] = [
    "storage-shrunk",
    "the disks of {object} would shrink from {before} to {after}, and disks only grow",
    "put `advanced_config.storage.size_gib` back, or make a new cluster and move the topics to it",
];
const OTHER_DISKS: [&str; 3] = [
    "storage-changed",
    "the disks of {object} would become other disks, and Strimzi can't move data between them",
    "put `advanced_config.storage` back, or make a new cluster and move the topics to it",
];
const LOWER_METADATA: [&str; 3] = [
    "metadata-downgrade",
    "Kafka's metadata would go back from {before} to {after}, and it only goes forward",
    "put `advanced_config.version` back",
];
const DELETES_POOL: [&str; 3] = [
    "pool-deleted",
    "{object} would be deleted with its brokers, while its cluster stays",
    "keep the settings that it was made from; a cluster's layout is changed by making a new cluster",
];
const DELETES_CLUSTER: [&str; 3] = [
    "kafka-deleted",
    "{object} would be deleted, while the resource that it was made for stays",
    "remove the resource's file where the cluster is meant to go",
];
const NEVER_DELETED: [&str; 3] = [
    "holds-data",
    "{object} would be deleted, and all data in it with it",
    "delete it by hand where that is meant",
];

/// The first row that fits decides; what fits none is done in place without a word.
#[rustfmt::skip]
pub(super) const TABLE: &[Row] = &[
    refused("KafkaNodePool", Of::Any, "/spec/roles/**", CHANGES, ROLES),
    refused("KafkaNodePool", Of::Controllers, "/spec/replicas", CHANGES, CONTROLLERS),
    row("KafkaNodePool", "/spec/replicas", UP, InPlace, "adds {brokers} and rebalances; clients keep their connections"),
    refused("KafkaNodePool", Of::Any, "/spec/replicas", DOWN, FEWER_BROKERS),
    row("KafkaNodePool", "/spec/storage/volumes/*/size", UP, StorageGrowth, "disks of {object} grow from {before} to {after}; its nodes may restart one by one"),
    row("KafkaNodePool", "/spec/storage/size", UP, StorageGrowth, "disks of {object} grow from {before} to {after}; its nodes may restart one by one"),
    refused("KafkaNodePool", Of::Any, "/spec/storage/volumes/*/size", DOWN, SMALLER_DISKS),
    refused("KafkaNodePool", Of::Any, "/spec/storage/size", DOWN, SMALLER_DISKS),
    row("KafkaNodePool", "/spec/storage/volumes/*/deleteClaim", When::Is(Direction::On), InPlace, "from now on, deleting the cluster deletes its data"),
    row("KafkaNodePool", "/spec/storage/volumes/*/deleteClaim", When::Is(Direction::Off), InPlace, "from now on, the disks stay when the cluster is deleted"),
    row("KafkaNodePool", "/spec/storage/deleteClaim", When::Is(Direction::On), InPlace, "from now on, deleting the cluster deletes its data"),
    row("KafkaNodePool", "/spec/storage/deleteClaim", When::Is(Direction::Off), InPlace, "from now on, the disks stay when the cluster is deleted"),
    refused("KafkaNodePool", Of::Any, "/spec/storage/**", CHANGES, OTHER_DISKS),
    row("KafkaNodePool", "/spec/**", CHANGES, RollingRestart, ROLLS_POOL),
    row("KafkaNodePool", "", REWRITTEN, RollingRestart, "{object} can't be read and is written anew; its nodes may restart one by one"),
    refused("KafkaNodePool", Of::Any, "", DELETED, DELETES_POOL),

    refused("Kafka", Of::Any, "/spec/kafka/metadataVersion", DOWN, LOWER_METADATA),
    row("Kafka", "/spec/kafka/version", CHANGES, RollingRestart, "Kafka goes from {before} to {after}; brokers and controllers restart one by one, clients reconnect and go on"),
    row("Kafka", "/spec/kafka/metadataVersion", CHANGES, RollingRestart, "Kafka's metadata goes from {before} to {after} and can't go back"),
    row("Kafka", "/spec/kafka/quotas/**", CHANGES, InPlace, "client quotas change while clients stay connected"),
    row("Kafka", "/spec/entityOperator/**", CHANGES, InPlace, "the topic and user operators restart; clients notice nothing"),
    row("Kafka", "/spec/cruiseControl/**", CHANGES, InPlace, "Cruise Control restarts; clients notice nothing"),
    row("Kafka", "/spec/kafkaExporter/**", CHANGES, InPlace, "the metrics exporter restarts; clients notice nothing"),
    row("Kafka", "/spec/kafka/listeners/**", CHANGES, RollingRestart, "brokers restart one by one with other listeners; clients may need other settings to connect"),
    row("Kafka", "/spec/**", CHANGES, RollingRestart, ROLLS),
    row("Kafka", "", REWRITTEN, RollingRestart, "{object} can't be read and is written anew; brokers and controllers may restart one by one"),
    refused("Kafka", Of::Any, "", DELETED, DELETES_CLUSTER),

    Row { kind: "Secret", of: Of::Tls, path: "/data/**", when: CHANGES, outcome: Outcome::Does(RollingRestart, "brokers restart one by one with the new certificate; clients reconnect and go on") },
    Row { kind: "Secret", of: Of::Tls, path: "", when: REWRITTEN, outcome: Outcome::Does(RollingRestart, "brokers restart one by one with the new certificate; clients reconnect and go on") },
    row("Deployment", "/spec/**", CHANGES, RollingRestart, "{object} changes; a new version of the operator restarts the brokers of every cluster"),

    refused("Namespace", Of::Any, "", DELETED, NEVER_DELETED),
    refused("PersistentVolumeClaim", Of::Any, "", DELETED, NEVER_DELETED),
    refused("CustomResourceDefinition", Of::Any, "", DELETED, NEVER_DELETED),
    row("Namespace", "/metadata/**", CHANGES, InPlace, ""),
    row("*", "/metadata/**", CHANGES, NoOp, ""),
];
