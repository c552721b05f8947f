use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;

struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        tree
    }

    fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.0.path()).unwrap()
    }

    fn scan(&self) -> Vec<String> {
        let show = |(path, entry): (&SpecPath, &SnapshotEntry)| match entry {
            SnapshotEntry::File { bytes, .. } => format!("{path}: {}", String::from_utf8_lossy(bytes)),
            SnapshotEntry::Unreadable { code, message, hint } => {
                format!("{path}: [{code}] {message} ({hint})")
            }
        };
        scan(self.path()).unwrap().entries.iter().map(show).collect()
    }
}

#[test]
fn yaml_files_are_found_and_dots_and_others_skipped() {
    let tree = Tree::new(&[
        ("b.yml", "2"),
        ("a/x.yaml", "1"),
        ("a/readme.md", "no"),
        (".git/x.yaml", "no"),
        ("a/.hidden.yaml", "no"),
    ]);
    assert_eq!(tree.scan(), ["a/x.yaml: 1", "b.yml: 2"]);
    let first = scan(tree.path()).unwrap();
    assert!(first.commit.is_none() && Path::new(&first.source.0).is_absolute());
    assert_eq!(first.revision, scan(tree.path()).unwrap().revision);
    fs::write(tree.path().join("b.yml"), "3").unwrap();
    assert_ne!(first.revision, scan(tree.path()).unwrap().revision);
}

#[test]
fn links_are_followed_inside_of_the_tree_only() {
    let outside = Tree::new(&[("secret.yaml", "outside")]);
    let tree = Tree::new(&[("a/x.yaml", "1"), ("a/b/y.yaml", "2")]);
    symlink(outside.path().join("secret.yaml"), tree.path().join("out.yaml")).unwrap();
    symlink(outside.path(), tree.path().join("outfolder")).unwrap();
    symlink("a/x.yaml", tree.path().join("in.yaml")).unwrap();
    symlink("a/b", tree.path().join("shared")).unwrap();
    symlink("..", tree.path().join("a/b/up")).unwrap();
    symlink("nowhere.yaml", tree.path().join("z.yaml")).unwrap();
    assert_eq!(
        tree.scan(),
        [
            "a/b/up: [link-cycle] the link leads back to a, which contains it (remove the link)",
            "a/b/y.yaml: 2",
            "a/x.yaml: 1",
            "in.yaml: 1",
            "out.yaml: [link-out-of-tree] the link leads out of the spec tree (put a copy in place of the \
             link)",
            "outfolder: [link-out-of-tree] the link leads out of the spec tree (put a copy in place of the \
             link)",
            "shared/up: [link-out-of-folder] the link leads out of its top folder, possibly to another organization's \
             files (put a copy in place of the link)",
            "shared/y.yaml: 2",
            "z.yaml: [broken-link] cannot follow the link: No such file or directory (os error 2) (fix the link; \
             removing it removes what it described)",
        ]
    );
}

#[test]
fn what_can_not_be_read_is_there_as_such() {
    use std::os::unix::ffi::OsStrExt;
    let tree = Tree::new(&[("dir.yaml/x", "1"), ("big.yaml", &"x".repeat(1024 * 1024 + 1))]);
    let name = std::ffi::OsStr::from_bytes(b"n\xff.yaml");
    fs::write(tree.0.path().join(name), "1").unwrap();
    assert_eq!(
        tree.scan(),
        [
            "big.yaml: [file-too-large] the file is larger than 1 MiB (split the file; a certificate or kubeconfig \
             needs a few KiB)",
            "dir.yaml: [folder-named-as-file] a folder has the name of a YAML file (rename the folder, or put the file in its place)",
            "n\u{fffd}.yaml: [name-not-utf8] the name is not UTF-8 (rename it; names in a spec tree are UTF-8)",
        ]
    );
}

#[test]
fn the_systems_answers_come_with_a_hint() {
    let denied = io::Error::from(ErrorKind::PermissionDenied);
    let SnapshotEntry::Unreadable { message, hint, .. } =
        failed("unreadable-folder", "cannot list the folder", &denied)
    else {
        panic!("a failure is unreadable");
    };
    assert_eq!(message, "cannot list the folder: permission denied");
    assert_eq!(hint, "make it readable for the user that runs streamfleet");
}

#[test]
fn a_root_that_is_not_a_folder_is_an_error() {
    let tree = Tree::new(&[("a.yaml", "1")]);
    for (name, hint) in [
        ("missing", "create the folder, or give the path of the one with your specs"),
        ("a.yaml", "give the folder, not a file in it"),
    ] {
        let error = scan(&tree.path().join(name)).unwrap_err();
        assert_eq!(error.hint(), hint);
        assert!(error.to_string().starts_with("cannot read the spec tree /"), "{error}");
    }
}

