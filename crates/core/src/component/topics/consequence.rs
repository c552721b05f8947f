//! The effects of changes of KafkaTopics and KafkaUsers on records and clients.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::TOPIC;
use crate::component::Difference;
use crate::component::Verdict::InPlace;
use crate::component::consequence::*;
use crate::component::kafka::kinds::USER;
use crate::component::{Manifest, Verdict};
use crate::names::{Kind, count};
use crate::spec::topic_option;

pub const CONSEQUENCES: Consequences =
    Consequences { rows: ROWS, side_effect, deleted_records, created, ..Consequences::NONE };

const FEWER_PARTITIONS: [&str; 3] = [
    "partitions-removed",
    "{object} would shrink from {before} to {after} partitions, and partitions only grow",
    "restore `partitions`, or describe a new topic and move the records to it",
];
const DELETES_TOPIC: [&str; 3] = [
    "topic-deleted",
    "{object} would be deleted, while its topic is kept",
    "remove the topic's file if you mean to delete it",
];

const NEW_PASSWORD: &str =
    "the user gets another password within two minutes: from then on its clients need it to connect";

fn is_password(secret: &Value) -> bool {
    secret.pointer("/data/password").is_some()
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    refused("KafkaTopic", ObjectFilter::Any, "/spec/partitions", DOWN, FEWER_PARTITIONS),
    row("KafkaTopic", "/spec/partitions", UP, InPlace, "the topic grows from {before} to {after} partitions: records with the same \
        key may go to another partition than before"),
    row("KafkaTopic", "/spec/partitions", CHANGES, InPlace, "the topic keeps the partitions that it has; Kafka refuses fewer"),
    row("KafkaTopic", "/spec/replicas", DOWN, InPlace, "Cruise Control removes copies: {after} instead of {before}, so fewer failures \
        can lose records"),
    row("KafkaTopic", "/spec/replicas", UP, InPlace, "Cruise Control copies the topic's records to more brokers: {after} copies instead \
        of {before}, which needs disk space there"),
    row("KafkaTopic", "/spec/replicas", CHANGES, InPlace, "Cruise Control changes the number of copies if it is another one"),
    row("KafkaTopic", "/spec/config/**", CHANGES, InPlace, "brokers use the topic's new options without a restart"),
    refused("KafkaTopic", ObjectFilter::Any, "", DELETED, DELETES_TOPIC),
    row("KafkaUser", "/spec/authorization/**", CHANGES, InPlace, "the rights of {object} change; clients that lose one get an \
        authorization error at the next call"),
    Row { kind: "Secret", of: ObjectFilter::Body(is_password), path: "/data/**", when: CHANGES,
        outcome: RowVerdict::Does(Verdict::ClientsReconnect, Cow::Borrowed(NEW_PASSWORD)) },
    row("KafkaUser", "/spec/authentication/password/**", CHANGES, Verdict::ClientsReconnect, NEW_PASSWORD),
    row("KafkaUser", "/spec/authentication/**", CHANGES, Verdict::ClientsReconnect, "{object} logs in another way: its clients need \
        another Secret"),
];

/// Describes the records that brokers delete when a topic's options change.
fn deleted_records(change: &ObjectChange, before: &Value, after: &Value) -> Vec<String> {
    if change.object.kind != TOPIC.kind {
        return Vec::new();
    }
    let none = Map::new();
    let [before, after] =
        [before, after].map(|body| body.pointer("/spec/config").and_then(Value::as_object).unwrap_or(&none));
    let of = |options: &'_ Map<String, Value>, name: &str| options.get(name).cloned().unwrap_or_default();
    let changed = topic_option::names().map(|name| (name, of(before, name), of(after, name)));
    let changed = changed.filter(|(_, before, after)| before != after);
    changed.filter_map(|(name, before, after)| topic_option::deleted(name, &before, &after)).collect()
}

fn side_effect(change: &ObjectChange, difference: &Difference) -> Option<SideEffect> {
    let Difference { pointer, before, after } =
        Some(difference).filter(|_| change.object.kind == TOPIC.kind)?;
    let option = pointer.strip_prefix("/spec/config/")?;
    if let Some(words) = topic_option::refused_clients(option, before, after) {
        return Some(SideEffect { verdict: InPlace, words, turns_away: true });
    }
    let words = topic_option::effect_of(option, before, after)?;
    Some(SideEffect { verdict: InPlace, words, turns_away: false })
}

/// `makes a topic of 12 partitions`.
fn created(objects: &[&Manifest]) -> Option<String> {
    let of = |kind: Kind, object: &str| {
        objects.iter().find(|it| it.owner.kind == kind && it.key.kind == object).copied()
    };
    if let Some(topic) = of(Kind::Topic, TOPIC.kind) {
        let made = match topic.body.at("/spec/partitions").as_ref().and_then(Value::as_u64) {
            Some(partitions) => format!("makes a topic of {}", count(partitions, "partition")),
            None => "makes a topic".to_owned(),
        };
        // Kafka's own topics aren't seen, and the operator takes one over without a word.
        return Some(format!("{made}; one of this name that a program made gets the options of the spec"));
    }
    of(Kind::User, USER.kind).map(|user| {
        let name = &user.key.name;
        format!("makes a user; rights that `{name}` was given in Kafka by other means are taken away")
    })
}
