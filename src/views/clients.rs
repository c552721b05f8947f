use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pods::NotRead;
use crate::catalog::ResolvedUser;
use crate::names::ResourceKey;
use crate::problem::quote_untrusted;
use crate::record;
use crate::round::Round;

/// The listeners of a cluster.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClusterListeners {
    /// The cluster's path: `acme/orders`.
    pub cluster: String,
    /// Null if the cluster was not applied.
    pub listeners: Option<Vec<ClusterListener>>,
    /// A Java properties file for clients of the cluster's schema registry, without secrets. Null without one.
    pub schema_registry: Option<String>,
}

/// A listener, with the properties to connect to it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClusterListener {
    /// The name of the listener.
    pub listener: String,
    /// A Java properties file for Kafka clients, without secrets.
    pub properties: String,
}

/// The listeners for one user of the cluster, or for its administrator and others.
///
/// # Errors
/// When the cluster has no such user that was applied.
pub fn listeners(
    round: &Round,
    cluster: &ResourceKey,
    user: Option<&str>,
) -> Result<ClusterListeners, NotRead> {
    let path = cluster.path();
    let Some((resolved, known)) = round.applied_cluster(cluster) else {
        return Ok(ClusterListeners { cluster: path, listeners: None, schema_registry: None });
    };
    let is_applied = |user: &&ResolvedUser| round.checked.recorded.resources.contains_key(&user.key);
    let users: Vec<&ResolvedUser> = resolved.users.iter().filter(is_applied).collect();
    let find = |name: &str| {
        let found = users.iter().copied().find(|user| user.spec.identifier.as_str() == name);
        found.ok_or_else(|| no_user(&path, name, &users))
    };
    let user = user.map(find).transpose()?;
    let listener = |of: &record::ClientProperties| ClusterListener {
        listener: of.listener.to_owned(),
        properties: of.to_java(),
    };
    let listeners = record::client_properties(resolved, known, user).iter().map(listener).collect();
    let schema_registry = record::registry_properties(resolved).map(|it| it.to_java());
    Ok(ClusterListeners { cluster: path, listeners: Some(listeners), schema_registry })
}

fn no_user(cluster: &str, name: &str, users: &[&ResolvedUser]) -> NotRead {
    let known: Vec<&str> = users.iter().map(|user| user.spec.identifier.as_str()).collect();
    let hint = match known.is_empty() {
        true => "describe a user in the specs, and apply it: streamfleet explain user".to_owned(),
        false => format!("its users are {}", known.join(", ")),
    };
    NotRead::missing(
        format!("cluster {cluster} has no user `{}` that was applied", quote_untrusted(name)),
        &hint,
    )
}
