use serde_json::Value;

use crate::component::health::reading::OperatorCondition;
use crate::component::health::reading::{annotated, at, conditions, deleting, items, number, text};
use crate::names::Digest;
use crate::spec::certificate::read_ders;

/// The annotation that tells the operator to leave the cluster alone.
pub const PAUSE: &str = "strimzi.io/pause-reconciliation";

/// A view of a Kafka object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KafkaView {
    pub uid: Option<String>,
    pub created: Option<String>,
    pub generation: Option<u64>,
    /// The generation that the operator last finished with, successfully or not.
    pub observed_generation: Option<u64>,
    pub deleting: bool,
    /// Whether reconciliation is paused by annotation.
    pub paused: bool,
    pub has_status: bool,
    pub entity_operator: bool,
    pub version: Option<String>,
    pub metadata_version: Option<String>,
    /// The version of the operator that last succeeded; `None` before the first success and while the cluster
    /// is paused.
    pub last_success: Option<String>,
    /// The cluster id on its disks.
    pub cluster_id: Option<String>,
    pub listeners: Vec<Listener>,
    pub conditions: Vec<OperatorCondition>,
    /// Whether partitions are moved because brokers were added or are being removed.
    pub rebalancing: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    pub name: String,
    /// `host:port`.
    pub bootstrap: Option<String>,
    /// The digest of the certificate (DER) that it presents to clients.
    pub certificate: Option<Digest>,
    /// The CA certificates that clients need, in PEM.
    pub trusted: Option<String>,
}

impl KafkaView {
    pub(super) fn read(object: &Value) -> Self {
        let status = |key| text(object, &["status", key]);
        Self {
            uid: text(object, &["metadata", "uid"]),
            created: text(object, &["metadata", "creationTimestamp"]),
            generation: number(object, &["metadata", "generation"]),
            observed_generation: number(object, &["status", "observedGeneration"]),
            deleting: deleting(object),
            paused: annotated(object, PAUSE).as_deref() == Some("true"),
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
