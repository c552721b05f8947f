//! The last working kubeconfig of each fleet, sealed, for emptying a fleet whose spec is gone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::StateError;
use super::kept::{Content, KeptFile};
use crate::names::FleetKey;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptKubeconfig {
    /// The keyed fingerprint of the kubeconfig.
    pub fingerprint: String,
    /// The recipient that it is sealed to.
    pub recipient: String,
    /// The kubeconfig, sealed for its fleet's field and for this installation.
    pub sealed: String,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Kubeconfigs {
    pub(super) kubeconfigs: BTreeMap<FleetKey, KeptKubeconfig>,
}

impl Content for Kubeconfigs {
    const FILE: &'static str = "kubeconfigs.json";
    const NAME: &'static str = "a list of kubeconfigs";
}

impl KeptFile<Kubeconfigs> {
    pub(super) fn forget(&self, fleet: &FleetKey) -> Result<(), StateError> {
        let mut kept = self.read()?;
        match kept.kubeconfigs.remove(fleet) {
            Some(_) => self.write(kept),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use camino::Utf8Path;

    use super::*;

    #[test]
    fn they_are_their_owners_alone_and_the_file_goes_with_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let kept = KeptFile::<Kubeconfigs>::of(Utf8Path::from_path(dir.path()).unwrap());
        let fleet = |name: &str| FleetKey::try_from(name.to_owned()).unwrap();
        let one = |text: &str| KeptKubeconfig {
            fingerprint: format!("hmac:{text}"),
            recipient: "age1".to_owned(),
            sealed: text.to_owned(),
        };
        assert!(kept.read().unwrap().kubeconfigs.is_empty());
        kept.write(Kubeconfigs::default()).unwrap();
        assert!(!kept.path.exists());

        let both = BTreeMap::from([(fleet("acme/eu"), one("a")), (fleet("acme/us"), one("b"))]);
        kept.write(Kubeconfigs { kubeconfigs: both.clone() }).unwrap();
        assert_eq!(kept.read().unwrap().kubeconfigs, both);
        assert_eq!(std::fs::metadata(&kept.path).unwrap().permissions().mode() & 0o777, 0o600);
        kept.forget(&fleet("acme/eu")).unwrap();
        kept.forget(&fleet("acme/eu")).unwrap();
        assert_eq!(kept.read().unwrap().kubeconfigs.len(), 1);
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
