//! Sentences about Kafka's objects that depend on their bodies.

use serde_json::Value;

use crate::component::consequence::{ObjectChange, Placeholder};
use crate::component::kafka::kinds::NODE_POOL;
use crate::component::kafka::objects::{Nodes, PoolSize};
use crate::component::{Difference, Manifest};
use crate::names::{Json, count};

/// `{brokers}` (the number added or removed), `{disks}` (of removed nodes), `{operators}` (topic and user
/// operators), `{balancer}` (Cruise Control).
pub const PLACEHOLDERS: &[(&str, Placeholder)] =
    &[("{brokers}", brokers), ("{disks}", disks), ("{operators}", operators), ("{balancer}", balancer)];

fn brokers(_: &ObjectChange, difference: Option<&Difference>) -> String {
    let changed = difference.map_or(0, |d| {
        let [before, after] = [d.before, d.after].map(|value| value.as_u64().unwrap_or(0));
        after.abs_diff(before)
    });
    count(changed, "broker")
}

fn disks(change: &ObjectChange, _: Option<&Difference>) -> String {
    let pool = change.after.map(|manifest| manifest.body.value()).unwrap_or_default();
    let volumes = pool.pointer("/spec/storage/volumes").and_then(Value::as_array).into_iter().flatten();
    let mut deleted = volumes.map(|volume| volume.get("deleteClaim") == Some(&Value::Bool(true)));
    if deleted.any(|it| it) { "their disks are deleted with them" } else { "their disks are kept" }.to_owned()
}

/// The topic and user operators share one pod, and the topic operator may be absent.
fn operators(change: &ObjectChange, _: Option<&Difference>) -> String {
    let has_topics = |kafka: Option<&Json>| {
        kafka.is_some_and(|kafka| {
            let topics = kafka.at("/spec/entityOperator/topicOperator");
            topics.is_some_and(|topics| !topics.is_null())
        })
    };
    match (has_topics(change.before), has_topics(change.after.map(|it| &it.body))) {
        (true, true) => "the topic and user operators restart",
        (false, true) => "the user operator restarts, and the topic operator starts beside it",
        (true, false) => "the user operator restarts, and the topic operator is removed",
        (false, false) => "the user operator restarts",
    }
    .to_owned()
}

/// Cruise Control's configuration has the disk sizes of brokers. A single broker has no Cruise Control.
fn balancer(change: &ObjectChange, _: Option<&Difference>) -> String {
    let pool = change.after.and_then(|manifest| manifest.body.read::<PoolSize>().ok());
    let Nodes { replicas, roles, .. } = pool.unwrap_or_default().spec;
    let has_one = replicas > 1 && roles.iter().any(|role| role == "broker");
    if has_one { ", and Cruise Control restarts" } else { "" }.to_owned()
}

/// `makes a cluster of 3 brokers and 3 controllers`.
pub fn created(objects: &[&Manifest]) -> Option<String> {
    let (mut brokers, mut controllers, mut both) = (0, 0, 0);
    for pool in objects.iter().filter(|object| object.key.kind == NODE_POOL.kind) {
        let Nodes { replicas, roles, .. } = pool.body.read::<PoolSize>().unwrap_or_default().spec;
        let has = |role: &str| roles.iter().any(|one| one == role);
        match (has("broker"), has("controller")) {
            (true, true) => both += replicas,
            (true, false) => brokers += replicas,
            _ => controllers += replicas,
        }
    }
    let nodes = [(brokers, "broker"), (controllers, "controller"), (both, "combined node")];
    let nodes: Vec<String> = nodes
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, noun)| match (number, noun) {
            (number, "combined node") if number > 1 => format!("{number} combined nodes"),
            (number, noun) => count(number, noun),
        })
        .collect();
    (!nodes.is_empty()).then(|| format!("creates a cluster of {}", nodes.join(" and ")))
}
