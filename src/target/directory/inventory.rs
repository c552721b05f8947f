//! What the folder itself remembers of our files. It outlives the state folder, and it is how a file of ours is told from
//! one that only has a name like ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::layout;
use crate::names::{Digest, FleetKey, ObjectKey, ResourceKey};
use crate::target::{self, TargetError, marks::Marks};

/// The inventory's file, in the fleet's folder and not below the `path` of its spec, so that it is found when that changes.
pub(super) const FILE: &str = ".streamfleet-inventory.json";

/// The version of the inventory's form. A field may be added without a new one where losing it does no harm.
const VERSION: u32 = 1;

/// What the folder remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Inventory {
    version: u32,
    fleet: FleetKey,
    /// The installation that writes here. Two that share a folder would undo each other's work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) installation: Option<Uuid>,
    /// The resources that the files belong to.
    #[serde(default)]
    pub(super) resources: Marks,
    /// The files.
    #[serde(default)]
    pub(super) objects: BTreeMap<ObjectKey, Entry>,
    /// The folders that we made, relative to the fleet's. Only these are removed when they are empty.
    #[serde(default)]
    pub(super) folders: BTreeSet<Utf8PathBuf>,
}

/// What the folder remembers of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) owner: ResourceKey,
    /// What was written; none where writing is only intended.
    #[serde(default)]
    pub(super) written: Option<File>,
    /// What is about to be written, or was when a crash came.
    #[serde(default)]
    pub(super) intended: Option<File>,
    /// The file is about to be removed, or was when a crash came.
    #[serde(default)]
    pub(super) deleting: bool,
}

/// One file's place and content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct File {
    /// Relative to the fleet's folder.
    pub(super) path: Utf8PathBuf,
    /// The digest of the manifest, with secrets as references.
    pub(super) applied: Digest,
    /// The digest of the file's bytes.
    pub(super) content: Digest,
}

/// Only the version.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Inventory {
    /// Reads the inventory of a fleet's folder; an empty one where there is none.
    pub(super) fn load(
        dir: &Utf8Path,
        fleet: &FleetKey,
        installation: Uuid,
    ) -> Result<Inventory, TargetError> {
        let path = dir.join(FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Inventory::empty(fleet)),
            Err(error) => return Err(TargetError::io("read", &path)(error)),
        };
        let damaged = |reason: String| TargetError::Damaged { path: path.clone(), reason };
        let read = serde_json::from_slice::<Inventory>(&bytes);
        // Of a newer form perhaps nothing but the version can be read.
        let version = match &read {
            Ok(inventory) => inventory.version,
            Err(_) => {
                let versioned = serde_json::from_slice::<Versioned>(&bytes);
                versioned.map_err(|error| damaged(error.to_string()))?.version
            }
        };
        if version > VERSION {
            return Err(TargetError::Newer { path, found: version, known: VERSION });
        }
        let inventory = read.map_err(|error| damaged(error.to_string()))?;
        if inventory.fleet != *fleet {
            return Err(TargetError::AnotherFleet { path, fleet: inventory.fleet });
        }
        if inventory.installation.is_some_and(|theirs| theirs != installation) {
            return Err(TargetError::AnotherInstallation { path });
        }
        if let Some(stray) = inventory.paths().find(|path| !layout::is_inside(path)) {
            return Err(damaged(format!("`{stray}` leads out of the folder")));
        }
        Ok(inventory)
    }

    fn empty(fleet: &FleetKey) -> Inventory {
        Inventory {
            version: VERSION,
            fleet: fleet.clone(),
            installation: None,
            resources: Marks::default(),
            objects: BTreeMap::new(),
            folders: BTreeSet::new(),
        }
    }

    /// Whether there is nothing to remember.
    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.objects.is_empty() && self.folders.is_empty()
    }

    /// The inventory as its file has it.
    pub(super) fn to_text(&self) -> String {
        // It holds strings and maps with string keys, so there is no error to pass on.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The files and folders that it names.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Utf8PathBuf> {
        let files = self.objects.values().flat_map(|entry| entry.written.iter().chain(&entry.intended));
        files.map(|file| &file.path).chain(&self.folders)
    }

    /// The object as it is known here: it may have been made in another version of its API.
    pub(super) fn find(&self, key: &ObjectKey) -> Option<&ObjectKey> {
        target::find(&self.objects, key)
    }
}
