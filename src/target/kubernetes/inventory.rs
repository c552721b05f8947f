//! The inventory on a Kubernetes cluster. It survives the loss of the state folder, and it decides whether an
//! object is ours; a name doesn't.
//!
//! It consists of ConfigMaps in our own namespace. `inventory` names the owner of the cluster and has the
//! cluster-scoped objects. `inventory-00` to `inventory-3f` have the namespaces with their objects, several
//! namespaces each. `inventory-<namespace>` has a namespace's topics and users, which can be thousands.
//! `intents-<number>` has what is about to be written, for many namespaces at once, until it moves to the
//! other ConfigMaps. None has a secret. Each is replaced only at the version that was read, so that concurrent
//! writers conflict. `inventory` names the others, and one that is missing from a list is read by name:
//! missing from a list is not the same as gone.

use std::collections::btree_map::Entry::{Occupied, Vacant};
use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::AT_ONCE;
use super::api::{Api, KindRef, uid, version};
use super::error::KubeError;
use super::fields::trimmed;
use super::untrusted;
use crate::catalog::RecordedObject;
use crate::names::{Digest, FleetKey, Json, ObjectKey, ResourceKey, is_deceptive, is_topic_name};
use crate::plan::Contest;
use crate::target::{self, marks::InventoryMarks};

pub(super) const NAMESPACE: &str = crate::plan::preflight::SYSTEM_NAMESPACE;

/// The label selector of the ConfigMaps, encoded for a URL.
pub(super) const SELECTOR: &str = "streamfleet.io%2Finventory%3Dtrue";
const LABEL: &str = "streamfleet.io/inventory";

const MAIN: &str = "inventory";

pub(super) fn place() -> String {
    format!("ConfigMap {NAMESPACE}/{MAIN}")
}

const KEY: &str = "inventory.json";

/// The version of the format. A new optional field needs no new version if losing it does no harm.
const VERSION: u32 = 2;

const INTENTS: &str = "intents-";

/// The longest manager name or field path that is accepted, in bytes.
const LONGEST_CONTEST: usize = 512;

/// How many ConfigMaps the namespaces share. Few make a first apply cheap: a thousand namespaces take 64 calls. Many
/// make a change cheap, because a changed ConfigMap is written as a whole. With a thousand namespaces, the fullest
/// has about 30. Those would need 35 objects each with the longest possible names to exceed its 1 MiB.
const SHARED: u8 = 64;

/// How many objects a ConfigMap of intents has. An object with the longest possible names takes less than 900
/// bytes with its owner's mark, and a ConfigMap holds 1 MiB.
const INTENTS_IN_ONE: usize = 1_000;

