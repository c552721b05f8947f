//! A tree is read equally from a folder and from a commit.

use std::fs;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use git2::{FileMode, Oid, Repository, Signature};

use super::{directory, git};
use crate::config::SourceConfig;
use crate::spec::{Snapshot, SnapshotEntry};

const SPEC: &str = "apiVersion: streamfleet/v1\nkind: Cluster\n";
const POINTER: &str =
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 12345\n";

fn tree(repository: &Repository, folder: &Path) -> Oid {
    let mut builder = repository.treebuilder(None).unwrap();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        if entry.file_type().unwrap().is_dir() {
            // Git allows no folder of this name.
            if name != ".git" {
                builder.insert(name, tree(repository, &entry.path()), FileMode::Tree.into()).unwrap();
            }
        } else {
            let blob = repository.blob_path(&entry.path()).unwrap();
            builder.insert(name, blob, FileMode::Blob.into()).unwrap();
        }
    }
    builder.write().unwrap()
}

fn as_commit(place: &Utf8Path, folder: &Utf8Path) -> Snapshot {
    let remote = place.join("remote.git");
    let repository = Repository::init_bare(&remote).unwrap();
    let tree = repository.find_tree(tree(&repository, folder.as_std_path())).unwrap();
    let author = Signature::now("Ada", "ada@example.com").unwrap();
    repository.commit(Some("refs/heads/main"), &author, &author, "all", &tree, &[]).unwrap();
    let config = SourceConfig { git: Some(remote.into_string()), ..SourceConfig::default() };
    let mirror = git::Mirror::of(&config, place.join("clone"), None).unwrap();
    mirror.fetch().unwrap();
    mirror.snapshot().unwrap()
}

fn shown(snapshot: &Snapshot) -> (Vec<String>, Vec<String>) {
    let entry = |entry: &SnapshotEntry| match entry {
        SnapshotEntry::File { bytes, .. } => format!("{} bytes", bytes.len()),
        SnapshotEntry::Unreadable { code, message, hint } => format!("{code}: {message} ({hint})"),
    };
    let entries = snapshot.entries.iter().map(|(path, read)| format!("{path} {}", entry(read)));
    let skipped = snapshot.skipped.iter().map(|(path, bytes)| format!("{path} {} bytes", bytes.len()));
    (entries.collect(), skipped.collect())
}

#[test]
fn a_folder_and_a_commit_of_it_are_read_by_the_same_rules() {
    let place = tempfile::tempdir().unwrap();
    let place = Utf8PathBuf::try_from(place.path().to_owned()).unwrap();
    let folder = place.join("specs");
    let large = format!("{SPEC}{}", "#".repeat(2 << 20));
    for (path, text) in [
        ("root.yaml", SPEC),
        ("orders.yaml.bak", SPEC),
        ("acme/orders.yaml", SPEC),
        ("acme/large.yml", &large),
        ("acme/large.txt", &large),
        ("acme/Shouted.YAML", SPEC),
        ("acme/notes.txt", "nothing"),
        ("acme/pointer.yaml", POINTER),
        ("acme/.orders.yaml.swp", SPEC),
        ("acme/.aside/orders.yaml", SPEC),
        ("acme/.aside/deep/folder.yaml/orders.yaml", SPEC),
        ("acme/.aside/x.streamfleet/orders.yaml", SPEC),
        ("acme/.aside/.streamfleet/orders.yaml", SPEC),
        ("acme/.streamfleet/orders.yaml", SPEC),
        ("acme/x.streamfleet/orders.yaml", SPEC),
        ("acme/x.git/orders.txt", SPEC),
        ("acme/.git/orders.yaml", SPEC),
        ("acme/.github/orders.yaml", SPEC),
        ("acme/folder.yaml/orders.txt", SPEC),
    ] {
        fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
        fs::write(folder.join(path), text).unwrap();
    }
    // More files than are searched in a hidden folder, and in a top folder.
    for (top, count) in [("acme/.many", 250), ("many", 10_010)] {
        fs::create_dir_all(folder.join(top)).unwrap();
        (0..count).for_each(|number| fs::write(folder.join(top).join(format!("{number:05}")), "").unwrap());
        fs::write(folder.join(top).join("99999"), SPEC).unwrap();
    }
    fs::create_dir(folder.join("zoo")).unwrap();
    fs::write(folder.join("zoo/orders.txt"), SPEC).unwrap();

    let (read, skipped) = shown(&directory::scan(&folder).unwrap());
    assert_eq!((read.clone(), skipped.clone()), shown(&as_commit(&place, &folder)));
    insta::assert_snapshot!(format!("{}\n\nnot read:\n{}", read.join("\n"), skipped.join("\n")));
}
