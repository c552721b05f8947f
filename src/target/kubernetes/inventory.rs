//! What the Kubernetes cluster itself remembers of our objects. It outlives the state folder, and it is how an object of
//! ours is told from one that only has a name like ours.
//!
//! It is in ConfigMaps in a namespace of our own: `inventory`, which says whose the cluster is and holds what is in no
//! namespace, and `inventory-<namespace>` for each namespace, with the Namespace itself. What is about to be made stands in
//! `intents-<number>`, that of many namespaces in one, until the namespaces' own ConfigMaps have it. None holds a secret.
//! They are replaced only as they were read, so that two that write at once are told apart. `inventory` names the others,
//! and one that a listing lacks is asked for by its name: what a listing doesn't have isn't gone.

use std::collections::btree_map::Entry::{Occupied, Vacant};
use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::AT_ONCE;
use super::api::{Api, uid, version};
use super::error::KubeError;
use crate::catalog::RecordedObject;
use crate::names::{Digest, FleetKey, ObjectKey, ResourceKey};
use crate::plan::Contest;
use crate::target::{self, marks::Marks};

/// The namespace of our own.
pub(super) const NAMESPACE: &str = "streamfleet-system";

/// The label by which the ConfigMaps are found, as a selector has it in a URL.
pub(super) const SELECTOR: &str = "streamfleet.io%2Finventory%3Dtrue";
const LABEL: &str = "streamfleet.io/inventory";

/// The ConfigMap that says whose the cluster is.
const MAIN: &str = "inventory";

/// What a person is told of where it is.
pub(super) fn place() -> String {
    format!("ConfigMap {NAMESPACE}/{MAIN}")
}

/// The key in a ConfigMap's data.
const KEY: &str = "inventory.json";

/// The version of the inventory's form. A field may be added without a new one where losing it does no harm.
const VERSION: u32 = 1;

/// How the ConfigMaps of what is about to be made are called, before their numbers.
const INTENTS: &str = "intents-";

/// How many objects one of them names. An object with the longest names that there can be takes less than 900 bytes with the
/// mark of its owner, and a ConfigMap holds 1 MiB.
const INTENTS_IN_ONE: usize = 1_000;

/// What the cluster remembers.
pub(super) struct Inventory {
    fleet: FleetKey,
    installation: Uuid,
    pub(super) resources: Marks,
    pub(super) objects: BTreeMap<ObjectKey, Entry>,
    /// The ConfigMaps as the server has them.
    saved: BTreeMap<String, Saved>,
}

/// What is remembered of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) owner: ResourceKey,
    /// What was applied; none where applying is only intended.
    #[serde(default)]
    pub(super) written: Option<Written>,
    /// The digest of the manifest that is about to be applied, or was when a crash came.
    #[serde(default)]
    pub(super) intended: Option<Digest>,
    /// The object is about to be deleted, or was when a crash came.
    #[serde(default)]
    pub(super) deleting: bool,
}

/// An object as it was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    /// The server's name for the very object.
    pub(super) uid: String,
    /// The digest of the manifest, with secrets as references.
    pub(super) applied: Digest,
    /// The digest of the set of fields that were ours then; none where that can't be told any more.
    #[serde(default)]
    pub(super) fields: Option<Digest>,
    /// What other controllers had then, so that it was applied without that; none where they had nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) left: Option<Left>,
}

/// What was left to other controllers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Left {
    /// The fields.
    pub(super) contests: Vec<Contest>,
    /// The digest of everything that others managed then. While that is the same, they still have these fields.
    pub(super) managers: Digest,
}

impl Entry {
    /// Adds what another ConfigMap says of the same object: one knows what was applied, the other what is intended.
    fn add(&mut self, other: &Entry) {
        self.written = self.written.take().or_else(|| other.written.clone());
        self.intended = self.intended.take().or_else(|| other.intended.clone());
        self.deleting |= other.deleting;
    }

    /// The object as a record has it, where it was ever applied.
    pub(super) fn recorded(&self) -> Option<RecordedObject> {
        let Written { uid, applied, .. } = self.written.clone()?;
        Some(RecordedObject { owner: self.owner.clone(), uid: Some(uid), applied, manifest: None })
    }
}

