//! The record of earlier rounds, as plain data. The state store serializes these types as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Index;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use uuid::Uuid;

use super::immutable::immutable_fields;
use crate::names::{
    Digest, FleetKey, Identifier, Json, Kind, ObjectKey, OrganizationPart, ResourceKey, ResourceMap, SpecPath,
};
use crate::problem::Origin;
use crate::spec::{SourceId, Spec};

/// Everything that is recorded. The default is an installation that has never applied anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recorded {
    /// The id of the installation, from which the ids of resources are derived; nil before the first apply.
    pub installation: Uuid,
    pub source: Option<SourceId>,
    /// The resources that were applied and not yet deleted.
    pub resources: Records,
    /// How often a resource with this key was deleted, so that a recreated one gets a new id.
    pub generations: BTreeMap<ResourceKey, u32>,
    /// Ids found on targets for resources that aren't recorded, as after the registry was lost.
    pub remembered_ids: BTreeMap<ResourceKey, Uuid>,
    /// The resources that an API call removed from the specs, so their absence is no mistake. In memory only.
    pub removed: BTreeSet<ResourceKey>,
    pub fleets: BTreeMap<FleetKey, RecordedFleet>,
    pub approvals: Vec<Approval>,
    /// Clusters and topics deleted lately, for the limits on deletions per fleet and hour.
    pub deletions: Vec<Deletion>,
}

/// The records of resources, by key. Clones share each record until it is changed.
#[derive(Clone, Default)]
pub struct Records(ResourceMap<Arc<SharedRecord>>);

/// A record that is shared until it changes: one at the same address is the same.
#[derive(Debug, Clone)]
pub struct SharedRecord {
    record: RecordedResource,
    digest: OnceLock<Digest>,
}

impl SharedRecord {
    fn new(record: RecordedResource) -> Arc<Self> {
        Arc::new(Self { record, digest: OnceLock::new() })
    }

    pub fn record(&self) -> &RecordedResource {
        &self.record
    }

    /// The digest of the record, made by `make` when it is first asked for. `make` must depend on the record and its key
    /// alone, and be the same for every call.
    pub fn digest(&self, make: impl FnOnce(&RecordedResource) -> Digest) -> &Digest {
        self.digest.get_or_init(|| make(&self.record))
    }

    fn change(shared: &mut Arc<Self>) -> &mut RecordedResource {
        let own = Arc::make_mut(shared);
        own.digest = OnceLock::new();
        &mut own.record
    }
}

impl Records {
    pub fn get(&self, key: &ResourceKey) -> Option<&RecordedResource> {
        self.0.get(key).map(|shared| &shared.record)
    }

    /// The keys of a map that have no record.
    pub fn missing<'k, V>(&'k self, of: &'k ResourceMap<V>) -> impl Iterator<Item = &'k ResourceKey> {
        of.missing_from(&self.0)
    }

