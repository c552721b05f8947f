//! Where manifests go: observed before planning, written by the executor.

mod directory;
mod error;
mod kubernetes;
mod marks;
mod mask;
mod memory;
mod pace;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::future::join_all;
use serde_json::Value;
use uuid::Uuid;

use crate::catalog::{Recorded, RecordedFleet, RecordedObject, RecordedResource};
use crate::health::{FleetSeen, Wanted};
use crate::names::{Digest, FleetKey, ObjectKey, ResourceKey};
use crate::plan::preflight::{Extras, Facts};
use crate::plan::{Observed, ObservedFleet};
use crate::render::{Desired, Objects};

pub use crate::plan::ResourceMark;
pub use directory::DirectoryTarget;
pub use error::TargetError;
pub use kubernetes::{Cluster, KubeError, KubernetesTarget, Trial, calls};
pub use memory::{Basis, Begun, Memory};
pub use pace::Pace;

/// What a fleet's manifests are written to.
pub enum Target {
    /// A folder of files, for another engine to apply.
    Directory(DirectoryTarget),
    /// A Kubernetes cluster.
    Kubernetes(KubernetesTarget),
}

/// What changes on a target when something does that a look at it would find.
enum Footprint {
    /// Of a folder.
    Directory(directory::Footprint),
    /// The revision of what is told of a Kubernetes cluster.
    Kubernetes(u64),
}

/// One object as it will be written.
pub struct Write {
    /// What it is.
    pub key: ObjectKey,
    /// The resource that it is made for.
    pub owner: ResourceKey,
    /// The digest of its manifest, with secrets as references.
    pub applied: Digest,
    /// The manifest with the secrets' bytes in it.
    pub filled: Value,
    /// Whether nothing was there when it was planned, so that it is made and not changed.
    pub new: bool,
    /// The one that is there is deleted first, since some of its fields never change.
    pub recreate: bool,
}

/// One thing that is done to an object.
pub struct Task {
    /// The object.
    pub object: ObjectKey,
    /// The target's name for the one that was planned for; none where nothing was there.
    pub uid: Option<String>,
    /// Whether it is deleted, rather than made or changed as was intended.
    pub deletes: bool,
}

/// What came of a task: the target's name for the object as it is now; none when it is gone.
pub type Taken = Result<Option<String>, TargetError>;

/// What is about to happen on a target. It is written there before anything else is.
#[derive(Default)]
pub struct Intent {
    /// The objects that will be made or changed.
    pub writes: Vec<Write>,
    /// The objects that will be deleted.
    pub deletes: Vec<ObjectKey>,
    /// The resources that they belong to.
    pub marks: BTreeMap<ResourceKey, ResourceMark>,
}

impl Target {
    /// Looks at everything of ours on the target, and at what stands where ours should be. Where a resource that is still
    /// `there` is desired no more, what it would leave behind is looked for, too.
    pub async fn observe(
        &self,
        recorded: &RecordedFleet,
        desired: Option<&Objects>,
        there: &BTreeMap<ResourceKey, RecordedResource>,
    ) -> ObservedFleet {
        match self {
            Target::Directory(directory) => directory.observe(recorded, desired),
            Target::Kubernetes(cluster) => cluster.observe(recorded, desired, there).await,
        }
    }

    /// Finds out what a Kubernetes cluster has beside our own objects, and what we may do there; none for a folder, and where
    /// there is no way to the cluster. `extras` asks, too, for what it takes to make them. A
    /// process that runs on knows them from an earlier round, and may know them for a long time.
    pub async fn preflight(&self, extras: Extras) -> Option<Arc<Facts>> {
        match self {
            Target::Directory(_) => None,
            Target::Kubernetes(cluster) => cluster.facts(extras).await,
        }
    }

    /// Whether what [`Target::preflight`] gives was found out a short while ago, so that a change may depend on it.
    pub fn knows_facts(&self) -> bool {
        match self {
            Target::Directory(_) => true,
            Target::Kubernetes(cluster) => cluster.knows_facts(),
        }
    }

    /// Finds out anew what [`Target::preflight`] gives.
    pub async fn preflight_again(&self, extras: Extras) -> Option<Arc<Facts>> {
        match self {
            Target::Directory(_) => None,
            Target::Kubernetes(cluster) => cluster.find_facts(extras).await,
        }
    }

    /// A number that changes with what [`Target::observe`] would find; none where that could change unseen.
    pub fn revision(&self) -> Option<u64> {
        match self {
            Target::Directory(_) => None,
            Target::Kubernetes(cluster) => cluster.revision(),
        }
    }