/// The content of one ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Chunk {
    version: u32,
    fleet: FleetKey,
    installation: Uuid,
    #[serde(default)]
    resources: Marks,
    #[serde(default)]
    objects: BTreeMap<ObjectKey, Entry>,
    /// In `inventory`, the names of the others that are there or are about to be.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    chunks: BTreeSet<String>,
}

/// Only the version, which is read before anything else.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Inventory {
    /// Reads the inventory; an empty one where there is none.
    pub(super) async fn load(
        api: &Api,
        fleet: &FleetKey,
        installation: Uuid,
    ) -> Result<Inventory, KubeError> {
        let maps = api.list(("v1", "ConfigMap"), Some(NAMESPACE), SELECTOR).await?;
        let mut inventory = Self::of(fleet, installation, &maps)?;
        inventory.complete(api).await?;
        Ok(inventory)
    }

    /// The inventory in these ConfigMaps.
    pub(super) fn of<'m>(
        fleet: &FleetKey,
        installation: Uuid,
        maps: impl IntoIterator<Item = &'m Value>,
    ) -> Result<Inventory, KubeError> {
        let mut inventory = Inventory {
            fleet: fleet.clone(),
            installation,
            resources: Marks::default(),
            objects: BTreeMap::new(),
            saved: BTreeMap::new(),
        };
        for map in maps {
            let name = map.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            inventory.take(name, map)?;
        }
        Ok(inventory)
    }

    /// Whether there is none.
    pub(super) fn is_absent(&self) -> bool {
        self.saved.is_empty()
    }

    /// Whether it has all that it names.
    pub(super) fn is_complete(&self) -> bool {
        self.is_absent()
            || self.saved.contains_key(MAIN) && self.named().iter().all(|name| self.saved.contains_key(name))
    }

    /// Asks for what the listing lacks, in case that it was cut short on the way.
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

    /// The ConfigMaps that `inventory` names.
    fn named(&self) -> BTreeSet<String> {
        self.saved.get(MAIN).map(|main| main.chunk.chunks.clone()).unwrap_or_default()
    }

    fn take(&mut self, name: &str, map: &Value) -> Result<(), KubeError> {
        let saved = Saved { chunk: Chunk::parse(name, map)?, metadata: metadata(map) };
        let chunk = &saved.chunk;
        if chunk.fleet != self.fleet {
            return Err(KubeError::AnotherFleet { whose: super::whose(&chunk.fleet, &self.fleet) });
        }
        if chunk.installation != self.installation {
            return Err(KubeError::AnotherInstallation);
        }
        // Whoever can write there is the cluster's owner: nothing of another organization's is believed, and nothing of
        // another namespace. What is only intended has to be borne out by the object itself.
        let organization = &self.fleet.organization;
        self.resources.add(&chunk.resources, organization);
        let intents = name.starts_with(INTENTS);
        let objects = chunk.objects.iter().filter(|(_, entry)| entry.owner.organization == *organization);
        for (key, entry) in objects.filter(|(key, _)| intents || chunk_of(key) == name) {
            match self.objects.entry(key.clone()) {
                Vacant(place) => drop(place.insert(entry.clone())),
                Occupied(mut known) => known.get_mut().add(entry),
            }
        }
        self.saved.insert(name.to_owned(), saved);
        Ok(())
    }

    /// The object as it is known here: it may have been made in another version of its API.
    pub(super) fn find(&self, key: &ObjectKey) -> Option<&ObjectKey> {
        target::find(&self.objects, key)
    }

    /// The namespaces that something was written in or that were written themselves.
    pub(super) fn namespaces(&self) -> BTreeSet<&str> {
        let written = self.objects.iter().filter(|(_, entry)| entry.written.is_some());
        let names = written.filter_map(|(key, _)| match (&key.namespace, key.kind.as_str()) {
            (Some(namespace), _) => Some(namespace.as_str()),
            (None, kind) => (kind == "Namespace").then_some(key.name.as_str()),
        });
        names.collect()
    }

    /// Writes down what differs from what the server has. What was intended goes when it is known what came of it. The
    /// ConfigMap that says whose the cluster is comes first and goes last. It names the others before they are there, and
    /// until they are gone.
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

    /// Says whose the cluster is, unless somebody else was quicker.
    async fn claim(&mut self, api: &Api, chunk: &Chunk) -> Result<(), KubeError> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        api.create(&namespace_key(NAMESPACE), &namespace).await?;
        match api.create(&config_map(MAIN), &chunk.body(MAIN, None)).await? {
            Some(map) => {
                let saved = Saved { chunk: chunk.clone(), metadata: metadata(&map) };
                self.saved.insert(MAIN.to_owned(), saved);
            }
            // Whose it is, is found out by reading it. Where it is our own, another run is writing down what it is about to do,
            // which must stay.
            None => {
                Inventory::load(api, &self.fleet, self.installation).await?;
                return Err(KubeError::Changed { attempted: "write", object: config_map(MAIN) });
            }
        }
        Ok(())
    }

    /// Everything by the ConfigMap that it belongs into, each with the marks of what it has objects of.
    fn chunks(&self) -> BTreeMap<String, Chunk> {
        let mut chunks = BTreeMap::new();
        let (mut known, mut intended) = (BTreeMap::<String, Vec<_>>::new(), Vec::new());
        // Where what is intended will be known goes without saying later.
        let mut names: BTreeSet<String> = self.objects.keys().map(chunk_of).collect();
        for (key, entry) in &self.objects {
            if entry.written.is_some() {
                let entries = known.entry(chunk_of(key)).or_default();
                entries.push((key, Entry { intended: None, ..entry.clone() }));
            }
            if entry.intended.is_some() {
                intended.push((key, Entry { written: None, deleting: false, ..entry.clone() }));
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

    fn chunk<'o>(&self, entries: impl IntoIterator<Item = (&'o ObjectKey, Entry)>) -> Chunk {
        let objects: BTreeMap<ObjectKey, Entry> =
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
        let damaged = |reason: String| KubeError::Damaged { name: name.to_owned(), reason };
        let text = map.get("data").and_then(|data| data.get(KEY)?.as_str());
        let text = text.ok_or_else(|| damaged(format!("it has no `{KEY}`")))?;
        let Versioned { version } = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        if version > VERSION {
            return Err(KubeError::Newer { name: name.to_owned(), found: version, known: VERSION });
        }
        serde_json::from_str(text).map_err(|error| damaged(error.to_string()))
    }

    fn body(&self, name: &str, version: Option<&str>) -> Value {
        // It holds strings and maps with string keys, so there is no error to pass on.
        let text = serde_json::to_string(self).unwrap_or_default();
        let labels = json!({LABEL: "true", "app.kubernetes.io/managed-by": "streamfleet"});
        let metadata =
            json!({"name": name, "namespace": NAMESPACE, "labels": labels, "resourceVersion": version});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}})
    }
}

