//! Small views of the Kubernetes objects that show how a cluster is.
//!
//! Reading is tolerant: a field that is missing or has another type is unknown, and nothing panics.

mod claim;
mod event;
mod kafka;
mod labels;
mod node_pool;
mod pod;
mod pod_set;
mod user;

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::catalog::Condition;
use crate::component::health::reading::{deleting, labelled, name, text};
use crate::component::strimzi::health::OperatorState;
pub use claim::VolumeClaimView;
pub use event::KubernetesEvent;
pub use kafka::{KafkaView, Listener, PAUSE};
use labels::{CLUSTER, POOL};
pub use node_pool::NodePoolView;
pub use pod::{Container, ContainerExit, Pod};
pub use pod_set::{Counts, PodSet};
pub use user::User;

/// Everything that is observed of one cluster at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterObservation {
    pub kafka: Option<KafkaView>,
    pub pools: BTreeMap<String, NodePoolView>,
    /// By the name of their pool.
    pub pod_sets: BTreeMap<String, PodSet>,
    /// By name. `None` if pods aren't watched; the counts of the pod sets are used then.
    pub pods: Option<BTreeMap<String, Pod>>,
    /// Persistent volume claims, by name.
    pub claims: BTreeMap<String, VolumeClaimView>,
    /// The names of the existing storage classes; `None` if unknown.
    pub storage_classes: Option<BTreeSet<String>>,
    pub events: Vec<KubernetesEvent>,
    pub users: BTreeMap<String, User>,
    /// Every object of the cluster. Shows what remains when it is deleted.
    pub objects: BTreeSet<RemainingObject>,
    pub operator: OperatorState,
    /// The problems of the components beside Kafka.
    pub troubles: Vec<Condition>,
}

/// An object that still exists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemainingObject {
    pub kind: String,
    pub name: String,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
}

impl ClusterObservation {
    /// Builds the views of the objects that belong to a cluster, given in any order. Pods and storage classes
    /// count as unknown until `watching_pods` and `knowing_storage_classes` are called.
    pub fn of(
        namespace: &str,
        cluster: &str,
        operator: OperatorState,
        objects: impl IntoIterator<Item = impl Borrow<Value>>,
    ) -> Self {
        let mut seen = Self { operator, ..Self::default() };
        for object in objects {
            let object = object.borrow();
            if text(object, &["metadata", "namespace"]).as_deref() == Some(namespace) {
                seen.take(cluster, object);
            }
        }
        seen.events.sort();
        seen
    }

    /// Declares that the objects contained all pods, so that a pod that is missing doesn't exist.
    pub fn watching_pods(mut self) -> Self {
        self.pods.get_or_insert_default();
        self
    }

    pub fn knowing_storage_classes(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.storage_classes = Some(names.into_iter().collect());
        self
    }

    fn take(&mut self, cluster: &str, object: &Value) {
        let (Some(kind), Some(name)) = (text(object, &["kind"]), name(object)) else { return };
        if kind == "Event" {
            self.events.extend(KubernetesEvent::read(object));
            return;
        }
        let is_it = kind == "Kafka" && name == cluster;
        if !is_it && labelled(object, CLUSTER).as_deref() != Some(cluster) {
            return;
        }
        self.objects.insert(RemainingObject {
            kind: kind.clone(),
            name: name.clone(),
            deleting: deleting(object),
        });
        match kind.as_str() {
            "Kafka" if is_it => self.kafka = Some(KafkaView::read(object)),
            "KafkaNodePool" => _ = self.pools.insert(name, NodePoolView::read(object)),
            "StrimziPodSet" => {
                let pool = labelled(object, POOL).unwrap_or(name);
                self.pod_sets.insert(pool, PodSet::read(object));
            }
            "Pod" => _ = self.pods.get_or_insert_default().insert(name, Pod::read(object)),
            "PersistentVolumeClaim" => _ = self.claims.insert(name, VolumeClaimView::read(object)),
            "KafkaUser" => _ = self.users.insert(name, User::read(object)),
            _ => {}
        }
    }

    /// The claims of a pod. Strimzi names them `data-<volume>-<pod>`.
    pub fn claims_of(&self, pod: &str) -> impl Iterator<Item = (&String, &VolumeClaimView)> {
        self.claims.iter().filter(move |(name, _)| {
            name.strip_suffix(pod).is_some_and(|volume| volume.starts_with("data-") && volume.ends_with('-'))
        })
    }

    pub fn warning_about(&self, kind: &str, name: &str) -> Option<&KubernetesEvent> {
        self.events.iter().rfind(|event| event.warning && event.kind == kind && event.name == name)
    }
}
