//! Topics and users of clusters: a KafkaTopic and a KafkaUser of the Strimzi operator for each.

mod consequence;
mod health;
mod rights;

use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use crate::catalog::{ResolvedCluster, ResolvedTopic, ResolvedUser};
use crate::component::kafka::endpoints;
use crate::component::kafka::kinds::{TOPICS, USER, strimzi};
use crate::component::kind::{KubernetesKind, LISTS, OWNS};
use crate::component::labels::{self, ID};
use crate::component::{
    Component, Login, Manifest, ObjectFacts, SecretEncoding, SecretSlot, Stage, manifest,
};
use crate::names::{Json, ResourceKey, topic_object};
use crate::spec::{AccessResource, Topic, User};
use rights::Right;

pub static COMPONENT: Component = Component {
    kinds: &[&TOPIC],
    is_installed: |extras| extras.topics,
    beside_cluster: objects,
    objects: &[ObjectFacts {
        kind: TOPIC.kind,
        stage: Stage::Custom,
        released: Some(released),
        ..ObjectFacts::NONE
    }],
    consequences: consequence::CONSEQUENCES,
    observe: health::observe,
    ..Component::NONE
};

/// A fleet without topics needs no right to write them.
static TOPIC: KubernetesKind =
    strimzi("KafkaTopic", "kafkatopics", LISTS).installed_with(OWNS).judged_by(TOPICS);

/// The annotation with which the topic operator leaves a topic alone. Without it, a deleted KafkaTopic takes its
/// topic with it.
const MANAGED: &str = "strimzi.io/managed";

const PASSWORD: &str = "password";

fn objects(cluster: &ResolvedCluster) -> Vec<Manifest> {
    let topics = cluster.topics.iter().map(|it| topic(cluster, it));
    let users = cluster.users.iter().flat_map(|it| [password(cluster, it), Some(user(cluster, it))]);
    topics.chain(users.flatten()).collect()
}

fn topic(cluster: &ResolvedCluster, ResolvedTopic { key, id, spec }: &ResolvedTopic) -> Manifest {
    let Topic {
        // Identity, in the key and the namespace.
        organization: _,
        cluster: _,
        name,
        partitions,
        replicas,
        config,
        adopt,
        // About the topic as a whole; the plan acts on them.
        on_delete: _,
        deletion_protection: _,
    } = &**spec;
    let object = topic_object(name);
    let mut metadata = labels::strimzi_metadata(cluster, object.clone());
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(ID.to_owned(), id.to_string());
    if *adopt {
        // The operator may have been told to leave it alone.
        annotations.insert(MANAGED.to_owned(), "true".to_owned());
    }
    let body = json!({
        "topicName": (object != *name).then_some(name),
        "partitions": partitions,
        "replicas": replicas,
        "config": (!config.is_empty()).then_some(config),
    });
    Manifest { owner: key.clone(), ..manifest::untyped(cluster, &TOPIC, &metadata, body) }
}

/// The Secret with the password of the spec, from which the operator makes the user's own. No user has its name,
/// since identifiers have no dots.
fn password(
    cluster: &ResolvedCluster,
    ResolvedUser { key, password, .. }: &ResolvedUser,
) -> Option<Manifest> {
    let slot = SecretSlot::of(password.as_ref()?, SecretEncoding::Raw).to_value();
    let metadata = labels::metadata(cluster, password_secret(key)?);
    let secret = Secret { metadata, type_: Some("Opaque".to_owned()), ..Secret::default() };
    let secret = manifest::with_data(cluster, Stage::Configuration, &secret, [(PASSWORD, slot)]);
    Some(Manifest { owner: key.clone(), ..secret })
}

fn password_secret(user: &ResourceKey) -> Option<String> {
    user.within_cluster().map(|(_, name)| format!("{name}.{PASSWORD}"))
}

fn user(cluster: &ResolvedCluster, ResolvedUser { key, id, spec, password }: &ResolvedUser) -> Manifest {
    let User {
        // Identity, in the key and the namespace.
        organization: _,
        cluster: _,
        identifier,
        produce: _,
        consume: _,
        transactional_ids: _,
        rules: _,
        password: _,
        adopt: _,
    } = &**spec;
    let mut metadata = labels::strimzi_metadata(cluster, identifier.as_str());
    metadata.annotations.get_or_insert_default().insert(ID.to_owned(), id.to_string());
    // With an identity provider, only that provider knows users.
    let authentication = match endpoints::login(cluster) {
        Login::Scram => {
            let secret = password.as_ref().and_then(|_| password_secret(key));
            let secret =
                secret.map(|name| json!({"valueFrom": {"secretKeyRef": {"name": name, "key": PASSWORD}}}));
            json!({"type": "scram-sha-512", "password": secret})
        }
        Login::Mtls => json!({"type": "tls"}),
        Login::OAuth => Value::Null,
    };
    let acls: Vec<Value> = rights::of(spec).iter().map(rule).collect();
    let body = json!({
        "authentication": authentication,
        "authorization": {"type": "simple", "acls": acls},
    });
    Manifest { owner: key.clone(), ..manifest::untyped(cluster, &USER, &metadata, body) }
}

fn rule(Right { resource, name, operations, host, effect }: &Right) -> Value {
    let kind = match resource {
        AccessResource::Topic => "topic",
        AccessResource::Group => "group",
        AccessResource::TransactionalId => "transactionalId",
        AccessResource::Cluster => "cluster",
    };
    let resource = match name {
        None => json!({"type": kind}),
        Some(name) => match name.strip_suffix('*').filter(|start| !start.is_empty()) {
            Some(start) => json!({"type": kind, "name": start, "patternType": "prefix"}),
            None => json!({"type": kind, "name": name, "patternType": "literal"}),
        },
    };
    json!({"resource": resource, "operations": operations, "host": host, "type": effect})
}

/// The KafkaTopic with which the topic operator lets its topic go; `None` if it has done so.
fn released(topic: &Json) -> Option<Json> {
    let mut topic = topic.value();
    let annotations = topic.get_mut("metadata")?.as_object_mut()?.entry("annotations").or_insert(json!({}));
    let managed = annotations.as_object_mut()?.insert(MANAGED.to_owned(), "false".into());
    (managed != Some("false".into())).then(|| Json::from(&topic))
}

#[cfg(test)]
mod tests;