/// A ConfigMap as the server has it.
#[derive(Clone)]
struct Saved {
    chunk: Chunk,
    metadata: Metadata,
}

/// What it takes to change the very ConfigMap that was read.
#[derive(Clone)]
struct Metadata {
    uid: String,
    version: String,
}

/// Brings one ConfigMap up to date, and gives it as it is then.
async fn write(
    api: &Api,
    name: String,
    chunk: Option<Chunk>,
    saved: Option<Saved>,
) -> Result<(String, Option<Saved>), KubeError> {
    let key = config_map(&name);
    let (chunk, map) = match (chunk, saved) {
        (Some(chunk), Some(saved)) if chunk == saved.chunk => return Ok((name, Some(saved))),
        (Some(chunk), Some(Saved { metadata, .. })) => {
            let map = api.replace(&key, &chunk.body(&name, Some(&metadata.version))).await?;
            (chunk, map)
        }
        (Some(chunk), None) => {
            let map = api.create(&key, &chunk.body(&name, None)).await?;
            (chunk, map)
        }
        (None, saved) => {
            if let Some(Saved { metadata, .. }) = saved {
                api.delete(&key, &metadata.uid).await?;
            }
            return Ok((name, None));
        }
    };
    match map {
        Some(map) => Ok((name, Some(Saved { chunk, metadata: metadata(&map) }))),
        None => Err(KubeError::Changed { attempted: "write", object: key }),
    }
}

