//! A proposed tree of specs as it is sent to be planned: the process that plans it may not be able to read
//! the files.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::problem::FieldError;
use crate::names::{Digest, SpecPath};
use crate::problem::quote_untrusted;
use crate::spec::{Commit, Snapshot, SnapshotEntry, SourceId};

/// The largest tree that a command may send, in bytes.
pub const LARGEST: usize = 64 << 20;

/// In characters.
pub const LONGEST_REVISION: usize = 200;

#[derive(Debug, Serialize, Deserialize)]
pub struct Proposal {
    pub source: SourceId,
    pub revision: String,
    /// Set if the tree is a git commit.
    #[serde(default)]
    pub commit: Option<Commit>,
    /// Base64, so that files that aren't UTF-8 are kept and reported as they are.
    pub files: BTreeMap<SpecPath, String>,
    /// Files that are not read as specs but may contain one, in base64.
    #[serde(default)]
    pub skipped: BTreeMap<SpecPath, String>,
    #[serde(default)]
    pub unreadable: BTreeMap<SpecPath, Unreadable>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Unreadable {
    code: String,
    message: String,
    hint: String,
}

impl From<&Snapshot> for Proposal {
    fn from(snapshot: &Snapshot) -> Proposal {
        let Snapshot { source, revision, commit, skipped, entries } = snapshot;
        let (mut files, mut unreadable) = (BTreeMap::new(), BTreeMap::new());
        for (path, entry) in entries {
            match entry {
                SnapshotEntry::File { bytes, .. } => drop(files.insert(path.clone(), STANDARD.encode(bytes))),
                SnapshotEntry::Unreadable { code, message, hint } => {
                    let (code, message, hint) = (code.to_string(), message.clone(), hint.clone());
                    unreadable.insert(path.clone(), Unreadable { code, message, hint });
                }
            }
        }
        let skipped = skipped.iter().map(|(path, bytes)| (path.clone(), STANDARD.encode(bytes)));
        Proposal {
            source: source.clone(),
            revision: revision.clone(),
            commit: commit.clone(),
            files,
            skipped: skipped.collect(),
            unreadable,
        }
    }
}

impl Proposal {
    /// Reads an API request: an object with `files` and an optional `revision`.
    ///
    /// # Errors
    /// All mistakes in the body, at least one.
    pub fn posted(body: Value, source: SourceId) -> Result<Proposal, Vec<FieldError>> {
        let Value::Object(mut fields) = body else {
            return Err(vec![wrong("", "the body is not an object", "send an object with `files`")]);
        };
        let mut faults = Vec::new();
        let files = match fields.remove("files") {
            Some(Value::Object(files)) => files,
            Some(_) => {
                let why = "`files` is not an object";
                faults.push(wrong("/files", why, "list the files of the tree by their paths in it"));
                Map::new()
            }
            None => {
                faults.push(wrong(
                    "/files",
                    "`files` is missing",
                    "list the files of the tree by their paths in it",
                ));
                Map::new()
            }
        };
        let revision = match fields.remove("revision") {
            None | Some(Value::Null) => None,
            Some(Value::String(revision)) if revision.chars().count() <= LONGEST_REVISION => Some(revision),
            Some(_) => {
                let why = format!("`revision` is not a text of at most {LONGEST_REVISION} characters");
                faults.push(wrong("/revision", why, "set it to the commit, or leave it out"));
                None
            }
        };
        for name in fields.keys() {
            let why = format!("`{}` is not a field of a proposal", quote_untrusted(name));
            faults.push(wrong(pointer(&[name]), why, "its fields are `files` and `revision`"));
        }
        let mut read = BTreeMap::new();
        for (name, text) in files {
            match (name.parse::<SpecPath>(), text) {
                (Ok(path), Value::String(text)) => drop(read.insert(path, text)),
                (Err(_), _) => {
                    let why = format!("`{}` is not a relative path inside a tree", quote_untrusted(&name));
                    faults.push(wrong(
                        pointer(&["files", &name]),
                        why,
                        "use a path such as `acme/clusters/orders.yaml`",
                    ));
                }
                (Ok(path), _) => faults.push(no_base64(&path)),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let revision =
            revision.filter(|revision| !revision.is_empty()).unwrap_or_else(|| "proposed".to_owned());
        let (skipped, unreadable) = (BTreeMap::new(), BTreeMap::new());
        Ok(Proposal { source, revision, commit: None, files: read, skipped, unreadable })
    }

    /// Decodes the files.
    ///
    /// # Errors
    /// All files that aren't valid base64.
    pub fn snapshot(self) -> Result<Snapshot, Vec<FieldError>> {
        let Proposal { source, revision, commit, files, skipped, unreadable } = self;
        let (files, skipped) = (decoded(files)?, decoded(skipped)?);
        let file = |(path, bytes): (SpecPath, Arc<[u8]>)| {
            let digest = Digest::of(&bytes);
            (path, SnapshotEntry::File { bytes, digest })
        };
        let unreadable = unreadable.into_iter().map(|(path, Unreadable { code, message, hint })| {
            (path, SnapshotEntry::Unreadable { code: code.into(), message, hint })
        });
        let entries = files.into_iter().map(file).chain(unreadable).collect();
        Ok(Snapshot { source, revision, commit, skipped, entries })
    }
}

fn decoded(files: BTreeMap<SpecPath, String>) -> Result<BTreeMap<SpecPath, Arc<[u8]>>, Vec<FieldError>> {
    let (mut decoded, mut faults) = (BTreeMap::new(), Vec::new());
    for (path, text) in files {
        match STANDARD.decode(text) {
            Ok(bytes) => drop(decoded.insert(path, bytes.into())),
            Err(_) => faults.push(no_base64(&path)),
        }
    }
    if faults.is_empty() { Ok(decoded) } else { Err(faults) }
}

fn no_base64(path: &SpecPath) -> FieldError {
    let why = format!("`{}` is not base64", quote_untrusted(path.as_str()));
    wrong(
        pointer(&["files", path.as_str()]),
        why,
        "send the file's bytes as `base64 --wrap=0 FILE` prints them",
    )
}

fn wrong(pointer: impl Into<String>, detail: impl Into<String>, hint: &str) -> FieldError {
    let pointer = Some(pointer.into()).filter(|pointer| !pointer.is_empty());
    FieldError { pointer, detail: detail.into(), hint: Some(hint.to_owned()), ..FieldError::default() }
}

/// A JSON pointer (RFC 6901).
fn pointer(names: &[&str]) -> String {
    names.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(body: Value) -> Vec<(Option<String>, String)> {
        let snapshot = Proposal::posted(body, SourceId("specs".to_owned())).and_then(Proposal::snapshot);
        let faults = snapshot.err().unwrap_or_default();
        faults.into_iter().map(|fault| (fault.pointer, fault.detail)).collect()
    }

    #[test]
    fn a_tree_is_read_with_or_without_the_name_of_its_state() {
        for (body, revision) in [
            (json!({"files": {"acme/a.yaml": "YTogMQo="}}), "proposed"),
            (json!({"files": {"acme/a.yaml": "YTogMQo="}, "revision": null}), "proposed"),
            (json!({"files": {"acme/a.yaml": "YTogMQo="}, "revision": "3f2c1ab"}), "3f2c1ab"),
        ] {
            let read = Proposal::posted(body, SourceId("specs".to_owned())).unwrap().snapshot().unwrap();
            assert_eq!(read.revision, revision);
            let SnapshotEntry::File { bytes, .. } = &read.entries["acme/a.yaml"] else { panic!() };
            assert_eq!(&**bytes, b"a: 1\n");
        }
    }

    #[test]
    fn everything_that_is_wrong_is_told_by_its_place() {
        let told = |faults: &[(&str, &str)]| -> Vec<(Option<String>, String)> {
            let told = |(pointer, detail): &(&str, &str)| {
                (Some((*pointer).to_owned()).filter(|it| !it.is_empty()), (*detail).to_owned())
            };
            faults.iter().map(told).collect()
        };
        for (body, expected) in [
            (json!([]), told(&[("", "the body is not an object")])),
            (json!({}), told(&[("/files", "`files` is missing")])),
            (json!({"files": []}), told(&[("/files", "`files` is not an object")])),
            (
                json!({"files": {"../a.yaml": "", "b.yaml": 5}, "revision": 7, "x/y": 1}),
                told(&[
                    ("/revision", "`revision` is not a text of at most 200 characters"),
                    ("/x~1y", "`x/y` is not a field of a proposal"),
                    ("/files/..~1a.yaml", "`../a.yaml` is not a relative path inside a tree"),
                    ("/files/b.yaml", "`b.yaml` is not base64"),
                ]),
            ),
            (
                json!({"files": {"acme/b.yaml": "kind: Cluster", "c.yaml": "!"}}),
                told(&[
                    ("/files/acme~1b.yaml", "`acme/b.yaml` is not base64"),
                    ("/files/c.yaml", "`c.yaml` is not base64"),
                ]),
            ),
            (
                json!({"files": {}, "revision": "x".repeat(201)}),
                told(&[("/revision", "`revision` is not a text of at most 200 characters")]),
            ),
        ] {
            assert_eq!(faults(body.clone()), expected, "{body}");
        }
    }
}