    /// A number that changes with what [`Target::see`] would see; none where that could change unseen.
    pub fn health_revision(&self) -> Option<u64> {
        match self {
            Target::Directory(_) => None,
            Target::Kubernetes(cluster) => cluster.health_revision(),
        }
    }

    /// Looks at everything by which the fleet's clusters are judged; none where nothing runs. What
    /// is wanted of them follows from what [`Target::observe`] found.
    ///
    /// # Errors
    /// When the target can't be read. What only may not be read is told in what is seen.
    pub async fn see(
        &self,
        wanted: &BTreeMap<ResourceKey, Wanted>,
    ) -> Result<Option<FleetSeen>, TargetError> {
        match self {
            Target::Directory(_) => Ok(None),
            Target::Kubernetes(cluster) => Ok(Some(cluster.while_planning(cluster.see(wanted)).await?)),
        }
    }

    /// What a look at the target would look at, to be taken before it; none where a change could go unseen.
    fn footprint(&self, now: SystemTime) -> Option<Footprint> {
        match self {
            Target::Directory(directory) => directory.footprint(now).map(Footprint::Directory),
            Target::Kubernetes(cluster) => cluster.revision().map(Footprint::Kubernetes),
        }
    }

    /// Whether the target is as it was when a footprint was taken. What is in a folder may be trusted to be.
    fn has(&self, footprint: &Footprint, is_trusted: bool) -> bool {
        match (self, footprint) {
            (Target::Directory(directory), Footprint::Directory(footprint)) => {
                footprint.is_of(directory) && (is_trusted || footprint.holds())
            }
            (Target::Kubernetes(_), Footprint::Kubernetes(revision)) => self.revision() == Some(*revision),
            _ => false,
        }
    }

    /// Writes down on the target what is about to happen, and what came of what was written down before.
    ///
    /// # Errors
    /// When the target can't be written or what it remembers is damaged. Nothing has happened then.
    pub async fn begin(&self, intent: Intent) -> Result<Session, TargetError> {
        match self {
            Target::Directory(directory) => {
                let session = directory.begin(intent).map_err(|error| directory.told(error))?;
                Ok(Session::Directory(Box::new(session)))
            }
            Target::Kubernetes(cluster) => Ok(Session::Kubernetes(Box::new(cluster.begin(intent).await?))),
        }
    }

    /// What the target remembers of resources.
    async fn marks(&self) -> Result<BTreeMap<ResourceKey, ResourceMark>, TargetError> {
        match self {
            Target::Directory(directory) => directory.marks(),
            Target::Kubernetes(cluster) => Ok(cluster.marks().await?),
        }
    }
}

/// One round of writing to a target. What is intended is written down when it begins.
pub enum Session {
    /// To a folder of files.
    Directory(Box<directory::Session>),
    /// To a Kubernetes cluster.
    Kubernetes(Box<kubernetes::Session>),
}

impl Session {
    /// Gets ready to apply these objects. What can't be applied says so when it is.
    ///
    /// # Errors
    /// When the target refuses altogether. Nothing has changed then.
    pub async fn prepare<'k>(
        &mut self,
        keys: impl IntoIterator<Item = &'k ObjectKey>,
    ) -> Result<(), TargetError> {
        match self {
            Session::Directory(session) => {
                session.prepare(keys).await.map_err(|error| session.target().told(error))
            }
            Session::Kubernetes(_) => Ok(()),
        }
    }

    /// Whether another task can be begun: a cluster takes many at a time, a folder one after the other.
    pub fn has_room(&self) -> bool {
        match self {
            Session::Directory(session) => session.has_room(),
            Session::Kubernetes(session) => session.has_room(),
        }
    }

    /// Begins a task. Those that run at the same time must not depend on each other. [`Session::next`] goes on with it.
    pub fn start(&mut self, number: usize, task: Task) {
        match self {
            Session::Directory(session) => session.start(number, task),
            Session::Kubernetes(session) => session.start(number, task),
        }
    }

    /// Waits for the next of the tasks that were begun, and gives its number and what came of it; none when there is no
    /// other. [`Session::sync`] makes it last.
    ///
    /// An object that isn't the one that was planned for by then is left as it is, which is an error. So is one that the
    /// target refuses to change. A deleted object is gone when this comes back; that it was gone before is no error.
    pub async fn next(&mut self) -> Option<(usize, Taken)> {
        match self {
            Session::Directory(session) => {
                let (number, taken) = session.next().await?;
                Some((number, taken.map_err(|error| session.target().told(error))))
            }
            Session::Kubernetes(session) => session.next().await,
        }
    }

    /// Waits until everything that was applied lasts. Nothing may be recorded as done before.
    ///
    /// # Errors
    /// When it can't be made to. What was applied since the last time may be lost then.
    pub async fn sync(&mut self) -> Result<(), TargetError> {
        match self {
            Session::Directory(session) => session.sync().await.map_err(|error| session.target().told(error)),
            Session::Kubernetes(_) => Ok(()),
        }
    }

    /// The objects that are known to be on the target.
    pub fn known(&self) -> BTreeSet<ObjectKey> {
        match self {
            Session::Directory(session) => session.known().cloned().collect(),
            Session::Kubernetes(session) => session.known(),
        }
    }

    /// The resources that the target remembers as protected.
    pub fn protected(&self) -> BTreeSet<ResourceKey> {
        match self {
            Session::Directory(session) => session.protected(),
            Session::Kubernetes(session) => session.protected(),
        }
    }

    /// What the target itself can tell of an object of ours, for a record that was lost.
    ///
    /// # Errors
    /// When the object can't be read.
    pub async fn recall(&self, key: &ObjectKey) -> Result<Option<RecordedObject>, TargetError> {
        match self {
            Session::Directory(session) => {
                session.recall(key).await.map_err(|error| session.target().told(error))
            }
            Session::Kubernetes(session) => Ok(session.recall(key)),
        }
    }

    /// Writes down what came of the round. `mark` gives what is now recorded of a resource.
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
                session.finish(mark).await.map_err(|error| target.told(error))
            }
            Session::Kubernetes(session) => Ok(session.finish(mark).await?),
        }
    }
}

