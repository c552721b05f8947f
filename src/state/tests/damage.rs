//! Tests of crashes, full disks, other processes and manual changes to a state folder.

use std::fs;
use std::process::Command;

use super::*;
use crate::state::cache::open_when_closed;
use crate::state::lines::whole_length;

/// A closed folder with one of everything, and its records.
fn filled() -> (TempDir, Utf8PathBuf, Recorded) {
    let (dir, path) = place();
    let state = State::open(&path).unwrap();
    fill(&state);
    let recorded = state.recorded().unwrap();
    (dir, path, recorded)
}

/// The records that remain when the cache is lost.
fn without_cache(recorded: &Recorded) -> Recorded {
    let mut recorded = Recorded { fleets: BTreeMap::new(), ..recorded.clone() };
    for resource in recorded.resources.values_mut() {
        resource.cached = CachedRecord::lost(resource.durable.created_at);
    }
    recorded
}

fn both(error: &StateError, dir: &Utf8Path) -> String {
    format!("{error}\n{}", error.hint()).replace(dir.as_str(), "DIR")
}

#[test]
fn the_folder_is_its_owners_only_and_kept_out_of_git() {
    let (_dir, path, _) = filled();
    assert_eq!(mode(&path), 0o700);
    for file in ["lock", "registry.jsonl", "audit.jsonl"] {
        assert_eq!(mode(&path.join(file)), 0o600, "{file}");
    }
    assert_eq!(fs::read_to_string(path.join(".gitignore")).unwrap(), "*\n");
}

/// The variable that turns this test binary into the second process.
const SECOND: &str = "STREAMFLEET_TEST_SECOND_PROCESS";

#[test]
fn a_second_process_is_told_who_uses_the_folder() {
    if let Some(path) = std::env::var_os(SECOND) {
        let path = Utf8PathBuf::try_from(std::path::PathBuf::from(path)).unwrap();
        let error = State::open(&path).err().expect("the first process holds the lock");
        println!("<<{}>>", both(&error, &path));
        return;
    }
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    let name = "state::tests::damage::a_second_process_is_told_who_uses_the_folder";
    let second = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]).env(SECOND, path.as_std_path());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let pid = std::process::id();
    let expected = format!(
        "<<cannot use the state in `DIR`: process {pid} is using it\nwait until process {pid} is done or stop it; only one streamfleet at a time may change a state folder>>"
    );
    let said = second();
    assert!(said.contains(&expected), "{said}");
    assert!(State::read(&path).unwrap().is_some(), "a dry run takes no turn");
    drop(state);
    assert!(State::open(&path).is_ok());
}

#[test]
fn a_damaged_or_foreign_cache_is_set_aside_and_nothing_that_matters_is_lost() {
    type Harm = fn(&Utf8Path);
    let harms: [(&str, Harm); 4] = [
        ("is damaged", |cache| fs::write(cache.join("conf"), "garbage, and more than a few bytes").unwrap()),
        ("failed while it was in use", |cache| fs::write(cache.with_extension("failed"), "").unwrap()),
        ("was written by another version", |cache| {
            let db = open_when_closed(cache).unwrap();
            db.insert("version", "2").unwrap();
        }),
        ("belongs to another installation", |cache| {
            let db = open_when_closed(cache).unwrap();
            db.insert("installation", "other").unwrap();
        }),
    ];
    for (reason, harm) in harms {
        let (_dir, path, recorded) = filled();
        for round in 1..=2 {
            harm(&path.join("cache-v1"));
            let state = State::open(&path).unwrap();
            let warnings = state.warnings();
            let aside = path.join(format!("cache-v1.damaged-{round}"));
            assert!(warnings[0].contains(reason) && warnings[0].contains(aside.as_str()), "{warnings:?}");
            assert!(aside.is_dir(), "{reason}");
            assert_eq!(state.recorded().unwrap(), without_cache(&recorded), "{reason}");
        }
        assert_eq!(State::open(&path).unwrap().warnings(), Vec::<String>::new(), "{reason}");
    }
}

#[test]
fn a_cache_in_use_is_left_alone_though_somebody_removed_the_lock_file() {
    let (_dir, path, recorded) = filled();
    let state = State::open(&path).unwrap();
    fs::remove_file(path.join("lock")).unwrap();
    let error = State::open(&path).err().expect("another has the cache open");
    assert_eq!(
        both(&error, &path),
        "cannot use the state in `DIR`: another process is using it\n\
         wait until it is done; only one streamfleet at a time may change a state folder"
    );
    assert!(!path.join("cache-v1.damaged-1").exists());
    assert_eq!(state.recorded().unwrap(), recorded);
}

#[test]
fn a_cache_cut_at_any_length_opens_and_can_be_filled_again() {
    let (_dir, path, recorded) = filled();
    let db = path.join("cache-v1/db");
    let whole = fs::read(&db).unwrap();
    for parts in 0..8 {
        fs::write(&db, &whole[..whole.len() * parts / 8]).unwrap();
        let state = State::open(&path).unwrap();
        let now = state.recorded().unwrap();
        assert_eq!(without_cache(&now), without_cache(&recorded), "{parts}/8");
        state.put_resource(&cluster("orders"), &resource(1)).unwrap();
        assert_eq!(state.recorded().unwrap().resources, recorded.resources);
        drop(state);
        fs::remove_dir_all(path.join("cache-v1")).unwrap();
        drop(State::open(&path).unwrap());
    }
}

