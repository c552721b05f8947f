//! A folder of manifests, one object a file, for another engine to apply.
//!
//! ```text
//! <output>/<organization>/<fleet>/.streamfleet-inventory.json
//! <output>/<organization>/<fleet>/<path>/<namespace>/kafkanodepool-broker.yaml
//! <output>/<organization>/<fleet>/<path>/<namespace>/secrets/secret-tls.yaml      0600, in a folder of 0700
//! <output>/<organization>/<fleet>/<path>/_cluster/namespace-<namespace>.yaml
//! ```

mod files;
mod footprint;
mod index;
mod inventory;
mod layout;
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
use files::{Folders, Found};
use inventory::{Entry, File, Inventory};

pub(super) use footprint::Footprint;
pub use session::Session;

/// The folder of one fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryTarget {
    output: Utf8PathBuf,
    fleet: FleetKey,
    path: Utf8PathBuf,
    installation: Uuid,
}

impl DirectoryTarget {
    /// The folder of a fleet below an output folder, with the `path` of the fleet's spec and the installation that writes
    /// there.
    pub fn new(output: Utf8PathBuf, fleet: FleetKey, path: Utf8PathBuf, installation: Uuid) -> Self {
        Self { output, fleet, path, installation }
    }

    /// The fleet's folder, relative to the output folder.
    fn folder(&self) -> Utf8PathBuf {
        Utf8Path::new(self.fleet.organization.as_str()).join(self.fleet.fleet.as_str())
    }

    /// The folder that takes the manifests.
    pub fn root(&self) -> Utf8PathBuf {
        self.full(&self.path)
    }

    /// The file by which the folder remembers what is in it, where it is there. As long as it is, a later round may take
    /// what it names for its own.
    ///
    /// # Errors
    /// When that can't be found out.
    pub fn inventory(&self) -> Result<Option<Utf8PathBuf>, TargetError> {
        let path = self.full(Utf8Path::new(inventory::FILE));
        match path.symlink_metadata() {
            Ok(_) => Ok(Some(path)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(TargetError::io("look for", &path)(error)),
        }
    }

    /// The full path of something in the fleet's folder.
    fn full(&self, path: &Utf8Path) -> Utf8PathBuf {
        self.output.join(self.folder()).join(path)
    }

    /// Looks at a path in the fleet's folder. Of all folders only the output folder may be a link.
    fn look(&self, path: &Utf8Path) -> Result<Found, TargetError> {
        self.look_again(path, &mut Folders::new())
    }

    /// The same as one of many looks at the same moment, which go through the same folders.
    fn look_again(&self, path: &Utf8Path, passed: &mut Folders) -> Result<Found, TargetError> {
        files::look(&self.output, &self.folder().join(path), passed)
    }

    /// A mistake as others may read it, in plans and records: with the path in the output folder. All of the path is for the
    /// log, once until something else is wrong.
    pub(in crate::target) fn told(&self, error: TargetError) -> TargetError {
        static TOLD: Mutex<BTreeMap<Utf8PathBuf, String>> = Mutex::new(BTreeMap::new());
        let (folder, why) = (self.full(Utf8Path::new("")), error.to_string());
        if locked(&TOLD).insert(folder, why.clone()).as_ref() != Some(&why) {
            tracing::info!(fleet = %self.fleet, output_dir = %self.output, error = why, "a folder can't be used");
        }
        error.below(&self.output)
    }

    fn load(&self) -> Result<Inventory, TargetError> {
        let path = Utf8Path::new(inventory::FILE);
        match self.look(path)? {
            Found::NotAFile => Err(TargetError::Foreign { path: self.full(path) }),
            _ => Inventory::load(&self.full(Utf8Path::new("")), &self.fleet, self.installation),
        }
    }

    /// The file that is known to be an object's, and what is there now. An intended file that is there was written before
    /// a crash: nobody else has its content. None where nothing of the object was ever written.
    fn current(&self, entry: &Entry, passed: &mut Folders) -> Result<Option<(File, Found)>, TargetError> {
        if let Some(intended) = &entry.intended {
            let found = self.look_again(&intended.path, passed)?;
            if found.has(&intended.content) {
                return Ok(Some((intended.clone(), found)));
            }
        }
        let Some(written) = &entry.written else { return Ok(None) };
        Ok(Some((written.clone(), self.look_again(&written.path, passed)?)))
    }
}
