//! Tests of notifications on real folders.

use std::fs::{self, File};
use std::io::Write as _;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use camino::Utf8PathBuf;
use tempfile::TempDir;

use super::*;
use crate::spec::SnapshotEntry;

/// Longer than any notification takes.
const LONG: Duration = Duration::from_secs(60);

struct Watched {
    root: TempDir,
    told: Receiver<()>,
}

impl Watched {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(root.path().canonicalize().unwrap()).unwrap();
        let mut watch = Watch::new(&path);
        let (tell, told) = channel();
        std::thread::spawn(move || {
            while tell.send(()).is_ok() {
                watch.changed();
            }
        });
        told.recv_timeout(LONG).unwrap();
        Self { root, told }
    }

    fn write(&self, file: &str) {
        fs::write(self.root.path().join(file), "a: 1\n").unwrap();
    }

    #[track_caller]
    fn is_told(&self) {
        self.told.recv_timeout(LONG).expect("somebody is told");
        // A slow save may cause two notifications.
        while self.told.recv_timeout(SAVE_DEBOUNCE * 5).is_ok() {}
    }
}

#[test]
fn what_is_in_folders_that_were_not_there_is_told() {
    let watched = Watched::new();
    fs::create_dir_all(watched.root.path().join("a/b/c")).unwrap();
    watched.is_told();
    watched.write("a/b/c/x.yaml");
    watched.is_told();
    // A renamed folder is still watched.
    fs::rename(watched.root.path().join("a/b"), watched.root.path().join("d")).unwrap();
    watched.is_told();
    watched.write("d/c/x.yaml");
    watched.is_told();
    fs::remove_dir_all(watched.root.path().join("d")).unwrap();
    watched.is_told();
}

#[test]
fn another_tree_in_the_place_of_the_one_that_was_there_is_told() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().canonicalize().unwrap();
    let at = |name: &str| folder.join(name);
    for tree in ["first/specs", "second/specs"] {
        fs::create_dir_all(at(tree)).unwrap();
    }
    // As git-sync does it: only the link is replaced.
    let link = |to: &str| {
        std::os::unix::fs::symlink(to, at("next")).unwrap();
        fs::rename(at("next"), at("now")).unwrap();
    };
    link("first");
    let path = Utf8PathBuf::from_path_buf(at("now/specs")).unwrap();
    assert_eq!(links_to(path.as_std_path()), [(folder.clone(), OsString::from("now"))]);
    let mut watch = Watch::new(&path);
    let (tell, told) = channel();
    std::thread::spawn(move || {
        while tell.send(()).is_ok() {
            watch.changed();
        }
    });
    told.recv_timeout(LONG).unwrap();
    let watched = Watched { root: place, told };
    watched.write("something beside it");
    assert!(watched.told.recv_timeout(MAX_SAVE_DEBOUNCE * 2).is_err());
    link("second");
    watched.is_told();
    fs::write(at("second/specs/x.yaml"), "a: 1\n").unwrap();
    watched.is_told();
    fs::write(at("first/specs/x.yaml"), "a: 1\n").unwrap();
    assert!(watched.told.recv_timeout(MAX_SAVE_DEBOUNCE * 2).is_err(), "it is no part of the tree any more");
}

#[test]
fn what_editors_keep_beside_a_file_is_not_told() {
    let watched = Watched::new();
    watched.write(".x.yaml.swp");
    fs::create_dir(watched.root.path().join(".streamfleet")).unwrap();
    watched.write(".streamfleet/x.yaml");
    assert!(watched.told.recv_timeout(MAX_SAVE_DEBOUNCE * 2).is_err());
    watched.write("x.yaml");
    watched.is_told();
}

#[test]
fn events_that_are_lost_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(root.path().canonicalize().unwrap()).unwrap();
    let mut watch = Watch::new(&path);
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    // inotify merges equal consecutive events, so two files alternate.
    for number in 0..=limit {
        fs::write(path.join(format!("{}.yaml", number % 2)), "a: 1\n").unwrap();
    }
    // The queue is full, so this folder causes no event.
    fs::create_dir(path.join("late")).unwrap();
    watch.changed();
    assert!(watch.folders.values().any(|folder| folder.ends_with("late")), "{:?}", watch.folders);
}

