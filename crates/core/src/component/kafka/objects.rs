//! Facts that are read from Kafka's objects, whoever wrote these.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::kinds::{KAFKA, NODE_POOL, USER};
use crate::component::labels::{DEDICATED, ZONE};
use crate::component::requests::{amount, requested};
use crate::component::{
    Disk, ObjectFacts, ObjectRole, PlacementNeeds, Size, Stage, differences, images_of_pod,
};
use crate::names::Json;

pub static OBJECTS: &[ObjectFacts] = &[
    ObjectFacts {
        role: ObjectRole::Cluster,
        size: of_kafka,
        remote_data,
        left_behind: left_in_bucket,
        version,
        hosts,
        is_routed,
        ..custom(KAFKA.kind)
    },
    ObjectFacts {
        role: ObjectRole::Nodes,
        size: of_pool,
        placement,
        disks,
        deletes_disks: Some(deletes_disks),
        former_disk_class,
        images: |pool| pool.at("/spec/template/pod").as_ref().map(images_of_pod).unwrap_or_default(),
        mounts_image,
        ..custom(NODE_POOL.kind)
    },
    custom(USER.kind),
];

const fn custom(kind: &'static str) -> ObjectFacts {
    ObjectFacts { kind, stage: Stage::Custom, ..ObjectFacts::NONE }
}

