//! Observations of targets, as plain data.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::catalog::{Condition, RecordedObject};
use crate::health::FleetHealth;
use crate::names::{FleetKey, Json, ObjectKey, ResourceKey};
use crate::plan::{Contest, Waiting};

#[derive(Debug, Clone, Default)]
pub struct Observed {
    pub fleets: BTreeMap<FleetKey, ObservedFleet>,
}

impl Observed {
    pub fn protected(&self) -> BTreeSet<ResourceKey> {
        let marks = self.fleets.values().flat_map(|fleet| &fleet.marks);
        marks.filter(|(_, mark)| mark.protected).map(|(key, _)| key.clone()).collect()
    }
}

#[derive(Debug, Clone)]
pub struct ObservedFleet {
    pub reach: Reach,
    /// The UID of the `kube-system` namespace; `None` for a folder, or if the target wasn't reached.
    pub cluster: Option<String>,
    /// The inventory of our objects that the target itself keeps. It outlives the state store.
    pub inventory: BTreeMap<ObjectKey, RecordedObject>,
    /// The target's own memory of resources. It outlives the state folder, and is newer than a restored one.
    pub marks: BTreeMap<ResourceKey, ResourceMark>,
    /// The existing objects: ours, and foreign ones in the place of ours.
    pub objects: BTreeMap<ObjectKey, ObservedObject>,
    /// DNS records of which it isn't known what to do: their server doesn't answer, or what they lead to has no address.
    /// They stay as they are.
    pub undecided: BTreeSet<ObjectKey>,
    /// Lasting facts that were noticed.
    pub conditions: Vec<Condition>,
    /// Disks of earlier clusters, by the cluster of the same name that would take them over.
    pub kept: BTreeMap<ResourceKey, BTreeSet<String>>,
    /// The health of the fleet and its clusters; `None` if it was not judged.
    pub health: Option<FleetHealth>,
}

impl ObservedFleet {
    /// Returns an observation of a target about which nothing is known. It differs from an empty target.
    pub fn unknown(reach: Reach) -> Self {
        Self {
            reach,
            cluster: None,
            inventory: BTreeMap::new(),
            marks: BTreeMap::new(),
            objects: BTreeMap::new(),
            undecided: BTreeSet::new(),
            conditions: Vec::new(),
            kept: BTreeMap::new(),
            health: None,
        }
    }
}

/// The target's own memory of a resource, which outlives the state folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceMark {
    pub id: Uuid,
    /// Whether deletion protection is on.
    pub protected: bool,
}

/// Whether a target could be observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Reach {
    /// It was observed.
    Reached,
    /// The target can't be reached. The plan is made against the last known state.
    Unreachable {
        /// The attempt and why it failed.
        reason: String,
        /// A hint; empty if nothing is known to help.
        #[serde(default)]
        hint: String,
        /// Whether the target may not be used at all, so that retries won't help.
        #[serde(default)]
        refused: bool,
        /// Whether the target may be gone for good: no server answers, or another one does.
        #[serde(default)]
        lost: bool,
        /// Whether `reason` and `hint` describe the network, and so are only for administrators.
        #[serde(default)]
        concealed: bool,
        /// When it was last observed; null if never.
        last_seen: Option<Timestamp>,
    },
    /// An earlier plan is being carried out there. The plan is made against the records.
    UnderWay {
        /// Since when.
        since: Timestamp,
    },
}

impl Reach {
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

#[derive(Debug, Clone, PartialEq)]
pub struct ObservedObject {
    /// The UID on the target. For a file, the digest of its bytes: a changed file is not the one planned for.
    pub uid: String,
    /// Whether Streamfleet made it.
    pub ours: bool,
    /// Whether it is as applied. Its manifest need not be compared then.
    pub unchanged: bool,
    /// The existing object with fingerprints as secrets. `None` if it can't be parsed, which is drift.
    pub manifest: Option<Json>,
    /// The field manager that changed it, if known.
    pub changed_by: Option<String>,
    /// Fields that we would set and another controller owns. The object was applied without them.
    pub contested: Vec<Contest>,
    /// The path within the fleet's folder of a link or something of the wrong type, in its place or on the way there.
    pub obstacle: Option<String>,
}
