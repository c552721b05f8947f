//! Tests of processes that only read a state folder, whatever others do with it.

use std::fs;
use std::time::Duration;

use super::*;
use crate::state::cache::FOLDER;

/// A closed folder with one of everything, and its records.
fn filled() -> (TempDir, Utf8PathBuf, Recorded) {
    let (dir, path) = place();
    let state = State::open(&path).unwrap();
    fill(&state);
    let recorded = state.recorded().unwrap();
    (dir, path, recorded)
}

fn read(path: &Utf8Path) -> (Recorded, Vec<String>) {
    let state = State::read(path).unwrap().unwrap();
    (state.recorded().unwrap(), state.warnings())
}

/// A copy of an open state folder, as if its process had been killed.
fn as_if_killed(path: &Utf8Path) -> (TempDir, Utf8PathBuf) {
    let (dir, copy) = place();
    let copied = std::process::Command::new("cp").args(["-a", path.as_str(), copy.as_str()]).status();
    assert!(copied.unwrap().success());
    (dir, copy)
}

#[test]
fn readers_see_what_the_last_writer_left_and_leave_nothing_themselves() {
    let (_dir, path, recorded) = filled();
    let files = || {
        let mut files: Vec<_> =
            path.read_dir_utf8().unwrap().map(|file| file.unwrap().path().to_owned()).collect();
        files.sort();
        files
            .into_iter()
            .filter(|file| file.is_file())
            .map(|file| fs::read(file).unwrap())
            .collect::<Vec<_>>()
    };
    let before = files();
    let (one, other) = (State::read(&path).unwrap().unwrap(), State::read(&path).unwrap().unwrap());
    for state in [&one, &other] {
        assert_eq!(state.recorded().unwrap(), recorded);
        assert_eq!(state.fleets().unwrap(), [fleet()].into());
        assert!(state.has_objects(&fleet()).unwrap());
        assert_eq!(state.warnings(), Vec::<String>::new());
    }
    // Writes to one reader's state are invisible to the other.
    one.forget_target(&fleet()).unwrap();
    one.record_observation(&fleet(), time(99)).unwrap();
    assert!(one.objects(&fleet()).unwrap().is_empty());
    assert_eq!(other.recorded().unwrap(), recorded);
    drop((one, other));
    assert_eq!(read(&path), (recorded, Vec::new()));
    assert_eq!(files(), before);
}

#[test]
fn beside_a_writer_readers_see_what_was_recorded_before_it_began() {
    let (_dir, path, before) = filled();
    let writer = State::open(&path).unwrap();
    assert_eq!(read(&path), (before.clone(), Vec::new()));
    writer.forget_target(&fleet()).unwrap();
    let (recorded, warnings) = read(&path);
    assert_eq!(recorded.fleets, before.fleets);
    let pid = std::process::id();
    assert_eq!(
        warnings,
        [format!(
            "process {pid} is changing the state in `{path}`: this output shows the records from before it began"
        )]
    );
    let after = writer.recorded().unwrap();
    drop(writer);
    assert_eq!(read(&path), (after.clone(), Vec::new()));
    assert_ne!(after.fleets, before.fleets);
}

#[test]
fn what_a_killed_writer_recorded_is_seen_by_the_next_reader() {
    let (_dir, path, _) = filled();
    let writer = State::open(&path).unwrap();
    writer.forget_target(&fleet()).unwrap();
    writer.flush().unwrap();
    let (_copied, copy) = as_if_killed(&path);
    let recorded = writer.recorded().unwrap();
    assert_eq!(read(&copy), (recorded.clone(), Vec::new()));
    // The repair of the first reader serves all others.
    let state = State::open(&copy).unwrap();
    assert_eq!(read(&copy), (recorded, Vec::new()));
    drop(state);
}

#[test]
fn a_snapshot_that_is_lost_damaged_or_of_another_installation_is_not_believed() {
    let (_dir, path, recorded) = filled();
    let snapshot = path.join(FOLDER).join("snapshot");
    fs::remove_file(&snapshot).unwrap();
    assert_eq!(read(&path), (recorded.clone(), Vec::new()));

    let whole = fs::read(&snapshot).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    for bytes in [&damaged, &whole[..whole.len() / 2], &[]] {
        fs::write(&snapshot, bytes).unwrap();
        assert!(read(&path).0.fleets.is_empty());
    }
    let (_other, other, _) = filled();
    fs::write(other.join(FOLDER).join("snapshot"), &whole).unwrap();
    assert!(read(&other).0.fleets.is_empty());
}

#[test]
fn a_writer_waits_for_another_and_is_told_for_whom() {
    let (_dir, path, _) = filled();
    let first = State::open(&path).unwrap();
    let mut told = Vec::new();
    let mut tell = |holder| told.push(holder);
    let error =
        State::open_after(&path, &mut LockWait { at_most: Duration::from_millis(100), tell: &mut tell });
    assert!(matches!(error.err(), Some(StateError::Locked { .. })));
    let (said, heard) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut tell = move |holder| said.send(holder).unwrap();
            let wait = &mut LockWait { at_most: Duration::from_secs(60), tell: &mut tell };
            drop(State::open_after(&path, wait).unwrap());
        });
        assert_eq!(heard.recv().unwrap(), Some(std::process::id()));
        drop(first);
    });
    assert_eq!(told, [Some(std::process::id())]);
}
