//! An index of an inventory by file, so that writing a large fleet is not quadratic.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};

use super::inventory::{FileEntry, Inventory};
use crate::names::ObjectKey;

pub(super) struct Index {
    files: BTreeMap<Utf8PathBuf, BTreeSet<ObjectKey>>,
}

impl Index {
    pub(super) fn of(inventory: &Inventory) -> Index {
        let mut index = Index { files: BTreeMap::new() };
        inventory.objects.iter().for_each(|(key, entry)| index.add(key, entry));
        index
    }

    /// Whether another object has this file, written or intended.
    pub(super) fn has_other_owner(&self, key: &ObjectKey, path: &Utf8Path) -> bool {
        self.files.get(path).is_some_and(|owners| owners.iter().any(|owner| owner != key))
    }

    pub(super) fn add(&mut self, key: &ObjectKey, entry: &FileEntry) {
        for file in entry.written.iter().chain(&entry.intended) {
            self.files.entry(file.path.clone()).or_default().insert(key.clone());
        }
    }

    pub(super) fn remove(&mut self, key: &ObjectKey, entry: &FileEntry) {
        for file in entry.written.iter().chain(&entry.intended) {
            self.files.entry(file.path.clone()).and_modify(|owners| {
                owners.remove(key);
            });
        }
    }
}