#[derive(Clone)]
pub(super) struct Inventory {
    fleet: FleetKey,
    installation: Uuid,
    pub(super) resources: InventoryMarks,
    pub(super) objects: BTreeMap<ObjectKey, ObjectEntry>,
    saved: BTreeMap<String, SavedConfigMap>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ObjectEntry {
    pub(super) owner: ResourceKey,
    /// The object as it was last applied. None when applying is only intended.
    #[serde(default)]
    pub(super) written: Option<AppliedObject>,
    /// The digest of the manifest that is about to be applied, or was when the process crashed.
    #[serde(default)]
    pub(super) intended: Option<Digest>,
    /// The UID of the object that is about to be taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) adopts: Option<String>,
    /// The object is about to be deleted, or was when the process crashed.
    #[serde(default)]
    pub(super) deleting: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AppliedObject {
    pub(super) uid: String,
    /// The digest of the manifest, with secrets as references.
    pub(super) applied: Digest,
    /// The digest of the set of our fields at that time. None when it is unknown.
    #[serde(default)]
    pub(super) fields: Option<Digest>,
    /// The fields that other controllers had, which the apply left out. None when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) left: Option<Left>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Left {
    pub(super) contests: Vec<Contest>,
    /// The digest of all fields that others managed. While it is unchanged, they still have these fields.
    pub(super) managers: Digest,
}

impl ObjectEntry {
    /// Merges another ConfigMap's entry of the same object: one has what was applied, the other what is
    /// intended.
    fn add(&mut self, other: &ObjectEntry) {
        self.written = self.written.take().or_else(|| other.written.clone());
        self.intended = self.intended.take().or_else(|| other.intended.clone());
        self.adopts = self.adopts.take().or_else(|| other.adopts.clone());
        self.deleting |= other.deleting;
    }

    pub(super) fn recorded(&self) -> Option<RecordedObject> {
        let AppliedObject { uid, applied, .. } = self.written.clone()?;
        Some(RecordedObject { owner: self.owner.clone(), uid: Some(uid), applied, manifest: None })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Chunk {
    version: u32,
    fleet: FleetKey,
    installation: Uuid,
    #[serde(default)]
    resources: InventoryMarks,
    #[serde(default)]
    objects: BTreeMap<ObjectKey, ObjectEntry>,
    /// In `inventory`, the names of the other ConfigMaps, including those about to be created.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    chunks: BTreeSet<String>,
}

#[derive(Deserialize)]
struct ConfigMapVersion {
    version: u32,
}

impl Inventory {
    pub(super) async fn load(
        api: &Api,
        fleet: &FleetKey,
        installation: Uuid,
    ) -> Result<Inventory, KubeError> {
        let selector = format!("labelSelector={SELECTOR}");
        let maps = api.list(KindRef::core("ConfigMap"), Some(NAMESPACE), &selector, |map| {
            Some(Json::from(trimmed(map)))
        });
        let maps = maps.await?;
        let mut inventory = Self::of(fleet, installation, maps.iter().map(Json::value))?;
        inventory.complete(api).await?;
        Ok(inventory)
    }

    pub(super) fn of(
        fleet: &FleetKey,
        installation: Uuid,
        maps: impl IntoIterator<Item = Value>,
    ) -> Result<Inventory, KubeError> {
        let mut inventory = Inventory {
            fleet: fleet.clone(),
            installation,
            resources: InventoryMarks::default(),
            objects: BTreeMap::new(),
            saved: BTreeMap::new(),
        };
        for map in maps {
            let name = map.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            inventory.take(name, &map)?;
        }
        Ok(inventory)
    }

    pub(super) fn is_absent(&self) -> bool {
        self.saved.is_empty()
    }

    /// Whether all ConfigMaps that it names were read.
    pub(super) fn is_complete(&self) -> bool {
        self.is_absent()
            || self.saved.contains_key(MAIN) && self.named().iter().all(|name| self.saved.contains_key(name))
    }

    /// Whether the server has exactly these ConfigMaps, in the versions that were read.
    pub(super) async fn is_current(&self, api: &Api) -> Result<bool, KubeError> {
        let selector = format!("labelSelector={SELECTOR}");
        let maps = api
            .list_metadata(KindRef::core("ConfigMap"), Some(NAMESPACE), &selector, |map| Some(trimmed(map)));
        let maps = maps.await?;
        let is_same = |map: &Value| {
            let name = map.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            self.saved.get(name).is_some_and(|saved| saved.metadata == metadata(map))
        };
        Ok(maps.len() == self.saved.len() && maps.iter().all(is_same))
    }

    /// Reads ConfigMaps that the list lacks by name, in case the list was incomplete.
    async fn complete(&mut self, api: &Api) -> Result<(), KubeError> {
        self.ask_for(api, MAIN).await?;
        for name in self.named() {
            self.ask_for(api, &name).await?;
        }
        Ok(())
    }

    async fn ask_for(&mut self, api: &Api, name: &str) -> Result<(), KubeError> {
        match self.saved.contains_key(name) {
            true => Ok(()),
            false => match api.get(&config_map(name)).await? {
                Some(map) => self.take(name, &map),
                None => Ok(()),
            },
        }
    }

    fn named(&self) -> BTreeSet<String> {
        self.saved.get(MAIN).map(|main| main.chunk.chunks.clone()).unwrap_or_default()
    }

    fn take(&mut self, name: &str, map: &Value) -> Result<(), KubeError> {
        let saved = SavedConfigMap { chunk: Chunk::parse(name, map)?, metadata: metadata(map) };
        let chunk = &saved.chunk;
        if chunk.fleet != self.fleet {
            return Err(KubeError::AnotherFleet { whose: super::whose(&chunk.fleet, &self.fleet) });
        }
        if chunk.installation != self.installation {
            return Err(KubeError::AnotherInstallation);
        }
        // The cluster's owner can write these ConfigMaps. Entries of other organizations and those that belong
        // into another ConfigMap are ignored. Intents may name any object; the object itself has to confirm them.
        let organization = &self.fleet.organization;
        self.resources.add(&chunk.resources, organization);
        let intents = name.starts_with(INTENTS);
        let objects = chunk.objects.iter().filter(|(_, entry)| entry.owner.organization == *organization);
        for (key, entry) in objects.filter(|(key, entry)| intents || chunk_of(key, &entry.owner) == name) {
            match self.objects.entry(key.clone()) {
                Vacant(place) => drop(place.insert(entry.clone())),
                Occupied(mut known) => known.get_mut().add(entry),
            }
        }
        self.saved.insert(name.to_owned(), saved);
        Ok(())
    }

    /// Finds the key of an object, which may have been created in another version of its API.
    pub(super) fn find(&self, key: &ObjectKey) -> Option<&ObjectKey> {
        target::find(&self.objects, key)
    }

    pub(super) fn namespaces(&self) -> BTreeSet<&str> {
        let written = self.objects.iter().filter(|(_, entry)| entry.written.is_some());
        let names = written.filter_map(|(key, _)| match (&key.namespace, key.kind.as_str()) {
            (Some(namespace), _) => Some(namespace.as_str()),
            (None, kind) => (kind == "Namespace").then_some(key.name.as_str()),
        });
        names.collect()
    }

    /// Saves what changed. Intents are removed once their outcome is known. `inventory`, which names the
    /// owner, is created first and deleted last. It names the other ConfigMaps before they exist and until
    /// they are gone.
    pub(super) async fn save(&mut self, api: &Api) -> Result<(), KubeError> {
        let mut chunks = self.chunks();
        let nothing = chunks.iter().all(|(_, chunk)| chunk.objects.is_empty());
        if !nothing && !self.saved.contains_key(MAIN) {
            self.claim(api, &chunks[MAIN]).await?;
        }
        let names: BTreeSet<String> = self.saved.keys().chain(chunks.keys()).cloned().collect();
        let (main, others): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| *name == MAIN);
        let (intents, namespaces): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|name| name.starts_with(INTENTS));
        let named = self.named();
        let adds = |main: &Chunk| !nothing && !main.chunks.is_subset(&named);
        let stages = match chunks.get_mut(MAIN).filter(|main| adds(main)) {
            Some(adding) => {
                adding.chunks.extend(named);
                [main, namespaces, intents]
            }
            None => [namespaces, intents, main],
        };
        for names in stages {
            let write = |name: String| {
                let chunk = chunks.get(&name).filter(|_| !nothing).cloned();
                let saved = self.saved.get(&name).cloned();
                write(api, name, chunk, saved)
            };
            let writes: Vec<_> = names.into_iter().map(write).collect();
            let written: Vec<_> = stream::iter(writes).buffer_unordered(AT_ONCE).try_collect().await?;
            for (name, saved) in written {
                match saved {
                    Some(saved) => drop(self.saved.insert(name, saved)),
                    None => drop(self.saved.remove(&name)),
                }
            }
        }
        Ok(())
    }

    /// Claims the cluster for the fleet, unless another writer was first.
    async fn claim(&mut self, api: &Api, chunk: &Chunk) -> Result<(), KubeError> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        api.create(&namespace_key(NAMESPACE), &namespace).await?;
        match api.create(&config_map(MAIN), &chunk.body(MAIN, None)).await? {
            Some(map) => {
                let saved = SavedConfigMap { chunk: chunk.clone(), metadata: metadata(&map) };
                self.saved.insert(MAIN.to_owned(), saved);
            }
            // Loading reports a foreign owner. If the owner is this fleet, another run is recording its
            // intent, which must stay.
            None => {
                Inventory::load(api, &self.fleet, self.installation).await?;
                return Err(KubeError::Changed { attempted: "write", object: config_map(MAIN) });
            }
        }
        Ok(())
    }

    /// Distributes all entries to their ConfigMaps, each with the marks of its owners.
    fn chunks(&self) -> BTreeMap<String, Chunk> {
        let mut chunks = BTreeMap::new();
        let (mut known, mut intended) = (BTreeMap::<String, Vec<_>>::new(), Vec::new());
        // Includes the ConfigMaps that intents will move to, so that `inventory` needn't be written again
        // then.
        let mut names: BTreeSet<String> =
            self.objects.iter().map(|(key, entry)| chunk_of(key, &entry.owner)).collect();
        for (key, entry) in &self.objects {
            if entry.written.is_some() {
                let entries = known.entry(chunk_of(key, &entry.owner)).or_default();
                entries.push((key, ObjectEntry { intended: None, ..entry.clone() }));
            }
            if entry.intended.is_some() {
                intended.push((key, ObjectEntry { written: None, deleting: false, ..entry.clone() }));
            }
        }
        chunks.extend(known.into_iter().map(|(name, entries)| (name, self.chunk(entries))));
        for (number, entries) in intended.chunks(INTENTS_IN_ONE).enumerate() {
            chunks.insert(format!("{INTENTS}{number}"), self.chunk(entries.to_vec()));
        }
        names.extend(chunks.keys().cloned());
        names.remove(MAIN);
        chunks.entry(MAIN.to_owned()).or_insert_with(|| self.chunk([])).chunks = names;
        chunks
    }

    fn chunk<'o>(&self, entries: impl IntoIterator<Item = (&'o ObjectKey, ObjectEntry)>) -> Chunk {
        let objects: BTreeMap<ObjectKey, ObjectEntry> =
            entries.into_iter().map(|(key, entry)| (key.clone(), entry)).collect();
        let resources = self.resources.of(objects.values().map(|entry| &entry.owner));
        Chunk {
            version: VERSION,
            fleet: self.fleet.clone(),
            installation: self.installation,
            resources,
            objects,
            chunks: BTreeSet::new(),
        }
    }
}