/// The object as it is known: it may have been made in another version of its API. In the order of keys, the versions of an
/// object stand next to each other.
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

/// Where a fleet's manifests go.
pub enum Place {
    /// A folder, `<output>/<organization>/<fleet>/<path>`, with the `path` of the fleet's spec.
    Folder(Option<String>),
    /// A Kubernetes cluster.
    Kubernetes(Cluster),
}

/// The targets of an installation, by fleet.
#[derive(Default)]
pub struct Targets {
    targets: BTreeMap<FleetKey, Target>,
}

impl Targets {
    /// These targets.
    pub fn new(targets: BTreeMap<FleetKey, Target>) -> Self {
        Self { targets }
    }

    /// The targets of fleets, each at its place.
    pub fn for_fleets(
        output_dir: &Utf8Path,
        installation: Uuid,
        fleets: impl IntoIterator<Item = (FleetKey, Place)>,
    ) -> Self {
        let target = |fleet: FleetKey, place| match place {
            Place::Folder(path) => {
                let path = Utf8PathBuf::from(path.unwrap_or_default());
                Target::Directory(DirectoryTarget::new(output_dir.to_owned(), fleet, path, installation))
            }
            Place::Kubernetes(cluster) => {
                Target::Kubernetes(KubernetesTarget::new(fleet, installation, cluster))
            }
        };
        Self::new(fleets.into_iter().map(|(fleet, place)| (fleet.clone(), target(fleet, place))).collect())
    }

    /// A fleet's target.
    pub fn get(&self, fleet: &FleetKey) -> Option<&Target> {
        self.targets.get(fleet)
    }

    /// Looks at all targets. What is desired says where something foreign could be in the way, and what is recorded
    /// spares reading what is as it was applied.
    pub async fn observe(&self, recorded: &Recorded, desired: &Desired) -> Observed {
        let mut observed = Observed::default();
        let nothing = RecordedFleet::default();
        for (fleet, target) in &self.targets {
            let held = recorded.fleets.get(fleet).unwrap_or(&nothing);
            let seen = target.observe(held, desired.fleets.get(fleet), &recorded.resources).await;
            observed.fleets.insert(fleet.clone(), seen);
        }
        observed
    }

    /// The fleets that have a target.
    pub fn fleets(&self) -> impl Iterator<Item = &FleetKey> {
        self.targets.keys()
    }

    /// What the targets of some fleets remember of resources.
    pub async fn marks(&self, chosen: impl Fn(&FleetKey) -> bool) -> Marks {
        let chosen = self.targets.iter().filter(|(fleet, _)| chosen(fleet));
        let read = chosen.map(|(fleet, target)| async move { (fleet, target.marks().await) });
        let mut marks = Marks::default();
        for (fleet, read) in join_all(read).await {
            match read {
                Ok(remembered) => marks.remembered.extend(remembered),
                Err(error) => drop(marks.unread.insert(fleet.clone(), error)),
            }
        }
        marks
    }
}

/// What targets remember of resources.
#[derive(Debug, Default)]
pub struct Marks {
    /// By resource.
    pub remembered: BTreeMap<ResourceKey, ResourceMark>,
    /// The fleets whose targets could not be read, with why. What they remember is unknown, and not nothing.
    pub unread: BTreeMap<FleetKey, TargetError>,
}
