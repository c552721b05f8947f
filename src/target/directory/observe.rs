use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};

use super::inventory::{FILE, FileEntry, Inventory, ManifestFile};
use super::look::PathContent;
use super::{DirectoryTarget, FolderLook, FolderView, layout, yaml};
use crate::catalog::{RecordedFleet, RecordedObject};
use crate::names::{ObjectKey, ResourceKey};
use crate::plan::{ObservedFleet, ObservedObject, Reach, ResourceMark};
use crate::render::FleetManifests;
use crate::target::TargetError;

impl DirectoryTarget {
    pub(in crate::target) fn marks(&self) -> Result<BTreeMap<ResourceKey, ResourceMark>, TargetError> {
        self.load().map(|inventory| inventory.resources.all()).map_err(|error| self.publish_error(error))
    }
}

impl FolderLook<'_> {
    /// Observes the folder. Any read error makes the whole fleet unreachable, because unread is not the same
    /// as empty.
    pub(in crate::target) fn observe(
        self,
        recorded: &RecordedFleet,
        desired: Option<&FleetManifests>,
    ) -> (ObservedFleet, Option<FolderView>) {
        let target = self.target();
        match self.look_at_all(recorded, desired) {
            Ok((fleet, view)) => (fleet, Some(view)),
            Err(error) => {
                let reach = target.publish_error(error).reach(recorded.observed_at);
                (ObservedFleet::unknown(reach), None)
            }
        }
    }

    fn look_at_all(
        mut self,
        recorded: &RecordedFleet,
        desired: Option<&FleetManifests>,
    ) -> Result<(ObservedFleet, FolderView), TargetError> {
        let inventory = self.inventory()?;
        let mut fleet = ObservedFleet {
            reach: Reach::Reached,
            cluster: None,
            inventory: BTreeMap::new(),
            marks: inventory.resources.all(),
            objects: BTreeMap::new(),
            undecided: BTreeSet::new(),
            conditions: Vec::new(),
            kept: BTreeMap::new(),
            health: None,
        };
        for (key, entry) in &inventory.objects {
            let known = recorded.objects.get(key);
            match self.current(entry)? {
                Some((_, PathContent::Absent)) if entry.deleting => {}
                Some((file, found)) => {
                    let recorded = known.filter(|known| known.applied == file.applied);
                    let recorded = recorded.and_then(|known| known.manifest.clone());
                    // After the loss of the cache, an object that is still rendered the same needn't be parsed.
                    let manifest = recorded.or_else(|| {
                        let rendered = desired?.get(key).filter(|it| it.digest() == file.applied)?;
                        Some(rendered.body.clone())
                    });
                    let is_known = manifest.is_some() && found.has(&file.content);
                    let found = if is_known { found } else { self.with_bytes(&file.path, found)? };
                    let uid = Some(file.content.to_string());
                    let object = RecordedObject {
                        owner: entry.owner.clone(),
                        uid,
                        applied: file.applied.clone(),
                        manifest,
                    };
                    fleet.objects.extend(self.ours(key, &file, found, &object)?.map(|it| (key.clone(), it)));
                    fleet.inventory.insert(key.clone(), object);
                }
                None => drop(intended(entry).map(|object| fleet.inventory.insert(key.clone(), object))),
            }
        }
        let wanted = desired.into_iter().flat_map(BTreeMap::keys);
        let others: BTreeSet<&ObjectKey> = wanted.chain(recorded.objects.keys()).collect();
        for key in others {
            if !fleet.objects.contains_key(key) {
                let foreign = self.foreign(&inventory, key)?;
                fleet.objects.extend(foreign.map(|object| (key.clone(), object)));
            }
        }
        if inventory.is_empty() && self.target().inventory()?.is_none() {
            let is_file = |key| fleet.objects.get(key).is_some_and(|there| there.obstacle.is_none());
            let written = recorded.objects.iter().filter(|(_, known)| known.uid.is_some());
            let known = written.filter(|&(key, _)| is_file(key)).count() as u64;
            if known > 0 {
                return Err(TargetError::MissingInventory {
                    path: self.target().full(Utf8Path::new(FILE)),
                    known,
                });
            }
        }
        Ok((fleet, self.end(&inventory)))
    }

    fn ours(
        &self,
        key: &ObjectKey,
        file: &ManifestFile,
        found: PathContent,
        known: &RecordedObject,
    ) -> Result<Option<ObservedObject>, TargetError> {
        let (digest, bytes) = match found {
            PathContent::Absent => return Ok(None),
            PathContent::NotPlain { path, expected } => return self.obstacle(path, expected).map(Some),
            PathContent::File { digest, bytes } => (digest, bytes),
        };
        // After the `path` of the fleet's spec changed, a file can have the right content in the wrong place.
        let in_place = layout::file(self.place(), key).is_ok_and(|path| path == file.path);
        let same = digest == file.content;
        let applied = known.manifest.clone().filter(|_| same);
        let manifest = applied.or_else(|| yaml::parse(key, &bytes?));
        Ok(Some(ObservedObject {
            uid: digest.to_string(),
            ours: true,
            unchanged: same && in_place,
            manifest,
            changed_by: None,
            contested: Vec::new(),
            obstacle: None,
        }))
    }

    fn foreign(
        &mut self,
        inventory: &Inventory,
        key: &ObjectKey,
    ) -> Result<Option<ObservedObject>, TargetError> {
        // An object that moved to another version of its API keeps its file.
        if inventory.find(key).is_some_and(|known| known != key) {
            return Ok(None);
        }
        let path = layout::file(self.place(), key)?;
        Ok(match self.at(&path)? {
            PathContent::Absent => None,
            PathContent::NotPlain { path, expected } => Some(self.obstacle(path, expected)?),
            PathContent::File { digest, .. } => Some(not_ours(digest.to_string())),
        })
    }

    /// Describes an obstacle by its path in the fleet's folder. One outside of it is in the way of the whole fleet.
    fn obstacle(&self, full: Utf8PathBuf, expected: &'static str) -> Result<ObservedObject, TargetError> {
        match full.strip_prefix(self.target().full(Utf8Path::new(""))) {
            Ok(path) => {
                let obstacle = Some(path.to_string());
                Ok(ObservedObject { obstacle, ..not_ours("not-a-file".to_owned()) })
            }
            Err(_) => Err(TargetError::NotPlain { path: full, expected }),
        }
    }
}

/// The inventory entry of an object that is only intended: there is nothing to delete, but the entry may have
/// to go.
fn intended(entry: &FileEntry) -> Option<RecordedObject> {
    let file = entry.intended.as_ref()?;
    Some(RecordedObject {
        owner: entry.owner.clone(),
        uid: None,
        applied: file.applied.clone(),
        manifest: None,
    })
}

fn not_ours(uid: String) -> ObservedObject {
    ObservedObject {
        uid,
        ours: false,
        unchanged: false,
        manifest: None,
        changed_by: None,
        contested: Vec::new(),
        obstacle: None,
    }
}