#[test]
fn a_registry_cut_anywhere_in_its_last_line_is_mended() {
    let (_dir, path, _) = filled();
    let file = path.join("registry.jsonl");
    let whole = fs::read(&file).unwrap();
    let start = whole_length(&whole[..whole.len() - 1]);
    for end in start..whole.len() {
        fs::write(&file, &whole[..end]).unwrap();
        let state = State::open(&path).unwrap();
        let is_whole_record = end + 1 == whole.len();
        let approvals = state.recorded().unwrap().approvals.len();
        assert_eq!(approvals, if is_whole_record { 1 } else { 2 }, "{end}");
        assert_eq!(state.warnings().len(), usize::from(end != start && !is_whole_record), "{end}");
        state.use_approval("used", None, time(20)).unwrap();
        drop(state);
        let state = State::open(&path).unwrap();
        assert_eq!((state.recorded().unwrap().approvals.len(), state.warnings().len()), (1, 0), "{end}");
    }
}

#[test]
fn a_registry_that_lacks_more_than_its_last_line_is_refused_and_left_as_it_is() {
    let (_dir, path, recorded) = filled();
    let file = path.join("registry.jsonl");
    let whole = fs::read(&file).unwrap();
    let half = &whole[..whole.len() / 2];
    fs::write(&file, half).unwrap();
    let lines = half.iter().filter(|byte| **byte == b'\n').count();
    let known = whole.iter().filter(|byte| **byte == b'\n').count();
    for error in [State::open(&path).err(), State::read(&path).err()] {
        assert_eq!(
            both(&error.unwrap(), &path),
            format!(
                "cannot use `DIR/registry.jsonl`: its end is missing; it has {lines} lines, and had {known} or \
                 more\nthe registry holds ids and protection: take it from a backup: tar -xf FILE -C DIR \
                 registry.jsonl; if the backup is older, or to continue with the remaining lines, move `DIR/cache-v1` \
                 out of the folder"
            )
        );
        assert_eq!(fs::read(&file).unwrap(), half);
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(State::open(&path).unwrap().recorded().unwrap(), recorded);
}

#[test]
fn a_duplicated_tail_means_what_the_tail_meant() {
    let (_dir, path, recorded) = filled();
    let file = path.join("registry.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for from in 0..lines.len() {
        fs::write(&file, text.clone() + &lines[from..].concat()).unwrap();
        assert_eq!(State::open(&path).unwrap().recorded().unwrap(), recorded, "from line {}", from + 1);
    }
}

#[test]
fn what_a_failed_write_left_is_cut_off_before_the_next_line() {
    let (_dir, path, recorded) = filled();
    let state = State::open(&path).unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(path.join("registry.jsonl")).unwrap();
    std::io::Write::write_all(&mut file, b"{\"v\":1,\"rec").unwrap();
    state.use_approval("open", None, time(20)).unwrap();
    drop(state);
    let state = State::open(&path).unwrap();
    assert_eq!(state.warnings(), Vec::<String>::new());
    assert_eq!(state.recorded().unwrap(), Recorded { approvals: vec![], ..recorded });
}

#[test]
fn unknown_fields_are_tolerated() {
    let (_dir, path, recorded) = filled();
    let file = path.join("registry.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let coloured = text.lines().map(|line| {
        // The text after the checksum.
        let rest = line.split_once(',').unwrap().1;
        entries::summed(&format!("{{\"colour\":\"blue\",{rest}")) + "\n"
    });
    fs::write(&file, coloured.collect::<String>()).unwrap();
    assert_eq!(State::open(&path).unwrap().recorded().unwrap(), recorded);
}