impl Chunk {
    fn parse(name: &str, map: &Value) -> Result<Chunk, KubeError> {
        // The parser's message may quote the content.
        let damaged =
            |reason: String| KubeError::Damaged { name: name.to_owned(), reason: KubeError::line(&reason) };
        let text = map.get("data").and_then(|data| data.get(KEY)?.as_str());
        let text = text.ok_or_else(|| damaged(format!("it has no `{KEY}`")))?;
        let ConfigMapVersion { version } =
            serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        if version > VERSION {
            return Err(KubeError::Newer { name: name.to_owned(), found: version, known: VERSION });
        }
        if version < VERSION {
            // Entries in other places would be ignored, and then written over.
            return Err(KubeError::Older { name: name.to_owned(), found: version, known: VERSION });
        }
        let chunk: Chunk = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        match chunk.is_plausible() {
            true => Ok(chunk),
            false => Err(damaged("it contains objects that streamfleet can't have created".to_owned())),
        }
    }

    /// Whether all names are ones that objects and resources can have, so that plans can show them safely.
    fn is_plausible(&self) -> bool {
        let fits = |key: &ResourceKey| match key.within_cluster() {
            Some((cluster, name)) => untrusted::is_dns(&cluster.name) && is_topic_name(name),
            None => untrusted::is_dns(&key.name),
        };
        let told = |text: &str| text.len() <= LONGEST_CONTEST && !text.contains(is_deceptive);
        let is_told = |it: &Contest| told(&it.manager) && told(&it.field);
        let contests = |entry: &ObjectEntry| {
            let left = entry.written.iter().filter_map(|written| written.left.as_ref());
            left.flat_map(|left| &left.contests).all(is_told)
        };
        self.resources.all().keys().all(fits)
            && self
                .objects
                .iter()
                .all(|(key, entry)| fits(&entry.owner) && untrusted::is_object_key(key) && contests(entry))
    }

