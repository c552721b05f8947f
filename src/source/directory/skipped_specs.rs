//! Finds specs in files that are not read: copies, disabled files, mistyped names. They have no effect, but
//! one of them may be the new name of a missing spec.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use camino::{Utf8DirEntry, Utf8Path};

use crate::names::SpecPath;
use crate::source::rules::{
    MAX_BYTES, MAX_FOLDERS, MAX_HIDDEN, MAX_OTHERS, TEMPORARY, is_spec, may_contain_user_files,
    mentions_api_version,
};

#[derive(Default)]
pub(super) struct SkippedSpecs {
    /// The files that are not read as specs but contain text of one, or can't be read.
    pub(super) found: BTreeMap<SpecPath, Arc<[u8]>>,
    /// Whether any of the searched folders has a hidden name.
    pub(super) has_hidden: bool,
}

impl SkippedSpecs {
    /// Searches a tree. A folder that can't be listed is left out: only the caution of deletions depends on
    /// the result.
    pub(super) fn find(root: &Utf8Path) -> Self {
        let mut search = Search { specs: SkippedSpecs::default(), left: MAX_OTHERS };
        search.folder(root, "", false, 0);
        search.specs
    }
}

struct Search {
    specs: SkippedSpecs,
    /// How many more files may be read in the current top folder, or in the current hidden folder.
    left: u32,
}

impl Search {
    fn folder(&mut self, folder: &Utf8Path, path: &str, hidden: bool, depth: usize) {
        let Ok(entries) = folder.read_dir_utf8() else { return };
        // Most files are specs, which are read elsewhere.
        let is_read_elsewhere = |entry: &Utf8DirEntry| {
            !hidden
                && is_spec(entry.file_name())
                && !entry.file_name().starts_with('.')
                && entry.file_type().is_ok_and(|kind| kind.is_file())
        };
        let mut entries: Vec<_> = entries.flatten().filter(|entry| !is_read_elsewhere(entry)).collect();
        entries.sort_by(|one, other| one.file_name().cmp(other.file_name()));
        for entry in entries {
            let name = entry.file_name();
            if name.starts_with(TEMPORARY) {
                continue;
            }
            let inner = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            let begins_hidden = !hidden && name.starts_with('.');
            let hidden = hidden || begins_hidden;
            // A folder named like a spec file is unreadable as a whole.
            let is_entered =
                may_contain_user_files(name) && depth < MAX_FOLDERS && (hidden || !is_spec(name));
            // Links are not followed: their targets are either visited anyway or outside of the tree.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && is_entered => {
                    // Each top folder and each hidden folder has a limit of its own.
                    let left = self.left;
                    if begins_hidden {
                        self.left = MAX_HIDDEN;
                        self.specs.has_hidden = true;
                    }
                    self.folder(entry.path(), &inner, hidden, depth + 1);
                    if begins_hidden || depth == 0 {
                        self.left = left;
                    }
                }
                Ok(kind) if kind.is_file() => self.file(entry.path(), inner),
                _ => {}
            }
        }
    }

    fn file(&mut self, place: &Utf8Path, path: String) {
        let Ok(path) = SpecPath::try_from(path) else { return };
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        // An unreadable file may contain anything, so its name is kept.
        let is_small = fs::metadata(place).is_ok_and(|data| data.len() <= MAX_BYTES);
        let Some(bytes) = is_small.then(|| fs::read(place).ok()).flatten() else {
            self.specs.found.insert(path, Arc::from([]));
            return;
        };
        if mentions_api_version(&bytes) {
            self.specs.found.insert(path, bytes.into());
        }
    }
}
