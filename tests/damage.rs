//! Random damage to a file of a tree, as by an editor, a merge, a full disk or a hasty edit.

use std::fs;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::support::Tree;

/// One way to damage a file. Places are taken relative to the file's content.
#[derive(Debug, Clone)]
pub enum Damage {
    Remove,
    Rename(&'static str),
    Cut(Index),
    ReplaceByte(Index, u8),
    DeleteBytes(Index, usize),
    Insert(Index, &'static str),
    DeleteLine(Index),
    SwapLines(Index, Index),
    RepeatLine(Index),
    Indent(Index, &'static str),
}

/// YAML's special characters, and characters that no text has.
const MARKS: [&str; 16] =
    ["\n", " ", ":", ": ", "-", "---\n", "{", "}", "[", "]", "\"", "'", "#", "&a ", "*a", "\0"];
/// Other names in the same folder, in another, and names that no spec file has.
const NAMES: [&str; 5] =
    ["acme/renamed.yaml", "renamed.yml", "globex/renamed.yaml", "acme/spec.yaml.orig", "acme/.spec.yaml"];

impl Damage {
    pub fn any() -> impl Strategy<Value = Damage> {
        let place = any::<Index>;
        let byte = prop_oneof![any::<u8>(), select(b"\n :-{}[]\"'#&*|\t".to_vec())];
        prop_oneof![
            1 => Just(Damage::Remove),
            1 => select(NAMES.to_vec()).prop_map(Damage::Rename),
            1 => place().prop_map(Damage::Cut),
            3 => (place(), byte).prop_map(|(at, byte)| Damage::ReplaceByte(at, byte)),
            2 => (place(), 1..40_usize).prop_map(|(at, count)| Damage::DeleteBytes(at, count)),
            2 => (place(), select(MARKS.to_vec())).prop_map(|(at, mark)| Damage::Insert(at, mark)),
            2 => place().prop_map(Damage::DeleteLine),
            2 => (place(), place()).prop_map(|(a, b)| Damage::SwapLines(a, b)),
            2 => place().prop_map(Damage::RepeatLine),
            2 => (place(), select(vec![" ", "  ", "\t", "- "])).prop_map(|(at, by)| Damage::Indent(at, by)),
        ]
    }

    /// Damages a file that exists and isn't empty. Returns its new name if it was renamed.
    pub fn inflict(&self, tree: &Tree, path: &str) -> Option<String> {
        let bytes = tree.read_bytes(path);
        match self {
            Damage::Remove => tree.remove(path),
            Damage::Rename(name) => {
                let place = tree.path().join(name);
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                fs::rename(tree.path().join(path), place).unwrap();
                return Some((*name).to_owned());
            }
            _ => tree.write(path, self.to(bytes)),
        }
        None
    }

    fn to(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let length = bytes.len();
        let mut lines: Vec<Vec<u8>> =
            bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let count = lines.len();
        let line = |at: &Index| at.index(count);
        match self {
            Damage::Remove | Damage::Rename(_) => {}
            Damage::Cut(at) => bytes.truncate(at.index(length)),
            Damage::ReplaceByte(at, byte) => bytes[at.index(length)] = *byte,
            Damage::DeleteBytes(at, count) => {
                let at = at.index(length);
                bytes.drain(at..(at + count).min(length));
            }
            Damage::Insert(at, mark) => {
                let at = at.index(length);
                bytes.splice(at..at, mark.bytes());
            }
            Damage::DeleteLine(at) => lines[line(at)].clear(),
            Damage::SwapLines(a, b) => lines.swap(line(a), line(b)),
            Damage::RepeatLine(at) => lines[line(at)] = lines[line(at)].repeat(2),
            Damage::Indent(at, by) => lines[line(at)] = [by.as_bytes(), &lines[line(at)]].concat(),
        }
        match self {
            Damage::DeleteLine(_) | Damage::SwapLines(..) | Damage::RepeatLine(_) | Damage::Indent(..) => {
                lines.concat()
            }
            _ => bytes,
        }
    }
}
