//! A folder of manifests, one object a file, for another engine to apply.
//!
//! ```text
//! <output>/<organization>/<fleet>/.streamfleet-inventory.json
//! <output>/<organization>/<fleet>/<path>/<namespace>/kafkanodepool-broker.yaml
//! <output>/<organization>/<fleet>/<path>/<namespace>/secrets/secret-tls.yaml      0600, in a folder of 0700
//! <output>/<organization>/<fleet>/<path>/_cluster/namespace-<namespace>.yaml
//! ```

mod files;
mod index;
mod inventory;
mod layout;
mod look;
mod observe;
mod session;
#[cfg(test)]
mod tests;
mod yaml;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};
use uuid::Uuid;

use crate::names::FleetKey;
use crate::parallel::locked;
use crate::target::TargetError;
use inventory::{FileEntry, Inventory, ManifestFile};
use look::PathContent;

pub use look::{FolderLook, FolderView};
pub use session::FolderSession;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryTarget {
    output: Utf8PathBuf,
    fleet: FleetKey,
    path: Utf8PathBuf,
    installation: Uuid,
}

impl DirectoryTarget {
    pub fn new(output: Utf8PathBuf, fleet: FleetKey, path: Utf8PathBuf, installation: Uuid) -> Self {
        Self { output, fleet, path, installation }
    }

    fn folder(&self) -> Utf8PathBuf {
        Utf8Path::new(self.fleet.organization.as_str()).join(self.fleet.fleet.as_str())
    }

    pub fn root(&self) -> Utf8PathBuf {
        self.full(&self.path)
    }

    /// The full path of the inventory file, or none when there is no file. While it exists, a later round may
    /// treat the files that it lists as ours.
    ///
    /// # Errors
    /// When the path can't be read.
    pub(in crate::target) fn inventory(&self) -> Result<Option<Utf8PathBuf>, TargetError> {
        let path = self.full(Utf8Path::new(inventory::FILE));
        match path.symlink_metadata() {
            Ok(_) => Ok(Some(path)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(TargetError::io("look for", &path)(error)),
        }
    }

    fn full(&self, path: &Utf8Path) -> Utf8PathBuf {
        self.output.join(self.folder()).join(path)
    }

    /// Reads a path in the fleet's folder.
    fn look(&self, path: &Utf8Path) -> Result<PathContent, TargetError> {
        FolderLook::once(self).read(path)
    }

    /// Shortens an error for plans and records, whose readers need not know where the output folder is. The
    /// full path is logged, once for each new error of a folder.
    pub(in crate::target) fn publish_error(&self, error: TargetError) -> TargetError {
        let (why, hint) = (error.to_string(), error.hint());
        let short = error.below(&self.output);
        if self.is_new(&short) {
            tracing::warn!(
                fleet = %self.fleet, output_dir = %self.output, error = why, hint,
                "cannot use the output folder of fleet {}", self.fleet
            );
        }
        short
    }

    /// Whether the folder's last error was another one. It is the shortened error that is compared, because the full
    /// one may contain the random name of a temporary file.
    fn is_new(&self, short: &TargetError) -> bool {
        static TOLD: Mutex<BTreeMap<Utf8PathBuf, String>> = Mutex::new(BTreeMap::new());
        let why = short.to_string();
        locked(&TOLD).insert(self.full(Utf8Path::new("")), why.clone()).as_ref() != Some(&why)
    }

    fn load(&self) -> Result<Inventory, TargetError> {
        FolderLook::once(self).inventory()
    }
}

impl FolderLook<'_> {
    /// The file that is known to hold an object, with its present content. An intended file that has the
    /// intended content was written before a crash, so it is ours. None when no file was ever written for the
    /// object.
    fn current(&mut self, entry: &FileEntry) -> Result<Option<(ManifestFile, PathContent)>, TargetError> {
        if let Some(intended) = &entry.intended {
            let found = self.at(&intended.path)?;
            if found.has(&intended.content) {
                return Ok(Some((intended.clone(), found)));
            }
        }
        let Some(written) = &entry.written else { return Ok(None) };
        Ok(Some((written.clone(), self.at(&written.path)?)))
    }
}
