//! The Kafka object.

use serde_json::Value;

use crate::names::Digest;
use crate::spec::certificate::read_ders;

use super::OperatorCondition;
use super::reading::{annotated, at, conditions, deleting, items, number, text};

/// What a Kafka object says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kafka {
    /// Which object it is.
    pub uid: Option<String>,
    /// When it was made, as it is written.
    pub created: Option<String>,
    /// The generation of its spec.
    pub generation: Option<u64>,
    /// The generation that the operator last finished with, well or not.
    pub observed_generation: Option<u64>,
    /// Whether its deletion was asked for.
    pub deleting: bool,
    /// Whether the operator is told to leave it alone.
    pub paused: bool,
    /// Whether the operator has written any status.
    pub has_status: bool,
    /// Whether its spec asks for an entity operator.
    pub entity_operator: bool,
    /// The version that its brokers run.
    pub version: Option<String>,
    /// The version of its metadata.
    pub metadata_version: Option<String>,
    /// The version of the operator that last succeeded; none before the first success, and none while it is paused.
    pub last_success: Option<String>,
    /// The id that is written on its disks.
    pub cluster_id: Option<String>,
    /// Where it listens.
    pub listeners: Vec<Listener>,
    /// What the operator says.
    pub conditions: Vec<OperatorCondition>,
    /// Whether partitions are being moved because brokers come or go.
    pub rebalancing: bool,
}

/// A listener as the status has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// `host:port` to start from.
    pub bootstrap: Option<String>,
    /// The digest of the certificate (DER) that it shows to clients.
    pub certificate: Option<Digest>,
    /// The certificates that clients trust it by, in PEM.
    pub trusted: Option<String>,
}

impl Kafka {
    /// The annotation that tells the operator to leave the cluster alone.
    pub(in crate::health) const PAUSE: &str = "strimzi.io/pause-reconciliation";

    pub(super) fn read(object: &Value) -> Self {
        let status = |key| text(object, &["status", key]);
        Self {
            uid: text(object, &["metadata", "uid"]),
            created: text(object, &["metadata", "creationTimestamp"]),
            generation: number(object, &["metadata", "generation"]),
            observed_generation: number(object, &["status", "observedGeneration"]),
            deleting: deleting(object),
            paused: annotated(object, Self::PAUSE).as_deref() == Some("true"),
            has_status: at(object, &["status"]).and_then(Value::as_object).is_some_and(|s| !s.is_empty()),
            entity_operator: at(object, &["spec", "entityOperator"]).is_some_and(Value::is_object),
            version: status("kafkaVersion"),
            metadata_version: status("kafkaMetadataVersion"),
            last_success: status("operatorLastSuccessfulVersion"),
            cluster_id: status("clusterId"),
            listeners: items(object, &["status", "listeners"]).filter_map(Listener::read).collect(),
            conditions: conditions(object),
            rebalancing: text(object, &["status", "autoRebalance", "state"]).is_some_and(|s| s != "Idle"),
        }
    }

    /// Whether the operator has yet to finish with the present spec.
    pub fn is_behind(&self) -> bool {
        matches!((self.generation, self.observed_generation), (Some(new), Some(old)) if old < new)
    }
}

impl Listener {
    fn read(value: &Value) -> Option<Self> {
        let chains: Vec<&str> = items(value, &["certificates"]).filter_map(Value::as_str).collect();
        let certificate = chains.first().and_then(|pem| read_ders(pem).ok()?.into_iter().next());
        Some(Self {
            name: text(value, &["name"])?,
            bootstrap: text(value, &["bootstrapServers"]),
            certificate: certificate.map(Digest::of),
            trusted: (!chains.is_empty()).then(|| chains.join("\n")),
        })
    }
}
