//! A Kafka object that was made anew while pods of its cluster ran on.
//!
//! The Secrets of the certificate authorities go with the object, and the operator makes others. Pods that are older than the object
//! show certificates of the authorities that are gone, so that the operator can't talk to them, and says so only in its log. It finds
//! its way as soon as they are made anew.

use super::Wanted;
use super::view::Seen;

/// The pods that the operator can't talk to, since they are older than the Kafka object; none once it has finished all the same.
pub(super) fn older_pods<'s>(wanted: &Wanted, seen: &'s Seen) -> Vec<&'s str> {
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
