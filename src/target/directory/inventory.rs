//! The inventory file in a fleet's folder. It survives the loss of the state folder, and it decides whether a
//! file is ours; a file name doesn't.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::layout;
use crate::names::{Digest, FleetKey, ObjectKey, ResourceKey};
use crate::target::{self, TargetError, marks::InventoryMarks};

/// The inventory's file name. It is in the fleet's folder, not below the `path` of the spec, so that it is
/// found after `path` changes.
pub(super) const FILE: &str = ".streamfleet-inventory.json";

/// The version of the file format. A new optional field needs no new version if losing it does no harm.
const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Inventory {
    version: u32,
    fleet: FleetKey,
    /// The installation that writes here. Two installations in one folder would undo each other's work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) installation: Option<Uuid>,
    #[serde(default)]
    pub(super) resources: InventoryMarks,
    #[serde(default)]
    pub(super) objects: BTreeMap<ObjectKey, FileEntry>,
    /// The folders that we created, relative to the fleet's folder. Only these are removed when they are
    /// empty.
    #[serde(default)]
    pub(super) folders: BTreeSet<Utf8PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileEntry {
    pub(super) owner: ResourceKey,
    /// The file as it was last written. None when writing is only intended.
    #[serde(default)]
    pub(super) written: Option<ManifestFile>,
    /// The file that is about to be written, or was when the process crashed.
    #[serde(default)]
    pub(super) intended: Option<ManifestFile>,
    /// The file is about to be removed, or was when the process crashed.
    #[serde(default)]
    pub(super) deleting: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ManifestFile {
    /// Relative to the fleet's folder.
    pub(super) path: Utf8PathBuf,
    /// The digest of the manifest, with secrets as references.
    pub(super) applied: Digest,
    pub(super) content: Digest,
}

#[derive(Deserialize)]
struct InventoryVersion {
    version: u32,
}

impl Inventory {
    /// Parses a fleet's inventory, which is at `path`.
    pub(super) fn parse(
        bytes: &[u8],
        path: Utf8PathBuf,
        fleet: &FleetKey,
        installation: Uuid,
    ) -> Result<Inventory, TargetError> {
        let damaged = |reason: String| TargetError::Damaged { path: path.clone(), reason };
        let read = serde_json::from_slice::<Inventory>(bytes);
        // In a newer format, the version may be all that can be parsed.
        let version = match &read {
            Ok(inventory) => inventory.version,
            Err(_) => {
                let versioned = serde_json::from_slice::<InventoryVersion>(bytes);
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

    pub(super) fn empty(fleet: &FleetKey) -> Inventory {
        Inventory {
            version: VERSION,
            fleet: fleet.clone(),
            installation: None,
            resources: InventoryMarks::default(),
            objects: BTreeMap::new(),
            folders: BTreeSet::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.objects.is_empty() && self.folders.is_empty()
    }

    pub(super) fn to_text(&self) -> String {
        // All fields are strings and maps with string keys, so serialization can't fail.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Utf8PathBuf> {
        let files = self.objects.values().flat_map(|entry| entry.written.iter().chain(&entry.intended));
        files.map(|file| &file.path).chain(&self.folders)
    }

    pub(super) fn find(&self, key: &ObjectKey) -> Option<&ObjectKey> {
        target::find(&self.objects, key)
    }
}
