//! A folder of YAML files.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use super::SourceError;
use crate::names::{Digest, SpecPath};
use crate::spec::{Entry, Snapshot, SourceId};

/// The largest file that is read, in bytes: what the reader of specs takes.
const MAX_BYTES: u64 = crate::spec::MAX_FILE_BYTES as u64;
/// The most files of a tree: ten times what the largest known installation would have.
const MAX_FILES: usize = 100_000;
/// The deepest folder. A tree of people is a few levels deep.
const MAX_FOLDERS: usize = 64;
/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 3;

/// Reads all spec files below a folder. What can't be read is in the snapshot as such, since it is not nothing.
///
/// Names that begin with a dot are skipped. Links are followed as long as they stay in the tree.
///
/// # Errors
/// When the folder itself is not there or can't be listed.
pub fn scan(root: &Utf8Path) -> Result<Snapshot, SourceError> {
    let failed = |error| SourceError::Root { path: root.to_owned(), error };
    let real = fs::canonicalize(root).map_err(failed)?;
    let real =
        Utf8PathBuf::from_path_buf(real).map_err(|_| SourceError::NotUtf8 { path: root.to_owned() })?;
    let names = list(&real).map_err(failed)?;
    let mut scan =
        Scan { root: &real, entries: BTreeMap::new(), inside: Vec::new(), folders: 0, full: false };
    scan.inside.push(real.clone());
    scan.folder("", names);
    let entries = scan.entries;
    Ok(Snapshot { source: SourceId(real.to_string()), revision: revision(&entries), git: false, entries })
}

/// The digest of all paths and contents. What can't be read counts with the reason.
fn revision(entries: &BTreeMap<SpecPath, Entry>) -> String {
    let mut lines = String::new();
    for (path, entry) in entries {
        let content = match entry {
            Entry::File { digest, .. } => digest.as_str(),
            Entry::Unreadable { code, .. } => code,
        };
        // A path may have a line break; its length keeps one list from looking like another.
        lines.push_str(&format!("{} {path} {content}\n", path.as_str().len()));
    }
    Digest::of(lines).to_string()
}

/// Names in a folder, sorted. A name that is not UTF-8 is there in its lossy form.
type Names = BTreeSet<(String, bool)>;

fn list(folder: &Utf8Path) -> io::Result<Names> {
    let mut names = Names::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        names.insert((name.to_string_lossy().into_owned(), name.to_str().is_some()));
    }
    Ok(names)
}

struct Scan<'a> {
    root: &'a Utf8Path,
    entries: BTreeMap<SpecPath, Entry>,
    /// The real paths of the folders that the scan is in, to see a link that leads back to one.
    inside: Vec<Utf8PathBuf>,
    /// How many folders were entered; links can make few folders look like very many.
    folders: usize,
    full: bool,
}

