//! Bad input as data: its exact output, and that it deletes nothing.
//!
//! `tests/invalid/<case>/tree` is laid over a tree that was applied with all protections off; [`MADE`]
//! creates what can't be kept in a repository. `expected.txt` is the binary's output; `UPDATE_EXPECTED=1`
//! rewrites it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::support::{Run, Tree, copy, stable};

/// The good file that most cases replace by a bad one.
const FILE: &str = "acme/clusters/events.yaml";
/// A file of another organization and fleet, untouched by every case.
const OTHER: &str = "globex/clusters/events.yaml";

type Spoil = fn(&Tree);

/// The cases whose trees are created here.
const MADE: [(&str, Spoil); 18] = [
    ("blocks-nested-ten-thousand-deep", |tree| tree.write(FILE, "- ".repeat(10_000))),
    ("brackets-nested-ten-thousand-deep", |tree| tree.write(FILE, "[".repeat(10_000))),
    ("byte-order-mark", |tree| tree.write(FILE, format!("\u{feff}{}", tree.read(FILE)))),
    ("control-character", |tree| tree.edit(FILE, "identifier: events", "identifier: ev\u{1b}[31ments")),
    ("file-without-permission", |tree| forbid(tree, FILE)),
    ("folder-named-as-file", |tree| {
        tree.remove(FILE);
        tree.write(&format!("{FILE}/events"), "");
    }),
    ("folder-without-permission", |tree| forbid(tree, "acme/clusters")),
    ("line-ends-of-windows", |tree| tree.write(FILE, tree.read(FILE).replace('\n', "\r\n"))),
    ("link-out-of-tree", |tree| link(tree, outside(tree), FILE)),
    ("link-to-another-organization", |tree| link(tree, "../../globex/clusters/events.yaml", FILE)),
    ("link-to-its-own-folder", |tree| link(tree, "..", "acme/clusters/up")),
    ("link-to-itself", |tree| link(tree, "events.yaml", FILE)),
    ("link-to-nothing", |tree| link(tree, "nothing.yaml", FILE)),
    ("not-utf8", |tree| tree.write(FILE, b"apiVersion: streamfleet/v1\nkind: Clust\xe9r\n")),
    ("nul-bytes", |tree| tree.write(FILE, tree.read(FILE).replacen("\nkind", "\n\0\0kind", 1))),
    ("secret-file-that-links-out", |tree| {
        tree.write("acme/fleets/eu.yaml", EU);
        fs::create_dir_all(tree.path().join(".streamfleet/secrets/acme")).unwrap();
        link(tree, outside(tree), ".streamfleet/secrets/acme/kubeconfig");
    }),
    ("utf16", |tree| {
        let units = tree.read(FILE).encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        tree.write(FILE, [b"\xff\xfe".as_slice(), &units].concat());
    }),
    ("vast-file", |tree| {
        // A sparse file, too large to be read as a whole into any machine's memory.
        let file = fs::File::create(tree.path().join(FILE)).unwrap();
        file.set_len(100 << 30).unwrap();
    }),
];

/// A fleet whose kubeconfig is in a file of the secrets folder.
const EU: &str = include_str!("invalid/secret-file-missing/tree/acme/fleets/eu.yaml");

fn outside(tree: &Tree) -> PathBuf {
    let file = tree.beside("outside.yaml");
    fs::write(&file, "hunter2").unwrap();
    file
}

fn link(tree: &Tree, target: impl AsRef<Path>, at: &str) {
    let at = tree.path().join(at);
    let _ = fs::remove_file(&at);
    symlink(target, at).unwrap();
}

fn forbid(tree: &Tree, path: &str) {
    fs::set_permissions(tree.path().join(path), Permissions::from_mode(0o000)).unwrap();
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/invalid")
}

fn applied() -> Tree {
    let tree = Tree::example("two-organizations");
    for file in [FILE, OTHER, "acme/fleets/main.yaml", "globex/fleets/main.yaml"] {
        tree.write(file, tree.read(file) + "deletion_protection: false\n");
    }
    tree.run_bound("apply tree --yes").expect(0);
    tree
}

