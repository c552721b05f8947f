//! What is remembered of earlier rounds, as plain data. The state store reads and writes it in records of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::immutable::immutable_fields;
use crate::names::{Digest, FleetKey, Identifier, Json, Kind, ObjectKey, ResourceKey, SpecPath};
use crate::problem::Origin;
use crate::spec::{SourceId, Spec};

/// Everything that is remembered. The default is an installation that has never applied anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recorded {
    /// The installation, from which the ids of resources are derived; nil before the first apply.
    pub installation: Uuid,
    /// The tree that was applied last.
    pub source: Option<SourceId>,
    /// The resources that were applied and not yet deleted.
    pub resources: Records,
    /// How often a resource of this key was deleted, so that one made anew gets an id of its own.
    pub generations: BTreeMap<ResourceKey, u32>,
    /// The ids that targets remember of resources that are on them and not recorded, as after the registry was lost.
    pub remembered_ids: BTreeMap<ResourceKey, Uuid>,
    /// The resources that a call removed from the specs: that none names them any more is no mistake. A running process knows of them,
    /// and nobody writes it down.
    pub removed: BTreeSet<ResourceKey>,
    /// What each fleet's target holds of ours.
    pub fleets: BTreeMap<FleetKey, RecordedFleet>,
    /// Approvals that were given and not used.
    pub approvals: Vec<Approval>,
    /// Clusters that were deleted lately, for the limit on how many a fleet may lose in an hour.
    pub deletions: Vec<Deletion>,
}

/// Resources as they were last applied, by key. Clones share them until one of them is changed.
#[derive(Clone, Default)]
pub struct Records(Arc<Shared>);

#[derive(Default)]
struct Shared {
    records: BTreeMap<ResourceKey, RecordedResource>,
    /// A digest that was made of them, with what else went into it.
    digest: Mutex<Option<(Vec<u8>, Digest)>>,
}

impl Records {
    /// The digest of the records with something else, made when it is first asked for. It must follow from both alone.
    pub fn digest_with(&self, other: Vec<u8>, make: impl FnOnce(&[u8]) -> Digest) -> Digest {
        // Only whole values are put in.
        let mut known = self.0.digest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, digest)) = known.as_ref().filter(|(of, _)| *of == other) {
            return digest.clone();
        }
        let digest = make(&other);
        *known = Some((other, digest.clone()));
        digest
    }
}

impl Deref for Records {
    type Target = BTreeMap<ResourceKey, RecordedResource>;
    fn deref(&self) -> &Self::Target {
        &self.0.records
    }
}

impl DerefMut for Records {
    fn deref_mut(&mut self) -> &mut Self::Target {
        let shared = Arc::make_mut(&mut self.0);
        // It was that of the records as they were.
        *shared.digest.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        &mut shared.records
    }
}

impl Clone for Shared {
    fn clone(&self) -> Self {
        Self { records: self.records.clone(), digest: Mutex::default() }
    }
}

impl From<BTreeMap<ResourceKey, RecordedResource>> for Records {
    fn from(records: BTreeMap<ResourceKey, RecordedResource>) -> Self {
        Self(Arc::new(Shared { records, digest: Mutex::default() }))
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = (&'a ResourceKey, &'a RecordedResource);
    type IntoIter = std::collections::btree_map::Iter<'a, ResourceKey, RecordedResource>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.records.iter()
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.records == other.0.records
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.records.fmt(f)
    }
}

/// A resource as it was when it was last applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedResource {
    /// Its id, for life.
    pub id: Uuid,
    /// When it was first applied.
    pub created_at: Timestamp,
    /// When its spec was last applied with a change.
    pub updated_at: Timestamp,
    /// Whether it may be deleted: the protection that was last applied. What is unknown is protected.
    pub protected: bool,
    /// The fields that can't change, by JSON pointer, as they were first applied.
    pub immutable: BTreeMap<String, Value>,
    /// The spec that was last applied; none when the cache was lost.
    pub last_good: Option<LastGood>,
    /// The file that it stood in, which outlives a lost cache; none in records of versions that didn't keep it.
    #[serde(default)]
    pub path: Option<SpecPath>,
    /// Whether `suspend` was last true in its document. What is suspended isn't deleted.
    #[serde(default)]
    pub suspended: bool,
    /// Its secrets, by field, as they were last applied.
    pub secrets: BTreeMap<String, SecretMark>,
    /// What its objects were made from when all of them were last as they should be; none where it has none, or where
    /// that isn't known.
    #[serde(default)]
    pub made_from: Option<MadeFrom>,
    /// Its creation has begun, and not all of its objects are known to be there. It is recorded all the same, so that
    /// what was made of it is deleted by the rules that hold for everything.
    #[serde(default)]
    pub creating: bool,
    /// Its deletion has begun.
    pub deleting: bool,
    /// Why it looked like a mistake when documents ceased to name it, as the end of a sentence. It stays until they name
    /// it again or its deletion is approved: what was seen once may not be there to be seen in the next round.
    #[serde(default)]
    pub suspicion: Option<String>,
}

/// What the objects of a resource follow from beside its own spec, so that the cause of a change can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MadeFrom {
    /// The version of the software that rendered them.
    pub software: String,
    /// The digest of the installation's settings that manifests depend on.
    pub settings: Digest,
    /// What the resource refers to, directly or not, each with the digest of its spec and secrets.
    pub references: BTreeMap<ResourceKey, Digest>,
}

/// A spec that was applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LastGood {
    /// The spec, with secrets reduced to a trace.
    pub spec: Json,
    /// Where it stood.
    pub origin: Origin,
    /// What follows from the spec, once somebody asked.
    #[serde(skip)]
    #[schemars(skip)]
    typed: Typed,
}

