//! The operator's word on topics and users.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::TOPIC;
use crate::catalog::{ResourceStatus, Status};
use crate::component::health::reading::{OperatorCondition, conditions, name, number, text};
use crate::component::health::words::brief;
use crate::component::health::{AppliedClusters, FleetObservation, ReadObjects};
use crate::component::kafka::kinds::USER;
use crate::names::{Kind, ResourceKey};

/// The operator writes a condition at each reconciliation, which are two minutes apart.
const NOT_TAKEN_UP: &str = "the operator hasn't taken up the last change yet";

/// The reasons that the operators give, as in `TopicOperatorException` and the exceptions of the user operator.
const REASONS: [(&str, &str); 6] = [
    ("InvalidResourceException", "the operator refuses it"),
    ("InternalError", "the topic operator failed"),
    ("KafkaError", "Kafka refuses it"),
    ("NotSupported", "the topic operator can't make this change"),
    ("ResourceConflict", "another KafkaTopic has the same topic"),
    ("TimeoutException", "Kafka didn't answer in time"),
];

/// Adds the status of each topic and user of these clusters, whether a spec describes it or not.
pub fn observe(wanted: &AppliedClusters, read: &ReadObjects, seen: &mut FleetObservation) {
    let clusters: BTreeMap<&str, &ResourceKey> =
        wanted.iter().map(|(key, cluster)| (cluster.namespace.as_str(), key)).collect();
    for (kind, of) in [(Kind::Topic, &TOPIC), (Kind::User, &USER)] {
        // Parsed one at a time: parsed objects take ten times as much memory.
        for object in read.of(of).into_iter().flatten().map(|object| object.value()) {
            let namespace = text(&object, &["metadata", "namespace"]).unwrap_or_default();
            let own = text(&object, &["spec", "topicName"]).or_else(|| name(&object));
            if let (Some(cluster), Some(own)) = (clusters.get(namespace.as_str()), own)
                && let Ok(name) = cluster.name.parse()
            {
                let key = ResourceKey::on_cluster(kind, &cluster.organization, &name, &own);
                seen.on_clusters.insert(key, status(&object));
            }
        }
    }
}

fn status(object: &Value) -> ResourceStatus {
    let all = conditions(object);
    let is_bad = |it: &&OperatorCondition| it.kind == if it.holds { "NotReady" } else { "Ready" };
    let is_ready = |it: &&OperatorCondition| it.kind == "Ready" && it.holds;
    let generation = |path: &[&str]| number::<u64>(object, path);
    let is_taken_up =
        generation(&["status", "observedGeneration"]) >= generation(&["metadata", "generation"]);
    let (bad, ready) = (all.iter().find(is_bad), all.iter().find(is_ready));
    let (status, reason) = match (bad, ready) {
        _ if !is_taken_up => (Status::Updating, Some(NOT_TAKEN_UP.to_owned())),
        (Some(bad), _) => (Status::Degraded, Some(sentence(bad))),
        (None, Some(_)) => (Status::Healthy, None),
        (None, None) => (Status::Updating, Some(NOT_TAKEN_UP.to_owned())),
    };
    let written = bad.or(ready).map(|it| it.written.clone());
    let since = written.or_else(|| text(object, &["metadata", "creationTimestamp"]));
    let since = since.and_then(|text| text.parse().ok()).unwrap_or(Timestamp::UNIX_EPOCH);
    ResourceStatus { status, reason, conditions: Vec::new(), since }
}

fn sentence(OperatorCondition { reason, message, .. }: &OperatorCondition) -> String {
    let known = REASONS.iter().find(|(known, _)| known == reason).map(|(_, sentence)| (*sentence).to_owned());
    let sentence = known.unwrap_or_else(|| match reason.as_str() {
        "" => "the operator says that it isn't ready".to_owned(),
        reason => format!("the operator reports `{}`", brief(reason)),
    });
    if message.is_empty() { sentence } else { format!("{sentence}: {}", brief(message)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(observed: u64, conditions: &Value) -> (Status, String) {
        let metadata = json!({"name": "a", "generation": 2, "creationTimestamp": "2026-11-21T11:02:24Z"});
        let object = json!({"metadata": metadata,
            "status": {"observedGeneration": observed, "conditions": conditions}});
        let ResourceStatus { status, reason, .. } = status(&object);
        (status, reason.unwrap_or_default())
    }

    #[test]
    fn the_operators_reasons_are_sentences() {
        let bad = |reason: &str, message: &str| json!([{"type": "Ready", "status": "False", "reason": reason, "message": message}]);
        for (observed, conditions, expected, says) in [
            (2, json!([{"type": "Ready", "status": "True"}]), Status::Healthy, ""),
            (1, json!([{"type": "Ready", "status": "True"}]), Status::Updating, NOT_TAKEN_UP),
            (2, json!([]), Status::Updating, NOT_TAKEN_UP),
            (
                2,
                bad("NotSupported", "Decreasing partitions not supported."),
                Status::Degraded,
                "the topic operator can't make this change: Decreasing partitions not supported",
            ),
            (
                2,
                bad("ResourceConflict", "Managed by Ref{namespace='a', name='b'}"),
                Status::Degraded,
                "another KafkaTopic has the same topic: Managed by Ref{namespace='a', name='b'}",
            ),
            (2, bad("Odd", ""), Status::Degraded, "the operator reports `Odd`"),
            (
                2,
                json!([{"type": "NotReady", "status": "True", "reason": "InvalidResourceException",
                    "message": "no such user"}]),
                Status::Degraded,
                "the operator refuses it: no such user",
            ),
        ] {
            assert_eq!(told(observed, &conditions), (expected, says.to_owned()), "{conditions}");
        }
    }
}
