//! Refuses changes of immutable fields, and of fields that may change in one direction only.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::catalog::draft::{CatalogDraft, CatalogFinding};
use crate::catalog::{BucketRecord, RecordedResource, RecordedSpec};
use crate::config::UnitCatalogue;
use crate::names::{Domain, Kind, ResourceKey};
use crate::problem::Problem;
use crate::spec::{Cluster, Document, Fleet, Spec};

/// The fleet that a cluster is on. It is recorded of topics and users, too, though no spec of these contains it:
/// the spec of their cluster may be gone when they are deleted.
pub const INFRASTRUCTURE: &str = "/infrastructure";
const TENANCY_MODE: &str = "/tenancy_mode";
const CLUSTER_TYPE: &str = "/cluster_type";
const INFRA_TYPE: &str = "/infra_type";
/// Whatever applies a fleet's folder deletes manifests that are no longer in it, so a move deletes clusters.
const PATH: &str = "/advanced_config/path";
const PROFILE: &str = "/advanced_config/profile";
const STORAGE_CLASS: &str = "/advanced_config/storage/class";
const STORAGE_SIZE: &str = "/advanced_config/storage/size_gib";
const BUCKET: &str = "/advanced_config/tiered_storage_bucket_name";

/// The Kubernetes cluster that a fleet was first applied to, by the uid of its `kube-system` namespace. It is
/// recorded with the immutable fields though no spec contains it: a kubeconfig may change but must lead to
/// the same cluster.
pub const CLUSTER_UID: &str = "/cluster_uid";

const NEW_CLUSTER: &str = "describe a new cluster, move the data with MirrorMaker 2, then remove this one";

/// Returns the immutable fields of a kind. Identifying fields aren't included: they make another resource.
pub fn immutable_pointers(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Cluster => &[INFRASTRUCTURE, TENANCY_MODE, CLUSTER_TYPE, PROFILE, STORAGE_CLASS],
        Kind::Fleet => &[TENANCY_MODE, INFRA_TYPE, PATH],
        Kind::Organization
        | Kind::BaseDomain
        | Kind::IdentityProvider
        | Kind::CloudAccount
        | Kind::Topic
        | Kind::User => &[],
    }
}

pub fn immutable_fields(kind: Kind, spec: &Value) -> BTreeMap<String, Value> {
    let value = |pointer: &&str| spec.pointer(pointer).cloned().unwrap_or_default();
    immutable_pointers(kind).iter().map(|pointer| ((*pointer).to_owned(), value(pointer))).collect()
}

pub(super) fn check(draft: &mut CatalogDraft) {
    for document in draft.claimed_documents() {
        let mut findings = changed_fields(draft, document);
        match (&document.spec, draft.last_good(&document.key)) {
            (Spec::Cluster(now), Some(Spec::Cluster(before))) => {
                let has_log =
                    !draft.record(&document.key).is_some_and(|record| awaits_bucket(record, before));
                findings.extend(one_way_changes(before, now, &draft.config.units));
                findings.extend(less_tiering(before, now).filter(|_| has_log));
            }
            (Spec::Fleet(now), Some(Spec::Fleet(before))) => {
                findings.extend(inherited_class(draft, &document.key, before, now));
                findings.extend(domain_in_use(draft, &document.key, before, now));
                findings.extend(opened_gateway(draft, &document.key, before, now));
            }
            _ => {}
        }
        draft.refuse(document, findings);
    }
}

fn changed_fields(draft: &CatalogDraft, document: &Document) -> Vec<CatalogFinding> {
    let Some(record) = draft.record(&document.key) else { return Vec::new() };
    let now = RecordedSpec::of(&document.key, &document.spec, Some(record)).immutable;
    let changed = immutable_pointers(document.key.kind).iter().filter_map(|pointer| {
        let (before, now) = (record.durable.immutable.get(*pointer)?, now.get(*pointer)?);
        (before != now).then(|| immutable_field(&document.key, pointer, before, now))
    });
    changed.collect()
}