/// The fields of a KafkaNodePool that determine its size.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct PoolSize {
    pub spec: Nodes,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Nodes {
    pub replicas: u64,
    pub roles: Vec<String>,
    storage: Storage,
    resources: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Storage {
    volumes: Vec<Volume>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Volume {
    size: Value,
}

/// The fields of a Kafka object that determine its size.
#[derive(Default, Deserialize)]
#[serde(default)]
struct KafkaSize {
    spec: KafkaParts,
}

/// The parts beside the brokers have pods of their own.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct KafkaParts {
    kafka: Brokers,
    entity_operator: Option<EntityOperator>,
    cruise_control: Option<Container>,
    kafka_exporter: Option<Container>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Brokers {
    listeners: Vec<Listener>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Listener {
    #[serde(rename = "type")]
    kind: String,
}

/// Two containers in one pod.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EntityOperator {
    topic_operator: Option<Container>,
    user_operator: Option<Container>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    resources: Value,
}

fn of_pool(pool: &Json) -> Size {
    let Nodes { replicas, roles, storage, resources } = pool.read::<PoolSize>().unwrap_or_default().spec;
    let node = requested(&resources);
    let each = |amount: u64| replicas.saturating_mul(amount);
    let disk: f64 = storage.volumes.iter().filter_map(|volume| amount(&volume.size)).sum();
    let is_broker = roles.iter().any(|role| role == "broker");
    let [brokers, controllers] = if is_broker { [replicas, 0] } else { [0, replicas] };
    Size {
        brokers,
        controllers,
        cpu_millis: each(node.cpu_millis),
        memory_mib: each(node.memory_mib),
        // The value is whole GiB, far below the limit of exact floating-point integers.
        disk_gib: each((disk / f64::from(1 << 30)).round() as u64),
        pods: replicas,
        ..Size::default()
    }
}

fn of_kafka(kafka: &Json) -> Size {
    let KafkaParts { kafka, entity_operator, cruise_control, kafka_exporter } =
        kafka.read::<KafkaSize>().unwrap_or_default().spec;
    let balanced = kafka.listeners.iter().filter(|listener| listener.kind == "loadbalancer").count() as u64;
    let pods = [entity_operator.is_some(), cruise_control.is_some(), kafka_exporter.is_some()];
    let EntityOperator { topic_operator, user_operator } = entity_operator.unwrap_or_default();
    let containers = [topic_operator, user_operator, cruise_control, kafka_exporter];
    let operators = containers.iter().flatten().map(|it| Size::from(requested(&it.resources)));
    let pods = pods.into_iter().filter(|is_there| *is_there).count() as u64;
    Size { balanced_listeners: balanced, pods, ..operators.sum() }
}

/// The zones and nodes that the pods of a node pool need.
fn placement(pool: &Json) -> PlacementNeeds {
    #[derive(Deserialize)]
    struct Pod {
        #[serde(default, rename = "topologySpreadConstraints")]
        spread: Vec<Spread>,
        #[serde(default)]
        tolerations: Option<Vec<Toleration>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spread {
        topology_key: String,
        #[serde(default)]
        min_domains: Option<usize>,
    }
    #[derive(Deserialize)]
    struct Toleration {
        key: String,
        #[serde(default)]
        value: Option<String>,
    }
    let pod = pool.at("/spec/template/pod").and_then(|pod| Pod::deserialize(pod).ok());
    let Some(Pod { spread, tolerations }) = pod else { return PlacementNeeds::default() };
    let over_zones = spread.iter().find(|spread| spread.topology_key == ZONE);
    let reserved = tolerations.into_iter().flatten().find(|toleration| toleration.key == DEDICATED);
    PlacementNeeds {
        zones: over_zones.and_then(|spread| spread.min_domains).unwrap_or(0),
        tenant: reserved.and_then(|toleration| toleration.value),
    }
}

fn disks(pool: &Json) -> Vec<Disk> {
    #[derive(Deserialize)]
    struct PoolDisks {
        spec: NodePoolSpec,
    }
    #[derive(Deserialize)]
    struct NodePoolSpec {
        storage: PoolStorage,
    }
    #[derive(Deserialize)]
    struct PoolStorage {
        #[serde(default)]
        volumes: Vec<Disk>,
    }
    pool.read::<PoolDisks>().map(|pool| pool.spec.storage.volumes).unwrap_or_default()
}

/// Whether the disks of a node pool are deleted with it.
fn deletes_disks(pool: &Json) -> bool {
    let claims = |storage: &Value| storage.get("deleteClaim") == Some(&Value::Bool(true));
    pool.at("/spec/storage").is_some_and(|storage| {
        let volumes = storage.get("volumes").and_then(Value::as_array);
        claims(&storage) || volumes.is_some_and(|volumes| volumes.iter().any(claims))
    })
}

fn former_disk_class(before: &Json, after: &Json) -> Option<Option<String>> {
    let [before, after] = [before, after].map(Json::value);
    let mut of_class =
        differences(&before, &after).into_iter().filter(|it| it.pointer.starts_with("/spec/storage/"));
    of_class.find(|it| it.pointer.ends_with("/class")).map(|it| it.before.as_str().map(str::to_owned))
}

const REMOTE_STORAGE: &str = "/spec/kafka/tieredStorage/remoteStorageManager/config";

/// The place where brokers look for the data that they moved to a bucket.
fn remote_data(kafka: &Json) -> Option<Map<String, Value>> {
    let Value::Object(mut config) = kafka.at(REMOTE_STORAGE)? else { return None };
    config.retain(|option, _| option.starts_with("storage.") || option == "key.prefix");
    Some(config)
}

/// Describes the data that a Kafka with tiered storage moved to a bucket, which Streamfleet never deletes.
fn left_in_bucket(kafka: &Json) -> Option<String> {
    let config = kafka.at(REMOTE_STORAGE)?;
    let text = |option: &str| config.get(option).and_then(Value::as_str);
    let (bucket, prefix) = (text("storage.s3.bucket.name")?, text("key.prefix").unwrap_or_default());
    Some(format!(
        "the older part of its log stays in bucket {bucket}, under the prefix {prefix}; delete it there if you don't \
            need it"
    ))
}

fn mounts_image(pool: &Json) -> bool {
    let volumes = pool.at("/spec/template/pod/volumes").unwrap_or_default();
    volumes.as_array().is_some_and(|volumes| volumes.iter().any(|volume| volume.get("image").is_some()))
}

fn version(kafka: &Json) -> Option<String> {
    #[derive(Deserialize)]
    struct KafkaFields {
        spec: KafkaSpec,
    }
    #[derive(Deserialize)]
    struct KafkaSpec {
        kafka: KafkaVersion,
    }
    #[derive(Deserialize)]
    struct KafkaVersion {
        version: String,
    }
    kafka.read::<KafkaFields>().ok().map(|kafka| kafka.spec.kafka.version)
}

/// Returns the bootstrap host by listener name; empty if there is none.
fn hosts(kafka: &Json) -> BTreeMap<String, String> {
    let listeners = kafka.at("/spec/kafka/listeners");
    let listeners = listeners.as_ref().and_then(Value::as_array).into_iter().flatten();
    let host = |listener: &Value| {
        let bootstrap = listener.pointer("/configuration/bootstrap")?;
        let host = bootstrap.get("host").or_else(|| bootstrap.pointer("/alternativeNames/0"))?;
        Some((listener.get("name")?.as_str()?.to_owned(), host.as_str()?.to_owned()))
    };
    listeners.filter_map(host).collect()
}

/// Whether a Kafka object is exposed through a Gateway; false if it can't be parsed.
fn is_routed(kafka: &Json) -> bool {
    #[derive(Deserialize)]
    struct KafkaListener {
        spec: KafkaSpec,
    }
    #[derive(Deserialize)]
    struct KafkaSpec {
        kafka: Listeners,
    }
    #[derive(Deserialize)]
    struct Listeners {
        #[serde(default)]
        listeners: Vec<Listener>,
    }
    #[derive(Deserialize)]
    struct Listener {
        r#type: String,
    }
    let listeners = kafka.read::<KafkaListener>().map(|kafka| kafka.spec.kafka.listeners).unwrap_or_default();
    listeners.iter().any(|listener| listener.r#type == "tlsroute")
}
