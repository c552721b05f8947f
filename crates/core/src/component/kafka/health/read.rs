//! Reads clusters from the objects that were listed for health.

use std::collections::BTreeMap;

use serde_json::Value;

use super::applied_manifests::AppliedCluster;
use super::view::ClusterObservation;
use crate::component::health::read_objects::object_namespace;
use crate::component::health::reading::{deleting, holds, name, text};
use crate::component::health::{AppliedClusters, FleetObservation, ReadObjects};
use crate::component::kafka::kinds::{CLAIM, KAFKA, NODE_POOL, POD, POD_SET};
use crate::component::kind::STORAGE_CLASS;
use crate::component::strimzi::health::OperatorState;
use crate::component::strimzi::read::Operators;
use crate::names::{Json, ResourceKey};

/// Whether clusters can be judged by what was read: without pods, by their sets.
fn is_enough(read: &ReadObjects) -> bool {
    let known = |kind| read.of(kind).is_some();
    known(&KAFKA) && known(&NODE_POOL) && (known(&POD) || known(&POD_SET))
}

/// Whether a Kafka is being deleted.
pub fn is_leaving(read: &ReadObjects) -> bool {
    read.of(&KAFKA).is_some_and(|mut kafkas| kafkas.any(|kafka| deleting(&kafka.value())))
}

/// Whether something needs an explanation: a pod that isn't ready, a claim that isn't bound.
pub fn is_troubled(read: &ReadObjects) -> bool {
    let is_bound = |claim: &Value| text(claim, &["status", "phase"]).as_deref() == Some("Bound");
    read.of(&POD).is_some_and(|mut pods| pods.any(|pod| !holds(&pod.value(), "Ready")))
        || read.of(&CLAIM).is_some_and(|mut claims| claims.any(|claim| !is_bound(&claim.value())))
}

/// Observes the clusters of a fleet, if enough was read.
pub fn observe(wanted: &AppliedClusters, read: &ReadObjects, seen: &mut FleetObservation) {
    if !is_enough(read) {
        return;
    }
    let operators = Operators::of(read);
    let mut namespaces: BTreeMap<String, Vec<&Json>> = BTreeMap::new();
    for object in read.all() {
        namespaces.entry(object_namespace(object)).or_default().push(object);
    }
    let cluster = |(key, wanted): (&ResourceKey, &AppliedCluster)| {
        let objects = namespaces.get(&wanted.namespace).into_iter().flatten().copied();
        let operator = operators.of_namespace(&wanted.namespace);
        (key.clone(), of_cluster(wanted, operator, objects, read))
    };
    seen.clusters = wanted.iter().map(cluster).collect();
}

/// The observation of a cluster, from the objects in its namespace.
fn of_cluster<'o>(
    applied: &AppliedCluster,
    operator: OperatorState,
    objects: impl IntoIterator<Item = &'o Json>,
    read: &ReadObjects,
) -> ClusterObservation {
    // Parsed one at a time: parsed objects take ten times as much memory.
    let objects = objects.into_iter().map(Json::value);
    let seen = ClusterObservation::of(&applied.namespace, &applied.cluster, operator, objects);
    let seen = if read.of(&POD).is_some() { seen.watching_pods() } else { seen };
    match read.of(&STORAGE_CLASS) {
        Some(classes) => {
            seen.knowing_storage_classes(classes.map(|class| name(&class.value()).unwrap_or_default()))
        }
        None => seen,
    }
}
