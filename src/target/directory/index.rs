//! Who has which name and which file in an inventory, so that writing a large fleet looks at each entry once.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};

use super::inventory::{Entry, Inventory};
use crate::names::ObjectKey;

/// Group, kind, namespace and name: an object whatever version of its API it is written in.
type Identity = (String, String, Option<String>, String);

fn identity(key: &ObjectKey) -> Identity {
    (key.group().to_owned(), key.kind.clone(), key.namespace.clone(), key.name.clone())
}

/// The entries of an inventory, by name and by file.
pub(super) struct Index {
    names: BTreeMap<Identity, ObjectKey>,
    files: BTreeMap<Utf8PathBuf, BTreeSet<ObjectKey>>,
}

impl Index {
    /// Indexes an inventory.
    pub(super) fn of(inventory: &Inventory) -> Index {
        let mut index = Index { names: BTreeMap::new(), files: BTreeMap::new() };
        inventory.objects.iter().for_each(|(key, entry)| index.add(key, entry));
        index
    }

    /// The object as it is known: it may have been made in another version of its API.
    pub(super) fn find(&self, key: &ObjectKey) -> Option<&ObjectKey> {
        self.names.get(&identity(key))
    }

    /// Another object that has this file, or may have it.
    pub(super) fn has_other_owner(&self, key: &ObjectKey, path: &Utf8Path) -> bool {
        self.files.get(path).is_some_and(|owners| owners.iter().any(|owner| owner != key))
    }

    /// Adds an entry.
    pub(super) fn add(&mut self, key: &ObjectKey, entry: &Entry) {
        self.names.insert(identity(key), key.clone());
        for file in entry.written.iter().chain(&entry.intended) {
            self.files.entry(file.path.clone()).or_default().insert(key.clone());
        }
    }

    /// Takes an entry away.
    pub(super) fn remove(&mut self, key: &ObjectKey, entry: &Entry) {
        self.names.remove(&identity(key));
        for file in entry.written.iter().chain(&entry.intended) {
            self.files.entry(file.path.clone()).and_modify(|owners| {
                owners.remove(key);
            });
        }
    }
}
