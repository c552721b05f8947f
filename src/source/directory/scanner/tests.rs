use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::super::scan;
use super::*;
use crate::spec::API_VERSION;

fn text(entry: &SnapshotEntry) -> String {
    match entry {
        SnapshotEntry::File { bytes, .. } => String::from_utf8(bytes.to_vec()).unwrap(),
        SnapshotEntry::Unreadable { message, .. } => message.clone(),
    }
}

#[test]
fn a_file_that_was_left_alone_is_not_read_again_and_one_that_changed_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
    // Each save makes a new file, so that the test needn't wait for the clock.
    let save = |file: &str, text: &str| {
        fs::write(root.join("beside"), text).unwrap();
        fs::rename(root.join("beside"), root.join(file)).unwrap();
    };
    let same = |scanner: &mut Scanner| {
        let (found, expected) = (scanner.scan(&root).unwrap(), scan(&root).unwrap());
        assert_eq!(found.revision, expected.revision);
        assert_eq!(found.entries.len(), expected.entries.len());
    };
    save("a.yaml", "a: 1");
    save("b.yaml", "b: 1");
    let mut scanner = Scanner { settled: Duration::ZERO, ..Scanner::default() };
    same(&mut scanner);
    assert_eq!(scanner.known.len(), 2);
    let [first, second] = [(); 2].map(|()| scanner.scan(&root).unwrap());
    assert!(Arc::ptr_eq(&first, &second));

    let path: SpecPath = "b.yaml".to_owned().try_into().unwrap();
    let other = scanner.known.values().next().unwrap().1.clone();
    scanner.known.get_mut(&path).unwrap().1 = other;
    save("c.yaml", "c: 1");
    let found = scanner.scan(&root).unwrap();
    assert_eq!(text(&found.entries[&path]), "a: 1");
    save("b.yaml", "b: 2");
    same(&mut scanner);
    fs::rename(root.join("a.yaml"), root.join("b.yaml")).unwrap();
    same(&mut scanner);
    fs::remove_file(root.join("b.yaml")).unwrap();
    same(&mut scanner);
    // A file that was changed just now may change again without a new timestamp, so it isn't cached.
    save("a.yaml", "a: 1");
    let mut scanner = Scanner::default();
    same(&mut scanner);
    assert!(scanner.known.is_empty());
}

#[test]
fn only_named_files_are_read_until_the_next_walk() {
    let place = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(place.path().canonicalize().unwrap()).unwrap();
    let write = |number: u32| {
        ["a", "b"].map(|file| fs::write(root.join(format!("{file}.yaml")), number.to_string()).unwrap())
    };
    write(1);
    let mut watch = Watch::new(&root);
    let mut scanner = Scanner::of(&watch);
    let scan = |scanner: &mut Scanner| {
        let snapshot = scanner.scan(&root).unwrap();
        snapshot.entries.values().map(text).collect::<Vec<_>>()
    };
    assert_eq!(scan(&mut scanner), ["1", "1"]);
    write(2);
    watch.hear();
    // As if only one of the two changes caused an event.
    let mut named = scanner.heard.changes.take_named().unwrap();
    named.retain(|file| file.ends_with("a.yaml"));
    assert_eq!(named.len(), 1);
    scanner.heard.changes.set_named(named);
    assert_eq!(scan(&mut scanner), ["2", "1"]);
    scanner.last.as_mut().unwrap().walked -= WALK_INTERVAL;
    assert_eq!(scan(&mut scanner), ["2", "2"]);
    // A change without an event is found when there is reason for doubt.
    write(3);
    watch.hear();
    scanner.heard.changes.set_named(BTreeSet::new());
    assert_eq!(scan(&mut scanner), ["2", "2"]);
    scanner.doubt();
    assert_eq!(scan(&mut scanner), ["3", "3"]);
}