    pub fn contains_key(&self, key: &ResourceKey) -> bool {
        self.0.contains_key(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ResourceKey, &RecordedResource)> {
        self.0.iter().map(|(key, shared)| (key, &shared.record))
    }

    pub fn keys(&self) -> impl Iterator<Item = &ResourceKey> {
        self.0.keys()
    }

    /// The organizations with their entries. None is empty.
    pub fn organizations(&self) -> impl Iterator<Item = (&Identifier, &OrganizationPart<Arc<SharedRecord>>)> {
        self.0.organizations()
    }

    pub fn of(&self, organization: &Identifier) -> Option<&OrganizationPart<Arc<SharedRecord>>> {
        self.0.of(organization)
    }

    /// The records of some keys.
    pub fn only(&self, is_meant: impl Fn(&ResourceKey) -> bool) -> Self {
        let meant = self.0.iter().filter(|(key, _)| is_meant(key));
        Self(meant.map(|(key, shared)| (key.clone(), Arc::clone(shared))).collect())
    }

    /// Replaces the records of some organizations by those in `others`.
    pub fn replace(&mut self, others: Records, is_meant: impl Fn(&Identifier) -> bool) {
        self.0.replace(others.0, is_meant);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn insert(&mut self, key: ResourceKey, record: RecordedResource) {
        self.0.insert(key, SharedRecord::new(record));
    }

    pub fn remove(&mut self, key: &ResourceKey) -> Option<RecordedResource> {
        self.0.remove(key).map(|shared| shared.record.clone())
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut RecordedResource> {
        self.0.values_mut().map(SharedRecord::change)
    }

    pub fn get_mut(&mut self, key: &ResourceKey) -> Option<&mut RecordedResource> {
        self.0.get_mut(key).map(SharedRecord::change)
    }

    /// Returns the keys whose records differ from those of `others`. Records that both share aren't compared.
    pub fn changed_since<'a>(&'a self, others: &'a Records) -> Vec<&'a ResourceKey> {
        let is_same = |(own, other): (&Arc<SharedRecord>, &Arc<SharedRecord>)| {
            Arc::ptr_eq(own, other) || own.record == other.record
        };
        let both = self.0.unshared(&others.0);
        both.filter(|(_, own, other)| !own.zip(*other).is_some_and(is_same)).map(|(key, ..)| key).collect()
    }
}

impl Index<&ResourceKey> for Records {
    type Output = RecordedResource;
    fn index(&self, key: &ResourceKey) -> &RecordedResource {
        &self.0[key].record
    }
}

impl FromIterator<(ResourceKey, RecordedResource)> for Records {
    fn from_iter<T: IntoIterator<Item = (ResourceKey, RecordedResource)>>(records: T) -> Self {
        Self(records.into_iter().map(|(key, record)| (key, SharedRecord::new(record))).collect())
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.changed_since(other).is_empty()
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A resource as it was last applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedResource {
    /// The data that no other source has.
    pub durable: DurableRecord,
    /// The data that can be rebuilt when it is lost.
    pub cached: CachedRecord,
}

/// The part of a resource's record that can't be rebuilt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DurableRecord {
    /// Its id, which never changes.
    pub id: Uuid,
    /// When it was first applied.
    pub created_at: Timestamp,
    /// The `deletion_protection` that was last applied; true if unknown.
    pub protected: bool,
    /// Its immutable fields, by JSON pointer, as first applied.
    pub immutable: BTreeMap<String, Value>,
    /// The file of its document, which outlives a lost cache; none if unknown.
    pub path: Option<SpecPath>,
    /// Whether `suspend` was last true in its document. A suspended resource isn't deleted.
    pub suspended: bool,
    /// Its creation has begun, and not all of its objects are known to exist. It is recorded already, so that
    /// its objects are deleted by the usual rules.
    pub creating: bool,
    /// Its deletion has begun.
    pub deleting: bool,
    /// Why its absence looked like a mistake when it began, as the end of a sentence. Kept until a document
    /// names it again or its deletion is approved: the cause may not be visible in the next round.
    pub suspicion: Option<String>,
}

/// The part of a resource's record that is rebuilt from the specs when it is lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CachedRecord {
    /// When a change of its spec was last applied.
    pub updated_at: Timestamp,
    /// The spec that was last applied; none if the cache was lost.
    pub last_good: Option<LastGood>,
    /// Its secrets, by field, as last applied.
    pub secrets: BTreeMap<String, SecretMark>,
    /// The inputs of its objects when all of them were last up to date; none if it has no objects or that
    /// isn't known.
    pub made_from: Option<MadeFrom>,
}

/// The inputs of a resource's objects beside its own spec, to tell the cause of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MadeFrom {
    /// The version of Streamfleet that rendered them.
    pub software: String,
    /// The digest of the installation's settings that affect manifests.
    pub settings: Digest,
    /// Everything that the resource refers to, directly or not, with the digest of its spec and secrets.
    pub references: BTreeMap<ResourceKey, Digest>,
}

/// The spec that was last applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LastGood {
    /// The spec, with traces in place of secrets.
    spec: Json,
    /// The position of its document.
    pub origin: Origin,
    // Only right while `spec` stays as it is, so both are private.
    #[serde(skip)]
    #[schemars(skip)]
    typed: Arc<TypedSpec>,
}

impl LastGood {
    pub fn new(spec: Json, origin: Origin) -> Self {
        Self { spec, origin, typed: Arc::default() }
    }

