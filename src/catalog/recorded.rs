//! What is remembered of earlier rounds, as plain data. The state store reads and writes it in records of its own.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::names::{Digest, FleetKey, Identifier, Json, Kind, ObjectKey, ResourceKey, SpecPath};
use crate::problem::Origin;
use crate::spec::SourceId;

/// Everything that is remembered. The default is an installation that has never applied anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recorded {
    /// The installation, from which the ids of resources are derived; nil before the first apply.
    pub installation: Uuid,
    /// The tree that was applied last.
    pub source: Option<SourceId>,
    /// The resources that were applied and not yet deleted.
    pub resources: BTreeMap<ResourceKey, RecordedResource>,
    /// How often a resource of this key was deleted, so that one made anew gets an id of its own.
    pub generations: BTreeMap<ResourceKey, u32>,
    /// The ids that targets remember of resources that are on them and not recorded, as after the registry was lost.
    pub remembered_ids: BTreeMap<ResourceKey, Uuid>,
    /// What each fleet's target holds of ours.
    pub fleets: BTreeMap<FleetKey, RecordedFleet>,
    /// Approvals that were given and not used.
    pub approvals: Vec<Approval>,
    /// Clusters that were deleted lately, for the limit on how many a fleet may lose in an hour.
    pub deletions: Vec<Deletion>,
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
