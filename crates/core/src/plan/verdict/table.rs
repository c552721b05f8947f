//! The rows. The first match decides.

use serde_json::{Map, Value};

use super::Difference;
use crate::plan::Verdict::{ClientsReconnect, InPlace, NoOp, RollingRestart, StorageGrowth};
use crate::plan::{Step, Verdict};
use crate::spec::broker_option::{self, Effect};

/// The effect of a change of one field, or of a whole object.
pub(super) struct Row {
    /// The kind of the object; `*` is any.
    pub kind: &'static str,
    pub of: ObjectFilter,
    /// The JSON pointer; `*` is one part and a final `**` any number of parts. Empty for a whole object.
    pub path: &'static str,
    pub when: DirectionFilter,
    pub outcome: RowVerdict,
}

#[derive(Clone, Copy)]
pub(super) enum ObjectFilter {
    Any,
    /// Node pools with controllers, including those that are brokers, too.
    Controllers,
    Tls,
}

#[derive(Clone, Copy)]
pub(super) enum RowVerdict {
    /// The change is made, with this sentence; `effects::fill` has the placeholders. Empty ones aren't shown.
    Does(Verdict, &'static str),
    /// The change is made, with this sentence, if the spec confirms fewer brokers, and refused otherwise.
    RemovesBrokers(&'static str),
    /// The change is never made: a stable code for programs, the reason, and a hint.
    Refuses([&'static str; 3]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum Direction {
    Created,
    /// The object is deleted though its resource stays.
    Deleted,
    /// The object is overwritten without knowing its contents.
    Rewritten,
    /// A number, size, version or list grows.
    Up,
    /// A number, size, version or list shrinks.
    Down,
    On,
    Off,
    Other,
}

#[derive(Clone, Copy)]
pub(super) enum DirectionFilter {
    Is(Direction),
    /// Every change of a field.
    Changes,
}

impl DirectionFilter {
    pub fn fits(self, direction: Direction) -> bool {
        match self {
            DirectionFilter::Is(only) => only == direction,
            DirectionFilter::Changes => {
                !matches!(direction, Direction::Created | Direction::Deleted | Direction::Rewritten)
            }
        }
    }
}

const fn row(
    kind: &'static str,
    path: &'static str,
    when: DirectionFilter,
    verdict: Verdict,
    words: &'static str,
) -> Row {
    Row { kind, of: ObjectFilter::Any, path, when, outcome: RowVerdict::Does(verdict, words) }
}

const fn refused(
    kind: &'static str,
    of: ObjectFilter,
    path: &'static str,
    when: DirectionFilter,
    refusal: [&'static str; 3],
) -> Row {
    Row { kind, of, path, when, outcome: RowVerdict::Refuses(refusal) }
}

const CHANGES: DirectionFilter = DirectionFilter::Changes;
const UP: DirectionFilter = DirectionFilter::Is(Direction::Up);
const DOWN: DirectionFilter = DirectionFilter::Is(Direction::Down);
const DELETED: DirectionFilter = DirectionFilter::Is(Direction::Deleted);
const REWRITTEN: DirectionFilter = DirectionFilter::Is(Direction::Rewritten);

/// The end of sentences about restarts that clients survive.
pub(in crate::plan) const GO_ON: &str = "; clients reconnect and continue";
const ROLLS: &str = "brokers and controllers restart one by one; clients reconnect and continue";
const ROLLS_BROKERS: &str = "brokers restart one by one; clients reconnect and continue";
const ROLLS_POOL: &str = "the nodes of {object} restart one by one; clients reconnect and continue";
pub(super) const OTHER_LISTENERS: &str =
    "brokers restart one by one with other listeners; clients may need other settings to connect";
pub(super) const OTHER_BALANCERS: &str = "settings of load balancers change; if the cloud's controller changes existing \
                                          ones, their addresses may change";
const OTHER_RECORDS: &str = "external-dns gets other records for the brokers";
const NEW_CLUSTER: &str = "create a new cluster and move the topics to it";
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
pub(super) const FEWER_BROKERS: [&str; 3] = [
    "brokers-removed",
    "{object} would shrink from {before} to {after} brokers, and the removed ones may hold the only copies of data",
    "restore `kafka_units`, or confirm the change with `advanced_config.scale_down_to`, for at most half of the brokers at \
     a time",
];
const REMOVES_BROKERS: &str = "Cruise Control moves the data of {brokers} to the others, which need enough disk space for \
                               it; then the operator removes them. Clients keep their connections to the others; {disks}";
const SMALLER_DISKS: [&str; 3] = [
    "storage-shrunk",
    "the disks of {object} would shrink from {before} to {after}, and disks only grow",
    "restore `advanced_config.storage.size_gib`, or create a new cluster and move the topics to it",
];
const OTHER_DISKS: [&str; 3] = [
    "storage-changed",
    "the disks of {object} would be replaced by other disks, and Strimzi can't move data between them",
    "restore `advanced_config.storage`, or create a new cluster and move the topics to it",
];
const LOWER_METADATA: [&str; 3] = [
    "metadata-downgrade",
    "Kafka's metadata version would go back from {before} to {after}, and it only goes forward",
    PUT_VERSION_BACK,
];
pub(in crate::plan) const PUT_VERSION_BACK: &str =
    "restore `advanced_config.version`, or create a new cluster and move the topics to it";
const DELETES_POOL: [&str; 3] = [
    "pool-deleted",
    "{object} would be deleted with its brokers, while its cluster is kept",
    "restore the settings that it was created with; to change a cluster's layout, create a new cluster",
];
const DELETES_CLUSTER: [&str; 3] = [
    "kafka-deleted",
    "{object} would be deleted, while its resource is kept",
    "remove the resource's file if you mean to delete the cluster",
];
const NEVER_DELETED: [&str; 3] =
    ["holds-data", "{object} would be deleted with all data in it", "delete it by hand if you mean to"];

/// Returns the effect of a changed broker option; `None` if brokers and controllers have to restart for it.
pub(super) fn of_broker_option(step: &Step, pointer: &str) -> Option<RowVerdict> {
    let name = pointer.strip_prefix("/spec/kafka/config/").filter(|_| step.object.kind == "Kafka")?;
    match broker_option::find(name)?.effect {
        Effect::Live => Some(RowVerdict::Does(InPlace, "brokers use new options without a restart")),
        Effect::Brokers => Some(RowVerdict::Does(RollingRestart, ROLLS_BROKERS)),
        Effect::Restart => None,
    }
}

/// Describes the records that brokers delete when their options change, one sentence each.
pub(super) fn deleted_records(step: &Step, before: &Value, after: &Value) -> Vec<String> {
    let none = Map::new();
    let [before, after] = [before, after]
        .map(|body| body.pointer("/spec/kafka/config").and_then(Value::as_object).unwrap_or(&none));
    if step.object.kind == "Kafka" { broker_option::all_deleted(before, after) } else { Vec::new() }
}

/// Describes what a changed broker option does to records: lost although acknowledged, or refused.
pub(super) fn of_records(step: &Step, difference: Option<&Difference>) -> Option<(Verdict, String)> {
    let Difference { pointer, before, after } = difference.filter(|_| step.object.kind == "Kafka")?;
    let option = pointer.strip_prefix("/spec/kafka/config/")?;
    let is_live = broker_option::find(option).is_some_and(|option| option.effect == Effect::Live);
    let verdict = if is_live { InPlace } else { RollingRestart };
    if let Some(words) = broker_option::refused_clients(option, before, after) {
        return Some((verdict, words));
    }
    let (was, is) = (before.as_u64()?, after.as_u64()?);
    let copies = |number| count_of(number, "copy", "copies");
    let words = match option {
        "min.insync.replicas" if is < was => format!(
            "a write with `acks=all` is acknowledged with {} instead of {was}: it is lost, though acknowledged, if {} lost \
             before there are more; topics with a `min.insync.replicas` of their own keep theirs",
            copies(is),
            if is == 1 { "that one is".to_owned() } else { format!("these {is} are") },
        ),
        "min.insync.replicas" if is > was => format!(
            "topics of no more than {} can't be written with `acks=all` while one of their brokers is away",
            copies(is)
        ),
        "default.replication.factor" if is < was => format!(
            "new topics get {} instead of {was}, so fewer failures can lose their records; existing topics keep theirs",
            copies(is)
        ),
        "default.replication.factor" if is > was => {
            format!("new topics get {} instead of {was}; existing topics keep theirs", copies(is))
        }
        _ => return None,
    };
    Some((verdict, words))
}

/// Whether a changed option makes brokers reject clients that they accepted before.
pub(super) fn turns_away(step: &Step, difference: Option<&Difference>) -> bool {
    difference.filter(|_| step.object.kind == "Kafka").is_some_and(|Difference { pointer, before, after }| {
        let option = pointer.strip_prefix("/spec/kafka/config/");
        option.is_some_and(|option| broker_option::refused_clients(option, before, after).is_some())
    })
}

fn count_of(number: u64, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

/// Annotations of load balancers and routes don't touch brokers; those for external-dns only change DNS.
pub(super) fn of_annotations(step: &Step, pointer: &str) -> Option<RowVerdict> {
    let field = pointer.strip_prefix("/spec/kafka/listeners/").filter(|_| step.object.kind == "Kafka")?;
    let (_, field) = field.split_once("/configuration/")?;
    let annotation =
        field.strip_prefix("bootstrap/annotations").or(field.strip_prefix("perBrokerAnnotationsTemplate"))?;
    Some(match annotation.strip_prefix('/').is_some_and(|name| name.starts_with("external-dns.")) {
        true => RowVerdict::Does(InPlace, OTHER_RECORDS),
        false => RowVerdict::Does(ClientsReconnect, OTHER_BALANCERS),
    })
}

/// The first matching row decides. Changes without a match are made in place, without a sentence.
#[rustfmt::skip]
pub(super) const TABLE: &[Row] = &[
    refused("KafkaNodePool", ObjectFilter::Any, "/spec/roles/**", CHANGES, ROLES),
    refused("KafkaNodePool", ObjectFilter::Controllers, "/spec/replicas", CHANGES, CONTROLLERS),
    row("KafkaNodePool", "/spec/replicas", UP, InPlace, "adds {brokers} and rebalances; clients keep their connections"),
    Row { kind: "KafkaNodePool", of: ObjectFilter::Any, path: "/spec/replicas", when: DOWN, outcome: RowVerdict::RemovesBrokers(REMOVES_BROKERS) },
    row("KafkaNodePool", "/spec/storage/volumes/*/size", UP, StorageGrowth, "disks of {object} grow from {before} to {after}; its nodes may restart one by one{balancer}"),
    row("KafkaNodePool", "/spec/storage/size", UP, StorageGrowth, "disks of {object} grow from {before} to {after}; its nodes may restart one by one{balancer}"),
    refused("KafkaNodePool", ObjectFilter::Any, "/spec/storage/volumes/*/size", DOWN, SMALLER_DISKS),
    refused("KafkaNodePool", ObjectFilter::Any, "/spec/storage/size", DOWN, SMALLER_DISKS),
    row("KafkaNodePool", "/spec/storage/volumes/*/deleteClaim", DirectionFilter::Is(Direction::On), InPlace, "deleting the \
         cluster now deletes its data"),
    row("KafkaNodePool", "/spec/storage/volumes/*/deleteClaim", DirectionFilter::Is(Direction::Off), InPlace, "deleting \
         the cluster now keeps its disks"),
    row("KafkaNodePool", "/spec/storage/deleteClaim", DirectionFilter::Is(Direction::On), InPlace, "deleting the cluster \
         now deletes its data"),
    row("KafkaNodePool", "/spec/storage/deleteClaim", DirectionFilter::Is(Direction::Off), InPlace, "deleting the cluster \
         now keeps its disks"),
    refused("KafkaNodePool", ObjectFilter::Any, "/spec/storage/**", CHANGES, OTHER_DISKS),
    row("KafkaNodePool", "/spec/template/pod/topologySpreadConstraints", UP, RollingRestart, "the nodes of {object} \
         restart one by one; their disks stay in their zones, so a node in a zone with more than its share can't start \
         again"),
    row("KafkaNodePool", "/spec/**", CHANGES, RollingRestart, ROLLS_POOL),
    row("KafkaNodePool", "", REWRITTEN, RollingRestart, "{object} can't be read and is rewritten; its nodes may restart \
                                                         one by one"),
    refused("KafkaNodePool", ObjectFilter::Any, "", DELETED, DELETES_POOL),

    refused("Kafka", ObjectFilter::Any, "/spec/kafka/metadataVersion", DOWN, LOWER_METADATA),
    row("Kafka", "/spec/kafka/version", CHANGES, RollingRestart, "Kafka changes from {before} to {after}; brokers and \
                                                                  controllers restart one by one, clients reconnect and \
                                                                  continue"),
    row("Kafka", "/spec/kafka/metadataVersion", CHANGES, InPlace, "Kafka's metadata version changes from {before} to \
                                                                   {after}, which can't be undone"),
    // Kafka doesn't know the options of the quota plugin, so Strimzi hashes them into every node's pod.
    row("Kafka", "/spec/kafka/quotas/producerByteRate", DOWN, RollingRestart, "brokers and controllers restart one by one; \
         then the write limit is lower: {after} bytes a second on each broker instead of {before}; clients above it are \
         slowed down"),
    row("Kafka", "/spec/kafka/quotas/consumerByteRate", DOWN, RollingRestart, "brokers and controllers restart one by one; \
         then the read limit is lower: {after} bytes a second on each broker instead of {before}; clients above it are \
         slowed down"),
    row("Kafka", "/spec/kafka/quotas/**", CHANGES, RollingRestart, "brokers and controllers restart one by one with other \
                                                                    client quotas; clients reconnect and continue"),
    row("Kafka", "/spec/entityOperator/**", CHANGES, InPlace, "{operators}; clients notice nothing"),
    row("Kafka", "/spec/cruiseControl", CHANGES, RollingRestart, "brokers restart one by one with or without the Cruise \
                                                                  Control reporter; clients reconnect and continue"),
    row("Kafka", "/spec/cruiseControl/**", CHANGES, InPlace, "Cruise Control restarts; clients notice nothing"),
    row("Kafka", "/spec/kafkaExporter/**", CHANGES, InPlace, "Kafka Exporter changes, beside the brokers; clients notice nothing"),
    row("Kafka", "/spec/kafka/tieredStorage/remoteStorageManager/config/**", CHANGES, RollingRestart, "brokers restart one \
         by one and look for the older part of the log in another place, which must contain it already"),
    row("Kafka", "/spec/kafka/listeners", UP, RollingRestart, "brokers restart one by one with another listener; clients \
                                                               reconnect and continue"),
    row("Kafka", "/spec/kafka/listeners/*/configuration/maxConnections", DOWN, RollingRestart, "brokers restart one by \
         one, and each accepts fewer connections: {after} instead of {before}; further clients can't connect"),
    row("Kafka", "/spec/kafka/listeners/*/configuration/maxConnectionCreationRate", DOWN, RollingRestart, "brokers restart \
         one by one, and each accepts fewer new connections: {after} a second instead of {before}; further clients wait to \
         connect"),
    row("Kafka", "/spec/kafka/listeners/*/configuration/maxConnections", CHANGES, RollingRestart, ROLLS_BROKERS),
    row("Kafka", "/spec/kafka/listeners/*/configuration/maxConnectionCreationRate", CHANGES, RollingRestart, ROLLS_BROKERS),
    row("Kafka", "/spec/kafka/listeners/**", CHANGES, ClientsReconnect, OTHER_LISTENERS),
    row("Kafka", "/spec/**", CHANGES, RollingRestart, ROLLS),
    row("Kafka", "", REWRITTEN, RollingRestart, "{object} can't be read and is rewritten; brokers and controllers may \
                                                 restart one by one"),
    refused("Kafka", ObjectFilter::Any, "", DELETED, DELETES_CLUSTER),

    Row { kind: "Secret", of: ObjectFilter::Tls, path: "/data/**", when: CHANGES, outcome: RowVerdict::Does(RollingRestart, "brokers \
         restart one by one with the new certificate; clients reconnect and continue") },
    Row { kind: "Secret", of: ObjectFilter::Tls, path: "", when: REWRITTEN, outcome: RowVerdict::Does(RollingRestart, "brokers \
         restart one by one with the new certificate; clients reconnect and continue") },
    row("Deployment", "/spec/**", CHANGES, RollingRestart, "{object} changes; a new version of the operator restarts the brokers of every cluster"),
    row("Deployment", "", DELETED, InPlace, "{object} is deleted; clusters keep running, and changes have no effect until \
                                             another operator is installed"),

    row("Gateway", "/spec/gatewayClassName", CHANGES, InPlace, "{object} changes from class {before} to {after}: clients \
                                                                outside of Kubernetes are cut off from every cluster of \
                                                                the fleet until it has a new address and their host names \
                                                                lead to it"),
    row("Gateway", "/spec/**", CHANGES, InPlace, "{object} changes, through which clients outside of Kubernetes reach every cluster of the fleet; they may have to reconnect"),
    row("Gateway", "", DELETED, InPlace, "{object} is deleted; no cluster can be reached through it any more"),

    refused("Namespace", ObjectFilter::Any, "", DELETED, NEVER_DELETED),
    refused("PersistentVolumeClaim", ObjectFilter::Any, "", DELETED, NEVER_DELETED),
    refused("CustomResourceDefinition", ObjectFilter::Any, "", DELETED, NEVER_DELETED),
    row("Namespace", "/metadata/annotations/**", CHANGES, NoOp, ""),
    // An operator that doesn't know of the stricter level yet would create pods that are refused. So this
    // waits like a restart, behind whatever the operator restarts first.
    row("Namespace", "/metadata/labels/pod-security.kubernetes.io~1enforce", UP, RollingRestart, "new pods must satisfy \
         pod security `{after}`"),
    row("Namespace", "/metadata/**", CHANGES, InPlace, ""),
    row("*", "/metadata/**", CHANGES, NoOp, ""),
];
