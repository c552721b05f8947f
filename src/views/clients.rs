use serde::{Deserialize, Serialize};

use super::{NotFound, find_cluster};
use crate::record;
use crate::round::Round;

/// The listeners of a cluster.
#[derive(Debug, Serialize, Deserialize)]
pub struct ClusterListeners {
    /// The cluster's path: `acme/orders`.
    pub cluster: String,
    /// `None` if the cluster wasn't applied.
    pub ways: Option<Vec<ClusterListener>>,
}

/// A listener, with the properties to connect to it.
#[derive(Debug, Serialize, Deserialize)]
pub struct ClusterListener {
    pub listener: String,
    /// A Java properties file for Kafka clients.
    pub properties: String,
}

/// The listeners of a cluster, by its name or path.
///
/// # Errors
/// Like [`find_cluster`].
pub fn ways(round: &Round, named: &str) -> Result<ClusterListeners, NotFound> {
    let key = find_cluster(round, named)?;
    let ways = round.applied_cluster(&key).map(|(cluster, known)| {
        let all = record::client_properties(cluster, known);
        let way = |way: &record::ClientProperties| ClusterListener {
            listener: way.listener.to_owned(),
            properties: way.to_java(),
        };
        all.iter().map(way).collect()
    });
    Ok(ClusterListeners { cluster: key.path(), ways })
}
