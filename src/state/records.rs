//! The types on disk. The core's types can change without making old folders unreadable.
//!
//! Unknown fields are ignored, so a field whose loss does no harm can be added without a new version.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::entries;
use crate::catalog::{
    Approval, Condition, Deletion, LastGood, MadeFrom, RecordedObject, RecordedResource, ResourceStatus,
    SecretMark, Status,
};
use crate::names::{Digest, FleetKey, InvalidName, Json, Kind, ResourceKey, SpecPath};
use crate::problem::Origin;

/// The version of the records in `registry.jsonl` and `audit.jsonl`, and of the cache.
pub(super) const VERSION: u32 = 1;

/// The version of a line, which is parsed before anything else.
#[derive(Deserialize)]
pub(super) struct LineVersion {
    pub(super) v: u32,
}

/// A line of `registry.jsonl`: a fact that can't be derived from anything else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub(super) enum RegistryLine {
    Installation { id: Uuid },
    Source { source: String },
    Resource(ResourceIdentity),
    Removed { key: ResourceKey, at: Timestamp, generation: u32 },
    Deletion { fleet: FleetKey, cluster: ResourceKey, at: Timestamp },
    Approval { fleet: FleetKey, id: String, by: String, at: Timestamp },
    ApprovalUsed { id: String, at: Timestamp },
    TokensMade,
}

impl RegistryLine {
    /// The resource whose record this line changes.
    pub(super) fn resource(&self) -> Option<&ResourceKey> {
        match self {
            RegistryLine::Resource(identity) => Some(&identity.key),
            RegistryLine::Removed { key, .. } => Some(key),
            RegistryLine::Deletion { cluster, .. } => Some(cluster),
            RegistryLine::Installation { .. }
            | RegistryLine::Source { .. }
            | RegistryLine::Approval { .. }
            | RegistryLine::ApprovalUsed { .. }
            | RegistryLine::TokensMade => None,
        }
    }

    pub(super) fn to_line(&self) -> String {
        entries::summed(&with_version(self))
    }
}

/// Serializes a record with its version as one line of JSON.
pub(super) fn with_version<T: Serialize>(record: &T) -> String {
    // Records consist of strings, numbers and maps with string keys, so this can't fail.
    let mut value = serde_json::to_value(record).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("v".to_owned(), VERSION.into());
    }
    value.to_string()
}

/// The part of a resource's record that can't be rebuilt. It is kept in the registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ResourceIdentity {
    pub(super) key: ResourceKey,
    pub(super) id: Uuid,
    pub(super) created_at: Timestamp,
    pub(super) protected: bool,
    #[serde(default)]
    pub(super) immutable: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) creating: bool,
    #[serde(default)]
    pub(super) deleting: bool,
    #[serde(default)]
    pub(super) path: Option<SpecPath>,
    #[serde(default)]
    pub(super) suspended: bool,
    #[serde(default)]
    pub(super) suspicion: Option<String>,
}

impl ResourceIdentity {
    pub(super) fn is_on(&self, fleet: &FleetKey) -> bool {
        let named = self.immutable.get("/infrastructure").and_then(Value::as_str);
        let is_cluster = self.key.kind == Kind::Cluster && self.key.organization == fleet.organization;
        self.key == fleet.resource() || (is_cluster && named == Some(fleet.fleet.as_str()))
    }

    /// Whether a guard against deletion was added since the resource was recorded as `before`.
    pub(super) fn is_guarded_since(&self, before: Option<&RecordedResource>) -> bool {
        let bare = ResourceIdentity { protected: false, suspended: false, suspicion: None, ..self.clone() };
        bare.clone().guarded_since(before, self) != bare
    }

    /// Adds the guards against deletion in `known` that `before` did not have yet.
    pub(super) fn guarded_since(self, before: Option<&RecordedResource>, known: &ResourceIdentity) -> Self {
        let had = |guard: fn(&RecordedResource) -> bool| before.is_some_and(guard);
        let suspicion = known.suspicion.clone().filter(|_| !had(|before| before.suspicion.is_some()));
        ResourceIdentity {
            protected: self.protected || (known.protected && !had(|before| before.protected)),
            suspended: self.suspended || (known.suspended && !had(|before| before.suspended)),
            suspicion: self.suspicion.or(suspicion),
            ..self
        }
    }
}

