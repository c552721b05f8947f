//! The last known outputs of a cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::view::{ClusterObservation, Listener};

/// Addresses, certificates and versions of a cluster. A failed or paused reconciliation drops most of them
/// from the status; each value stays here until a new one is seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outputs {
    /// The cluster id on its disks. Without it, a new cluster doesn't start on kept disks.
    pub cluster_id: Option<String>,
    /// Bootstrap addresses, by listener.
    pub bootstrap: BTreeMap<String, String>,
    /// CA certificates that clients need, in PEM, by listener.
    pub certificates: BTreeMap<String, String>,
    pub version: Option<String>,
    pub metadata_version: Option<String>,
    /// The version of the operator that last succeeded.
    pub operator_version: Option<String>,
}

impl Outputs {
    /// Takes over every value that the status has, and keeps the others.
    pub(super) fn learn(&mut self, seen: &ClusterObservation) {
        let Some(kafka) = &seen.kafka else { return };
        for (known, said) in [
            (&mut self.cluster_id, &kafka.cluster_id),
            (&mut self.version, &kafka.version),
            (&mut self.metadata_version, &kafka.metadata_version),
            (&mut self.operator_version, &kafka.last_success),
        ] {
            if said.is_some() {
                known.clone_from(said);
            }
        }
        if !kafka.listeners.is_empty() {
            let named = |value: fn(&Listener) -> &Option<String>| {
                let listeners = kafka.listeners.iter();
                listeners.filter_map(|it| Some((it.name.clone(), value(it).clone()?))).collect()
            };
            self.bootstrap = named(|listener| &listener.bootstrap);
            self.certificates = named(|listener| &listener.trusted);
        }
    }
}
