//! Changes that are never made: to fields that can't change, and to those that only go one way.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::catalog::draft::{Draft, Finding};
use crate::catalog::{capacity, versions};
use crate::config::UnitCatalogue;
use crate::names::{Kind, ResourceKey};
use crate::problem::Problem;
use crate::spec::{Cluster, Document, Fleet, Spec};

const INFRASTRUCTURE: &str = "/infrastructure";
const TENANCY_MODE: &str = "/tenancy_mode";
const CLUSTER_TYPE: &str = "/cluster_type";
const INFRA_TYPE: &str = "/infra_type";
/// What applies a fleet's folder deletes what is no longer in it, so manifests that move are clusters that go.
const PATH: &str = "/advanced_config/path";
const PROFILE: &str = "/advanced_config/profile";
const STORAGE_CLASS: &str = "/advanced_config/storage/class";
const STORAGE_SIZE: &str = "/advanced_config/storage/size_gib";
const VERSION: &str = "/advanced_config/version";
const BUCKET: &str = "/advanced_config/tiered_storage_bucket_name";

/// How to get what a change to a cluster would have given.
const NEW_CLUSTER: &str =
    "describe a new cluster beside it, move the data with MirrorMaker 2, then remove this one";

/// The fields of a kind that can't change after they were first applied, by JSON pointer. What identifies a resource is
/// not among them: with another name it is another resource.
pub fn immutable_pointers(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Cluster => &[INFRASTRUCTURE, TENANCY_MODE, CLUSTER_TYPE, PROFILE, STORAGE_CLASS],
        Kind::Fleet => &[TENANCY_MODE, INFRA_TYPE, PATH],
        Kind::Organization | Kind::BaseDomain | Kind::IdentityProvider | Kind::CloudAccount => &[],
    }
}

/// What a spec of a kind, as a record has it, says in the fields that can't change, by JSON pointer.
pub fn immutable_fields(kind: Kind, spec: &Value) -> BTreeMap<String, Value> {
    let value = |pointer: &&str| spec.pointer(pointer).cloned().unwrap_or_default();
    immutable_pointers(kind).iter().map(|pointer| ((*pointer).to_owned(), value(pointer))).collect()
}

/// Refuses every document that would change what can't change.
pub(super) fn check(draft: &mut Draft) {
    for document in draft.claimed_documents() {
        let mut findings = changed_fields(draft, document);
        match (&document.spec, draft.last_good(&document.key)) {
            (Spec::Cluster(now), Some(Spec::Cluster(before))) => {
                findings.extend(one_way_changes(before, now, &draft.config.units));
            }
            (Spec::Fleet(now), Some(Spec::Fleet(before))) => {
                findings.extend(inherited_class(draft, &document.key, before, now));
            }
            _ => {}
        }
        draft.refuse(document, findings);
    }
}

fn changed_fields(draft: &Draft, document: &Document) -> Vec<Finding> {
    let Some(record) = draft.record(&document.key) else { return Vec::new() };
    let now = immutable_fields(document.key.kind, &document.spec.redacted());
    let changed = immutable_pointers(document.key.kind).iter().filter_map(|pointer| {
        let (before, now) = (record.immutable.get(*pointer)?, now.get(*pointer)?);
        (before != now).then(|| immutable_field(&document.key, pointer, before, now))
    });
    changed.collect()
}

fn immutable_field(key: &ResourceKey, pointer: &'static str, before: &Value, now: &Value) -> Finding {
    let field = pointer.trim_start_matches('/').replace('/', ".");
    let put_back = match before {
        Value::Null => format!("remove `{field}`"),
        before => format!("put {} back", show(before)),
    };
    let instead = match key.kind {
        Kind::Cluster => NEW_CLUSTER,
        _ => "describe a new fleet beside it and make new clusters there",
    };
    let problem = Problem::error("immutable-field", format!("`{field}` of {key} can't change"))
        .hint(format!("{put_back}; to have it otherwise, {instead}"));
    Finding::new(pointer, format!("was {}, would be {}", show(before), show(now)), problem)
}