/// The rest of a resource's record, kept in the cache: all of it can be rebuilt from the specs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Detail {
    updated_at: Timestamp,
    #[serde(default)]
    last_good: Option<LastGoodRecord>,
    #[serde(default)]
    secrets: BTreeMap<String, SecretMarkRecord>,
    #[serde(default)]
    made_from: Option<MadeFromRecord>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LastGoodRecord {
    spec: Json,
    path: SpecPath,
    line: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SecretMarkRecord {
    #[serde(default)]
    fingerprint: Option<String>,
    #[serde(default)]
    sealed: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct MadeFromRecord {
    software: String,
    settings: Digest,
    #[serde(default)]
    references: BTreeMap<ResourceKey, Digest>,
}

/// Splits a resource's record into the parts for the registry and the cache.
pub(super) fn split(key: &ResourceKey, resource: &RecordedResource) -> (ResourceIdentity, Detail) {
    let RecordedResource {
        id,
        created_at,
        updated_at,
        protected,
        immutable,
        last_good,
        path,
        suspended,
        secrets,
        made_from,
        creating,
        deleting,
        suspicion,
    } = resource.clone();
    let key = key.clone();
    let identity = ResourceIdentity {
        key,
        id,
        created_at,
        protected,
        immutable,
        creating,
        deleting,
        path,
        suspended,
        suspicion,
    };
    let last_good = last_good.map(|LastGood { spec, origin, .. }| LastGoodRecord {
        spec,
        path: origin.path,
        line: origin.line,
    });
    let mark = |SecretMark { fingerprint, sealed }| SecretMarkRecord { fingerprint, sealed };
    let secrets = secrets.into_iter().map(|(field, trace)| (field, mark(trace))).collect();
    let made_from = made_from.map(|MadeFrom { software, settings, references }| MadeFromRecord {
        software,
        settings,
        references,
    });
    (identity, Detail { updated_at, last_good, secrets, made_from })
}

/// Joins the two parts of a record. Without the cache's part, its content is unknown.
pub(super) fn join(identity: &ResourceIdentity, detail: Option<Detail>) -> RecordedResource {
    let ResourceIdentity {
        key: _,
        id,
        created_at,
        protected,
        immutable,
        creating,
        deleting,
        path,
        suspended,
        suspicion,
    } = identity.clone();
    let unknown =
        Detail { updated_at: created_at, last_good: None, secrets: BTreeMap::new(), made_from: None };
    let Detail { updated_at, last_good, secrets, made_from } = detail.unwrap_or(unknown);
    let last_good =
        last_good.map(|LastGoodRecord { spec, path, line }| LastGood::new(spec, Origin { path, line }));
    let trace = |SecretMarkRecord { fingerprint, sealed }| SecretMark { fingerprint, sealed };
    let secrets = secrets.into_iter().map(|(field, mark)| (field, trace(mark))).collect();
    let made_from = made_from.map(|MadeFromRecord { software, settings, references }| MadeFrom {
        software,
        settings,
        references,
    });
    RecordedResource {
        id,
        created_at,
        updated_at,
        protected,
        immutable,
        last_good,
        path,
        suspended,
        secrets,
        made_from,
        creating,
        deleting,
        suspicion,
    }
}

/// An object that was applied or is being created.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AppliedObjectRecord {
    owner: ResourceKey,
    #[serde(default)]
    uid: Option<String>,
    applied: Digest,
    #[serde(default)]
    manifest: Option<Text>,
}

/// JSON stored as text, so that reading a hundred thousand manifests parses none of them. A value that was
/// stored as such is accepted too.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Text(String),
    Value(Value),
}

impl From<Json> for Text {
    fn from(json: Json) -> Text {
        Text::Text(json.as_str().to_owned())
    }
}

impl Text {
    /// Returns the JSON; none if it is damaged, which counts as lost.
    fn read(self) -> Option<Json> {
        match self {
            Text::Text(text) => Json::from_text(text),
            Text::Value(value) => Some(value.into()),
        }
    }
}

impl From<&RecordedObject> for AppliedObjectRecord {
    fn from(object: &RecordedObject) -> AppliedObjectRecord {
        let RecordedObject { owner, uid, applied, manifest } = object.clone();
        AppliedObjectRecord { owner, uid, applied, manifest: manifest.map(Text::from) }
    }
}

impl From<AppliedObjectRecord> for RecordedObject {
    fn from(AppliedObjectRecord { owner, uid, applied, manifest }: AppliedObjectRecord) -> RecordedObject {
        RecordedObject { owner, uid, applied, manifest: manifest.and_then(Text::read) }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TargetRecord {
    pub(super) observed_at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StatusRecord {
    status: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    conditions: Vec<ConditionRecord>,
    since: Timestamp,
    #[serde(default)]
    memory: Value,
}

#[derive(Debug, Serialize, Deserialize)]
struct ConditionRecord {
    kind: String,
    degraded: bool,
    message: String,
}

impl StatusRecord {
    /// Builds the record of a status, with the memory for the next judgement.
    pub(super) fn of(status: &ResourceStatus, memory: &impl Serialize) -> StatusRecord {
        let ResourceStatus { status, reason, conditions, since } = status.clone();
        let record = |Condition { kind, degraded, message }| ConditionRecord { kind, degraded, message };
        let conditions = conditions.into_iter().map(record).collect();
        // A memory that can't be serialized is dropped; losing it does little harm.
        let memory = serde_json::to_value(memory).unwrap_or_default();
        StatusRecord { status: status.to_string(), reason, conditions, since, memory }
    }

    pub(super) fn memory<T: DeserializeOwned>(self) -> Option<T> {
        serde_json::from_value(self.memory).ok()
    }
}

impl TryFrom<StatusRecord> for ResourceStatus {
    type Error = InvalidName;
    fn try_from(record: StatusRecord) -> Result<ResourceStatus, InvalidName> {
        let StatusRecord { status, reason, conditions, since, memory: _ } = record;
        let status: Status = status.parse()?;
        let condition = |ConditionRecord { kind, degraded, message }| Condition { kind, degraded, message };
        Ok(ResourceStatus {
            status,
            reason,
            conditions: conditions.into_iter().map(condition).collect(),
            since,
        })
    }
}

impl From<Approval> for RegistryLine {
    fn from(Approval { fleet, id, by, at }: Approval) -> RegistryLine {
        RegistryLine::Approval { fleet, id, by, at }
    }
}

impl From<Deletion> for RegistryLine {
    fn from(Deletion { fleet, cluster, at }: Deletion) -> RegistryLine {
        RegistryLine::Deletion { fleet, cluster, at }
    }
}
