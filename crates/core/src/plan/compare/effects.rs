use std::collections::BTreeSet;

use serde_json::Value;

use crate::component::consequence::{GO_ON, ObjectChange};
use crate::component::{COMPONENTS, Difference, Manifest, facts};
use crate::plan::{Step, Verb};

/// Fills in `{object}`, `{before}`, `{after}` and the placeholders of components.
pub(in crate::plan) fn fill(words: &str, change: &ObjectChange, difference: Option<&Difference>) -> String {
    let [before, after] = [difference.map(|d| d.before), difference.map(|d| d.after)]
        .map(|value| text(value.unwrap_or(&Value::Null)));
    let mut words = words.replace("{object}", &change.object.to_string());
    for (name, value) in COMPONENTS.iter().flat_map(|component| component.consequences.placeholders) {
        if words.contains(name) {
            words = words.replace(name, &value(change, difference));
        }
    }
    words.replace("{before}", &before).replace("{after}", &after)
}

const ONLY_BROKER: &str = "its only broker restarts";

/// Drops sentences that only announce a restart if another one announces it with its reason.
pub(in crate::plan) fn drop_repeated_restarts(effects: &mut Vec<String>) {
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
pub(in crate::plan) fn of_a_single_broker(effects: &mut Vec<String>) {
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

fn text(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(in crate::plan) use crate::names::count;

/// Names the container images that nodes pull for these steps, and didn't for the objects before.
pub(in crate::plan) fn pulled<'a>(steps: impl Iterator<Item = &'a Step>) -> Option<String> {
    let mut images = BTreeSet::new();
    for step in steps {
        let of = facts(&step.object.kind).images;
        let before = step.before.as_ref().map(of).unwrap_or_default();
        let after = step.after.as_ref().map(|manifest| of(&manifest.body)).unwrap_or_default();
        images.extend(after.difference(&before).cloned());
    }
    let images: Vec<String> = images.into_iter().collect();
    (!images.is_empty()).then(|| format!("nodes pull {}", images.join(" and ")))
}

pub(in crate::plan) fn created<'a>(steps: impl Iterator<Item = &'a Step>) -> Option<String> {
    let created = steps.filter(|step| step.verb == Verb::Create);
    let created: Vec<&Manifest> = created.filter_map(|step| step.after.as_ref()).collect();
    let sentences: Vec<String> =
        COMPONENTS.iter().filter_map(|component| (component.consequences.created)(&created)).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}
