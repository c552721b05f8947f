//! The objects of a cluster that are not as they should be, for `why`.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::applied_manifests::AppliedCluster;
use super::authorities;
use super::trouble::{self, TroubleKind};
use super::view::ClusterObservation;
use crate::component::health::reading::OperatorCondition;
use crate::component::health::timing::DEADLINE;
use crate::component::health::words::{brief, quoted};
use crate::names::ObjectKey;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectFindings {
    /// The objects that are not as they should be, the likeliest cause first.
    pub amiss: Vec<FaultyObject>,
    pub fine: usize,
    /// The warnings of Kubernetes, the latest first.
    pub events: Vec<Warning>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultyObject {
    pub kind: String,
    pub name: String,
    /// The fault, to follow the object's name in a sentence.
    pub how: String,
    /// The remedy. `None` if other objects come first, or if waiting is all there is to do.
    pub next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// When it was last seen, as Kubernetes wrote it.
    pub last: String,
    /// As `Kind/name`.
    pub object: String,
    pub reason: String,
    pub message: String,
}

const WARNINGS: usize = 5;

/// An object that differs from what was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftedObject<'a> {
    pub object: &'a ObjectKey,
    pub gone: bool,
}

impl ObjectFindings {
    /// The objects that have drifted, for a cluster whose health wasn't observed.
    pub fn drifted(drifted: &[DriftedObject]) -> ObjectFindings {
        ObjectFindings { amiss: drifted.iter().map(drift).collect(), ..ObjectFindings::default() }
    }
}

fn drift(drifted: &DriftedObject) -> FaultyObject {
    let how = if drifted.gone { "is missing" } else { "differs from what was applied" };
    amiss(&drifted.object.kind, &drifted.object.name, how, None)
}

pub fn of(wanted: &AppliedCluster, seen: &ClusterObservation, drifted: &[DriftedObject]) -> ObjectFindings {
    let mut amiss = operator(seen);
    amiss.extend(pods(wanted, seen));
    amiss.extend(claims(wanted, seen));
    amiss.extend(kafka(wanted, seen));
    amiss.extend(pools(wanted, seen));
    amiss.extend(pod_sets(seen));
    amiss.extend(users(seen));
    for other in drifted.iter().map(drift) {
        if !amiss.iter().any(|it| (&it.kind, &it.name) == (&other.kind, &other.name)) {
            amiss.push(other);
        }
    }
    let named: BTreeSet<(&str, &str)> = amiss.iter().map(|it| (it.kind.as_str(), it.name.as_str())).collect();
    let fine =
        seen.objects.iter().filter(|it| !named.contains(&(it.kind.as_str(), it.name.as_str()))).count();
    ObjectFindings { fine, events: events(seen), amiss }
}

fn amiss(kind: &str, name: &str, how: impl Into<String>, next: Option<String>) -> FaultyObject {
    FaultyObject { kind: kind.to_owned(), name: name.to_owned(), how: how.into(), next }
}

fn operator(seen: &ClusterObservation) -> Vec<FaultyObject> {
    use crate::component::strimzi::health::OperatorState::{Found, Missing, Unknown};
    let down = match &seen.operator {
        Missing => amiss(
            "Deployment",
            "strimzi-cluster-operator",
            "is missing: changes and repairs wait",
            Some("install the Strimzi operator".to_owned()),
        ),
        Found { name, wanted: 0, .. } => amiss(
            "Deployment",
            name,
            "is scaled to 0: changes and repairs wait",
            Some(format!("scale the Strimzi operator {} up again", quoted(name))),
        ),
        Found { name, ready: 0, wanted } => {
            let (namespace, name_only) = name.split_once('/').unwrap_or(("", name));
            let next = format!(
                "find out why its pods don't start: kubectl describe deployment -n {namespace} {name_only}"
            );
            amiss("Deployment", name, format!("has no ready pod, {wanted} wanted"), Some(next))
        }
        Unknown | Found { .. } => return Vec::new(),
    };
    vec![down]
}

fn pods(wanted: &AppliedCluster, seen: &ClusterObservation) -> Vec<FaultyObject> {
    let mut troubles: Vec<_> =
        wanted.pools.keys().flat_map(|pool| trouble::of_pool(wanted, seen, pool)).collect();
    let helpers = seen.pods.iter().flatten().filter(|(_, pod)| pod.helper && !pod.ready);
    troubles.extend(helpers.map(|(name, pod)| trouble::of_pod(wanted, seen, name, pod)));
    let older = authorities::older_pods(wanted, seen).into_iter().enumerate().map(|(number, pod)| {
        let next = format!(
            "delete the pods that are older than the Kafka object one by one, each when the one before is ready again: kubectl \
             delete pod -n {} {pod}",
            wanted.namespace
        );
        let how = "is older than the Kafka object, so the operator can't talk to it";
        amiss("Pod", pod, how, (number == 0).then_some(next))
    });
    troubles.sort();
    let line = |it: trouble::PodTrouble| {
        let next = match trouble::lacks_volume(seen, &it) {
            Some(claim) => Some(no_volume(&wanted.namespace, claim)),
            None => next(it.kind, &wanted.namespace, &it.pod),
        };
        amiss("Pod", &it.pod, it.why, next)
    };
    older.chain(troubles.into_iter().map(line)).collect()
}

