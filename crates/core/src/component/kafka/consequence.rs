//! The effects of changes of Kafka's objects on clients and data.

mod certificate;
mod login;
mod words;

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::component::Difference;
use crate::component::Verdict::{ClientsReconnect, InPlace, RollingRestart, StorageGrowth};
use crate::component::consequence::*;
use crate::spec::broker_option::{self, Effect};

pub const CONSEQUENCES: Consequences = Consequences {
    rows: ROWS,
    special,
    side_effect,
    deleted_records,
    keeps_certificate: certificate::keeps_certificate,
    replaced_certificate_ends: certificate::replaced_ends,
    created: words::created,
    placeholders: words::PLACEHOLDERS,
    general: &[OTHER_LISTENERS, OTHER_BALANCERS],
};

fn special(change: &ObjectChange, difference: Option<&Difference>) -> Option<RowVerdict> {
    let pointer = difference.map_or("", |difference| &difference.pointer);
    certificate::beside_the_certificate(change, pointer)
        .or_else(|| of_broker_option(change, pointer))
        .or_else(|| of_annotations(change, pointer))
        .or_else(|| certificate::of_another_authority(change, difference))
        .or_else(|| login::with_the_same_tokens(difference))
}

fn has_controllers(pool: &Value) -> bool {
    let roles = pool.pointer("/spec/roles").and_then(Value::as_array);
    roles.is_some_and(|roles| roles.iter().any(|role| role == "controller"))
}

fn is_tls(secret: &Value) -> bool {
    secret.get("type").is_some_and(|kind| kind == "kubernetes.io/tls")
        || secret.pointer("/data/tls.crt").is_some()
}

const ROLLS: &str = "brokers and controllers restart one by one; clients reconnect and continue";
const ROLLS_BROKERS: &str = "brokers restart one by one; clients reconnect and continue";
const ROLLS_POOL: &str = "the nodes of {object} restart one by one; clients reconnect and continue";
const OTHER_LISTENERS: &str =
    "brokers restart one by one with other listeners; clients may need other settings to connect";
const OTHER_BALANCERS: &str = "settings of load balancers change; if the cloud's controller changes existing ones, \
    their addresses may change";
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
const FEWER_BROKERS: [&str; 3] = [
    "brokers-removed",
    "{object} would shrink from {before} to {after} brokers, and the removed ones may hold the only copies of data",
    "restore `kafka_units`, or confirm the change with `advanced_config.scale_down_to`, for at most half of the \
        brokers at a time",
];
const REMOVES_BROKERS: &str = "Cruise Control moves the data of {brokers} to the others, which need enough disk \
    space for it; then the operator removes them. Clients keep their connections to the others; {disks}";
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
/// Returns the effect of a changed broker option; `None` if brokers and controllers have to restart for it.
fn of_broker_option(change: &ObjectChange, pointer: &str) -> Option<RowVerdict> {
    let name = pointer.strip_prefix("/spec/kafka/config/").filter(|_| change.object.kind == "Kafka")?;
    match broker_option::find(name)?.effect {
        Effect::Live => Some(RowVerdict::Does(InPlace, "brokers use new options without a restart".into())),
        Effect::Brokers => Some(RowVerdict::Does(RollingRestart, ROLLS_BROKERS.into())),
        Effect::Restart => None,
    }
}

/// Describes the records that brokers delete when their options change, one sentence each.
fn deleted_records(change: &ObjectChange, before: &Value, after: &Value) -> Vec<String> {
    let none = Map::new();
    let [before, after] = [before, after]
        .map(|body| body.pointer("/spec/kafka/config").and_then(Value::as_object).unwrap_or(&none));
    if change.object.kind == "Kafka" { broker_option::all_deleted(before, after) } else { Vec::new() }
}