fn immutable_field(key: &ResourceKey, pointer: &'static str, before: &Value, now: &Value) -> CatalogFinding {
    let field = pointer.trim_start_matches('/').replace('/', ".");
    let put_back = put_back(&field, before);
    let instead = match key.kind {
        Kind::Cluster => NEW_CLUSTER,
        _ => "describe a new fleet and create new clusters on it",
    };
    let problem = Problem::error("immutable-field", format!("`{field}` of {key} can't change"))
        .hint(format!("{put_back}; to change it, {instead}"));
    CatalogFinding::new(pointer, format!("was {}, would be {}", show(before), show(now)), problem)
}

fn put_back(field: &str, before: &Value) -> String {
    match before {
        Value::Null => format!("remove `{field}`"),
        before => format!("restore {}", show(before)),
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Null => "absent".to_owned(),
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

fn one_way_changes(before: &Cluster, now: &Cluster, units: &UnitCatalogue) -> Vec<CatalogFinding> {
    [fewer_units(before, now, units), smaller_disks(before, now, units)].into_iter().flatten().collect()
}

/// Removing brokers must be confirmed, and takes at most half of them at a time.
fn fewer_units(before: &Cluster, now: &Cluster, units: &UnitCatalogue) -> Option<CatalogFinding> {
    let (from, to) = (before.kafka_units, now.kafka_units);
    if to >= from {
        return None;
    }
    let brokers = |count: u32| units.sizes(before.advanced_config.profile).brokers(count);
    let half = from.div_ceil(2);
    let by_halves = format!(
        "remove at most half of the brokers at a time: set `kafka_units` and `scale_down_to` to {half}, and continue when \
         the cluster is Healthy"
    );
    let problem = if !now.may_scale_down() {
        let message = format!("`kafka_units` can't be lowered from {from} to {to} without confirmation");
        let confirm = format!("confirm with `scale_down_to: {to}` in `advanced_config`");
        Problem::error("fewer-units", message).hint(format!(
            "the cluster would shrink to {} brokers, from {}: restore {from}, or {}",
            brokers(to),
            brokers(from),
            if to < half { by_halves } else { confirm }
        ))
    } else if to < half {
        let message = format!("`kafka_units` can't be lowered from {from} to {to} at once");
        Problem::error("too-few-units", message).hint(by_halves)
    } else {
        return None;
    };
    Some(CatalogFinding::new("/kafka_units", format!("was {from}"), problem))
}

fn smaller_disks(before: &Cluster, now: &Cluster, units: &UnitCatalogue) -> Option<CatalogFinding> {
    let (from, to) = (disk_gib(before, units), disk_gib(now, units));
    (to < from).then(|| {
        let problem = Problem::error(
            "smaller-disks",
            format!("the disks of a broker can't shrink from {from} to {to} GiB"),
        )
        .hint(format!("set `size_gib` to {from} or more; for smaller disks, {NEW_CLUSTER}"));
        CatalogFinding::new(STORAGE_SIZE, format!("was {from}"), problem)
    })
}

fn disk_gib(cluster: &Cluster, units: &UnitCatalogue) -> u32 {
    let config = &cluster.advanced_config;
    let sizes = units.sizes(config.profile);
    config.storage.size_gib.unwrap_or_else(|| sizes.disk_gib(cluster.units()))
}

/// Whether a cluster is created only once its bucket is made. Then nothing is in it yet, and another one will do.
fn awaits_bucket(record: &RecordedResource, before: &Cluster) -> bool {
    record.durable.creating
        && before.advanced_config.tiered_storage_create_bucket
        && BucketRecord::of(&record.durable).is_none_or(|bucket| !bucket.made)
}

fn less_tiering(before: &Cluster, now: &Cluster) -> Option<CatalogFinding> {
    let from = before.advanced_config.tiered_storage_bucket_name.as_ref()?;
    let message = match &now.advanced_config.tiered_storage_bucket_name {
        Some(to) if to == from => return None,
        Some(_) => "tiered storage can't move to another bucket",
        None => "tiered storage can't be turned off",
    };
    let problem = Problem::error("tiered-storage-change", message).hint(format!(
        "the older part of the log is in bucket `{from}`, and brokers fail without it; restore the old value, or \
         {NEW_CLUSTER}"
    ));
    Some(CatalogFinding::new(BUCKET, format!("was `{from}`"), problem))
}

/// Clusters that name no storage class inherit the fleet's, and theirs is immutable.
fn inherited_class(
    draft: &CatalogDraft,
    key: &ResourceKey,
    before: &Fleet,
    now: &Fleet,
) -> Option<CatalogFinding> {
    let (from, to) = (&before.advanced_config.storage_class, &now.advanced_config.storage_class);
    if from == to {
        return None;
    }
    let heir = cluster_of(draft, key, |cluster| cluster.advanced_config.storage.class.is_none())?;
    let problem = Problem::error(
        "inherited-storage-class",
        format!("`advanced_config.storage_class` of {key} can't change while clusters use it"),
    )
    .hint(format!(
        "{heir} has no class of its own, and the class of its disks can't change; {}, and set the new class in new clusters",
        put_back("advanced_config.storage_class", &json!(from))
    ));
    Some(CatalogFinding::new(
        "/advanced_config/storage_class",
        format!("was {}", show(&json!(from))),
        problem,
    ))
}

/// The addresses of all externally reachable clusters contain the fleet's base domain. Changing it would
/// break them all at once.
fn domain_in_use(
    draft: &CatalogDraft,
    key: &ResourceKey,
    before: &Fleet,
    now: &Fleet,
) -> Option<CatalogFinding> {
    let from = before.domain.as_ref()?;
    let base = |domain: &Domain| match draft.find_domain(&key.organization, domain) {
        Some(base) => base.name.to_string(),
        None => domain.to_string(),
    };
    if now.domain.as_ref().map(base) == Some(base(from)) {
        return None;
    }
    let reached = cluster_of(draft, key, |cluster| cluster.advanced_config.cluster_access.is_external())?;
    let problem = Problem::error(
        "domain-in-use",
        format!("`domain` of {key} can't change while clusters use it for their addresses"),
    )
    .hint(format!(
        "clients outside find {reached} under `{from}`; restore it, or first set `cluster_access: Internal` on each \
         cluster of the fleet and apply, which closes them to clients outside"
    ));
    Some(CatalogFinding::new("/domain", format!("was `{from}`"), problem))
}

/// A private Gateway that becomes public exposes every cluster behind it, so each cluster has to agree.
fn opened_gateway(
    draft: &CatalogDraft,
    key: &ResourceKey,
    before: &Fleet,
    now: &Fleet,
) -> Option<CatalogFinding> {
    let is_private = |fleet: &Fleet| fleet.advanced_config.gateway.as_ref().map(|gateway| gateway.private);
    // A Gateway that was already public is no change. One that wasn't configured may still exist, as private.
    if is_private(before) == Some(false) || is_private(now) != Some(false) {
        return None;
    }
    let is_closed = |cluster: &Cluster| {
        let config = &cluster.advanced_config;
        cluster.infrastructure.as_str() == key.name
            && config.cluster_access.is_external()
            && config.private_access
    };
    let said = |cluster: &ResourceKey| {
        let document = draft.claims.get(cluster).and_then(|claim| claim.document);
        document.map(|document| &document.spec).or_else(|| draft.last_good(cluster))
    };
    let clusters = draft.claims.keys().chain(draft.recorded.resources.keys());
    let closed = clusters
        .filter(|cluster| cluster.organization == key.organization)
        .find(|cluster| matches!(said(cluster), Some(Spec::Cluster(cluster)) if is_closed(cluster)))?;
    let problem = Problem::error(
        "gateway-opened",
        format!("the Gateway of {key} can't become public while clusters are private"),
    )
    .hint(format!(
        "clients reach {closed} through it, which has `private_access: true`; restore `private: true`, or set \
         `private_access: false` in each cluster of the fleet in the same change"
    ));
    Some(CatalogFinding::new("/advanced_config/gateway/private", "was true", problem))
}

fn cluster_of<'a>(
    draft: &'a CatalogDraft,
    fleet: &ResourceKey,
    holds: impl Fn(&Cluster) -> bool,
) -> Option<&'a ResourceKey> {
    let found = |cluster: &Cluster| cluster.infrastructure.as_str() == fleet.name && holds(cluster);
    draft.recorded.resources.keys().find(|candidate| {
        candidate.organization == fleet.organization
            && matches!(draft.last_good(candidate), Some(Spec::Cluster(cluster)) if found(cluster))
    })
}