    fn body(&self, name: &str, version: Option<&str>) -> Value {
        // All fields are strings and maps with string keys, so serialization can't fail.
        let text = serde_json::to_string(self).unwrap_or_default();
        let labels = json!({LABEL: "true", "app.kubernetes.io/managed-by": "streamfleet"});
        let metadata =
            json!({"name": name, "namespace": NAMESPACE, "labels": labels, "resourceVersion": version});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}})
    }
}

#[derive(Clone)]
struct SavedConfigMap {
    chunk: Chunk,
    metadata: ConfigMapPreconditions,
}

#[derive(Clone, PartialEq, Eq)]
struct ConfigMapPreconditions {
    uid: String,
    version: String,
}

/// Creates, replaces or deletes one ConfigMap, and returns its new version.
async fn write(
    api: &Api,
    name: String,
    chunk: Option<Chunk>,
    saved: Option<SavedConfigMap>,
) -> Result<(String, Option<SavedConfigMap>), KubeError> {
    let key = config_map(&name);
    let (chunk, map) = match (chunk, saved) {
        (Some(chunk), Some(saved)) if chunk == saved.chunk => return Ok((name, Some(saved))),
        (Some(chunk), Some(SavedConfigMap { metadata, .. })) => {
            let map = api.replace(&key, &chunk.body(&name, Some(&metadata.version))).await?;
            (chunk, map)
        }
        (Some(chunk), None) => {
            let map = api.create(&key, &chunk.body(&name, None)).await?;
            (chunk, map)
        }
        (None, saved) => {
            if let Some(SavedConfigMap { metadata, .. }) = saved {
                api.delete(&key, &metadata.uid).await?;
            }
            return Ok((name, None));
        }
    };
    match map {
        Some(map) => Ok((name, Some(SavedConfigMap { chunk, metadata: metadata(&map) }))),
        None => Err(KubeError::Changed { attempted: "write", object: key }),
    }
}

