//! What is handed on of a cluster, as last known.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::view::{Listener, Seen};

/// Where a cluster is found and what it is. A failed or paused look of the operator drops most of this from its status;
/// each value here stays until a new one is seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outputs {
    /// The id that its disks carry. Without it, a new cluster over kept disks doesn't start.
    pub cluster_id: Option<String>,
    /// The address to start from, by listener.
    pub bootstrap: BTreeMap<String, String>,
    /// The certificates that clients trust it by, in PEM, by listener.
    pub certificates: BTreeMap<String, String>,
    /// The version that its brokers run.
    pub version: Option<String>,
    /// The version of its metadata.
    pub metadata_version: Option<String>,
    /// The version of the operator that last succeeded.
    pub operator_version: Option<String>,
}

impl Outputs {
    /// Takes over what the status says, and keeps what it doesn't.
    pub(super) fn learn(&mut self, seen: &Seen) {
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
