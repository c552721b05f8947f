//! A proposed tree of specs as it is sent to be planned: the process that plans it may not be able to read
//! the files.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::http::problem::{FieldError, pointer};
use crate::names::{Digest, SpecPath};
use crate::problem::quote_untrusted;
use crate::spec::{Commit, Snapshot, SnapshotEntry, SourceId};

/// The largest tree that may be sent on the socket, in bytes.
pub const LARGEST: usize = 64 << 20;

/// In characters.
pub const LONGEST_REVISION: usize = 200;

/// The body of a proposal, as the command line sends it.
#[derive(Serialize)]
struct Body<'s> {
    revision: &'s str,
    commit: Option<&'s Commit>,
    /// Base64, so that files that aren't UTF-8 are kept and reported as they are.
    files: BTreeMap<&'s SpecPath, String>,
    skipped: BTreeMap<&'s SpecPath, String>,
    unreadable: BTreeMap<&'s SpecPath, UnreadableFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnreadableFile {
    code: String,
    message: String,
    hint: String,
}

/// Serializes a tree for [`read`].
///
/// # Errors
/// Never: all keys are strings, and every value serializes.
pub fn body(snapshot: &Snapshot) -> serde_json::Result<Vec<u8>> {
    let Snapshot { source: _, revision, commit, skipped, entries } = snapshot;
    let (mut files, mut unreadable) = (BTreeMap::new(), BTreeMap::new());
    for (path, entry) in entries {
        match entry {
            SnapshotEntry::File { bytes, .. } => drop(files.insert(path, STANDARD.encode(bytes))),
            SnapshotEntry::Unreadable { code, message, hint } => {
                let (code, message, hint) = (code.to_string(), message.clone(), hint.clone());
                unreadable.insert(path, UnreadableFile { code, message, hint });
            }
        }
    }
    let skipped = skipped.iter().map(|(path, bytes)| (path, STANDARD.encode(bytes))).collect();
    serde_json::to_vec(&Body { revision, commit: commit.as_ref(), files, skipped, unreadable })
}

/// Reads the body of a request: an object with `files`, and what else is known of the tree.
///
/// # Errors
/// All mistakes in the body, at least one.
pub fn read(body: Value, source: SourceId) -> Result<Snapshot, Vec<FieldError>> {
    let Value::Object(fields) = body else {
        return Err(vec![FieldError::at("", "the body is not an object", "send an object with `files`")]);
    };
    let mut form = Form { fields, faults: Vec::new() };
    if !form.fields.contains_key("files") {
        form.refuse(&["files"], "`files` is missing".to_owned(), NAME_FILES);
    }
    let is_short = |revision: &String| revision.chars().count() <= LONGEST_REVISION;
    let what = format!("a text of at most {LONGEST_REVISION} characters");
    let revision = form.optional("revision", &what, "set it to the commit, or leave it out", is_short);
    let files = form.files("files");
    let skipped = form.files("skipped");
    let hint = "set `id` and `author`, and `is_edited` if the specs differ from it";
    let commit = form.optional("commit", "a commit", hint, |_| true);
    let hint = "set `code`, `message` and `hint` for each path in the tree";
    let unreadable: Option<BTreeMap<SpecPath, UnreadableFile>> =
        form.optional("unreadable", "an object of files", hint, |_| true);
    for name in std::mem::take(&mut form.fields).keys() {
        let why = format!("`{}` is not a field of a proposal", quote_untrusted(name));
        let hint = "its fields are `files`, `revision`, `commit`, `skipped` and `unreadable`";
        form.refuse(&[name], why, hint);
    }
    if !form.faults.is_empty() {
        return Err(form.faults);
    }
    let revision = revision.filter(|revision| !revision.is_empty()).unwrap_or_else(|| "proposed".to_owned());
    let file = |(path, bytes): (SpecPath, Arc<[u8]>)| {
        let digest = Digest::of(&bytes);
        (path, SnapshotEntry::File { bytes, digest })
    };
    let unreadable = unreadable.into_iter().flatten();
    let unreadable = unreadable.map(|(path, UnreadableFile { code, message, hint })| {
        (path, SnapshotEntry::Unreadable { code: code.into(), message, hint })
    });
    let entries = files.into_iter().map(file).chain(unreadable).collect();
    Ok(Snapshot { source, revision, commit, skipped, entries })
}