fn metadata(map: &Value) -> ConfigMapPreconditions {
    ConfigMapPreconditions { uid: uid(map).unwrap_or_default().to_owned(), version: version(map).to_owned() }
}

/// The ConfigMap that has an object. It depends on nothing else, so that no object ever moves: a run that is
/// killed between two writes can't leave an outdated entry that is believed.
pub(super) fn chunk_of(key: &ObjectKey, owner: &ResourceKey) -> String {
    let namespace = match (&key.namespace, key.kind.as_str()) {
        (Some(namespace), _) => namespace,
        (None, "Namespace") => &key.name,
        (None, _) => return MAIN.to_owned(),
    };
    if owner.kind.is_on_cluster() {
        return format!("{MAIN}-{namespace}");
    }
    let digest = Digest::of(namespace);
    let first = digest.as_str().get(..2).and_then(|text| u8::from_str_radix(text, 16).ok());
    format!("{MAIN}-{:02x}", first.unwrap_or_default() % SHARED)
}

fn config_map(name: &str) -> ObjectKey {
    ObjectKey {
        namespace: Some(NAMESPACE.to_owned()),
        kind: "ConfigMap".to_owned(),
        name: name.to_owned(),
        api_version: "v1".to_owned(),
    }
}

pub(super) fn namespace_key(name: &str) -> ObjectKey {
    ObjectKey {
        namespace: None,
        kind: "Namespace".to_owned(),
        name: name.to_owned(),
        api_version: "v1".to_owned(),
    }
}

#[cfg(test)]
mod tests;
