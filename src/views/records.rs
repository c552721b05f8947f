//! Resources as the interface has them.

use std::collections::BTreeMap;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Unshown;
use crate::catalog::{RecordedResource, Resource, Status};
use crate::interface::{self, Outputs, Standing};
use crate::names::{Kind, ResourceKey};
use crate::round::Round;
use crate::spec::{Fields, Safeguards, Spec};

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

/// A resource that there is.
pub enum Known<'r> {
    /// It should be there.
    Wanted(&'r Resource),
    /// It is there still, as it was applied last, and no document names it any more.
    Leaving(Box<Resource>),
}

impl Deref for Known<'_> {
    type Target = Resource;
    fn deref(&self) -> &Resource {
        match self {
            Known::Wanted(resource) => resource,
            Known::Leaving(resource) => resource,
        }
    }
}

/// The resources of a kind, or the one with a path.
///
/// # Errors
/// When none has the path.
pub fn of_kind(round: &Round, kind: Kind, path: Option<&str>) -> Result<Vec<Found>, Unshown> {
    let keys = all(round, kind);
    let Some(path) = path else {
        let known = keys.into_iter().filter_map(|key| find(round, key));
        return Ok(known.map(|resource| found(round, &resource)).collect());
    };
    match ResourceKey::at(kind, path).and_then(|key| find(round, &key)) {
        Some(resource) => Ok(vec![found(round, &resource)]),
        None => Err(not_found(kind, path, &keys)),
    }
}

/// What there is of a kind, in order: what should be there, and what is there still.
pub fn all(round: &Round, kind: Kind) -> Vec<&ResourceKey> {
    let (wanted, recorded) = (&round.checked.catalog.resources, &round.checked.recorded.resources);
    let left = recorded.keys().filter(|key| !wanted.contains_key(*key) && is_known(round, key));
    let mut all: Vec<&ResourceKey> = wanted.keys().filter(|key| key.kind == kind).collect();
    let known = all.len();
    all.extend(left.filter(|key| key.kind == kind));
    if all.len() > known {
        all.sort_unstable();
    }
    all
}

/// Whether there is something to show of a resource.
pub fn is_known(round: &Round, key: &ResourceKey) -> bool {
    let recorded =
        || round.checked.recorded.resources.get(key).is_some_and(|record| record.last_good.is_some());
    round.checked.catalog.resources.contains_key(key) || recorded()
}

/// A resource; none where there is none, or nobody knows any more what was applied of it.
pub fn find<'r>(round: &'r Round, key: &ResourceKey) -> Option<Known<'r>> {
    let wanted = round.checked.catalog.resources.get(key).map(Known::Wanted);
    wanted.or_else(|| {
        let record = round.checked.recorded.resources.get(key)?;
        Some(Known::Leaving(Box::new(leaving(key, record)?)))
    })
}

fn leaving(key: &ResourceKey, record: &RecordedResource) -> Option<Resource> {
    let last_good = record.last_good.as_ref()?;
    Some(Resource {
        key: key.clone(),
        id: record.id,
        origin: last_good.origin.clone(),
        spec: Spec::from_record(key.kind, &last_good.spec).ok()?,
        fields: Fields::default(),
        hold: None,
        safeguards: Safeguards { protected: record.protected, suspended: record.suspended },
        stands_in: None,
        secrets: BTreeMap::new(),
    })
}

fn not_found(kind: Kind, path: &str, of_kind: &[&ResourceKey]) -> Unshown {
    let known: Vec<String> = of_kind.iter().map(|key| key.path()).collect();
    let hint = match known.as_slice() {
        [] => format!("the tree has no {}", kind.noun()),
        _ => format!("there are: {}", known.join(", ")),
    };
    Unshown { message: format!("there is no {} {path}", kind.noun()), hint, is_usage: false }
}

fn found(round: &Round, resource: &Resource) -> Found {
    let standing = round.standing(&resource.key);
    Found {
        path: resource.key.path(),
        status: matches!(resource.key.kind, Kind::Fleet | Kind::Cluster).then_some(standing.status),
        record: record(round, resource, &standing),
    }
}

/// All fields of a resource that stands so.
pub fn record(round: &Round, resource: &Resource, standing: &Standing) -> Value {
    let key = &resource.key;
    let outputs = Outputs {
        manifests: manifests_of(round, key),
        cluster: round.applied_cluster(key),
        loadbalancer_dns: round.loadbalancer_dns(key),
        new_version: round.newer.get(key).copied(),
    };
    let mut record = interface::record(resource, standing, &round.checked.recorded, &outputs);
    if let Some(at) = round.announced.get(key).filter(|_| record["created_at"].is_null()) {
        for field in ["created_at", "updated_at"] {
            record[field] = interface::timestamp(*at).into();
        }
    }
    record
}

/// Where a cluster's manifests are.
fn manifests_of(round: &Round, cluster: &ResourceKey) -> Option<String> {
    let cluster = round.checked.catalog.clusters.get(cluster)?;
    Some(round.folder_of(&cluster.fleet)?.join(&cluster.namespace).into_string())
}