const NAME_FILES: &str = "list the files of the tree by their paths in it";

/// The fields that aren't read yet, and the mistakes in the others.
struct Form {
    fields: Map<String, Value>,
    faults: Vec<FieldError>,
}

impl Form {
    fn refuse(&mut self, names: &[&str], why: String, hint: &str) {
        self.faults.push(FieldError::at(pointer(names), why, hint));
    }

    fn optional<T: DeserializeOwned>(
        &mut self,
        name: &str,
        what: &str,
        hint: &str,
        fits: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        let value = self.fields.remove(name).filter(|value| !value.is_null())?;
        let read = serde_json::from_value(value).ok().filter(fits);
        if read.is_none() {
            self.refuse(&[name], format!("`{name}` is not {what}"), hint);
        }
        read
    }

    /// Decodes files, and adds a mistake for each that isn't one.
    fn files(&mut self, field: &str) -> BTreeMap<SpecPath, Arc<[u8]>> {
        let files = self.fields.remove(field).filter(|files| field == "files" || !files.is_null());
        let files = match files.unwrap_or_else(|| Map::new().into()) {
            Value::Object(files) => files,
            _ => {
                self.refuse(&[field], format!("`{field}` is not an object"), NAME_FILES);
                Map::new()
            }
        };
        let decode = |(name, text): (String, Value)| {
            let path = name.parse::<SpecPath>().ok();
            let bytes = text.as_str().and_then(|text| STANDARD.decode(text).ok());
            let (what, hint) = match (path, bytes) {
                (Some(path), Some(bytes)) => return Some((path, bytes.into())),
                (None, _) => {
                    ("a relative path inside a tree", "use a path such as `acme/clusters/orders.yaml`")
                }
                (_, None) => ("base64", "send the file's bytes as `base64 --wrap=0 FILE` prints them"),
            };
            self.refuse(&[field, &name], format!("`{}` is not {what}", quote_untrusted(&name)), hint);
            None
        };
        files.into_iter().filter_map(decode).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(body: Value) -> Vec<(Option<String>, String)> {
        let snapshot = read(body, SourceId("specs".to_owned()));
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
            let read = read(body, SourceId("specs".to_owned())).unwrap();
            assert_eq!(read.revision, revision);
            let SnapshotEntry::File { bytes, .. } = &read.entries["acme/a.yaml"] else { panic!() };
            assert_eq!(&**bytes, b"a: 1\n");
        }
    }

    #[test]
    fn a_tree_that_a_command_sends_arrives_as_it_is() {
        let path = |path: &str| path.parse::<SpecPath>().unwrap();
        let bytes: Arc<[u8]> = b"\xff: 1\n".as_slice().into();
        let file = SnapshotEntry::File { bytes: Arc::clone(&bytes), digest: Digest::of(&bytes) };
        let (message, hint) = ("it is a link".to_owned(), "replace it".to_owned());
        let unreadable = SnapshotEntry::Unreadable { code: "link-out-of-tree".into(), message, hint };
        let (id, author) = ("3f2c1ab".to_owned(), "Ada <ada@example.com>".to_owned());
        let sent = Snapshot {
            source: SourceId("specs".to_owned()),
            revision: "3f2c1ab".to_owned(),
            commit: Some(Commit { id, author, is_edited: true, rewrote: None }),
            skipped: BTreeMap::from([(path("acme/a.yaml~"), Arc::clone(&bytes))]),
            entries: BTreeMap::from([(path("acme/a.yaml"), file), (path("acme/b.yaml"), unreadable)]),
        };
        let posted = serde_json::from_slice(&body(&sent).unwrap()).unwrap();
        let read = read(posted, sent.source.clone()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{sent:?}"));
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
                    ("/files/..~1a.yaml", "`../a.yaml` is not a relative path inside a tree"),
                    ("/files/b.yaml", "`b.yaml` is not base64"),
                    ("/x~1y", "`x/y` is not a field of a proposal"),
                ]),
            ),
            (
                json!({"files": {}, "commit": "3f2c1ab", "skipped": {"/a": ""}, "unreadable": {"a.yaml": {}}}),
                told(&[
                    ("/skipped/~1a", "`/a` is not a relative path inside a tree"),
                    ("/commit", "`commit` is not a commit"),
                    ("/unreadable", "`unreadable` is not an object of files"),
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
