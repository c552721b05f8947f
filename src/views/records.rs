//! Resources as the interface has them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Unshown;
use crate::catalog::{Resource, Status};
use crate::interface::{self, Outputs};
use crate::names::{Kind, ResourceKey};
use crate::round::Round;

/// A resource.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    /// `acme/orders`.
    pub path: String,
    /// The one word for a fleet or a cluster; none of what nothing runs.
    pub status: Option<Status>,
    /// All of its fields.
    pub record: Value,
}

/// The resources of a kind, or the one with a path.
///
/// # Errors
/// When none has the path.
pub fn of_kind(round: &Round, kind: Kind, path: Option<&str>) -> Result<Vec<Found>, Unshown> {
    let resources = &round.checked.catalog.resources;
    let of_kind = resources.values().filter(|resource| resource.key.kind == kind);
    let Some(path) = path else { return Ok(of_kind.map(|resource| found(round, resource)).collect()) };
    match ResourceKey::at(kind, path).and_then(|key| resources.get(&key)) {
        Some(resource) => Ok(vec![found(round, resource)]),
        None => Err(not_found(kind, path, of_kind)),
    }
}

fn not_found<'r>(kind: Kind, path: &str, of_kind: impl Iterator<Item = &'r Resource>) -> Unshown {
    let known: Vec<String> = of_kind.map(|resource| resource.key.path()).collect();
    let hint = match known.as_slice() {
        [] => format!("the tree has no {}", kind.noun()),
        _ => format!("there are: {}", known.join(", ")),
    };
    Unshown { message: format!("there is no {} {path}", kind.noun()), hint, is_usage: false }
}

fn found(round: &Round, resource: &Resource) -> Found {
    let key = &resource.key;
    let outputs = Outputs {
        manifests: manifests_of(round, key),
        cluster: round.applied_cluster(key),
        loadbalancer_dns: round.loadbalancer_dns(key),
        new_version: round.newer.get(key).copied(),
    };
    let standing = round.standing(key);
    Found {
        path: key.path(),
        status: matches!(key.kind, Kind::Fleet | Kind::Cluster).then_some(standing.status),
        record: interface::record(resource, &standing, &round.checked.recorded, &outputs),
    }
}

/// Where a cluster's manifests are.
fn manifests_of(round: &Round, cluster: &ResourceKey) -> Option<String> {
    let cluster = round.checked.catalog.clusters.get(cluster)?;
    Some(round.folder_of(&cluster.fleet)?.join(&cluster.namespace).into_string())
}