#[test]
fn links_lead_neither_into_dot_folders_nor_into_other_top_folders() {
    let tree = Tree::new(&[
        (".streamfleet/secrets/acme/pw", "hunter2"),
        ("acme/x.yaml", "1"),
        ("globex/.own/y.yaml", "2"),
        ("globex/z.yaml", "3"),
    ]);
    for (target, link) in [
        ("../.streamfleet/secrets/acme/pw", "globex/pw.yaml"),
        ("../.streamfleet", "globex/sf"),
        ("../acme/x.yaml", "globex/x.yaml"),
        ("../acme", "globex/acme"),
        ("..", "globex/up"),
        (".own/y.yaml", "globex/own.yaml"),
        ("z.yaml", "globex/fine.yaml"),
        (".streamfleet", "sf"),
        (".streamfleet/secrets/acme/pw", "pw.yaml"),
        ("acme/x.yaml", "fine.yaml"),
    ] {
        symlink(target, tree.path().join(link)).unwrap();
    }
    let copy = "(put a copy in place of the link)";
    let other = format!(
        "[link-out-of-folder] the link leads out of its top folder, possibly to another organization's files {copy}"
    );
    let hidden = format!(
        "[link-to-hidden] the link leads to a name that begins with a dot, where specs aren't read {copy}"
    );
    assert_eq!(
        tree.scan(),
        [
            "acme/x.yaml: 1".to_owned(),
            "fine.yaml: 1".to_owned(),
            format!("globex/acme: {other}"),
            "globex/fine.yaml: 3".to_owned(),
            format!("globex/own.yaml: {hidden}"),
            format!("globex/pw.yaml: {other}"),
            format!("globex/sf: {other}"),
            format!("globex/up: {other}"),
            format!("globex/x.yaml: {other}"),
            "globex/z.yaml: 3".to_owned(),
            format!("pw.yaml: {hidden}"),
            format!("sf: {hidden}"),
        ]
    );
}

#[test]
fn what_kubernetes_mounts_is_read() {
    for folder in ["", "acme/"] {
        let data = format!("{folder}..2026_01_31_00_00_00.1");
        let tree = Tree::new(&[(&format!("{data}/x.yaml"), "1"), (&format!("{data}/sub/y.yaml"), "2")]);
        let at = tree.path().join(folder);
        symlink("..2026_01_31_00_00_00.1", at.join("..data")).unwrap();
        symlink("..data/x.yaml", at.join("x.yaml")).unwrap();
        symlink("..data/sub", at.join("sub")).unwrap();
        assert_eq!(tree.scan(), [format!("{folder}sub/y.yaml: 2"), format!("{folder}x.yaml: 1")]);
    }
}

/// Returns the entries of the tree if `between` is called between the two listings of each scan.
fn entries(tree: &Tree, between: &mut dyn FnMut()) -> Option<Vec<String>> {
    let root = tree.path().canonicalize_utf8().unwrap();
    let show = |(path, entry): (&SpecPath, &SnapshotEntry)| match entry {
        SnapshotEntry::File { .. } => path.to_string(),
        SnapshotEntry::Unreadable { code, message, hint } => format!("{path}: [{code}] {message} ({hint})"),
    };
    still_entries(&root, &KnownFiles::new(), between)
        .unwrap()
        .map(|found| found.entries.iter().map(show).collect())
}

#[test]
fn a_file_that_is_moved_during_the_scan_is_found() {
    let tree = Tree::new(&[("acme/a/x.yaml", "1"), ("acme/b/y.yaml", "1")]);
    let (from, to) = (tree.path().join("acme/b/y.yaml"), tree.path().join("acme/a/y.yaml"));
    let found = entries(&tree, &mut || drop(fs::rename(&from, &to))).unwrap();
    assert_eq!(found, ["acme/a/x.yaml", "acme/a/y.yaml"]);
}

#[test]
fn what_keeps_changing_is_unreadable_and_the_rest_is_read() {
    let tree = Tree::new(&[("acme/x.yaml", "1"), ("globex/y.yaml", "1")]);
    let file = tree.path().join("acme/x.yaml");
    let mut text = String::new();
    let mut grow = || {
        text.push('x');
        fs::write(&file, &text).unwrap();
    };
    assert_eq!(
        entries(&tree, &mut grow).unwrap(),
        [
            "acme/x.yaml: [unstable-tree] this changes while the tree is read (finish writing it, or write it outside the \
             tree and move it)",
            "globex/y.yaml",
        ]
    );
    let mut number = 0;
    let mut add = || {
        number += 1;
        fs::write(tree.path().join(format!("{number}.yaml")), "1").unwrap();
    };
    assert_eq!(entries(&tree, &mut add), None);
    let error = SourceError::Changing { path: "tree".into() };
    assert_eq!(
        format!("{error} ({})", error.hint()),
        "cannot read the spec tree tree: its files keep changing (wait until no program writes to it, and try again)"
    );
}

#[test]
fn too_many_files_in_one_top_folder_leave_the_others_alone() {
    let tree = Tree::new(&[("acme/x.yaml", "1"), ("zulu/y.yaml", "1")]);
    for name in 0..=MAX_FILES {
        // A broken link is the cheapest entry that counts.
        symlink("nowhere", tree.path().join(format!("acme/a{name}"))).unwrap();
    }
    let snapshot = scan(tree.path()).unwrap();
    let told = snapshot.entries.iter().filter_map(|(path, entry)| match entry {
        SnapshotEntry::Unreadable { code, message, hint } if code == "too-many-files" => {
            Some(format!("{}: {message} ({hint})", path.top_folder().unwrap_or_default()))
        }
        _ => None,
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "acme: the top folder has more than 100000 files or folders; this one and later ones are not read (keep only \
             specs in the folder)"
        ]
    );
    assert!(snapshot.entries.contains_key(&"zulu/y.yaml".parse::<SpecPath>().unwrap()));
}