    pub fn spec(&self) -> &Json {
        &self.spec
    }

    /// Returns the parsed spec of a resource of this kind; none if this version can't read it. All clones of a
    /// record share one parse.
    pub fn typed(&self, kind: Kind) -> Option<&Spec> {
        self.typed.spec.get_or_init(|| Spec::from_record(kind, &self.spec).ok()).as_ref()
    }
}

/// Values derived from a recorded spec, computed on first use.
#[derive(Default)]
struct TypedSpec {
    spec: OnceLock<Option<Spec>>,
    written: OnceLock<RecordedSpec>,
}

/// It is derived from the other fields, so it isn't compared.
impl PartialEq for TypedSpec {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for TypedSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A spec as this version records it.
#[derive(Clone)]
pub struct RecordedSpec {
    /// The spec, with traces in place of secrets.
    pub spec: Json,
    pub immutable: Arc<BTreeMap<String, Value>>,
}

impl RecordedSpec {
    /// Returns a resource's spec as it would be recorded; cached for specs that equal the last applied one.
    pub fn of(key: &ResourceKey, spec: &Spec, recorded: Option<&RecordedResource>) -> Self {
        let write = || {
            let value = spec.redacted();
            Self { spec: Json::from(&value), immutable: Arc::new(immutable_fields(key.kind, &value)) }
        };
        let applied = recorded.and_then(|record| record.cached.last_good.as_ref());
        match applied.filter(|applied| applied.typed(key.kind).is_some_and(|applied| applied.is_same(spec))) {
            Some(applied) => {
                let written = applied.typed.written.get_or_init(|| {
                    let written = write();
                    // Share the recorded text if it is the same, as it usually is.
                    let is_text = written.spec == applied.spec;
                    if is_text { Self { spec: applied.spec.clone(), ..written } } else { written }
                });
                written.clone()
            }
            None => write(),
        }
    }
}

/// The trace of a secret: shows that it changed and doesn't reveal it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretMark {
    /// The keyed fingerprint of the value; none if it could not be opened.
    pub fingerprint: Option<String>,
    /// The digest of the sealed form; none if the secret was not sealed.
    pub sealed: Option<Digest>,
}

/// Streamfleet's objects on a fleet's target, as last observed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedFleet {
    /// When the target was last observed; none if never.
    pub observed_at: Option<Timestamp>,
    /// The objects that Streamfleet created or began to create.
    pub objects: BTreeMap<ObjectKey, RecordedObject>,
}

/// An object that Streamfleet created or began to create.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedObject {
    /// The resource that it belongs to.
    pub owner: ResourceKey,
    /// The target's UID of this object; none while its creation is only intended.
    pub uid: Option<String>,
    /// The digest of the applied manifest, with references in place of secrets.
    pub applied: Digest,
    /// The applied manifest; none if the cache was lost or it is damaged.
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    pub manifest: Option<Json>,
}

/// Stores JSON as text, so that reading a hundred thousand manifests parses none of them.
fn as_text<S: Serializer>(json: &Option<Json>, serializer: S) -> Result<S::Ok, S::Error> {
    json.as_ref().map(Json::as_str).serialize(serializer)
}

fn from_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.and_then(Json::from_text))
}

/// The approval of one fleet's guarded steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// The fleet.
    pub fleet: FleetKey,
    /// The plan id, as printed: the hash of the guarded steps.
    pub id: String,
    /// The approver.
    pub by: String,
    /// When it was approved.
    pub at: Timestamp,
}

/// A cluster or topic that was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deletion {
    /// The fleet that it was on.
    pub fleet: FleetKey,
    /// The cluster or topic.
    pub cluster: ResourceKey,
    /// When its deletion began.
    pub at: Timestamp,
}

