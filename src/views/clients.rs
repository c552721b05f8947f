use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::ResourceKey;
use crate::record;
use crate::round::Round;

/// The listeners of a cluster.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClusterListeners {
    /// The cluster's path: `acme/orders`.
    pub cluster: String,
    /// Null if the cluster was not applied.
    pub listeners: Option<Vec<ClusterListener>>,
}

/// A listener, with the properties to connect to it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClusterListener {
    /// The name of the listener.
    pub listener: String,
    /// A Java properties file for Kafka clients, without secrets.
    pub properties: String,
}

pub fn listeners(round: &Round, cluster: &ResourceKey) -> ClusterListeners {
    let listeners = round.applied_cluster(cluster).map(|(resolved, known)| {
        let all = record::client_properties(resolved, known);
        let listener = |of: &record::ClientProperties| ClusterListener {
            listener: of.listener.to_owned(),
            properties: of.to_java(),
        };
        all.iter().map(listener).collect()
    });
    ClusterListeners { cluster: cluster.path(), listeners }
}
