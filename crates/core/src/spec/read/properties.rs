//! Random edits of valid files: nothing panics, and no document disappears without a problem.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::tests::{CLUSTER, FLEET, snapshot};
use super::*;
use crate::problem::render;

/// One random edit; positions are taken modulo the length.
#[derive(Debug, Clone)]
enum Edit {
    Flip(usize, u8),
    Delete(usize, usize),
    Swap(usize, usize),
    Insert(usize, &'static str),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let marks = prop::sample::select(vec![
        "\"", "'", "[", "{", "---\n", "\t", "&a ", "*a", "!t ", "|\n", "\n", ": ", "#", "?",
    ]);
    let edit = prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Edit::Flip(at, byte)),
        (any::<usize>(), 1..40_usize).prop_map(|(at, length)| Edit::Delete(at, length)),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Edit::Swap(a, b)),
        (any::<usize>(), marks).prop_map(|(at, mark)| Edit::Insert(at, mark)),
    ];
    prop::collection::vec(edit, 1..6)
}

fn apply(mut bytes: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for edit in edits {
        let length = bytes.len().max(1);
        match edit {
            Edit::Flip(at, byte) => bytes.iter_mut().skip(at % length).take(1).for_each(|old| *old ^= byte),
            Edit::Delete(at, count) => {
                let start = (at % length).min(bytes.len());
                bytes.drain(start..(start + count).min(bytes.len()));
            }
            Edit::Swap(a, b) => {
                let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
                let count = lines.len().max(1);
                if !lines.is_empty() {
                    lines.swap(a % count, b % count);
                }
                bytes = lines.concat();
            }
            Edit::Insert(at, mark) => {
                let start = (at % length).min(bytes.len());
                bytes.splice(start..start, mark.bytes());
            }
        }
    }
    bytes
}

/// Returns the keys of the documents that a person would see in the text, line by line.
fn plainly_there(text: &str) -> BTreeSet<String> {
    let part = |part: &str| {
        let value = |key: &str| {
            let mut lines = part.lines().filter_map(|line| line.strip_prefix(key));
            lines.next().map(str::to_owned)
        };
        Some(format!("{}/{}/{}", value("kind: ")?, value("organization: ")?, value("identifier: ")?))
    };
    text.split("---\n").filter_map(part).collect()
}

proptest! {
    #[test]
    fn no_edit_loses_a_document_without_a_trace(edits in edits()) {
        let secret = FLEET.replace("{from_file: eu}", "hunter2");
        let good = format!("{CLUSTER}---\n{secret}---\n{}", CLUSTER.replace("orders", "payments"));
        let wanted = plainly_there(&good);
        let bytes = apply(good.into_bytes(), &edits);
        let documents = read(&snapshot(&[("acme/a.yaml", &bytes)]), None);
        let file = documents.files.values().next().unwrap();
        let found: BTreeSet<String> = file.documents.iter().map(|d| &d.key)
            .chain(file.invalid.iter().map(|d| &d.key))
            .map(|key| String::from(key.clone()))
            .collect();
        let text = String::from_utf8_lossy(&bytes);
        let there = plainly_there(&text);
        for key in wanted.intersection(&there) {
            prop_assert!(
                found.contains(key) || !file.unreadable.is_empty() || hidden(&text),
                "{key} is lost without a trace in\n{text}"
            );
        }
        prop_assert_eq!(file.problems.is_empty(), file.invalid.is_empty() && file.unreadable.is_empty());
        let shown = render(&file.problems, false);
        prop_assert!(!shown.contains('\u{1b}'), "an escape is shown");
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,200}") {
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            let documents = read(&snapshot(&[("a.yaml", bytes)]), None);
            render(&documents.problems().cloned().collect::<Vec<_>>(), true);
        }
    }
}

/// Edits that turn lines into a part of a value, a comment or another document: the document is really gone.
fn hidden(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_end();
        line.ends_with(['|', '"', '\'']) || line.contains(['#', '"', '\'', '?', '[', '{'])
    })
}
