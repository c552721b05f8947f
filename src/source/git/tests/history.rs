use std::collections::BTreeSet;
use std::time::Instant;

use super::*;
use crate::names::SpecPath;
use crate::source::git::history::{FileHistory, HistoryQuery};

const FILE: &str = "acme/orders.yaml";

fn history(mirror: &Mirror, from: &[String], most: usize) -> FileHistory {
    let path: SpecPath = FILE.parse().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    mirror.history(&HistoryQuery { path: &path, from, most, until }).unwrap().unwrap()
}

fn ids(history: &FileHistory) -> Vec<String> {
    history.commits.iter().map(|commit| commit.id.clone()).collect()
}

#[test]
fn the_commits_that_changed_a_file_come_page_by_page_the_newest_first() {
    let place = Place::new();
    let (mut parent, mut changed) = (None, Vec::new());
    for (path, text) in [
        ("other.yaml", "a"),
        (FILE, "1"),
        ("acme/other.yaml", "a"),
        (FILE, "2"),
        ("other.yaml", "b"),
        (FILE, ""),
        (FILE, "3"),
    ] {
        let put = if text.is_empty() { Put::Nothing } else { Put::File(text) };
        let commit = place.commit(parent, &[(path, put)]);
        parent = Some(commit);
        if path == FILE {
            changed.insert(0, commit.to_string());
        }
    }
    place.push(parent.unwrap());
    let mirror = place.mirror(None);
    mirror.fetch().unwrap();
    let all = history(&mirror, &[], 50);
    assert_eq!((ids(&all), all.next), (changed.clone(), Vec::new()));
    let (mut found, mut from) = (Vec::new(), Vec::new());
    loop {
        let page = history(&mirror, &from, 1);
        found.extend(ids(&page));
        from = page.next;
        if from.is_empty() {
            break;
        }
    }
    assert_eq!(found, changed);
    // Without any time, each page is one commit further.
    let path: SpecPath = FILE.parse().unwrap();
    let (mut found, mut from, mut pages) = (Vec::new(), Vec::new(), 0);
    loop {
        let query = HistoryQuery { path: &path, from: &from, most: 50, until: Instant::now() };
        let page = mirror.history(&query).unwrap().unwrap();
        found.extend(ids(&page));
        (from, pages) = (page.next, pages + 1);
        if from.is_empty() {
            break;
        }
    }
    assert_eq!((found, pages), (changed, 7));
}

#[test]
fn a_merge_is_left_out_unless_it_changed_the_file_itself() {
    let place = Place::new();
    let base = place.commit(None, &[(FILE, Put::File("1"))]);
    let ours = place.commit(Some(base), &[("other.yaml", Put::File("a"))]);
    let theirs = place.commit(Some(base), &[(FILE, Put::File("2"))]);
    let merge = |text: &str, parents: [Oid; 2]| {
        let [one, other] = parents.map(|id| place.repository.find_commit(id).unwrap());
        let mut changes = TreeUpdateBuilder::new();
        changes.upsert(FILE, place.repository.blob(text.as_bytes()).unwrap(), FileMode::Blob);
        let tree = changes.create_updated(&place.repository, &one.tree().unwrap()).unwrap();
        let tree = place.repository.find_tree(tree).unwrap();
        let author = Signature::now("Ada", "ada@example.com").unwrap();
        place.repository.commit(None, &author, &author, "merge", &tree, &[&one, &other]).unwrap()
    };
    let took = merge("2", [ours, theirs]);
    let again = place.commit(Some(took), &[(FILE, Put::File("3"))]);
    let mixed = merge("4", [again, theirs]);
    place.push(mixed);
    let mirror = place.mirror(None);
    mirror.fetch().unwrap();
    let found: BTreeSet<String> = ids(&history(&mirror, &[], 50)).into_iter().collect();
    assert_eq!(found, [base, theirs, again, mixed].map(|id| id.to_string()).into());
}

