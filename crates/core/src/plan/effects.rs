use serde_json::Value;

use crate::names::Json;
use crate::plan::size::{Nodes, PoolSize};
use crate::plan::verdict::{Difference, GO_ON};
use crate::plan::{Step, Verb};

/// Fills in placeholders: `{object}`, `{before}`, `{after}`, `{brokers}` (the number added or removed),
/// `{disks}` (of removed nodes), `{operators}` (topic and user operators), `{balancer}` (Cruise Control).
pub(super) fn fill(words: &str, step: &Step, difference: Option<&Difference>) -> String {
    let object = step.object.to_string();
    let [before, after] = [difference.map(|d| d.before), difference.map(|d| d.after)]
        .map(|value| text(value.unwrap_or(&Value::Null)));
    let changed = difference.map_or(0, |d| {
        let [before, after] = [d.before, d.after].map(|value| value.as_u64().unwrap_or(0));
        after.abs_diff(before)
    });
    let words = words.replace("{object}", &object).replace("{brokers}", &count(changed, "broker"));
    let words = if words.contains("{disks}") { words.replace("{disks}", disks(step)) } else { words };
    let words =
        if words.contains("{operators}") { words.replace("{operators}", operators(step)) } else { words };
    let words =
        if words.contains("{balancer}") { words.replace("{balancer}", balancer(step)) } else { words };
    words.replace("{before}", &before).replace("{after}", &after)
}

const ONLY_BROKER: &str = "its only broker restarts";

/// Drops sentences that only announce a restart if another one announces it with its reason.
pub(super) fn drop_repeated_restarts(effects: &mut Vec<String>) {
    const BROKERS: &str = "brokers restart one by one";
    const ALL: &str = "brokers and controllers restart one by one";
    let all = std::mem::take(effects);
    let is_said_by_others = |effect: &String| {
        let restart = effect.trim_end_matches(GO_ON);
        let nodes = restart.starts_with("the nodes of ") && restart.ends_with(" restart one by one");
        let covering: &[&str] = match restart {
            BROKERS => &[BROKERS, ALL],
            ONLY_BROKER => &[ONLY_BROKER],
            _ if restart == ALL || nodes => &[ALL],
            _ => return false,
        };
        let mut others = all.iter().filter(|other| *other != effect);
        others.any(|other| covering.iter().any(|covering| other.contains(covering)))
    };
    *effects = all.iter().filter(|effect| !is_said_by_others(effect)).cloned().collect();
}

/// Rewords the effects for a cluster with a single broker: it is unavailable while that restarts.
pub(super) fn of_a_single_broker(effects: &mut Vec<String>) {
    const IN_TURN: &str = " one by one";
    if !effects.iter().any(|effect| effect.contains(IN_TURN)) {
        return;
    }
    let words = [
        ("brokers and controllers restart one by one", ONLY_BROKER),
        ("brokers and controllers may restart one by one", "its only broker may restart"),
        ("brokers restart one by one", ONLY_BROKER),
        (IN_TURN, ""),
        ("; clients reconnect and continue", ""),
        (", clients reconnect and continue", ""),
        ("can't reach them any more", "can't reach it any more"),
        ("restarts, and each takes", "restarts, and takes"),
        ("restarts and look for", "restarts and looks for"),
        ("restarts and are no longer", "restarts and is no longer"),
    ];
    for effect in std::mem::take(effects) {
        let effect =
            words.iter().fold(effect, |effect, (of_several, of_one)| effect.replace(of_several, of_one));
        if !effects.contains(&effect) {
            effects.push(effect);
        }
    }
    effects
        .push("the cluster has a single broker: while it restarts, clients can't read or write".to_owned());
}

fn disks(step: &Step) -> &'static str {
    let pool = step.after.as_ref().map(|manifest| manifest.body.value()).unwrap_or_default();
    let volumes = pool.pointer("/spec/storage/volumes").and_then(Value::as_array).into_iter().flatten();
    let mut deleted = volumes.map(|volume| volume.get("deleteClaim") == Some(&Value::Bool(true)));
    if deleted.any(|it| it) { "their disks are deleted with them" } else { "their disks are kept" }
}

/// The topic and user operators share one pod, and the topic operator may be absent.
fn operators(step: &Step) -> &'static str {
    let has_topics = |kafka: Option<&Json>| {
        kafka.is_some_and(|kafka| {
            let topics = kafka.value().pointer("/spec/entityOperator/topicOperator").cloned();
            topics.is_some_and(|topics| !topics.is_null())
        })
    };
    match (has_topics(step.before.as_ref()), has_topics(step.after.as_ref().map(|it| &it.body))) {
        (true, true) => "the topic and user operators restart",
        (false, true) => "the user operator restarts, and the topic operator starts beside it",
        (true, false) => "the user operator restarts, and the topic operator is removed",
        (false, false) => "the user operator restarts",
    }
}

/// Cruise Control's configuration has the disk sizes of brokers. A single broker has no Cruise Control.
fn balancer(step: &Step) -> &'static str {
    let pool = step.after.as_ref().and_then(|manifest| manifest.body.read::<PoolSize>().ok());
    let Nodes { replicas, roles, .. } = pool.unwrap_or_default().spec;
    let has_one = replicas > 1 && roles.iter().any(|role| role == "broker");
    if has_one { ", and Cruise Control restarts" } else { "" }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `1 broker`, `3 brokers`.
pub(super) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

pub(super) fn created<'a>(steps: impl Iterator<Item = &'a Step>) -> Option<String> {
    let (mut brokers, mut controllers, mut both) = (0, 0, 0);
    for step in steps.filter(|step| step.verb == Verb::Create && step.object.kind == "KafkaNodePool") {
        let pool = step.after.as_ref().and_then(|manifest| manifest.body.read::<PoolSize>().ok());
        let Nodes { replicas, roles, .. } = pool.unwrap_or_default().spec;
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