/// The binary's output for a tree: its problems, and their effect on existing resources.
fn told(tree: &Tree) -> String {
    let Run { code, out, err } = tree.run_bound("plan tree");
    let told = format!("{}\n\n{}\n\n[exit code {code}]\n", err.trim(), stable(&out).trim());
    told.trim_start().replace(&*tree.path().to_string_lossy(), "TREE")
}

fn paths(tree: &Tree) -> Vec<String> {
    tree.output().into_iter().map(|(path, _)| path).collect()
}

/// Applies twice, since a mistake may also take effect a round later: nothing is deleted, and a change in
/// another fleet is made.
fn deletes_nothing(tree: &Tree, case: &str) {
    let before = tree.output();
    tree.edit(OTHER, "kafka_units: 1", "kafka_units: 2");
    for _ in 0..2 {
        let Run { out, err, .. } = tree.run_bound("apply tree --yes");
        let after = paths(tree);
        let gone: Vec<&String> =
            before.iter().map(|(path, _)| path).filter(|path| !after.contains(path)).collect();
        assert!(gone.is_empty(), "{case}: {gone:?} went\n{out}{err}");
    }
    let after = tree.output();
    let of_other = |files: &[(String, Vec<u8>)]| -> Vec<(String, Vec<u8>)> {
        files.iter().filter(|(path, _)| path.starts_with("globex/")).cloned().collect()
    };
    assert_ne!(of_other(&before), of_other(&after), "{case}: the other fleet stood still");
}

/// Runs some cases, and returns those with unexpected output.
fn wrong(cases: &[String]) -> Vec<String> {
    let tree = applied();
    let good = tree.beside("good");
    copy(&tree.path(), &good);
    let wrong = cases.iter().filter_map(|case| {
        let difference = difference(case, &tree);
        // A folder that can't be listed can't be removed.
        fs::set_permissions(tree.path().join("acme/clusters"), Permissions::from_mode(0o700)).unwrap();
        // At the same path: nothing is deleted for a tree at another path anyway.
        fs::remove_dir_all(tree.path()).unwrap();
        copy(&good, &tree.path());
        difference
    });
    wrong.collect()
}

fn difference(case: &str, tree: &Tree) -> Option<String> {
    let place = folder().join(case);
    match MADE.iter().find(|(name, _)| *name == case) {
        Some((_, make)) => make(tree),
        None => copy(&place.join("tree"), &tree.path()),
    }
    let told = told(tree);
    deletes_nothing(tree, case);
    let expected = place.join("expected.txt");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::create_dir_all(&place).unwrap();
        fs::write(&expected, &told).unwrap();
    }
    let expected = fs::read_to_string(&expected).unwrap_or_default();
    let diff = similar::TextDiff::from_lines(&expected, &told);
    (expected != told).then(|| format!("{case}:\n{}", diff.unified_diff()))
}

fn cases() -> Vec<String> {
    let kept = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut cases: Vec<String> = kept.chain(MADE.iter().map(|(name, _)| (*name).to_owned())).collect();
    cases.sort();
    cases.dedup();
    cases
}

#[test]
fn bad_input_is_told_exactly_and_deletes_nothing() {
    let cases = cases();
    let (first, second) = cases.split_at(cases.len() / 2);
    let wrong = std::thread::scope(|scope| {
        let second = scope.spawn(|| wrong(second));
        [wrong(first), second.join().unwrap()].concat()
    });
    assert!(wrong.is_empty(), "{}\nUPDATE_EXPECTED=1 writes what is said now", wrong.join("\n"));
}

#[test]
fn every_problem_says_what_to_do_next() {
    for case in cases() {
        let text = fs::read_to_string(folder().join(&case).join("expected.txt")).unwrap();
        let count = |what: &str| text.lines().filter(|line| line.trim_start().starts_with(what)).count();
        assert_eq!(count("= help: "), count("error: ") + count("warning: "), "{case}\n{text}");
    }
}
