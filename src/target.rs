//! Targets: observed before planning, written by the executor.

pub mod acme;
mod aws;
mod bucket;
mod directory;
pub mod dns;
mod error;
mod https;
mod kubernetes;
mod marks;
mod mask;
mod memory;
mod pace;
mod targets;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8PathBuf;
use serde_json::Value;

use crate::catalog::RecordedObject;
use crate::component::Extras;
use crate::component::dns_records::{FoundHosts, NamedResource};
use crate::component::health::AppliedCluster;
use crate::health::FleetObservation;
use crate::names::{Digest, ObjectKey, ResourceKey};
use crate::plan::preflight::PreflightFacts;
use crate::plan::{Step, Verb};
use crate::render::Manifest;
use crate::spec::{InfraType, TargetCapabilities};

pub use crate::plan::ResourceMark;
pub use bucket::{BucketClient, BucketError, BucketLook, BucketOutcome};
pub use directory::DirectoryTarget;
pub use error::TargetError;
pub use kubernetes::{
    AccessField, KubeError, KubernetesCluster, KubernetesTarget, LOG_GOES_ON, LOG_OVERLAP, LogEntry,
    LogError, LogReader, LogRequest, SecretValues, calls, service_account,
};
pub use memory::{FleetBasis, TargetMemory};
pub use pace::Backoff;
pub use targets::{TargetLocation, TargetMarks, Targets};
pub use view::{TargetLook, TargetView};

#[derive(Clone)]
pub enum Target {
    Directory(DirectoryTarget),
    Kubernetes(KubernetesTarget),
}

pub struct ObjectWrite {
    pub key: ObjectKey,
    pub owner: ResourceKey,
    /// The digest of the manifest, with secrets as references.
    pub applied: Digest,
    /// The manifest with the secrets' bytes filled in.
    pub filled: Value,
    /// The UID of the object that the plan found there. None when the write creates one.
    pub uid: Option<String>,
    /// Delete the present object first, because a changed field is immutable.
    pub recreate: bool,
    /// Take over the present object, which isn't ours.
    pub adopts: bool,
}

pub struct Task {
    pub object: ObjectKey,
    /// The UID of the object that the plan was made for. None when there was no object.
    pub uid: Option<String>,
    pub deletes: bool,
}

/// The outcome of a task: the object's UID now, or none when it is gone.
pub type TaskResult = Result<Option<String>, TargetError>;

/// The intent of a round. It is written to the target before the first change.
#[derive(Default)]
pub struct Intent {
    pub writes: Vec<ObjectWrite>,
    pub deletes: Vec<ObjectKey>,
    pub marks: BTreeMap<ResourceKey, ResourceMark>,
}

impl ObjectWrite {
    /// The write of a step with this manifest, whose secrets were filled in.
    pub fn of(step: &Step, manifest: &Manifest, filled: Value) -> Self {
        Self {
            key: step.object.clone(),
            owner: manifest.owner.clone(),
            applied: manifest.digest(),
            filled,
            uid: step.uid.clone(),
            recreate: step.verb == Verb::Recreate,
            adopts: step.verb == Verb::Adopt,
        }
    }
}

/// The place of a target's inventory.
pub struct InventoryPlace {
    /// A path, or the name of an object.
    pub name: String,
    /// How to leave there the objects that it lists.
    pub abandon: &'static str,
}

impl Target {
    pub fn capabilities(&self) -> TargetCapabilities {
        let infra_type = match self {
            Target::Directory(_) => InfraType::Directory,
            Target::Kubernetes(_) => InfraType::Byok,
        };
        infra_type.capabilities()
    }

    /// The place of the target's inventory, or none when it has none. While there is one, a later round may
    /// take up the objects that it lists.
    ///
    /// # Errors
    /// When the target can't be read.
    pub async fn inventory(&self) -> Result<Option<InventoryPlace>, TargetError> {
        let (name, abandon) = match self {
            Target::Directory(directory) => (
                directory.inventory()?.map(Utf8PathBuf::into_string),
                "move the fleet's folder away, then forget the fleet",
            ),
            Target::Kubernetes(cluster) => (
                cluster.inventory().await?,
                "delete the namespace of that ConfigMap on the Kubernetes cluster, then forget the fleet",
            ),
        };
        Ok(name.map(|name| InventoryPlace { name, abandon }))
    }

