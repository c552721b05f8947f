//! One round of writing to a folder: the intent is recorded, carried out and settled.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use zeroize::Zeroizing;

use super::files::{self, Prepared};
use super::index::Index;
use super::inventory::{self, FileEntry, Inventory, ManifestFile};
use super::look::PathContent;
use super::{DirectoryTarget, FolderLook, layout, yaml};
use crate::catalog::RecordedObject;
use crate::names::{Digest, ObjectKey, ResourceKey};
use crate::target::{Intent, ObjectWrite, ResourceMark, TargetError, Task, TaskResult};

pub struct FolderSession {
    target: DirectoryTarget,
    /// The inventory as it is on disk.
    saved: Inventory,
    inventory: Inventory,
    /// The file contents of intended objects, or why an intent couldn't be recorded.
    ready: BTreeMap<ObjectKey, Result<Zeroizing<String>, TargetError>>,
    /// The files written under temporary names and synced, or why that failed.
    prepared: BTreeMap<ObjectKey, Result<Prepared, TargetError>>,
    begun: Option<(usize, Task)>,
    /// Whether a file was renamed to its path since the last sync.
    unsettled: bool,
}

impl DirectoryTarget {
    /// Settles what an earlier round left unfinished, then records the intent.
    pub(in crate::target) fn begin(&self, intent: Intent) -> Result<FolderSession, TargetError> {
        let saved = self.load()?;
        let mut session = FolderSession {
            target: self.clone(),
            inventory: saved.clone(),
            saved,
            ready: BTreeMap::new(),
            prepared: BTreeMap::new(),
            begun: None,
            unsettled: false,
        };
        session.inventory.installation = Some(self.installation);
        session.remove_temporary()?;
        session.settle()?;
        session.inventory.resources.announce(intent.marks);
        let mut index = Index::of(&session.inventory);
        for write in intent.writes {
            let key = write.key.clone();
            let ready = session.intend(write, &mut index);
            session.ready.insert(key, ready);
        }
        for key in &intent.deletes {
            if let Some(known) = session.inventory.find(key).cloned() {
                session.inventory.objects.entry(known).and_modify(|entry| entry.deleting = true);
            }
        }
        session.save()?;
        Ok(session)
    }
}

impl FolderSession {
    pub fn target(&self) -> &DirectoryTarget {
        &self.target
    }

