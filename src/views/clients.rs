//! What Kafka clients need to reach a cluster.

use serde::{Deserialize, Serialize};

use super::{Unshown, find_cluster};
use crate::interface;
use crate::round::Round;

/// The ways into a cluster.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ways {
    /// The cluster's path: `acme/orders`.
    pub cluster: String,
    /// Each way in; none where the cluster was not applied.
    pub ways: Option<Vec<Way>>,
}

/// A way into a cluster.
#[derive(Debug, Serialize, Deserialize)]
pub struct Way {
    /// The name of the listener.
    pub listener: String,
    /// The properties of a client, as Kafka's own read them.
    pub properties: String,
}

/// The ways into the cluster that a person means.
///
/// # Errors
/// As [`find_cluster`].
pub fn ways(round: &Round, named: &str) -> Result<Ways, Unshown> {
    let key = find_cluster(round, named)?;
    let ways = round.applied_cluster(&key).map(|(cluster, known)| {
        let all = interface::client_properties(cluster, known);
        let way = |way: &interface::ClientProperties| Way {
            listener: way.listener.to_owned(),
            properties: way.to_java(),
        };
        all.iter().map(way).collect()
    });
    Ok(Ways { cluster: key.path(), ways })
}