    /// Finds out where the host names of clusters lead; nothing is known of a folder's.
    ///
    /// # Errors
    /// If the target can't be read.
    pub async fn hosts(
        &self,
        named: &[NamedResource<'_>],
    ) -> Result<BTreeMap<ResourceKey, FoundHosts>, TargetError> {
        match self {
            Target::Kubernetes(cluster) if !named.is_empty() => {
                Ok(cluster.while_planning(cluster.hosts(named)).await?)
            }
            Target::Directory(_) | Target::Kubernetes(_) => Ok(BTreeMap::new()),
        }
    }

    /// Collects what a Kubernetes cluster has beside our objects, and our permissions there. `extras` adds
    /// what is needed to create them. Returns none for a folder and without a usable kubeconfig. The daemon
    /// may return facts that were cached in an earlier round, however old.
    pub async fn preflight(&self, extras: Extras) -> Option<Arc<PreflightFacts>> {
        match self {
            Target::Directory(_) => None,
            Target::Kubernetes(cluster) => cluster.facts(extras).await,
        }
    }

    /// Whether the facts of [`Target::preflight`] are recent enough for a change to depend on.
    pub fn knows_facts(&self) -> bool {
        match self {
            Target::Directory(_) => true,
            Target::Kubernetes(cluster) => cluster.knows_facts(),
        }
    }

    /// Collects the facts of [`Target::preflight`] again, past the cache.
    pub async fn preflight_again(&self, extras: Extras) -> Option<Arc<PreflightFacts>> {
        match self {
            Target::Directory(_) => None,
            Target::Kubernetes(cluster) => cluster.find_facts(extras).await,
        }
    }

    /// A number that changes whenever the result of [`TargetLook::observe`] would. None when a change could go
    /// unnoticed.
    pub fn revision(&self) -> Option<u64> {
        match self {
            Target::Directory(_) => None,
            Target::Kubernetes(cluster) => cluster.revision(),
        }
    }

    /// A number that changes whenever the result of [`Target::observe_health`] would. None when a change could go
    /// unnoticed.
    pub fn health_revision(&self) -> Option<u64> {
        match self {
            Target::Directory(_) => None,
            Target::Kubernetes(cluster) => cluster.health_revision(),
        }
    }

    /// Reads the objects by which the health of the fleet's clusters is judged. Returns none for a folder.
    /// `wanted` follows from the result of [`TargetLook::observe`].
    ///
    /// # Errors
    /// When the target can't be read. A missing permission alone is no error; the result says so.
    pub async fn observe_health(
        &self,
        wanted: &BTreeMap<ResourceKey, AppliedCluster>,
    ) -> Result<Option<FleetObservation>, TargetError> {
        match self {
            Target::Directory(_) => Ok(None),
            Target::Kubernetes(cluster) => {
                Ok(Some(cluster.while_planning(cluster.observe_health(wanted)).await?))
            }
        }
    }

    /// Reads a Secret that the operator created. None when it doesn't exist, and for a folder.
    ///
    /// # Errors
    /// When the target can't be read.
    pub async fn secret_values(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<SecretValues>, TargetError> {
        match self {
            Target::Directory(_) => Ok(None),
            Target::Kubernetes(cluster) => Ok(cluster.secret_values(namespace, name).await?),
        }
    }

    /// Records the intent on the target, after settling what an earlier round left unfinished.
    ///
    /// # Errors
    /// When the target can't be written or its inventory is damaged. Nothing was changed then.
    pub async fn begin(&self, intent: Intent) -> Result<Session, TargetError> {
        match self {
            Target::Directory(directory) => {
                let session = directory.begin(intent).map_err(|error| directory.publish_error(error))?;
                Ok(Session::Directory(Box::new(session)))
            }
            Target::Kubernetes(cluster) => Ok(Session::Kubernetes(Box::new(cluster.begin(intent).await?))),
        }
    }

    async fn marks(&self) -> Result<BTreeMap<ResourceKey, ResourceMark>, TargetError> {
        match self {
            Target::Directory(directory) => directory.marks(),
            Target::Kubernetes(cluster) => Ok(cluster.marks().await?),
        }
    }
}

pub enum Session {
    Directory(Box<directory::FolderSession>),
    Kubernetes(Box<kubernetes::ClusterSession>),
}

impl Session {
    /// Writes these objects to disk ahead of their tasks. An object that can't be written fails only in its
    /// own task.
    ///
    /// # Errors
    /// When the target refuses everything. Nothing was changed then.
    pub async fn prepare<'k>(
        &mut self,
        keys: impl IntoIterator<Item = &'k ObjectKey>,
    ) -> Result<(), TargetError> {
        match self {
            Session::Directory(session) => {
                session.prepare(keys).await.map_err(|error| session.target().publish_error(error))
            }
            Session::Kubernetes(_) => Ok(()),
        }
    }

    /// Whether another task can start: a Kubernetes cluster takes many at a time, a folder one.
    pub fn has_room(&self) -> bool {
        match self {
            Session::Directory(session) => session.has_room(),
            Session::Kubernetes(session) => session.has_room(),
        }
    }

    /// Starts a task, which [`Session::next`] drives. Concurrent tasks must not depend on each other.
    pub fn start(&mut self, number: usize, task: Task) {
        match self {
            Session::Directory(session) => session.start(number, task),
            Session::Kubernetes(session) => session.start(number, task),
        }
    }

    /// Waits for the next task to end, and returns its number and outcome. None when no task is running. Call
    /// [`Session::sync`] to make the outcome durable.
    ///
    /// An object other than the planned one is left alone and is an error, and so is a refused change.
    /// A deletion ends when the object is gone; an object that was gone before is no error.
    pub async fn next(&mut self) -> Option<(usize, TaskResult)> {
        match self {
            Session::Directory(session) => {
                let (number, taken) = session.next().await?;
                Some((number, taken.map_err(|error| session.target().publish_error(error))))
            }
            Session::Kubernetes(session) => session.next().await,
        }
    }

    /// Makes everything that was applied durable. Record nothing as done before this returns.
    ///
    /// # Errors
    /// When the disk refuses. What was applied since the last call may be lost then.
    pub async fn sync(&mut self) -> Result<(), TargetError> {
        match self {
            Session::Directory(session) => {
                session.sync().await.map_err(|error| session.target().publish_error(error))
            }
            Session::Kubernetes(_) => Ok(()),
        }
    }

    pub fn known(&self) -> BTreeSet<ObjectKey> {
        match self {
            Session::Directory(session) => session.known().cloned().collect(),
            Session::Kubernetes(session) => session.known(),
        }
    }

    pub fn protected(&self) -> BTreeSet<ResourceKey> {
        match self {
            Session::Directory(session) => session.protected(),
            Session::Kubernetes(session) => session.protected(),
        }
    }

    /// Rebuilds a lost record of an object of ours from what the target knows.
    ///
    /// # Errors
    /// When the object can't be read.
    pub async fn recall(&self, key: &ObjectKey) -> Result<Option<RecordedObject>, TargetError> {
        match self {
            Session::Directory(session) => {
                session.recall(key).await.map_err(|error| session.target().publish_error(error))
            }
            Session::Kubernetes(session) => Ok(session.recall(key)),
        }
    }

    /// Records the outcome of the round. `mark` returns what is now recorded of a resource.
    ///
    /// # Errors
    /// When the target refuses. The next round settles what is left.
    pub async fn finish(
        self,
        mark: impl Fn(&ResourceKey) -> Option<ResourceMark>,
    ) -> Result<(), TargetError> {
        match self {
            Session::Directory(session) => {
                let target = session.target().clone();
                session.finish(mark).await.map_err(|error| target.publish_error(error))
            }
            Session::Kubernetes(session) => Ok(session.finish(mark).await?),
        }
    }
}

/// Finds the key under which an object is known. It may have been created in another version of its API; such
/// keys sort next to each other.
fn find<'o, T>(objects: &'o BTreeMap<ObjectKey, T>, key: &ObjectKey) -> Option<&'o ObjectKey> {
    if let Some((known, _)) = objects.get_key_value(key) {
        return Some(known);
    }
    let is_named = |other: &&ObjectKey| {
        (&other.namespace, &other.kind, &other.name) == (&key.namespace, &key.kind, &key.name)
    };
    let first = ObjectKey { api_version: String::new(), ..key.clone() };
    let mut versions = objects.range(first..).map(|(known, _)| known).take_while(is_named);
    versions.find(|known| known.group() == key.group())
}