    /// Writes files under temporary names and syncs the disk once. An object that can't be written fails when
    /// it is applied.
    ///
    /// # Errors
    /// When the disk can't be synced. Nothing was changed then.
    pub async fn prepare<'k>(
        &mut self,
        keys: impl IntoIterator<Item = &'k ObjectKey>,
    ) -> Result<(), TargetError> {
        for key in keys {
            // An object that was not intended fails when it is applied.
            if let Some(text) = self.ready.remove(key) {
                let prepared = text.and_then(|text| self.prepare_one(key, &text));
                self.prepared.insert(key.clone(), prepared);
            }
        }
        self.wait_for_disk()
    }

    fn prepare_one(&self, key: &ObjectKey, text: &str) -> Result<Prepared, TargetError> {
        let intended = self.inventory.objects.get(key).and_then(|entry| entry.intended.as_ref());
        let Some(ManifestFile { path, .. }) = intended else {
            return Err(TargetError::NotIntended { object: key.clone() });
        };
        if let PathContent::NotPlain { path, expected } = self.target.look(path)? {
            return Err(TargetError::NotPlain { path, expected });
        }
        files::make_folders(&self.target.output, &self.target.folder().join(path))?;
        let mode = if layout::is_secret(key) { 0o600 } else { 0o666 };
        files::prepare(&self.target.full(path), text, mode)
    }

    /// Makes everything that was applied durable. Record nothing as done before this returns.
    ///
    /// # Errors
    /// When the disk refuses. What was applied since the last call may be lost then.
    pub async fn sync(&mut self) -> Result<(), TargetError> {
        if std::mem::take(&mut self.unsettled) { self.wait_for_disk() } else { Ok(()) }
    }

    fn wait_for_disk(&self) -> Result<(), TargetError> {
        files::sync_file_system(&self.target.full(Utf8Path::new("")))
    }

    pub fn has_room(&self) -> bool {
        self.begun.is_none()
    }

    pub fn start(&mut self, number: usize, task: Task) {
        self.begun = Some((number, task));
    }

    pub async fn next(&mut self) -> Option<(usize, TaskResult)> {
        let (number, Task { object, uid, deletes }) = self.begun.take()?;
        let taken = match deletes {
            true => self.delete(&object, uid.as_deref()).await.map(|()| None),
            false => self.apply(&object, uid.as_deref()).await.map(Some),
        };
        Some((number, taken))
    }

    /// Creates or changes an object and returns its new UID. `uid` is the one that the plan was made for,
    /// none when there was no object. Call [`Self::sync`] to make it durable.
    ///
    /// # Errors
    /// When another file is there now, or the disk refuses. The object is unchanged then.
    pub async fn apply(&mut self, key: &ObjectKey, uid: Option<&str>) -> Result<String, TargetError> {
        if !self.prepared.contains_key(key) {
            self.prepare([key]).await?;
        }
        let prepared = match self.prepared.remove(key) {
            Some(prepared) => prepared?,
            None => return Err(TargetError::NotIntended { object: key.clone() }),
        };
        let entry = self.inventory.objects.get(key);
        let Some((entry, intended)) = entry.and_then(|entry| Some((entry, entry.intended.clone()?))) else {
            return Err(TargetError::NotIntended { object: key.clone() });
        };
        let place = entry.written.as_ref().map_or(&intended.path, |written| &written.path).clone();
        let is_known = entry.written.is_some();
        let target = &self.target;
        let changed = || TargetError::Changed { attempted: "write", path: target.full(&place) };
        match target.look(&place)? {
            PathContent::Absent if uid.is_none() => {}
            PathContent::File { digest, .. } if is_known && uid == Some(digest.as_str()) => {}
            PathContent::NotPlain { path, expected } => return Err(TargetError::NotPlain { path, expected }),
            PathContent::File { .. } if !is_known => {
                return Err(TargetError::Foreign { path: target.full(&place) });
            }
            PathContent::Absent | PathContent::File { .. } => return Err(changed()),
        }
        if place != intended.path && !matches!(target.look(&intended.path)?, PathContent::Absent) {
            return Err(TargetError::Foreign { path: target.full(&intended.path) });
        }
        prepared.put_in_place()?;
        self.unsettled = true;
        if place != intended.path && !matches!(target.look(&place)?, PathContent::Absent) {
            files::remove(&target.full(&place))?;
        }
        let uid = intended.content.to_string();
        self.inventory.objects.entry(key.clone()).and_modify(|entry| {
            entry.written = Some(intended);
            entry.intended = None;
        });
        Ok(uid)
    }

    /// Deletes an object. It is no error when the object is gone or was never ours.
    ///
    /// # Errors
    /// When it is not the object that the plan was made for, or the disk refuses.
    pub async fn delete(&mut self, key: &ObjectKey, uid: Option<&str>) -> Result<(), TargetError> {
        let Some(known) = self.inventory.find(key).cloned() else { return Ok(()) };
        let written = self.inventory.objects.get(&known).and_then(|entry| entry.written.clone());
        if let Some(written) = written {
            let path = self.target.full(&written.path);
            match self.target.look(&written.path)? {
                PathContent::Absent => {}
                PathContent::File { digest, .. } if uid == Some(digest.as_str()) => files::remove(&path)?,
                _ => return Err(TargetError::Changed { attempted: "delete", path }),
            }
        }
        self.inventory.objects.remove(&known);
        Ok(())
    }

    pub fn known(&self) -> impl Iterator<Item = &ObjectKey> {
        let written = self.inventory.objects.iter().filter(|(_, entry)| entry.written.is_some());
        written.map(|(key, _)| key)
    }

    pub fn protected(&self) -> BTreeSet<ResourceKey> {
        self.inventory.resources.protected()
    }

    /// Rebuilds a lost record of an object of ours. It includes the manifest only if the file still has
    /// exactly what was applied, which a Secret's file never has.
    ///
    /// # Errors
    /// When the file can't be read.
    pub async fn recall(&self, key: &ObjectKey) -> Result<Option<RecordedObject>, TargetError> {
        let entry = self.inventory.objects.get(key);
        let Some((owner, file)) = entry.and_then(|entry| Some((&entry.owner, entry.written.as_ref()?)))
        else {
            return Ok(None);
        };
        let manifest = match self.target.look(&file.path)? {
            PathContent::File { bytes: Some(bytes), .. } => yaml::parse(key, &bytes),
            _ => None,
        };
        Ok(Some(RecordedObject {
            owner: owner.clone(),
            uid: Some(file.content.to_string()),
            applied: file.applied.clone(),
            manifest: manifest.filter(|manifest| manifest.digest() == file.applied),
        }))
    }

    /// Records the outcome of the round and removes our empty folders. `mark` returns what is now recorded of
    /// a resource.
    ///
    /// # Errors
    /// When the disk refuses. The next round settles what is left.
    pub async fn finish(
        mut self,
        mark: impl Fn(&ResourceKey) -> Option<ResourceMark>,
    ) -> Result<(), TargetError> {
        self.sync().await?;
        self.settle()?;
        self.forget_orphans(&mark)?;
        let owners = self.inventory.objects.values().map(|entry| &entry.owner).collect();
        self.inventory.resources.refresh(&owners, mark);
        self.remove_folders()?;
        if !self.inventory.is_empty() {
            return self.save();
        }
        let path = self.target.full(Utf8Path::new(inventory::FILE));
        if !matches!(self.target.look(Utf8Path::new(inventory::FILE))?, PathContent::Absent) {
            files::remove(&path)?;
        }
        // The folders of the fleet and its organization are ours unless they have other content.
        for folder in [self.target.folder(), self.target.fleet.organization.as_str().into()] {
            if !files::remove_folder(&self.target.output.join(folder))? {
                break;
            }
        }
        Ok(())
    }

    /// Adds the intent of writing an object to the inventory, and returns the file's text.
    fn intend(&mut self, write: ObjectWrite, index: &mut Index) -> Result<Zeroizing<String>, TargetError> {
        let path = layout::file(&self.target.path, &write.key)?;
        let text = yaml::text(&write)?;
        let ObjectWrite { key, owner, applied, .. } = write;
        let before = self.inventory.find(&key).cloned();
        let before = before.and_then(|known| self.inventory.objects.remove_entry(&known));
        if let Some((known, entry)) = &before {
            index.remove(known, entry);
        }
        let before = before.map(|(_, entry)| entry);
        if index.has_other_owner(&key, &path) {
            if let Some(entry) = before {
                index.add(&key, &entry);
                self.inventory.objects.insert(key, entry);
            }
            return Err(TargetError::Foreign { path: self.target.full(&path) });
        }
        for folder in files::folders(&path) {
            if !self.inventory.folders.contains(folder)
                && matches!(self.target.look(folder)?, PathContent::Absent)
            {
                self.inventory.folders.insert(folder.to_owned());
            }
        }
        let intended = Some(ManifestFile { path, applied, content: Digest::of(text.as_bytes()) });
        let written = before.and_then(|entry| entry.written);
        let entry = FileEntry { owner, written, intended, deleting: false };
        index.add(&key, &entry);
        self.inventory.objects.insert(key, entry);
        Ok(text)
    }

    fn settle(&mut self) -> Result<(), TargetError> {
        let mut settled = BTreeMap::new();
        for (key, entry) in &self.inventory.objects {
            if entry.intended.is_none() && !entry.deleting {
                settled.insert(key.clone(), entry.clone());
                continue;
            }
            let Some((file, found)) = FolderLook::once(&self.target).current(entry)? else { continue };
            if entry.deleting && matches!(found, PathContent::Absent) {
                continue;
            }
            self.remove_moved(entry, &file)?;
            let owner = entry.owner.clone();
            settled.insert(
                key.clone(),
                FileEntry { owner, written: Some(file), intended: None, deleting: false },
            );
        }
        self.inventory.objects = settled;
        Ok(())
    }

    /// Removes an object's old file when a crash interrupted its move.
    fn remove_moved(&self, entry: &FileEntry, now: &ManifestFile) -> Result<(), TargetError> {
        let Some(old) = entry.written.as_ref().filter(|old| old.path != now.path) else { return Ok(()) };
        if self.target.look(&old.path)?.has(&old.content) {
            files::remove(&self.target.full(&old.path))?;
        }
        Ok(())
    }

    fn remove_temporary(&self) -> Result<(), TargetError> {
        let files =
            self.inventory.objects.values().flat_map(|entry| entry.written.iter().chain(&entry.intended));
        let folders = files.filter_map(|file| file.path.parent());
        let folders: BTreeSet<&Utf8Path> = folders.chain([Utf8Path::new("")]).collect();
        folders.into_iter().try_for_each(|folder| files::remove_temporary(&self.target.full(folder)))
    }

    /// Forgets missing files whose resource is also gone, such as leftovers of a deleted cluster that were
    /// removed by hand.
    fn forget_orphans(
        &mut self,
        mark: impl Fn(&ResourceKey) -> Option<ResourceMark>,
    ) -> Result<(), TargetError> {
        let orphans = self.inventory.objects.iter().filter(|(_, entry)| mark(&entry.owner).is_none());
        let mut gone = Vec::new();
        for (key, entry) in orphans {
            if matches!(FolderLook::once(&self.target).current(entry)?, Some((_, PathContent::Absent)) | None)
            {
                gone.push(key.clone());
            }
        }
        gone.iter().for_each(|key| drop(self.inventory.objects.remove(key)));
        Ok(())
    }

    fn remove_folders(&mut self) -> Result<(), TargetError> {
        let files = self.inventory.objects.values().filter_map(|entry| entry.written.as_ref());
        let used: BTreeSet<&Utf8Path> = files.flat_map(|file| files::folders(&file.path)).collect();
        let unused = self.inventory.folders.iter().filter(|folder| !used.contains(folder.as_path()));
        let unused: Vec<Utf8PathBuf> = unused.rev().cloned().collect();
        for folder in unused {
            if files::remove_folder(&self.target.full(&folder))? {
                self.inventory.folders.remove(&folder);
            }
        }
        Ok(())
    }

    fn save(&mut self) -> Result<(), TargetError> {
        if self.inventory == self.saved {
            return Ok(());
        }
        let path = self.target.folder().join(inventory::FILE);
        files::make_folders(&self.target.output, &path)?;
        if self.saved.is_empty() {
            files::sync_folders(&self.target.output, &path)?;
        }
        files::replace(&self.target.output.join(path), &self.inventory.to_text(), 0o666)?;
        self.saved = self.inventory.clone();
        Ok(())
    }
}