fn show(value: &Value) -> String {
    match value {
        Value::Null => "absent".to_owned(),
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// Changes of a cluster that only go one way.
fn one_way_changes(before: &Cluster, now: &Cluster, units: &UnitCatalogue) -> Vec<Finding> {
    [
        fewer_units(before, now),
        smaller_disks(before, now, units),
        older_kafka(before, now),
        less_tiering(before, now),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn fewer_units(before: &Cluster, now: &Cluster) -> Option<Finding> {
    let (from, to) = (before.kafka_units, now.kafka_units);
    (to < from).then(|| {
        let problem = Problem::error(
            "fewer-units",
            format!("`kafka_units` can't go from {from} down to {to}"),
        )
        .hint(format!(
            "fewer units are fewer brokers, whose data would have to be moved off first; put {from} back, or \
                 {NEW_CLUSTER}"
        ));
        Finding::new("/kafka_units", format!("was {from}"), problem)
    })
}

fn smaller_disks(before: &Cluster, now: &Cluster, units: &UnitCatalogue) -> Option<Finding> {
    let (from, to) = (disk_gib(before, units), disk_gib(now, units));
    (to < from).then(|| {
        let problem = Problem::error(
            "smaller-disks",
            format!("the disks of a broker can't shrink from {from} to {to} GiB"),
        )
        .hint(format!("set `size_gib` to {from} or more; for smaller disks, {NEW_CLUSTER}"));
        Finding::new(STORAGE_SIZE, format!("was {from}"), problem)
    })
}

/// The disk of a broker: as the spec says, or as follows from its units.
fn disk_gib(cluster: &Cluster, units: &UnitCatalogue) -> u32 {
    let config = &cluster.advanced_config;
    let sizes = units.sizes(config.profile);
    config.storage.size_gib.unwrap_or_else(|| sizes.disk_gib(capacity::units(cluster)))
}

fn older_kafka(before: &Cluster, now: &Cluster) -> Option<Finding> {
    let (from, to) = (&before.advanced_config.version, &now.advanced_config.version);
    versions::takes_metadata_back(from, to).then(|| {
        let problem =
            Problem::error("kafka-downgrade", format!("Kafka can't go from {from} back to {to}")).hint(format!(
                "its metadata is in the form of {from}, which {to} doesn't read; put {from} back, or {NEW_CLUSTER}"
            ));
        Finding::new(VERSION, format!("was {from}"), problem)
    })
}

fn less_tiering(before: &Cluster, now: &Cluster) -> Option<Finding> {
    let from = before.advanced_config.tiered_storage_bucket_name.as_ref()?;
    let message = match &now.advanced_config.tiered_storage_bucket_name {
        Some(to) if to == from => return None,
        Some(_) => "tiered storage can't move to another bucket",
        None => "tiered storage can't be turned off",
    };
    let problem = Problem::error("tiered-storage-change", message).hint(format!(
        "the older part of the log is in bucket `{from}`, and brokers fail without it; put it back, or {NEW_CLUSTER}"
    ));
    Some(Finding::new(BUCKET, format!("was `{from}`"), problem))
}

/// A fleet's storage class is that of every cluster that names none, and theirs can't change.
fn inherited_class(draft: &Draft, key: &ResourceKey, before: &Fleet, now: &Fleet) -> Option<Finding> {
    let (from, to) = (&before.advanced_config.storage_class, &now.advanced_config.storage_class);
    if from == to {
        return None;
    }
    let inherits = |cluster: &Cluster| {
        cluster.infrastructure.as_str() == key.name && cluster.advanced_config.storage.class.is_none()
    };
    let heir = draft.recorded.resources.keys().find(|candidate| {
        candidate.organization == key.organization
            && matches!(draft.last_good(candidate), Some(Spec::Cluster(cluster)) if inherits(cluster))
    })?;
    let problem = Problem::error(
        "inherited-storage-class",
        format!("`advanced_config.storage_class` of {key} can't change while clusters have it from there"),
    )
    .hint(format!(
        "{heir} names no class of its own, and that of its disks can't change; put {} back, and name the new class in \
         new clusters",
        show(&json!(from))
    ));
    Some(Finding::new("/advanced_config/storage_class", format!("was {}", show(&json!(from))), problem))
}
