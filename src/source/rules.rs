//! The rules that folders and commits share: which files are read, and how others are reported.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::names::{Digest, SpecPath};
use crate::spec::{API_VERSION, SnapshotEntry};

/// The largest spec file, in bytes: the limit of the reader of specs.
pub(super) const MAX_BYTES: u64 = crate::spec::MAX_FILE_BYTES as u64;
/// The limit of files, links and folders in one top folder, and beside the top folders: ten times the total
/// of the largest known installation.
pub(super) const MAX_FILES: usize = 100_000;
/// The limit of nested folders. Trees in practice have a few levels.
pub(super) const MAX_FOLDERS: usize = 64;
/// The limit of files other than specs that are read in one hidden folder. Spec trees have few of them.
pub(super) const MAX_HIDDEN: u32 = 200;
/// The same limit for all other files of a top folder.
pub(super) const MAX_OTHERS: u32 = 10_000;

/// Folders that never contain specs of users.
const NOT_PEOPLES: [&str; 2] = [".git", ".streamfleet"];

/// The prefix of our temporary files, which a crash may leave behind.
pub(super) const TEMPORARY: &str = ".streamfleet-tmp-";

/// The beginning of a pointer of Git LFS, which replaces a file.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The entries found, and the count in the current top folder.
#[derive(Default)]
pub(super) struct ScanTotals {
    pub(super) entries: BTreeMap<SpecPath, SnapshotEntry>,
    /// The number of files, links and folders in this top folder, or beside the top folders. Links can make
    /// few files look like very many.
    pub(super) count: usize,
}

impl ScanTotals {
    pub(super) fn add(&mut self, path: SpecPath, entry: SnapshotEntry) {
        if self.counts(&path) {
            self.entries.insert(path, entry);
        }
    }

    /// Counts one more entry. The first one above the limit is reported. Other top folders are not affected.
    pub(super) fn counts(&mut self, path: &SpecPath) -> bool {
        self.count += 1;
        if self.count == MAX_FILES + 1 {
            self.entries.insert(path.clone(), too_many());
        }
        self.count <= MAX_FILES
    }
}

pub(super) fn is_spec(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Returns whether a name is a spec's except for capital letters, and so likely meant to be read.
pub(super) fn is_miscased(path: &SpecPath) -> bool {
    let lower = path.as_str().to_lowercase();
    !is_spec(path.as_str()) && (lower.ends_with(".yaml") || lower.ends_with(".yml"))
}

/// Returns whether a folder of this name may contain users' files, and so a spec that was put aside.
pub(super) fn may_contain_user_files(name: &str) -> bool {
    !NOT_PEOPLES.contains(&name)
}

pub(super) fn file(bytes: Arc<[u8]>) -> SnapshotEntry {
    if bytes.len() as u64 > MAX_BYTES {
        return too_large();
    }
    if bytes.starts_with(LFS_POINTER) {
        let message = "this is a Git LFS pointer and not the spec itself".to_owned();
        let hint = "move specs out of Git LFS with `git lfs migrate export`; in a folder, `git lfs pull` fetches them";
        return unreadable("lfs-pointer", message, hint);
    }
    SnapshotEntry::File { digest: Digest::of(&bytes), bytes }
}

pub(super) fn mentions_api_version(bytes: &[u8]) -> bool {
    bytes.windows(API_VERSION.len()).any(|window| window == API_VERSION.as_bytes())
}

pub(super) fn unreadable(code: &'static str, message: String, hint: &str) -> SnapshotEntry {
    SnapshotEntry::Unreadable { code: code.into(), message, hint: hint.to_owned() }
}

pub(super) fn name_not_utf8() -> SnapshotEntry {
    let hint = "rename it; names in a spec tree are UTF-8";
    unreadable("name-not-utf8", "the name is not UTF-8".to_owned(), hint)
}

fn too_many() -> SnapshotEntry {
    let message = format!(
        "the top folder has more than {MAX_FILES} files or folders; this one and later ones are not read"
    );
    unreadable("too-many-files", message, "keep only specs in the folder")
}

pub(super) fn folder_named_as_file() -> SnapshotEntry {
    let hint = "rename the folder, or put the file in its place";
    unreadable("folder-named-as-file", "a folder has the name of a YAML file".to_owned(), hint)
}

pub(super) fn miscased() -> SnapshotEntry {
    let message = "its name doesn't end in `.yaml` or `.yml`, in lower case".to_owned();
    unreadable("miscased-name", message, "rename it")
}

pub(super) fn too_deep() -> SnapshotEntry {
    let message = format!("the folder is more than {MAX_FOLDERS} folders deep");
    unreadable("too-deep", message, "move it further up")
}

pub(super) fn too_large() -> SnapshotEntry {
    let hint = "split the file; a certificate or kubeconfig needs a few KiB";
    unreadable("file-too-large", "the file is larger than 1 MiB".to_owned(), hint)
}