/// Describes what a changed broker option does to records: lost although acknowledged, or refused.
fn side_effect(change: &ObjectChange, difference: &Difference) -> Option<SideEffect> {
    let Difference { pointer, before, after } = Some(difference).filter(|_| change.object.kind == "Kafka")?;
    let option = pointer.strip_prefix("/spec/kafka/config/")?;
    let is_live = broker_option::find(option).is_some_and(|option| option.effect == Effect::Live);
    let verdict = if is_live { InPlace } else { RollingRestart };
    if let Some(words) = broker_option::refused_clients(option, before, after) {
        return Some(SideEffect { verdict, words, turns_away: true });
    }
    let (was, is) = (before.as_u64()?, after.as_u64()?);
    let copies = |number| count_of(number, "copy", "copies");
    let words = match option {
        "min.insync.replicas" if is < was => format!(
            "a write with `acks=all` is acknowledged with {} instead of {was}: it is lost, though acknowledged, if {} \
             lost before others have it; topics with a `min.insync.replicas` of their own keep theirs",
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
    Some(SideEffect { verdict, words, turns_away: false })
}

fn count_of(number: u64, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

/// Annotations of load balancers and routes don't touch brokers; those for external-dns only change DNS.
fn of_annotations(change: &ObjectChange, pointer: &str) -> Option<RowVerdict> {
    let field = pointer.strip_prefix("/spec/kafka/listeners/").filter(|_| change.object.kind == "Kafka")?;
    let (_, field) = field.split_once("/configuration/")?;
    let annotation =
        field.strip_prefix("bootstrap/annotations").or(field.strip_prefix("perBrokerAnnotationsTemplate"))?;
    Some(match annotation.strip_prefix('/').is_some_and(|name| name.starts_with("external-dns.")) {
        true => RowVerdict::Does(InPlace, OTHER_RECORDS.into()),
        false => RowVerdict::Does(ClientsReconnect, OTHER_BALANCERS.into()),
    })
}

/// The behaviour of Strimzi 1.2, whatever the cause of the change.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    refused("KafkaNodePool", ObjectFilter::Any, "/spec/roles/**", CHANGES, ROLES),
    refused("KafkaNodePool", ObjectFilter::Body(has_controllers), "/spec/replicas", CHANGES, CONTROLLERS),
    row("KafkaNodePool", "/spec/replicas", UP, InPlace, "adds {brokers} and rebalances; clients keep their \
        connections"),
    Row { kind: "KafkaNodePool", of: ObjectFilter::Any, path: "/spec/replicas", when: DOWN, outcome: RowVerdict::RemovesBrokers(REMOVES_BROKERS, FEWER_BROKERS) },
    row("KafkaNodePool", "/spec/storage/volumes/*/size", UP, StorageGrowth, "disks of {object} grow from {before} to \
        {after}; its nodes may restart one by one{balancer}"),
    row("KafkaNodePool", "/spec/storage/size", UP, StorageGrowth, "disks of {object} grow from {before} to {after}; \
        its nodes may restart one by one{balancer}"),
    refused("KafkaNodePool", ObjectFilter::Any, "/spec/storage/volumes/*/size", DOWN, SMALLER_DISKS),
    refused("KafkaNodePool", ObjectFilter::Any, "/spec/storage/size", DOWN, SMALLER_DISKS),
    row("KafkaNodePool", "/spec/storage/volumes/*/deleteClaim", DirectionFilter::Is(Direction::On), InPlace, "deleting the cluster now deletes its data"),
    row("KafkaNodePool", "/spec/storage/volumes/*/deleteClaim", DirectionFilter::Is(Direction::Off), InPlace, "deleting the cluster now keeps its disks"),
    row("KafkaNodePool", "/spec/storage/deleteClaim", DirectionFilter::Is(Direction::On), InPlace, "deleting the \
        cluster now deletes its data"),
    row("KafkaNodePool", "/spec/storage/deleteClaim", DirectionFilter::Is(Direction::Off), InPlace, "deleting the \
        cluster now keeps its disks"),
    refused("KafkaNodePool", ObjectFilter::Any, "/spec/storage/**", CHANGES, OTHER_DISKS),
    row("KafkaNodePool", "/spec/template/pod/topologySpreadConstraints", UP, RollingRestart, "the nodes of {object} \
        restart one by one; their disks stay in their zones, so a node in a zone with more than its share can't \
        start again"),
    row("KafkaNodePool", "/spec/**", CHANGES, RollingRestart, ROLLS_POOL),
    row("KafkaNodePool", "", REWRITTEN, RollingRestart, "{object} can't be read and is rewritten; its nodes may \
        restart one by one"),
    refused("KafkaNodePool", ObjectFilter::Any, "", DELETED, DELETES_POOL),

    refused("Kafka", ObjectFilter::Any, "/spec/kafka/metadataVersion", DOWN, LOWER_METADATA),
    row("Kafka", "/spec/kafka/version", CHANGES, RollingRestart, "Kafka changes from {before} to {after}; brokers \
        and controllers restart one by one, clients reconnect and continue"),
    row("Kafka", "/spec/kafka/metadataVersion", CHANGES, InPlace, "Kafka's metadata version changes from {before} to \
        {after}, which can't be undone"),
    // Kafka doesn't know the options of the quota plugin, so Strimzi hashes them into every node's pod.
    row("Kafka", "/spec/kafka/quotas/producerByteRate", DOWN, RollingRestart, "brokers and controllers restart one \
        by one; then the write limit is lower: {after} bytes a second on each broker instead of {before}; clients \
        above it are slowed down"),
    row("Kafka", "/spec/kafka/quotas/consumerByteRate", DOWN, RollingRestart, "brokers and controllers restart one \
        by one; then the read limit is lower: {after} bytes a second on each broker instead of {before}; clients \
        above it are slowed down"),
    row("Kafka", "/spec/kafka/quotas/**", CHANGES, RollingRestart, "brokers and controllers restart one by one with \
        other client quotas; clients reconnect and continue"),
    row("Kafka", "/spec/entityOperator/**", CHANGES, InPlace, "{operators}; clients notice nothing"),
    // The operator of users has them, too, in its environment.
    row("Kafka", "/spec/maintenanceTimeWindows/**", CHANGES, InPlace, "Strimzi renews its own certificates at other \
        times; the operators of topics and users restart; clients notice nothing"),
    row("Kafka", "/spec/cruiseControl", CHANGES, RollingRestart, "brokers restart one by one with or without the \
        Cruise Control reporter; clients reconnect and continue"),
    row("Kafka", "/spec/cruiseControl/**", CHANGES, InPlace, "Cruise Control restarts; clients notice nothing"),
    row("Kafka", "/spec/kafkaExporter/**", CHANGES, InPlace, "Kafka Exporter changes, beside the brokers; clients \
        notice nothing"),
    row("Kafka", "/spec/kafka/tieredStorage/remoteStorageManager/config/**", CHANGES, RollingRestart, "brokers \
        restart one by one and look for the older part of the log in another place, which must contain it already"),
    row("Kafka", "/spec/kafka/listeners", UP, RollingRestart, "brokers restart one by one with another listener; \
        clients reconnect and continue"),
    row("Kafka", "/spec/kafka/listeners/*/configuration/maxConnections", DOWN, RollingRestart, "brokers restart one \
        by one, and each accepts fewer connections: {after} instead of {before}; further clients can't connect"),
    row("Kafka", "/spec/kafka/listeners/*/configuration/maxConnectionCreationRate", DOWN, RollingRestart, "brokers \
        restart one by one, and each accepts fewer new connections: {after} a second instead of {before}; further \
        clients wait to connect"),
    row("Kafka", "/spec/kafka/listeners/*/configuration/maxConnections", CHANGES, RollingRestart, ROLLS_BROKERS),
    row("Kafka", "/spec/kafka/listeners/*/configuration/maxConnectionCreationRate", CHANGES, RollingRestart, ROLLS_BROKERS),
    row("Kafka", "/spec/kafka/listeners/**", CHANGES, ClientsReconnect, OTHER_LISTENERS),
    row("Kafka", "/spec/**", CHANGES, RollingRestart, ROLLS),
    row("Kafka", "", REWRITTEN, RollingRestart, "{object} can't be read and is rewritten; brokers and controllers \
        may restart one by one"),
    refused("Kafka", ObjectFilter::Any, "", DELETED, DELETES_CLUSTER),

    Row { kind: "Secret", of: ObjectFilter::Body(is_tls), path: "/data/**", when: CHANGES, outcome: RowVerdict::Does(RollingRestart, Cow::Borrowed("brokers restart one by one with the new certificate; clients reconnect and continue")) },
    Row { kind: "Secret", of: ObjectFilter::Body(is_tls), path: "", when: REWRITTEN, outcome: RowVerdict::Does(RollingRestart, Cow::Borrowed("brokers restart one by one with the new certificate; clients reconnect and continue")) },
];
