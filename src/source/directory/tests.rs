use std::os::unix::fs::symlink;

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

    /// Each entry: its text, or code, message and hint of what can't be read.
    fn scan(&self) -> Vec<String> {
        let show = |(path, entry): (&SpecPath, &Entry)| match entry {
            Entry::File { bytes, .. } => format!("{path}: {}", String::from_utf8_lossy(bytes)),
            Entry::Unreadable { code, message, hint } => format!("{path}: [{code}] {message} ({hint})"),
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
    assert!(!first.git && Path::new(&first.source.0).is_absolute());
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
            "a/b/up: [link-cycle] it is a link to a, which contains it (remove the link)",
            "a/b/y.yaml: 2",
            "a/x.yaml: 1",
            "in.yaml: 1",
            "out.yaml: [link-out-of-tree] it is a link that leads out of the spec tree (put a copy of the file into \
             the tree)",
            "outfolder: [link-out-of-tree] it is a link that leads out of the spec tree (put a copy of the file into \
             the tree)",
            "shared/up/b: [link-cycle] it is a link to a/b, which contains it (remove the link)",
            "shared/up/x.yaml: 1",
            "shared/y.yaml: 2",
            "z.yaml: [broken-link] can't follow the link: No such file or directory (os error 2) (mend the link or \
             remove it)",
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
            "dir.yaml: [folder-named-as-file] it is a folder with the name of a YAML file (rename the folder)",
            "n\u{fffd}.yaml: [name-not-utf8] its name is not UTF-8 (rename it; names in a spec tree are UTF-8)",
        ]
    );
}

#[test]
fn the_systems_answers_come_with_a_hint() {
    let denied = io::Error::from(ErrorKind::PermissionDenied);
    let Entry::Unreadable { message, hint, .. } =
        failed("unreadable-folder", "can't list the folder", &denied)
    else {
        panic!("a failure is unreadable");
    };
    assert_eq!(message, "can't list the folder: permission denied");
    assert_eq!(hint, "let the user that runs this read it");
}

#[test]
fn a_root_that_is_not_a_folder_is_an_error() {
    let tree = Tree::new(&[("a.yaml", "1")]);
    for (name, hint) in [
        ("missing", "make the folder, or give the path of the one with your specs"),
        ("a.yaml", "give the folder, not a file in it"),
    ] {
        let error = scan(&tree.path().join(name)).unwrap_err();
        assert_eq!(error.hint(), hint);
        assert!(error.to_string().starts_with("can't read the spec tree /"), "{error}");
    }
}
