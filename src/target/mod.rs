//! Where manifests go: observed before planning, written by the executor.

mod directory;
mod error;
mod memory;

use std::collections::BTreeMap;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;
use uuid::Uuid;

use crate::catalog::{Recorded, RecordedFleet};
use crate::names::{Digest, FleetKey, ObjectKey, ResourceKey};
use crate::plan::{Observed, ObservedFleet};
use crate::render::{Desired, Objects};

pub use crate::plan::ResourceMark;
use directory::Footprint;
pub use directory::{DirectoryTarget, Session};
pub use error::TargetError;
pub use memory::{Basis, Memory};

/// What a fleet's manifests are written to.
pub enum Target {
    /// A folder of files, for another engine to apply.
    Directory(DirectoryTarget),
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
}

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
    /// Looks at everything of ours on the target, and at what stands where ours should be.
    pub async fn observe(&self, recorded: &RecordedFleet, desired: Option<&Objects>) -> ObservedFleet {
        match self {
            Target::Directory(directory) => directory.observe(recorded, desired),
        }
    }

    /// What a look at the target would look at, to be taken before it; none where a change could go unseen.
    fn footprint(&self, now: SystemTime) -> Option<Footprint> {
        match self {
            Target::Directory(directory) => directory.footprint(now),
        }
    }

    /// Whether the target is as it was when a footprint was taken.
    fn has(&self, footprint: &Footprint) -> bool {
        match self {
            Target::Directory(directory) => footprint.holds(directory),
        }
    }

    /// Writes down on the target what is about to happen, and what came of what was written down before.
    ///
    /// # Errors
    /// When the target can't be written or what it remembers is damaged. Nothing has happened then.
    pub async fn begin(&self, intent: Intent) -> Result<Session, TargetError> {
        match self {
            Target::Directory(directory) => directory.begin(intent),
        }
    }
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

    /// The targets of `directory` fleets, each with the `path` of its spec: `<output>/<organization>/<fleet>/<path>`.
    pub fn for_fleets(
        output_dir: &Utf8Path,
        installation: Uuid,
        fleets: impl IntoIterator<Item = (FleetKey, Option<String>)>,
    ) -> Self {
        let target = |(fleet, path): (FleetKey, Option<String>)| {
            let path = Utf8PathBuf::from(path.unwrap_or_default());
            (
                fleet.clone(),
                Target::Directory(DirectoryTarget::new(output_dir.to_owned(), fleet, path, installation)),
            )
        };
        Self::new(fleets.into_iter().map(target).collect())
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
            let recorded = recorded.fleets.get(fleet).unwrap_or(&nothing);
            let seen = target.observe(recorded, desired.fleets.get(fleet)).await;
            observed.fleets.insert(fleet.clone(), seen);
        }
        observed
    }

    /// The fleets that have a target.
    pub fn fleets(&self) -> impl Iterator<Item = &FleetKey> {
        self.targets.keys()
    }

    /// What the targets of some fleets remember of resources. One that can't be read remembers nothing here; that it can't
    /// is seen when its fleet is looked at.
    pub async fn marks(&self, chosen: impl Fn(&FleetKey) -> bool) -> BTreeMap<ResourceKey, ResourceMark> {
        let chosen = self.targets.iter().filter(|(fleet, _)| chosen(fleet));
        let marks = chosen.map(|(_, target)| match target {
            Target::Directory(directory) => directory.marks().unwrap_or_default(),
        });
        marks.flatten().collect()
    }
}