impl Scan<'_> {
    fn folder(&mut self, folder: &str, names: Names) {
        for (name, readable) in names.into_iter().filter(|(name, _)| !name.starts_with('.')) {
            if self.full {
                return;
            }
            let place = self.inside.last().map_or(self.root, |real| real).join(&name);
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            // Names from a listing have no slash and are not `.` or `..`.
            let Ok(path) = SpecPath::try_from(path) else { continue };
            if readable {
                self.visit(path, place);
            } else {
                let hint = "rename it; names in a spec tree are UTF-8";
                self.add(path, unreadable("name-not-utf8", "its name is not UTF-8".to_owned(), hint));
            }
        }
    }

    fn add(&mut self, path: SpecPath, entry: Entry) {
        if self.entries.len() < MAX_FILES {
            self.entries.insert(path, entry);
        } else {
            self.stop(path);
        }
    }

    fn stop(&mut self, path: SpecPath) {
        self.full = true;
        let message = format!(
            "the tree has more than {MAX_FILES} files or folders, and this one and those after it are not read"
        );
        let hint = "give a folder that holds nothing but specs";
        // At the root, so that everyone's deletions wait: what is not read may be anyone's.
        let place = SpecPath::try_from(path.as_str().replace('/', "_")).unwrap_or(path);
        self.entries.insert(place, unreadable("too-many-files", message, hint));
    }

    /// Looks at one name. Its place is in a folder's real path, so that a link back is seen as one.
    fn visit(&mut self, path: SpecPath, place: Utf8PathBuf) {
        let (real, data) = match self.resolve(&place) {
            Ok(real) => real,
            // A file that went away since the folder was listed is gone; a link that leads nowhere is a mistake.
            Err(Refused::Gone) => return,
            Err(Refused::Because(entry)) => {
                if is_spec(&path) || fs::symlink_metadata(&place).is_ok_and(|data| data.is_symlink()) {
                    self.add(path, *entry);
                }
                return;
            }
        };
        match (data.is_dir(), is_spec(&path)) {
            (true, true) => self.add(
                path,
                unreadable(
                    "folder-named-as-file",
                    "it is a folder with the name of a YAML file".to_owned(),
                    "rename the folder",
                ),
            ),
            (true, false) => self.enter(path, real),
            (false, true) if data.is_file() => {
                if let Some(entry) = read_file(&place) {
                    self.add(path, entry);
                }
            }
            (false, true) => {
                let message = "it is neither a file nor a folder".to_owned();
                self.add(path, unreadable("unreadable-file", message, "remove it from the spec tree"));
            }
            (false, false) => {}
        }
    }

    fn enter(&mut self, path: SpecPath, real: Utf8PathBuf) {
        if self.inside.contains(&real) {
            let message = format!("it is a link to {}, which contains it", self.shown(&real));
            self.add(path, unreadable("link-cycle", message, "remove the link"));
        } else if self.inside.len() > MAX_FOLDERS {
            let message = format!("it lies more than {MAX_FOLDERS} folders deep");
            self.add(path, unreadable("too-deep", message, "move it further up"));
        } else if self.folders >= MAX_FILES {
            self.stop(path);
        } else {
            self.folders += 1;
            match list(&real) {
                Ok(names) => {
                    self.inside.push(real);
                    self.folder(path.as_str(), names);
                    self.inside.pop();
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => self.add(path, failed("unreadable-folder", "can't list the folder", &error)),
            }
        }
    }

    /// A path inside the tree for messages.
    fn shown(&self, real: &Utf8Path) -> String {
        match real.strip_prefix(self.root) {
            Ok(inner) if inner.as_str().is_empty() => "the root of the tree".to_owned(),
            Ok(inner) => inner.to_string(),
            Err(_) => real.to_string(),
        }
    }

    /// The real place of a path, if it lies in the tree.
    fn resolve(&self, place: &Utf8Path) -> Result<(Utf8PathBuf, Metadata), Refused> {
        let refuse = |entry| Refused::Because(Box::new(entry));
        let link = match fs::symlink_metadata(place) {
            Ok(data) => data,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(Refused::Gone),
            Err(error) => return Err(refuse(failed("unreadable-file", "can't look at it", &error))),
        };
        if !link.is_symlink() {
            return Ok((place.to_owned(), link));
        }
        let real = fs::canonicalize(place).map_err(|error| {
            refuse(unreadable(
                "broken-link",
                format!("can't follow the link: {error}"),
                "mend the link or remove it",
            ))
        })?;
        let outside = || {
            let message = "it is a link that leads out of the spec tree".to_owned();
            refuse(unreadable("link-out-of-tree", message, "put a copy of the file into the tree"))
        };
        let real = Utf8PathBuf::from_path_buf(real).map_err(|_| outside())?;
        if !real.starts_with(self.root) {
            return Err(outside());
        }
        let data = fs::metadata(&real).map_err(|error| {
            refuse(failed("unreadable-file", "can't look at what the link leads to", &error))
        })?;
        Ok((real, data))
    }
}

enum Refused {
    /// It went away while the tree was scanned.
    Gone,
    Because(Box<Entry>),
}

fn is_spec(path: &SpecPath) -> bool {
    Path::new(path.as_str()).extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Reads a file; none when it went away since it was listed.
fn read_file(place: &Utf8Path) -> Option<Entry> {
    match stable_bytes(place) {
        Ok(Some(bytes)) if bytes.len() as u64 > MAX_BYTES => {
            let message = "the file is larger than 1 MiB".to_owned();
            let hint = "split the file; a certificate or kubeconfig needs a few KiB";
            Some(unreadable("file-too-large", message, hint))
        }
        Ok(Some(bytes)) => Some(Entry::File { digest: Digest::of(&bytes), bytes: Arc::from(bytes) }),
        Ok(None) => {
            let message = "the file keeps changing while it is read".to_owned();
            Some(unreadable(
                "unstable-file",
                message,
                "wait until it is written, or write it beside and rename it",
            ))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(failed("unreadable-file", "can't read the file", &error)),
    }
}

/// The bytes of a file that did not change while they were read; none when it kept changing.
fn stable_bytes(place: &Utf8Path) -> io::Result<Option<Vec<u8>>> {
    for _ in 0..ATTEMPTS {
        let mut file = fs::File::open(place)?;
        let before = file.metadata()?;
        let mut bytes = Vec::new();
        (&mut file).take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        let after = file.metadata()?;
        let whole = bytes.len() as u64 == after.len().min(MAX_BYTES + 1);
        if whole && before.len() == after.len() && before.modified()? == after.modified()? {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

fn unreadable(code: &'static str, message: String, hint: &str) -> Entry {
    Entry::Unreadable { code, message, hint: hint.to_owned() }
}

fn failed(code: &'static str, what: &str, error: &io::Error) -> Entry {
    let hint = match error.kind() {
        ErrorKind::PermissionDenied => "let the user that runs this read it",
        _ => "check the disk, and try again",
    };
    unreadable(code, format!("{what}: {error}"), hint)
}