/// Beyond the limit, a walk decides which files are read.
#[test]
fn a_full_top_folder_is_walked_and_the_others_are_not() {
    let place = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(place.path().canonicalize().unwrap()).unwrap();
    for folder in ["acme", "globex"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    let files = ["acme/a.yaml", "globex/b.yaml"].map(|file| root.join(file));
    let write = |number: u32| files.each_ref().map(|file| fs::write(file, number.to_string()).unwrap());
    write(1);
    let mut watch = Watch::new(&root);
    let mut scanner = Scanner::of(&watch);
    scanner.scan(&root).unwrap();
    scanner.last.as_mut().unwrap().counts.insert("acme".to_owned(), MAX_FILES);
    for (number, named, read) in [(2, 1, ["1", "2"]), (3, 0, ["3", "3"])] {
        write(number);
        watch.hear();
        scanner.heard.changes.take_named().unwrap();
        scanner.heard.changes.set_named([files[named].clone().into_std_path_buf()].into());
        let snapshot = scanner.scan(&root).unwrap();
        assert_eq!(snapshot.entries.values().map(text).collect::<Vec<_>>(), read);
    }
}

/// A tree that is edited at random, beside a folder out of the tree.
struct Edits {
    place: tempfile::TempDir,
    random: fastrand::Rng,
    /// Files that are still open for writing.
    open: Vec<File>,
}

const FOLDERS: [&str; 9] = [
    "specs",
    "specs",
    "specs/acme",
    "specs/acme",
    "specs/acme/clusters",
    "specs/globex",
    "specs/acme/.aside",
    "specs/acme/dir.yaml",
    "outside",
];

const FILES: [&str; 9] =
    ["a.yaml", "b.yml", "c.yaml", "c.yaml", "a.yaml.bak", "notes", "Shout.YAML", ".a.yaml.swp", ".b.yaml"];

impl Edits {
    fn new(seed: u64) -> Self {
        let edits = Self {
            place: tempfile::tempdir().unwrap(),
            random: fastrand::Rng::with_seed(seed),
            open: Vec::new(),
        };
        FOLDERS.iter().for_each(|folder| fs::create_dir_all(edits.at(folder)).unwrap());
        edits
    }

    fn at(&self, path: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.place.path()).unwrap().canonicalize_utf8().unwrap().join(path)
    }

    fn folder(&mut self) -> Utf8PathBuf {
        let folder = FOLDERS[self.random.usize(..FOLDERS.len())];
        self.at(folder)
    }

    fn file(&mut self) -> Utf8PathBuf {
        self.folder().join(FILES[self.random.usize(..FILES.len())])
    }

    fn text(&mut self) -> String {
        let number = self.random.u32(..);
        match self.random.u32(..8) {
            0 => String::new(),
            1 => "x".repeat((1 << 20) + 1),
            2 => number.to_string(),
            _ => format!("apiVersion: {API_VERSION}\nnumber: {number}\n"),
        }
    }

    /// Makes one edit. It may fail, as when there is no such file.
    fn make(&mut self) -> io::Result<()> {
        let (one, other, text) = (self.file(), self.file(), self.text());
        match self.random.u32(..24) {
            0..8 => fs::write(one, text),
            8..10 => {
                let beside = one.with_file_name([".new", "new~", "4913"][self.random.usize(..3)]);
                fs::write(&beside, text)?;
                fs::rename(beside, one)
            }
            10 => {
                fs::rename(&one, format!("{one}~"))?;
                fs::write(one, text)
            }
            11 => fs::rename(one, other),
            12 => Ok(renameat_with(CWD, one.as_std_path(), CWD, other.as_std_path(), RenameFlags::EXCHANGE)?),
            13 => fs::remove_file(one),
            14 => fs::hard_link(one, other),
            15 => symlink(one, other),
            16 => symlink(self.folder(), other),
            17 => fs::set_permissions(one, Permissions::from_mode(0o600 + self.random.u32(..8))),
            18 => fs::create_dir_all(self.folder()),
            19 => fs::rename(self.folder(), self.folder()),
            20 => fs::rename(self.folder(), self.at("specs/acme/moved")),
            21 => fs::remove_dir_all(self.folder()),
            22 => {
                let mut file = OpenOptions::new().append(true).open(one)?;
                file.write_all(text.as_bytes())?;
                self.open.push(file);
                Ok(())
            }
            _ => {
                self.open.clear();
                Ok(())
            }
        }
    }
}

#[test]
fn a_scan_of_named_files_finds_what_a_walk_finds() {
    let mut named = 0;
    for seed in 0..60 {
        let mut edits = Edits::new(seed);
        let root = edits.at("specs");
        let mut watch = Watch::new(&root);
        let mut scanner = Scanner::of(&watch);
        for step in 0..30 {
            for _ in 0..edits.random.u32(..4) {
                let _ = edits.make();
            }
            let is_heard = edits.random.u32(..8) > 0;
            if is_heard {
                watch.hear();
            }
            let (found, expected) = (scanner.scan_all(&root), scan(&root));
            let (Ok(found), Ok(expected)) = (&found, &expected) else {
                assert!(found.is_err() && expected.is_err(), "seed {seed}, step {step}");
                continue;
            };
            let entry = |entry: &SnapshotEntry| match entry {
                SnapshotEntry::File { digest, .. } => digest.to_string(),
                SnapshotEntry::Unreadable { message, .. } => message.clone(),
            };
            let shown = |snapshot: &Snapshot| {
                let entries = snapshot.entries.iter().map(|(path, it)| (path.clone(), entry(it)));
                (entries.collect::<Vec<_>>(), snapshot.skipped.clone(), snapshot.revision.clone())
            };
            assert_eq!(shown(found), shown(expected), "seed {seed}, step {step}");
            named += u32::from(scanner.last.as_ref().is_some_and(|last| last.stamp.is_none()));
        }
    }
    assert!(named > 100, "{named}");
}
