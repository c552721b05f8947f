//! The last working kubeconfig of each fleet, sealed, for emptying a fleet whose spec is gone.
//!
//! They are in one file, which is replaced as a whole, and removed with the last of them.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::lines::read_whole;
use super::{StateError, folder};
use crate::names::FleetKey;

pub(super) const FILE: &str = "kubeconfigs.json";

/// The version of the format.
const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptKubeconfig {
    /// The keyed fingerprint of the kubeconfig.
    pub fingerprint: String,
    /// The recipient that it is sealed to.
    pub recipient: String,
    /// The kubeconfig, sealed for its fleet's field and for this installation.
    pub sealed: String,
}

#[derive(Serialize, Deserialize)]
struct KubeconfigsFile {
    version: u32,
    kubeconfigs: BTreeMap<FleetKey, KeptKubeconfig>,
}

/// Only the version, which is parsed before anything else.
#[derive(Deserialize)]
struct KubeconfigsVersion {
    version: u32,
}

pub(super) struct Kubeconfigs {
    dir: Utf8PathBuf,
    path: Utf8PathBuf,
}

impl Kubeconfigs {
    pub(super) fn of(dir: &Utf8Path) -> Self {
        Self { dir: dir.to_owned(), path: dir.join(FILE) }
    }

    pub(super) fn read(&self) -> Result<BTreeMap<FleetKey, KeptKubeconfig>, StateError> {
        let Some(bytes) = read_whole(&self.path)? else { return Ok(BTreeMap::new()) };
        let damaged = |error: serde_json::Error| StateError::Damaged {
            path: self.path.clone(),
            line: error.line(),
            reason: "it is not a list of kubeconfigs".to_owned(),
        };
        let KubeconfigsVersion { version } = serde_json::from_slice(&bytes).map_err(damaged)?;
        if version > VERSION {
            let path = self.path.clone();
            return Err(StateError::Newer { path, line: 1, found: version, known: VERSION });
        }
        let content: KubeconfigsFile = serde_json::from_slice(&bytes).map_err(damaged)?;
        Ok(content.kubeconfigs)
    }

    /// Replaces all stored kubeconfigs. Does nothing if they are the same.
    pub(super) fn write(&self, kubeconfigs: BTreeMap<FleetKey, KeptKubeconfig>) -> Result<(), StateError> {
        if self.read()? == kubeconfigs {
            return Ok(());
        }
        if kubeconfigs.is_empty() {
            match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(StateError::io("remove", &self.path)(error));
                }
                _ => return folder::sync(&self.dir),
            }
        }
        // Strings and a map with string keys always serialize.
        let text =
            serde_json::to_vec_pretty(&KubeconfigsFile { version: VERSION, kubeconfigs }).unwrap_or_default();
        folder::replace_file(&self.path, &text)
    }

    pub(super) fn forget(&self, fleet: &FleetKey) -> Result<(), StateError> {
        let mut kubeconfigs = self.read()?;
        match kubeconfigs.remove(fleet) {
            Some(_) => self.write(kubeconfigs),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn they_are_their_owners_alone_and_the_file_goes_with_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kubeconfigs::of(Utf8Path::from_path(dir.path()).unwrap());
        let fleet = |name: &str| FleetKey::try_from(name.to_owned()).unwrap();
        let one = |text: &str| KeptKubeconfig {
            fingerprint: format!("hmac:{text}"),
            recipient: "age1".to_owned(),
            sealed: text.to_owned(),
        };
        assert!(kept.read().unwrap().is_empty());
        kept.write(BTreeMap::new()).unwrap();
        assert!(!kept.path.exists());

        let both = BTreeMap::from([(fleet("acme/eu"), one("a")), (fleet("acme/us"), one("b"))]);
        kept.write(both.clone()).unwrap();
        assert_eq!(kept.read().unwrap(), both);
        assert_eq!(std::fs::metadata(&kept.path).unwrap().permissions().mode() & 0o777, 0o600);
        kept.forget(&fleet("acme/eu")).unwrap();
        kept.forget(&fleet("acme/eu")).unwrap();
        assert_eq!(kept.read().unwrap().len(), 1);
        kept.forget(&fleet("acme/us")).unwrap();
        assert!(!kept.path.exists());

        for (text, expected) in [
            ("{\n\"version\": 1}", ":2`: it is damaged (it is not a list of kubeconfigs)"),
            ("{\"version\": 2}", "a newer version of streamfleet wrote it"),
        ] {
            std::fs::write(&kept.path, text).unwrap();
            let error = kept.read().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
