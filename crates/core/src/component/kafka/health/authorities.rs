//! Detects a Kafka object that was recreated while pods of its cluster kept running.
//!
//! The Secrets of the certificate authorities are deleted with the object, and the operator creates new ones.
//! Pods that are older than the object present certificates of the deleted authorities. The operator can't
//! connect to them, says so only in its log, and recovers once the pods are recreated.

use super::applied_manifests::AppliedCluster;
use super::view::ClusterObservation;

/// Returns the pods that the operator can't connect to because they are older than the Kafka object; none if
/// the operator has finished anyway.
pub(super) fn older_pods<'s>(wanted: &AppliedCluster, seen: &'s ClusterObservation) -> Vec<&'s str> {
    let kafka = seen.kafka.as_ref().filter(|kafka| !kafka.deleting);
    let is_ready = kafka.is_some_and(|it| it.conditions.iter().any(|it| it.kind == "Ready" && it.holds));
    let made = kafka.and_then(|kafka| kafka.created.as_ref()).filter(|_| !is_ready);
    let is_wanted = |pool: &String| wanted.pools.contains_key(pool);
    let pods = seen.pods.iter().flatten().filter(|(_, pod)| {
        // Both are written by the same API server in RFC 3339 to the second, so they compare as text.
        let is_older = pod.created.as_ref().zip(made).is_some_and(|(pod, kafka)| pod < kafka);
        is_older && !pod.deleting && pod.pool.as_ref().is_some_and(is_wanted)
    });
    pods.map(|(name, _)| name.as_str()).collect()
}