impl LastGood {
    /// A spec as a record has it, and where it stood.
    pub fn new(spec: Json, origin: Origin) -> Self {
        Self { spec, origin, typed: Typed::default() }
    }

    /// The spec as a type, which is read once for all clones of a record.
    pub fn typed(&self, kind: Kind) -> Arc<TypedSpec> {
        let typed = self.typed.0.get_or_init(|| Arc::new(TypedSpec::read(kind, &self.spec)));
        // Somebody may have put another spec here.
        let is_of_this = typed.kind == kind && typed.text == self.spec;
        if is_of_this { Arc::clone(typed) } else { Arc::new(TypedSpec::read(kind, &self.spec)) }
    }
}

/// What follows from a spec that was applied.
#[derive(Clone, Default)]
struct Typed(Arc<OnceLock<Arc<TypedSpec>>>);

/// It follows from the rest.
impl PartialEq for Typed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A recorded spec as a type.
pub struct TypedSpec {
    kind: Kind,
    /// As it is recorded.
    text: Json,
    /// None where this version can't read it.
    pub spec: Option<Spec>,
    written: OnceLock<Written>,
}

impl TypedSpec {
    fn read(kind: Kind, text: &Json) -> Self {
        let (text, spec) = (text.clone(), Spec::from_record(kind, text).ok());
        Self { kind, text, spec, written: OnceLock::new() }
    }
}

/// A spec as this version records it.
#[derive(Clone)]
pub struct Written {
    /// All of it, with secrets reduced to a trace.
    pub spec: Json,
    /// What it says in the fields that can't change, by JSON pointer.
    pub immutable: Arc<BTreeMap<String, Value>>,
}

impl Written {
    /// A resource's spec as it would be recorded. Most specs are as they were last applied, and of those it is known.
    pub fn of(key: &ResourceKey, spec: &Spec, recorded: Option<&RecordedResource>) -> Self {
        let write = || {
            let value = spec.redacted();
            Self { spec: Json::from(&value), immutable: Arc::new(immutable_fields(key.kind, &value)) }
        };
        let applied = recorded.and_then(|record| record.last_good.as_ref()).map(|good| good.typed(key.kind));
        match applied.filter(|applied| applied.spec.as_ref().is_some_and(|applied| applied.is_same(spec))) {
            Some(applied) => {
                let written = applied.written.get_or_init(|| {
                    let written = write();
                    // Usually it is the very text, which is shared then.
                    let is_text = written.spec == applied.text;
                    if is_text { Self { spec: applied.text.clone(), ..written } } else { written }
                });
                written.clone()
            }
            None => write(),
        }
    }
}

/// The trace of a secret: enough to see that it changed, not enough to learn it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretMark {
    /// The keyed fingerprint of the value; none where it could not be opened.
    pub fingerprint: Option<String>,
    /// The digest of the sealed form; none where the secret was not sealed.
    pub sealed: Option<Digest>,
}

/// What a fleet's target holds of ours, as it was last seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedFleet {
    /// When the target was last seen; none when it never was.
    pub observed_at: Option<Timestamp>,
    /// The objects that we made or began to make there.
    pub objects: BTreeMap<ObjectKey, RecordedObject>,
}

/// An object that we made or began to make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedObject {
    /// The resource that it was made for.
    pub owner: ResourceKey,
    /// The target's own name for this very object; none while its making is only intended.
    pub uid: Option<String>,
    /// The digest of the manifest that was applied, with secrets as references.
    pub applied: Digest,
    /// That manifest; none when the cache was lost.
    pub manifest: Option<Json>,
}

/// A person's word that one fleet's guarded steps may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// The fleet.
    pub fleet: FleetKey,
    /// The hash of the steps, as the plan printed it.
    pub id: String,
    /// Who said so.
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// A cluster that was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deletion {
    /// The fleet that lost it.
    pub fleet: FleetKey,
    /// The cluster.
    pub cluster: ResourceKey,
    /// When its deletion began.
    pub at: Timestamp,
}

impl RecordedResource {
    /// The file that it stood in when it was last seen, where that is known.
    pub fn stood_in(&self) -> Option<&SpecPath> {
        self.path.as_ref().or(self.last_good.as_ref().map(|last_good| &last_good.origin.path))
    }

    /// The fleet that it is, or is on; none for what is on none. The fields that can't change outlive a lost cache, so they
    /// are asked first.
    pub fn fleet(&self, key: &ResourceKey) -> Option<FleetKey> {
        if key.kind != Kind::Cluster {
            return key.as_fleet();
        }
        let fleet = match self.immutable.get("/infrastructure").and_then(Value::as_str) {
            Some(fleet) => fleet.parse(),
            None => self.last_good.as_ref()?.spec.value().get("infrastructure")?.as_str()?.parse(),
        };
        Some(FleetKey { organization: key.organization.clone(), fleet: fleet.ok()? })
    }
}

impl Recorded {
    /// The id of a resource: the recorded one, the one that its target remembers, or the one that it gets when it is first
    /// applied.
    ///
    /// It is derived from the installation, the key and how often that key was deleted, so that planning twice gives
    /// the same id without anything being written.
    pub fn id_of(&self, key: &ResourceKey) -> Uuid {
        if let Some(resource) = self.resources.get(key) {
            return resource.id;
        }
        // What was deleted here and is made anew gets another id, though its namespace may have been kept with a mark.
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

    /// Whether nothing was ever applied.
    pub fn is_new(&self) -> bool {
        self.source.is_none() && self.resources.is_empty() && self.generations.is_empty()
    }

    /// The organizations that are known from earlier rounds.
    pub fn organizations(&self) -> impl Iterator<Item = &Identifier> {
        self.resources.keys().map(|key| &key.organization)
    }
}