#[test]
fn a_file_that_somebody_still_writes_is_known_until_it_is_closed_or_gone() {
    let root = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(root.path().canonicalize().unwrap()).unwrap();
    fs::write(path.join("x.yaml"), "a: 1\n").unwrap();
    let mut watch = Watch::new(&path);
    let mut file = File::create(path.join("x.yaml")).unwrap();
    let mut other = File::create(path.join("y.yaml")).unwrap();
    file.write_all(b"a: ").unwrap();
    other.write_all(b"b: ").unwrap();
    watch.changed();
    let unfinished = watch.unfinished();
    assert_eq!(unfinished.files(), [path.join("x.yaml"), path.join("y.yaml")]);
    let snapshot = super::super::Scanner::of(&watch).scan(&path).unwrap();
    assert!(snapshot.entries.values().all(|entry| matches!(entry, SnapshotEntry::Unreadable { .. })));
    assert_ne!(snapshot.revision, super::super::scan(&path).unwrap().revision);
    file.write_all(b"2").unwrap();
    drop(file);
    fs::remove_file(path.join("y.yaml")).unwrap();
    watch.changed();
    assert_eq!(unfinished.files(), [""; 0].map(PathBuf::from));
    // A file that was written without being opened isn't waited for indefinitely.
    let long_ago = Instant::now().checked_sub(ABANDONED).unwrap();
    unfinished.lock().insert(path.join("x.yaml").into(), long_ago);
    assert_eq!(unfinished.files().len(), 0);
}

#[test]
fn file_systems_that_others_change_are_known() {
    assert_eq!(remote(0x6969), Some("NFS"));
    // As a host with signed 64-bit numbers returns it.
    assert_eq!(remote(0xffff_ffff_ff53_4d42), Some("CIFS"));
    // tmpfs.
    assert_eq!(remote(0x0102_1994), None);
}

#[test]
fn whether_anything_was_told_is_known_before_anybody_comes_to_hear_it() {
    let place = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(place.path().canonicalize().unwrap()).unwrap();
    let mut watch = Watch::new(&root);
    let heard = watch.heard();
    let mark = heard.mark();
    assert!(mark.is_some() && heard.is_unchanged_since(mark));
    fs::write(root.join("a.yaml"), "a: 1\n").unwrap();
    assert!(!heard.is_unchanged_since(mark), "it was not taken yet");
    watch.changed();
    assert!(!heard.is_unchanged_since(mark), "it was taken");
    let mark = heard.mark();
    assert!(heard.is_unchanged_since(mark));
    // Events in a new folder are missed until it is watched.
    fs::create_dir(root.join("acme")).unwrap();
    assert!(watch.read_events());
    assert!(heard.mark().is_none() && !heard.is_unchanged_since(None));
    watch.update_watches();
    let mark = heard.mark();
    assert!(heard.is_unchanged_since(mark));
    fs::write(root.join("acme/b.yaml"), "b: 1\n").unwrap();
    assert!(!heard.is_unchanged_since(mark));
    // A tree that isn't watched never counts as unchanged.
    let nowhere = Watch::new(&root.join("nowhere")).heard();
    assert!(nowhere.mark().is_none() && !nowhere.is_unchanged_since(None));
}

#[test]
fn names_are_taken_once_and_not_while_more_may_follow() {
    let place = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(place.path().canonicalize().unwrap()).unwrap();
    let mut watch = Watch::new(&root);
    let heard = watch.heard();
    let names = |names: &[&str]| Some(names.iter().map(|name| root.join(name).into()).collect());
    assert_eq!(heard.take_named(), None, "what changed before the watch began is unknown");
    assert_eq!(heard.take_named(), names(&[]));
    for file in ["a.yaml", ".a.yaml.swp", ".streamfleet-tmp-1"] {
        fs::write(root.join(file), "a: 1\n").unwrap();
    }
    assert_eq!(heard.take_named(), None, "the watching thread hasn't read them yet");
    watch.hear();
    assert_eq!(heard.take_named(), names(&[".a.yaml.swp", "a.yaml"]));
    assert_eq!(heard.take_named(), names(&[]));
    heard.lock_count().count_rename(1, true);
    assert_eq!(heard.take_named(), None, "the new name wasn't told yet");
    fs::rename(root.join("a.yaml"), root.join("b.yaml")).unwrap();
    watch.hear();
    assert_eq!(heard.take_named(), names(&["a.yaml", "b.yaml"]));
    fs::create_dir(root.join("acme")).unwrap();
    watch.hear();
    assert_eq!(heard.take_named(), None, "files may have been added before the folder was watched");
    for number in 0..=2_000 {
        fs::write(root.join(format!("acme/{number}.yaml")), "a: 1\n").unwrap();
    }
    watch.hear();
    assert_eq!(heard.take_named(), None, "all of the tree is walked as fast");
}
