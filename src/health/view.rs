//! What can be seen of a cluster, as small views of the objects that Kubernetes serves.
//!
//! Reading is tolerant: a field that is missing or of another type is unknown, and nothing panics.

mod claim;
mod deployment;
mod event;
mod kafka;
mod node_pool;
mod pod;
mod pod_set;
pub(super) mod reading;
mod user;

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use claim::Claim;
pub use deployment::Operator;
pub use event::Event;
pub use kafka::{Kafka, Listener};
pub use node_pool::NodePool;
pub use pod::{Container, Exit, Pod};
pub use pod_set::{Counts, PodSet};
pub use reading::OperatorCondition;
pub use user::User;

use reading::{deleting, labelled, name, text};

/// Strimzi's label that says which cluster an object belongs to.
const CLUSTER: &str = "strimzi.io/cluster";
/// Strimzi's label that says which node pool an object belongs to.
const POOL: &str = "strimzi.io/pool-name";

/// Everything that is seen of one cluster at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// The Kafka object; none where there is none.
    pub kafka: Option<Kafka>,
    /// The node pools, by name.
    pub pools: BTreeMap<String, NodePool>,
    /// The pod sets, by the name of their pool.
    pub pod_sets: BTreeMap<String, PodSet>,
    /// The pods, by name; none where pods aren't watched, so that the pod sets' word has to do.
    pub pods: Option<BTreeMap<String, Pod>>,
    /// The claims on volumes, by name.
    pub claims: BTreeMap<String, Claim>,
    /// The names of the storage classes that exist; none where that isn't known.
    pub storage_classes: Option<BTreeSet<String>>,
    /// What Kubernetes reported about pods and claims.
    pub events: Vec<Event>,
    /// The users, by name.
    pub users: BTreeMap<String, User>,
    /// Every object of the cluster, for what is still to go when it is deleted.
    pub objects: BTreeSet<Left>,
    /// The operator that looks after the cluster.
    pub operator: Operator,
}

/// An object that is still there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Left {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Whether its deletion was asked for.
    pub deleting: bool,
}

impl Seen {
    /// The views of those objects that belong to a cluster. The order of the objects doesn't matter. Pods and storage
    /// classes are taken as unknown until [`Seen::watching_pods`] and [`Seen::knowing_storage_classes`] say otherwise.
    pub fn of(
        namespace: &str,
        cluster: &str,
        operator: Operator,
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

    /// Says that all pods were among the objects: a pod that isn't there doesn't exist.
    pub fn watching_pods(mut self) -> Self {
        self.pods.get_or_insert_default();
        self
    }

    /// Says which storage classes exist.
    pub fn knowing_storage_classes(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.storage_classes = Some(names.into_iter().collect());
        self
    }

    fn take(&mut self, cluster: &str, object: &Value) {
        let (Some(kind), Some(name)) = (text(object, &["kind"]), name(object)) else { return };
        if kind == "Event" {
            self.events.extend(Event::read(object));
            return;
        }
        let is_it = kind == "Kafka" && name == cluster;
        if !is_it && labelled(object, CLUSTER).as_deref() != Some(cluster) {
            return;
        }
        self.objects.insert(Left { kind: kind.clone(), name: name.clone(), deleting: deleting(object) });
        match kind.as_str() {
            "Kafka" if is_it => self.kafka = Some(Kafka::read(object)),
            "KafkaNodePool" => _ = self.pools.insert(name, NodePool::read(object)),
            "StrimziPodSet" => {
                let pool = labelled(object, POOL).unwrap_or(name);
                self.pod_sets.insert(pool, PodSet::read(object));
            }
            "Pod" => _ = self.pods.get_or_insert_default().insert(name, Pod::read(object)),
            "PersistentVolumeClaim" => _ = self.claims.insert(name, Claim::read(object)),
            "KafkaUser" => _ = self.users.insert(name, User::read(object)),
            _ => {}
        }
    }

    /// The claims of a pod. Strimzi names them `data-<volume>-<pod>`.
    pub fn claims_of(&self, pod: &str) -> impl Iterator<Item = (&String, &Claim)> {
        self.claims.iter().filter(move |(name, _)| {
            name.strip_suffix(pod).is_some_and(|volume| volume.starts_with("data-") && volume.ends_with('-'))
        })
    }

    /// The last warning about an object.
    pub fn warning_about(&self, kind: &str, name: &str) -> Option<&Event> {
        self.events.iter().rfind(|event| event.warning && event.kind == kind && event.name == name)
    }
}