fn metadata(map: &Value) -> Metadata {
    Metadata { uid: uid(map).unwrap_or_default().to_owned(), version: version(map).to_owned() }
}

/// The ConfigMap that an object is named in.
fn chunk_of(key: &ObjectKey) -> String {
    match (&key.namespace, key.kind.as_str()) {
        (Some(namespace), _) => format!("{MAIN}-{namespace}"),
        (None, "Namespace") => format!("{MAIN}-{}", key.name),
        (None, _) => MAIN.to_owned(),
    }
}

fn config_map(name: &str) -> ObjectKey {
    ObjectKey {
        namespace: Some(NAMESPACE.to_owned()),
        kind: "ConfigMap".to_owned(),
        name: name.to_owned(),
        api_version: "v1".to_owned(),
    }
}

/// The key of a namespace.
pub(super) fn namespace_key(name: &str) -> ObjectKey {
    ObjectKey {
        namespace: None,
        kind: "Namespace".to_owned(),
        name: name.to_owned(),
        api_version: "v1".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Kind;
    use crate::plan::ResourceMark;

    fn empty() -> Inventory {
        Inventory {
            fleet: "acme/eu".to_owned().try_into().unwrap(),
            installation: Uuid::nil(),
            resources: Marks::default(),
            objects: BTreeMap::new(),
            saved: BTreeMap::new(),
        }
    }

    /// An object with the longest names that there can be, in a namespace of its own.
    fn key(number: usize) -> ObjectKey {
        ObjectKey {
            namespace: Some(format!("{number:063}")),
            kind: "K".repeat(63),
            name: "n".repeat(253),
            api_version: format!("{}/v1beta2", "g".repeat(100)),
        }
    }

    #[test]
    fn what_is_about_to_be_made_stands_together_and_is_read_back() {
        let mut inventory = empty();
        for number in 0..=INTENTS_IN_ONE {
            let owner = ResourceKey::new(Kind::Cluster, &"acme".parse().unwrap(), format!("c-{number:030}"));
            let mark = ResourceMark { id: Uuid::nil(), protected: true };
            inventory.resources.announce([(owner.clone(), mark)].into());
            let intended = Some(Digest::of("manifest"));
            let entry = Entry { owner, written: None, intended, deleting: false };
            inventory.objects.insert(key(number), entry);
        }
        // One was there before, and is made anew.
        let written =
            Written { uid: "u".to_owned(), applied: Digest::of("before"), fields: None, left: None };
        inventory.objects.entry(key(7)).and_modify(|entry| {
            entry.written = Some(written);
            entry.deleting = true;
        });

        let chunks = inventory.chunks();
        let names: Vec<&str> = chunks.keys().map(String::as_str).collect();
        assert_eq!(names, ["intents-0", "intents-1", "inventory", &format!("inventory-{:063}", 7)]);
        // Each says its part, so that neither is believed once it is overtaken.
        for (name, chunk) in &chunks {
            let is_intent = name.starts_with(INTENTS);
            let only_its_part = |entry: &Entry| match is_intent {
                true => entry.intended.is_some() && entry.written.is_none() && !entry.deleting,
                false => entry.intended.is_none() && entry.written.is_some(),
            };
            assert!(chunk.objects.values().all(only_its_part), "{name}");
        }
        let longest = chunks.values().map(|chunk| serde_json::to_string(chunk).unwrap().len()).max();
        assert!(longest < Some(1 << 20), "a ConfigMap holds 1 MiB, and not {longest:?} bytes");

        let mut again = empty();
        for (name, chunk) in chunks {
            again.take(&name, &chunk.body(&name, None)).unwrap();
        }
        assert!(again.objects == inventory.objects && again.resources == inventory.resources);
    }
}
