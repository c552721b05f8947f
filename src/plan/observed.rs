//! What a target really holds, as plain data.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::catalog::RecordedObject;
use crate::health::FleetHealth;
use crate::names::{FleetKey, Json, ObjectKey, ResourceKey};
use crate::plan::{Contest, Waiting};

/// What all targets hold.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// By fleet.
    pub fleets: BTreeMap<FleetKey, ObservedFleet>,
}

impl Observed {
    /// The resources that any target remembers as protected.
    pub fn protected(&self) -> BTreeSet<ResourceKey> {
        let marks = self.fleets.values().flat_map(|fleet| &fleet.marks);
        marks.filter(|(_, mark)| mark.protected).map(|(key, _)| key.clone()).collect()
    }
}

/// What one target holds.
#[derive(Debug, Clone)]
pub struct ObservedFleet {
    /// Whether it could be looked at.
    pub reach: Reach,
    /// The Kubernetes cluster that it is, by the uid of its `kube-system`; none where it is none, or wasn't reached.
    pub cluster: Option<String>,
    /// The inventory that the target itself keeps of our objects. It outlives the state store.
    pub inventory: BTreeMap<ObjectKey, RecordedObject>,
    /// What the target itself remembers of resources. It outlives the state folder, and is newer than one that was restored.
    pub marks: BTreeMap<ResourceKey, ResourceMark>,
    /// The objects that are there, ours and those that stand where ours should be.
    pub objects: BTreeMap<ObjectKey, ObservedObject>,
    /// The disks of earlier clusters, by the cluster of the same name that is to be made and would take them up.
    pub kept: BTreeMap<ResourceKey, BTreeSet<String>>,
    /// How the fleet and its clusters are; none where that was not judged.
    pub health: Option<FleetHealth>,
}

impl ObservedFleet {
    /// A target that nothing is known of. It is not the same as one that holds nothing.
    pub fn unknown(reach: Reach) -> Self {
        Self {
            reach,
            cluster: None,
            inventory: BTreeMap::new(),
            marks: BTreeMap::new(),
            objects: BTreeMap::new(),
            kept: BTreeMap::new(),
            health: None,
        }
    }
}

/// What a target itself remembers of a resource, so that it outlives the state folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceMark {
    /// Its id.
    pub id: Uuid,
    /// Whether it may not be deleted.
    pub protected: bool,
}

/// Whether a target could be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Reach {
    /// It could.
    Reached,
    /// It could not; the plan is made against the last known state.
    Unreachable {
        /// What was tried and why it failed.
        reason: String,
        /// What to do next; empty where nothing is known to help.
        #[serde(default)]
        hint: String,
        /// Whether it may not be used at all, so that trying again won't help.
        #[serde(default)]
        refused: bool,
        /// Whether it may be gone for good: nothing answers, or something else does.
        #[serde(default)]
        lost: bool,
        /// Whether `reason` and `hint` tell of the network, which is for those to know who run this.
        #[serde(default)]
        concealed: bool,
        /// When it was last seen; none when it never was.
        last_seen: Option<Timestamp>,
    },
    /// Nobody looks while an earlier plan is being carried out there; this one is made against what is recorded.
    UnderWay {
        /// Since when.
        since: Timestamp,
    },
}

impl Reach {
    /// What a change waits for where the target couldn't be looked at.
    pub fn waiting(&self) -> Option<Waiting> {
        match self {
            Reach::Reached => None,
            Reach::Unreachable { reason, hint, refused, lost, concealed, .. } => {
                let (reason, hint) = (reason.clone(), hint.clone());
                let (refused, lost, concealed) = (*refused, *lost, *concealed);
                Some(Waiting::Unreachable { reason, hint, refused, lost, concealed })
            }
            Reach::UnderWay { since } => Some(Waiting::UnderWay { since: *since }),
        }
    }
}

/// One object on a target.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedObject {
    /// The target's own name for this very object. For a file, the digest of its bytes: a file that changed is not the
    /// file that was planned for.
    pub uid: String,
    /// Whether we made it.
    pub ours: bool,
    /// Whether it is as we applied it. The manifest need not be compared then.
    pub unchanged: bool,
    /// The object as it is, in the form that plans have: secret bytes are reduced to a trace. None where it can't be
    /// parsed, which is drift too.
    pub manifest: Option<Json>,
    /// Who changed it, where the target knows.
    pub changed_by: Option<String>,
    /// The fields that we would set and that another controller has. It was applied without them.
    pub contested: Vec<Contest>,
    /// Where it should be, below the fleet's folder, if something stands there that is no file: a folder, a link.
    pub obstacle: Option<String>,
}
