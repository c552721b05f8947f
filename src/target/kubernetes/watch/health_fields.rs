//! The parts of objects that matter to health: a few hundred bytes of an object that has thousands.

use serde_json::Value;

use crate::component::KubernetesKind;
use crate::component::health::FieldPath;
use crate::component::kind::EVENT;
use crate::target::kubernetes::untrusted;

/// Kept of every object.
const OF_ALL: &[FieldPath] = &[
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "uid"],
    &["metadata", "creationTimestamp"],
    &["metadata", "deletionTimestamp"],
    &["metadata", "generation"],
    &["status", "conditions", "*", "type"],
    &["status", "conditions", "*", "status"],
    &["status", "conditions", "*", "reason"],
    &["status", "conditions", "*", "message"],
    &["status", "conditions", "*", "lastTransitionTime"],
    &["status", "observedGeneration"],
];

/// How many items of a list are kept: four times the longest real list, an operator's environment variables.
const MAX_ITEMS: usize = 200;

/// The parts of an object that matter to health. None when nothing does.
pub(in crate::target::kubernetes) fn of(kind: &KubernetesKind, object: &Value) -> Option<Value> {
    let source = kind.health.filter(|source| (source.includes)(object))?;
    let paths: Vec<&[&str]> = OF_ALL.iter().chain(source.fields.iter().copied().flatten()).copied().collect();
    let mut kept = pick(object, &paths);
    let fields = kept.as_object_mut()?;
    // The spec is only shown here, not compared.
    fields.get_mut("spec").into_iter().for_each(untrusted::words);
    // The objects of a list don't include their kind.
    fields.insert("kind".to_owned(), kind.kind.into());
    Some(kept)
}

/// Whether a change of this kind can change health. Events only explain what other kinds show.
pub(super) fn ring(kind: &KubernetesKind) -> bool {
    !std::ptr::eq(kind, &EVENT)
}

pub(in crate::target::kubernetes) fn pick(value: &Value, paths: &[&[&str]]) -> Value {
    if paths.iter().any(|path| path.is_empty()) {
        return value.clone();
    }
    let inside = |key: &str| -> Vec<&[&str]> {
        let paths = paths.iter().filter_map(|path| path.split_first());
        paths.filter(|(first, _)| **first == key).map(|(_, rest)| rest).collect()
    };
    match value {
        Value::Array(items) => {
            let paths = inside("*");
            items.iter().take(MAX_ITEMS).map(|item| pick(item, &paths)).collect()
        }
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                let paths = inside(key);
                (!paths.is_empty()).then(|| (key.clone(), pick(value, &paths)))
            };
            Value::Object(fields.iter().filter_map(field).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::component;
    use crate::component::health::{ClusterObservation, OperatorState};

    /// Every recorded object of a real operator gives the same health view from its kept parts, which are
    /// small.
    #[test]
    fn what_is_kept_says_all_that_health_reads() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
        let (mut kinds, mut whole, mut kept) = (std::collections::BTreeSet::new(), 0, 0);
        for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_none_or(|extension| extension != "jsonl") {
                continue;
            }
            for line in fs::read_to_string(file).unwrap().lines() {
                let mut line: Value = serde_json::from_str(line).unwrap();
                let kind = line["kind"].as_str().unwrap().to_owned();
                let mut object = line["object"].take();
                object["kind"] = kind.clone().into();
                let judged = |it: &&KubernetesKind| {
                    it.kind == kind && it.health.is_some_and(|source| source.is_watched())
                };
                let Some(signs) = component::kinds().find(judged).and_then(|kind| of(kind, &object)) else {
                    continue;
                };
                let metadata = &object["metadata"];
                let cluster = match kind.as_str() {
                    "Kafka" => &metadata["name"],
                    _ => &metadata["labels"]["strimzi.io/cluster"],
                };
                let seen = |object: &Value| {
                    let (namespace, cluster) = (
                        metadata["namespace"].as_str().unwrap_or_default(),
                        cluster.as_str().unwrap_or_default(),
                    );
                    let operator = OperatorState::of_namespace([object], namespace);
                    ClusterObservation::of(namespace, cluster, operator, [object])
                };
                assert_eq!(seen(&signs), seen(&object), "{object:#}");
                (whole, kept) = (whole + object.to_string().len(), kept + signs.to_string().len());
                kinds.insert(kind);
            }
        }
        for kind in ["Kafka", "KafkaNodePool", "StrimziPodSet", "Pod", "PersistentVolumeClaim", "Deployment"]
        {
            assert!(kinds.contains(kind), "no recording has a {kind}");
        }
        assert!(kept * 2 < whole, "{kept} of {whole} bytes are kept");
    }
}