#[test]
fn what_a_commit_changed_elsewhere_is_known() {
    for folder in [None, Some("specs/live")] {
        let place = Place::new();
        let at = |path: &str| folder.map_or(path.to_owned(), |folder| format!("{folder}/{path}"));
        let (file, beside, other) = (at(FILE), at("acme/other.yaml"), at("globex/x.yaml"));
        let first = place.commit(None, &[(&file, Put::File("1"))]);
        let within = place.commit(Some(first), &[(&file, Put::File("2")), (&beside, Put::File("a"))]);
        let outside = place.commit(Some(within), &[(&file, Put::File("3")), (&other, Put::File("a"))]);
        let last = place.commit(Some(outside), &[(&file, Put::File("4")), ("README", Put::File("a"))]);
        place.push(last);
        let mirror = place.mirror(folder);
        mirror.fetch().unwrap();
        let found = history(&mirror, &[], 50);
        let told: Vec<bool> = found.commits.iter().map(|commit| commit.is_within).collect();
        assert_eq!(told, [false, false, true, true], "{folder:?}");
        let commit = &found.commits[0];
        assert_eq!((commit.name.as_str(), commit.email.as_str()), ("Ada", "ada@example.com"));
        assert_eq!(commit.subject, "change");
    }
}

#[test]
fn a_commit_that_is_not_there_is_no_beginning() {
    let place = Place::new();
    place.push(place.commit(None, &[(FILE, Put::File("1"))]));
    let mirror = place.mirror(None);
    mirror.fetch().unwrap();
    let path: SpecPath = FILE.parse().unwrap();
    for id in ["", "x", "0123456789012345678901234567890123456789"] {
        let from = [id.to_owned()];
        let query = HistoryQuery { path: &path, from: &from, most: 50, until: Instant::now() };
        assert_eq!(mirror.history(&query).unwrap(), None, "{id}");
    }
}

/// Removes an object from a mirror's files.
fn lose(mirror: &Mirror, id: Oid) {
    let (folder, file) = (id.to_string()[..2].to_owned(), id.to_string()[2..].to_owned());
    let loose = mirror.place.join("objects").join(folder).join(file);
    fs::remove_file(&loose).unwrap_or_else(|error| panic!("{loose}: {error}"));
}

/// Writes all objects of a mirror as files of their own.
fn unpack(mirror: &Mirror) {
    let packs = mirror.place.join("objects/pack");
    let away = mirror.place.join("away");
    fs::rename(&packs, &away).unwrap();
    fs::create_dir(&packs).unwrap();
    for entry in fs::read_dir(&away).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "pack") {
            let unpack = std::process::Command::new("git")
                .args(["-C", mirror.place.as_str(), "unpack-objects", "-q"])
                .stdin(fs::File::open(&path).unwrap())
                .status();
            assert!(unpack.unwrap().success());
        }
    }
}

#[test]
fn a_history_that_ends_at_a_commit_that_cannot_be_read_says_so() {
    for is_commit in [true, false] {
        let place = Place::new();
        let first = place.commit(None, &[(FILE, Put::File("1"))]);
        let second = place.commit(Some(first), &[("other.yaml", Put::File("a"))]);
        let third = place.commit(Some(second), &[(FILE, Put::File("2"))]);
        place.push(third);
        let mirror = place.mirror(None);
        mirror.fetch().unwrap();
        let whole = history(&mirror, &[], 50);
        assert_eq!((ids(&whole).len(), whole.is_cut), (2, false));
        unpack(&mirror);
        // The commit itself, or the folder of the file in it.
        let tree = place.repository.find_commit(first).unwrap().tree().unwrap();
        let folder = tree.get_name("acme").unwrap().id();
        lose(&mirror, if is_commit { first } else { folder });
        let cut = history(&mirror, &[], 50);
        assert!(cut.is_cut, "{cut:?}");
        let kept = if is_commit { vec![third.to_string()] } else { Vec::new() };
        assert_eq!(ids(&cut), kept, "{cut:?}");
    }
}