#[test]
fn a_changed_character_of_the_registry_is_never_read_as_another_record() {
    let (_dir, path, _) = filled();
    let file = path.join("registry.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    for (from, to) in
        [("\"protected\":true", "\"protected\":fals "), ("\"v\":1", "\"v\":0"), ("\"sum\":\"", "\"sun\":\"")]
    {
        fs::write(&file, whole.replacen(from, to, 1)).unwrap();
        for error in [State::open(&path).err(), State::read(&path).err()] {
            let error = error.unwrap().to_string();
            assert!(error.contains("it is damaged ("), "{error}");
        }
    }
    let line = whole.lines().position(|line| line.contains("\"protected\":true")).unwrap() + 1;
    fs::write(&file, whole.replacen("\"protected\":true", "\"protected\":null", 1)).unwrap();
    assert_eq!(
        State::open(&path).err().unwrap().to_string(),
        format!("cannot read `{file}:{line}`: it is damaged (its checksum doesn't match)")
    );
}

#[test]
fn a_missing_or_empty_registry_beside_other_records_is_refused_and_nothing_changes() {
    let harms: [fn(&Utf8Path); 2] =
        [|registry| fs::remove_file(registry).unwrap(), |registry| fs::write(registry, "").unwrap()];
    for harm in harms {
        let (_dir, path, _) = filled();
        harm(&path.join("registry.jsonl"));
        let names = || {
            let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|it| it.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names();
        for error in [State::open(&path).err(), State::read(&path).err()] {
            assert_eq!(
                both(&error.unwrap(), &path),
                "cannot use the state in `DIR`: `DIR/registry.jsonl` is missing or empty, but other files of the state \
                 exist\nthe registry holds ids and protection: take it from a backup: tar -xf FILE -C DIR \
                 registry.jsonl; to start without them, move the folder away"
            );
            assert_eq!(names(), before);
        }
    }
}

#[test]
fn errors_say_what_was_attempted_why_it_failed_and_what_to_do() {
    let replace_line = |path: &Utf8Path, text: &str| {
        let file = path.join("registry.jsonl");
        let old = fs::read_to_string(&file).unwrap();
        let mut lines: Vec<&str> = old.lines().collect();
        lines[1] = text;
        fs::write(file, lines.join("\n") + "\n").unwrap();
    };
    let damaged = |path: &Utf8Path| replace_line(path, "{\"v\":1,");
    let newer = |path: &Utf8Path| replace_line(path, "{\"v\":2,\"record\":\"from the future\"}");
    let unknown = |path: &Utf8Path| replace_line(path, &entries::summed("{\"v\":1,\"record\":\"dream\"}"));
    let folder = |path: &Utf8Path| {
        fs::remove_file(path.join("registry.jsonl")).unwrap();
        fs::create_dir(path.join("registry.jsonl")).unwrap();
    };
    type Harm<'a> = &'a dyn Fn(&Utf8Path);
    let cases: [(Harm, &str); 4] = [
        (
            &damaged,
            "cannot read `DIR/registry.jsonl:2`: it is damaged (EOF while parsing a value)\n\
             move `DIR/registry.jsonl` out of the folder and take it from a backup: tar -xf FILE -C DIR registry.jsonl; without a \
             backup, copy the folder, remove line 2 and check the output of `streamfleet plan` before you apply",
        ),
        (
            &newer,
            "cannot read `DIR/registry.jsonl:2`: a newer version of streamfleet wrote it (record version 2, this one reads \
             up to 1)\ninstall that version again; to return to an earlier one, move the folder away and restore an older \
             backup: streamfleet restore FILE TREE",
        ),
        (
            &unknown,
            "cannot read `DIR/registry.jsonl:2`: it is damaged (unknown variant `dream`, expected one of \
             `installation`, `source`, `resource`, `removed`, `deletion`, `approval`, `approval-used`, `tokens-made`, `account-bound`, `accounts-released`)\n\
             move `DIR/registry.jsonl` out of the folder and take it from a backup: tar -xf FILE -C DIR registry.jsonl; without a \
             backup, copy the folder, remove line 2 and check the output of `streamfleet plan` before you apply",
        ),
        (
            &folder,
            "cannot use `DIR/registry.jsonl`: it is a folder, not a file\n\
             move it away and take it from a backup: tar -xf FILE -C DIR registry.jsonl",
        ),
    ];
    for (harm, expected) in cases {
        let (_dir, path, _) = filled();
        harm(&path);
        let error = State::open(&path).err().expect(expected);
        assert_eq!(both(&error, &path), expected);
    }
    let io = |code| {
        StateError::io("write", Utf8Path::new("DIR/registry.jsonl"))(std::io::Error::from_raw_os_error(code))
    };
    let refusals = [
        (
            28,
            "cannot write `DIR/registry.jsonl`: No space left on device (os error 28)\nfree some space and try again; no \
             records are lost",
        ),
        (
            13,
            "cannot write `DIR/registry.jsonl`: Permission denied (os error 13)\nlet the user that runs streamfleet write \
             there, or set another folder with `state_dir`",
        ),
        (
            30,
            "cannot write `DIR/registry.jsonl`: Read-only file system (os error 30)\nmount the file system writable, or \
             set another folder with `state_dir`",
        ),
    ];
    for (code, expected) in refusals {
        assert_eq!(both(&io(code), Utf8Path::new("/nowhere")), expected);
    }
}

#[test]
fn a_cache_that_fails_in_use_is_set_aside_at_the_next_start() {
    let (_dir, path, recorded) = filled();
    let state = State::open(&path).unwrap();
    let error = state.cache.with_sled::<()>("read", |_| panic!("as sled does")).unwrap_err();
    assert_eq!(
        both(&error, &path),
        "cannot read the cache in `DIR/cache-v1`: it is damaged (sled stopped using it)\nrun the command again: the \
         cache is set aside and rebuilt, and nothing is lost"
    );
    drop(state);
    let state = State::open(&path).unwrap();
    assert_eq!(state.warnings().len(), 1);
    assert_eq!(state.recorded().unwrap(), without_cache(&recorded));
}