impl RecordedResource {
    /// Returns the spec that was last applied; none if the cache was lost or this version can't read it.
    pub fn applied_spec(&self, kind: Kind) -> Option<&Spec> {
        self.cached.last_good.as_ref()?.typed(kind)
    }

    pub fn last_known_file(&self) -> Option<&SpecPath> {
        self.durable.path.as_ref().or(self.cached.last_good.as_ref().map(|last_good| &last_good.origin.path))
    }

    /// Returns the fleet itself or the fleet that it is on, if any.
    pub fn fleet(&self, key: &ResourceKey) -> Option<FleetKey> {
        let of_spec = || fleet_of(key, self.cached.last_good.as_ref()?.spec.value().get("infrastructure")?);
        self.durable.fleet(key).or_else(of_spec)
    }
}

impl DurableRecord {
    /// A record with only an id and a creation time, for a resource about which nothing else is known.
    pub fn new(id: Uuid, created_at: Timestamp) -> Self {
        Self {
            id,
            created_at,
            protected: true,
            immutable: BTreeMap::new(),
            path: None,
            suspended: false,
            creating: false,
            deleting: false,
            suspicion: None,
        }
    }

    /// Returns the fleet itself or the fleet that it is on, if the immutable fields name it.
    pub fn fleet(&self, key: &ResourceKey) -> Option<FleetKey> {
        key.as_fleet().or_else(|| fleet_of(key, self.immutable.get("/infrastructure")?))
    }

    /// Adds the guards against deletion in `known` that `before` did not have yet.
    #[must_use]
    pub fn guarded_since(self, before: Option<&DurableRecord>, known: &DurableRecord) -> Self {
        let had = |guard: fn(&DurableRecord) -> bool| before.is_some_and(guard);
        let suspicion = known.suspicion.clone().filter(|_| !had(|before| before.suspicion.is_some()));
        Self {
            protected: self.protected || (known.protected && !had(|before| before.protected)),
            suspended: self.suspended || (known.suspended && !had(|before| before.suspended)),
            suspicion: self.suspicion.or(suspicion),
            ..self
        }
    }

    /// Whether a guard against deletion was added since the resource was recorded as `before`.
    pub fn is_guarded_since(&self, before: Option<&DurableRecord>) -> bool {
        let bare = Self { protected: false, suspended: false, suspicion: None, ..self.clone() };
        bare.clone().guarded_since(before, self) != bare
    }
}

impl CachedRecord {
    /// The record after the loss of the cache.
    pub fn lost(updated_at: Timestamp) -> Self {
        Self { updated_at, last_good: None, secrets: BTreeMap::new(), made_from: None }
    }
}

fn fleet_of(cluster: &ResourceKey, infrastructure: &Value) -> Option<FleetKey> {
    let is_there = cluster.kind.is_of_cluster();
    let fleet = infrastructure.as_str().filter(|_| is_there)?.parse().ok()?;
    Some(FleetKey { organization: cluster.organization.clone(), fleet })
}

impl Recorded {
    /// Returns the id of a resource: the recorded one, the one found on its target, or a new one.
    ///
    /// A new id is derived from the installation, the key and the number of earlier deletions of that key, so
    /// that planning twice gives the same id without writing anything.
    pub fn id_of(&self, key: &ResourceKey) -> Uuid {
        if let Some(resource) = self.resources.get(key) {
            return resource.durable.id;
        }
        // A recreated resource gets a new id, even if its retained namespace still carries the old one.
        if let (Some(id), None) = (self.remembered_ids.get(key), self.generations.get(key)) {
            return *id;
        }
        let generation = self.generations.get(key).copied().unwrap_or(0);
        let seed = format!("{}|{}|{generation}", self.installation, String::from(key.clone()));
        let digest = <sha2::Sha256 as sha2::Digest>::digest(seed.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        Uuid::new_v8(bytes)
    }

    pub fn is_new(&self) -> bool {
        self.source.is_none() && self.resources.is_empty() && self.generations.is_empty()
    }

    pub fn organizations(&self) -> impl Iterator<Item = &Identifier> {
        self.resources.organizations().map(|(organization, _)| organization)
    }
}