fn next(kind: TroubleKind, namespace: &str, pod: &str) -> Option<String> {
    let describe = format!("kubectl describe pod -n {namespace} {pod}");
    Some(match kind {
        TroubleKind::Crash => {
            format!("find out why it crashes: kubectl logs --previous -n {namespace} {pod}")
        }
        TroubleKind::Image => format!("check that its nodes can fetch the image: {describe}"),
        TroubleKind::Container => format!("find out what its container lacks: {describe}"),
        TroubleKind::Unschedulable => {
            format!(
                "add a node with enough room and its disks, or request less in the cluster's spec: {describe}"
            )
        }
        TroubleKind::Missing | TroubleKind::Ending | TroubleKind::Starting => return None,
    })
}

fn no_volume(namespace: &str, claim: &str) -> String {
    format!("find out why it gets no volume: kubectl describe pvc -n {namespace} {claim}")
}

fn claims(wanted: &AppliedCluster, seen: &ClusterObservation) -> Vec<FaultyObject> {
    let namespace = &wanted.namespace;
    let line = |(name, claim): (&String, &super::view::VolumeClaimView)| {
        let how = if claim.pending {
            let why = seen.warning_about("PersistentVolumeClaim", name);
            let why = why.map(|event| format!(": {}: {}", event.reason, brief(&event.message)));
            format!("has no volume yet{}", why.unwrap_or_default())
        } else if claim.is_growing() {
            let size = |text: &Option<String>| text.clone().unwrap_or_default();
            format!("grows from {} to {}", size(&claim.capacity), size(&claim.requested))
        } else {
            return None;
        };
        Some(amiss("PersistentVolumeClaim", name, how, claim.pending.then(|| no_volume(namespace, name))))
    };
    seen.claims.iter().filter_map(line).collect()
}

/// The operator's bad news about an object.
fn said(conditions: &[OperatorCondition]) -> Option<String> {
    let bad = |it: &&OperatorCondition| it.holds && ["NotReady", "Warning"].contains(&it.kind.as_str());
    let said = conditions.iter().filter(bad).map(|it| format!("{}: {}", it.reason, brief(&it.message)));
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn kafka(wanted: &AppliedCluster, seen: &ClusterObservation) -> Option<FaultyObject> {
    let line = |how: String, next: Option<String>| Some(amiss("Kafka", &wanted.cluster, how, next));
    let Some(kafka) = &seen.kafka else {
        return line("is missing".to_owned(), Some("apply to restore it".to_owned()));
    };
    if kafka.deleting {
        return line("is being deleted".to_owned(), None);
    }
    if let Some(said) = said(&kafka.conditions) {
        let next = "follow the operator's message in the cluster's spec, and apply";
        let makes_it = kafka.conditions.iter().any(|it| it.reason == "Creating");
        // Changing the spec can't fix that.
        let is_out_of_touch = !authorities::older_pods(wanted, seen).is_empty();
        return line(said, (!makes_it && !is_out_of_touch).then(|| next.to_owned()));
    }
    if kafka.paused {
        let next = "remove the annotation `strimzi.io/pause-reconciliation` when changes may continue";
        return line("is paused, so the operator ignores it".to_owned(), Some(next.to_owned()));
    }
    if !kafka.has_status {
        let (minutes, namespace) = (DEADLINE.as_mins(), &wanted.namespace);
        let next = format!(
            "wait {minutes} minutes, then check that the operator watches namespace {}",
            quoted(namespace)
        );
        return line("hasn't been processed by the operator yet".to_owned(), Some(next));
    }
    kafka
        .is_behind()
        .then(|| line("has a change that the operator hasn't finished".to_owned(), None))
        .flatten()
}

fn pools(wanted: &AppliedCluster, seen: &ClusterObservation) -> Vec<FaultyObject> {
    let line = |name: &String| {
        let Some(pool) = seen.pools.get(name) else {
            return Some(amiss("KafkaNodePool", name, "is missing", Some("apply to restore it".to_owned())));
        };
        let behind =
            pool.is_behind().then(|| "has a change that the operator hasn't processed yet".to_owned());
        Some(amiss("KafkaNodePool", name, said(&pool.conditions).or(behind)?, None))
    };
    wanted.pools.keys().filter_map(line).collect()
}

fn pod_sets(seen: &ClusterObservation) -> Vec<FaultyObject> {
    let line = |(pool, set): (&String, &super::view::PodSet)| {
        let short = set.counts.filter(|counts| counts.ready < counts.pods);
        let how = match short {
            _ if set.error => "reports an error".to_owned(),
            Some(counts) => format!("has {} of {} pods ready", counts.ready, counts.pods),
            None => return None,
        };
        let is_it = |it: &&super::view::RemainingObject| {
            it.kind == "StrimziPodSet" && it.name.ends_with(pool.as_str())
        };
        let name = seen.objects.iter().find(is_it).map_or(pool, |it| &it.name);
        Some(amiss("StrimziPodSet", name, how, None))
    };
    seen.pod_sets.iter().filter_map(line).collect()
}

fn users(seen: &ClusterObservation) -> Vec<FaultyObject> {
    let line = |(name, user): (&String, &super::view::User)| {
        let how = match &user.failure {
            Some(failure) => format!("{}: {}", failure.reason, brief(&failure.message)),
            None => "has no credentials yet".to_owned(),
        };
        amiss("KafkaUser", name, how, None)
    };
    seen.users.iter().filter(|(_, user)| !user.ready).map(line).collect()
}

fn events(seen: &ClusterObservation) -> Vec<Warning> {
    let warnings = seen.events.iter().rev().filter(|event| event.warning).take(WARNINGS);
    let warning = |event: &super::view::KubernetesEvent| Warning {
        last: event.last.clone(),
        object: format!("{}/{}", event.kind, event.name),
        reason: event.reason.clone(),
        message: brief(&event.message),
    };
    warnings.map(warning).collect()
}
