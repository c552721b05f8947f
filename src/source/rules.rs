//! What every source reads and what it refuses, in the same words.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::names::{Digest, SpecPath};
use crate::spec::{API_VERSION, Entry};

/// The largest file that is read, in bytes: what the reader of specs takes.
pub(super) const MAX_BYTES: u64 = crate::spec::MAX_FILE_BYTES as u64;
/// The most files, links and folders in one top folder, and beside the top folders: ten times what the largest known
/// installation would have in all.
pub(super) const MAX_FILES: usize = 100_000;
/// The deepest folder. A tree of people is a few levels deep.
pub(super) const MAX_FOLDERS: usize = 64;
/// The most files that are looked into in a folder whose name begins with a dot, and among all others. A spec tree has few
/// that are no specs; in a folder full of them, none is worth the time.
pub(super) const MAX_HIDDEN: u32 = 200;
/// See [`MAX_HIDDEN`].
pub(super) const MAX_OTHERS: u32 = 10_000;

/// Folders with nothing of people in them.
const NOT_PEOPLES: [&str; 2] = [".git", ".streamfleet"];

/// How the files begin that are written beside the place where they belong, and that a crash may leave behind. They are ours.
pub(super) const TEMPORARY: &str = ".streamfleet-tmp-";

/// What a file begins with that Git LFS has put in the place of another.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// What was found, and how much of it in the top folder that is being gone through.
#[derive(Default)]
pub(super) struct Found {
    pub(super) entries: BTreeMap<SpecPath, Entry>,
    /// How many files, links and folders were found in this top folder, or beside the top folders.
    /// Links can make few of them look like very many.
    pub(super) count: usize,
}

impl Found {
    pub(super) fn add(&mut self, path: SpecPath, entry: Entry) {
        if self.counts(&path) {
            self.entries.insert(path, entry);
        }
    }

    /// Counts one more, and says once when that is too many. What stands in other top folders is read all the same.
    pub(super) fn counts(&mut self, path: &SpecPath) -> bool {
        self.count += 1;
        if self.count == MAX_FILES + 1 {
            self.entries.insert(path.clone(), too_many());
        }
        self.count <= MAX_FILES
    }
}

/// Whether a file of this name, or at this path, is read.
pub(super) fn is_spec(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Whether a name is a spec's but for capital letters, and so likely meant to be read.
pub(super) fn is_miscased(path: &SpecPath) -> bool {
    let lower = path.as_str().to_lowercase();
    !is_spec(path.as_str()) && (lower.ends_with(".yaml") || lower.ends_with(".yml"))
}

/// Whether people keep something in a folder of this name, so that a spec may have been put aside there.
pub(super) fn is_peoples(name: &str) -> bool {
    !NOT_PEOPLES.contains(&name)
}

/// What a spec file with these bytes is.
pub(super) fn file(bytes: Arc<[u8]>) -> Entry {
    if bytes.len() as u64 > MAX_BYTES {
        return too_large();
    }
    if bytes.starts_with(LFS_POINTER) {
        let message = "this is a pointer of Git LFS, and the spec itself is elsewhere".to_owned();
        let hint = "take specs out of Git LFS with `git lfs migrate export`; in a folder, `git lfs pull` fetches them";
        return unreadable("lfs-pointer", message, hint);
    }
    Entry::File { digest: Digest::of(&bytes), bytes }
}

/// Whether a file that is not read says somewhere what specs say.
pub(super) fn speaks_of_specs(bytes: &[u8]) -> bool {
    bytes.windows(API_VERSION.len()).any(|window| window == API_VERSION.as_bytes())
}

/// What could not be read, and what to do about it.
pub(super) fn unreadable(code: &'static str, message: String, hint: &str) -> Entry {
    Entry::Unreadable { code: code.into(), message, hint: hint.to_owned() }
}

pub(super) fn name_not_utf8() -> Entry {
    let hint = "rename it; names in a spec tree are UTF-8";
    unreadable("name-not-utf8", "the name is not UTF-8".to_owned(), hint)
}

fn too_many() -> Entry {
    let message = format!(
        "the top folder has more than {MAX_FILES} files or folders, and this one and those after it are not read"
    );
    unreadable("too-many-files", message, "leave nothing but specs in the folder")
}

pub(super) fn folder_named_as_file() -> Entry {
    let hint = "rename the folder, or put the file in its place";
    unreadable("folder-named-as-file", "a folder has the name of a YAML file".to_owned(), hint)
}

pub(super) fn miscased() -> Entry {
    let message = "its name doesn't end in `.yaml` or `.yml`, in small letters".to_owned();
    unreadable("miscased-name", message, "rename it")
}

pub(super) fn too_deep() -> Entry {
    let message = format!("the folder lies more than {MAX_FOLDERS} folders deep");
    unreadable("too-deep", message, "move it further up")
}

pub(super) fn too_large() -> Entry {
    let hint = "split the file; a certificate or kubeconfig needs a few KiB";
    unreadable("file-too-large", "the file is larger than 1 MiB".to_owned(), hint)
}
