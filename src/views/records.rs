use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::Value;

use super::NotFound;
use crate::catalog::{RecordedResource, Resource, Status, of_prometheus};
use crate::names::{Identifier, Kind, ResourceKey};
use crate::problem::Origin;
use crate::record::{self, Record, RecordSources, Standing};
use crate::round::Round;
use crate::spec::{Fields, Organization, Quotas, Safeguards, Spec};

#[derive(Debug)]
pub struct ResourceView {
    /// `acme/orders`.
    pub path: String,
    /// `None` for kinds that nothing runs for.
    pub status: Option<Status>,
    pub record: Value,
}

/// The resources of a kind, or the one with a path.
///
/// # Errors
/// When none has the path.
pub fn of_kind(round: &Round, kind: Kind, path: Option<&str>) -> Result<Vec<ResourceView>, NotFound> {
    let keys = all(round, kind);
    let Some(path) = path else {
        let known = keys.into_iter().filter_map(|key| find(round, key));
        return Ok(known.map(|resource| found(round, &resource)).collect());
    };
    match ResourceKey::at(kind, path).and_then(|key| find(round, &key)) {
        Some(resource) => Ok(vec![found(round, &resource)]),
        None => Err(not_found(kind, path, &keys.into_iter().map(ResourceKey::path).collect::<Vec<_>>())),
    }
}

/// The keys of a kind, in order: resources of the tree, and those that still exist.
pub fn all(round: &Round, kind: Kind) -> Vec<&ResourceKey> {
    let (wanted, recorded) = (&round.checked.catalog.resources, &round.checked.recorded.resources);
    let left = recorded.keys().filter(|key| !wanted.contains_key(key) && is_known(round, key));
    let mut all: Vec<&ResourceKey> = wanted.keys().filter(|key| key.kind == kind).collect();
    let known = all.len();
    all.extend(left.filter(|key| key.kind == kind));
    if kind == Kind::Organization && !all.iter().any(|key| key.name == Identifier::ROOT) {
        all.extend(ROOT.as_ref());
    }
    if all.len() > known {
        all.sort_unstable();
    }
    all
}

/// Whether there is a record to show.
pub fn is_known(round: &Round, key: &ResourceKey) -> bool {
    let recorded =
        || round.checked.recorded.resources.get(key).is_some_and(|record| record.cached.last_good.is_some());
    round.checked.catalog.resources.contains_key(key) || recorded() || is_root(key)
}

pub fn is_root(key: &ResourceKey) -> bool {
    ROOT.as_ref() == Some(key)
}

/// The organization that always exists.
static ROOT: LazyLock<Option<ResourceKey>> =
    LazyLock::new(|| Some(ResourceKey::organization(&Identifier::ROOT.parse().ok()?)));

/// The record of `root` if it has no document.
pub fn root(round: &Round) -> Option<Resource> {
    let key = ROOT.clone()?;
    Some(Resource {
        id: round.checked.recorded.id_of(&key),
        origin: Origin { path: "root.yaml".parse().ok()?, line: 0 },
        spec: Spec::Organization(Organization {
            identifier: key.organization.clone(),
            display_name: None,
            quotas: Quotas::default(),
            domains: None,
            members: Vec::new(),
        }),
        fields: Fields::default(),
        hold: None,
        safeguards: Safeguards::default(),
        current_file: None,
        secrets: BTreeMap::new(),
        cluster_fleet: None,
        key,
    })
}

/// The resource of the catalog; or one that is no longer in any document but still there, as last applied; or
/// `root`. `None` if there is none, or its applied spec was lost.
pub fn find<'r>(round: &'r Round, key: &ResourceKey) -> Option<Cow<'r, Resource>> {
    let left = || leaving(key, round.checked.recorded.resources.get(key)?);
    let implied = || is_root(key).then(|| root(round)).flatten();
    match round.checked.catalog.resources.get(key) {
        Some(wanted) => Some(Cow::Borrowed(wanted)),
        None => left().or_else(implied).map(Cow::Owned),
    }
}

fn leaving(key: &ResourceKey, record: &RecordedResource) -> Option<Resource> {
    let last_good = record.cached.last_good.as_ref()?;
    Some(Resource {
        key: key.clone(),
        id: record.durable.id,
        origin: last_good.origin.clone(),
        spec: last_good.typed(key.kind)?.clone(),
        fields: Fields::default(),
        hold: None,
        safeguards: Safeguards { protected: record.durable.protected, suspended: record.durable.suspended },
        current_file: None,
        secrets: BTreeMap::new(),
        cluster_fleet: record.fleet(key).filter(|_| key.kind.is_on_cluster()),
    })
}

pub fn not_found(kind: Kind, path: &str, known: &[String]) -> NotFound {
    let hint = match known {
        [] => format!("the tree has no {}", kind.noun()),
        _ => format!("known: {}", known.join(", ")),
    };
    NotFound { message: format!("there is no {} {path}", kind.noun()), hint, is_usage: false }
}

fn found(round: &Round, resource: &Resource) -> ResourceView {
    let standing = round.standing(&resource.key);
    ResourceView {
        path: resource.key.path(),
        status: record::has_status(resource.key.kind).then_some(standing.status),
        record: record(round, resource, &standing).to_json(),
    }
}

/// The complete record of a resource.
pub fn record(round: &Round, resource: &Resource, standing: &Standing) -> Record {
    let key = &resource.key;
    let sources = RecordSources {
        manifests: manifests_of(round, key),
        cluster: round.applied_cluster(key),
        loadbalancer_dns: round.loadbalancer_dns(key),
        prometheus: prometheus_of(round, resource),
        config: Some(&round.checked.catalog.config),
        new_version: round.newer.get(key).copied(),
    };
    let mut record = Record::new(resource, standing, &round.checked.recorded, sources);
    record.outputs.created_at = created_at(round, key);
    record.outputs.updated_at = updated_at(round, key);
    record
}

/// The host name of a fleet's own Prometheus.
fn prometheus_of(round: &Round, resource: &Resource) -> Option<String> {
    let fleet = round.checked.catalog.fleets.get(&resource.fleet()?)?;
    let own = fleet.own_prometheus.as_ref().filter(|_| fleet.key.resource() == resource.key)?;
    Some(of_prometheus(&fleet.key.fleet, &own.domain.domain))
}

/// When a resource was created, as its record says.
pub fn created_at(round: &Round, key: &ResourceKey) -> Option<Timestamp> {
    let recorded = round.checked.recorded.resources.get(key).map(|record| record.durable.created_at);
    recorded.or_else(|| round.announced.get(key)?.made)
}

/// When a resource was last changed, as its record says.
pub fn updated_at(round: &Round, key: &ResourceKey) -> Option<Timestamp> {
    let announced = round.announced.get(key);
    let recorded = || Some(round.checked.recorded.resources.get(key)?.cached.updated_at);
    announced.and_then(|it| it.changed).or_else(recorded).or_else(|| announced?.made)
}

/// The folder with a cluster's manifests.
fn manifests_of(round: &Round, cluster: &ResourceKey) -> Option<String> {
    let cluster = round.checked.catalog.clusters.get(cluster)?;
    Some(round.folder_of(&cluster.fleet)?.join(&cluster.namespace).into_string())
}
