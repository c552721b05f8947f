//! The systemd unit, checked by systemd itself where it is installed.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{Tree, skipped};

const EXPOSURE: f64 = 2.0;

fn unit(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("systemd").join(name)
}

fn analyze(arguments: &[&str]) -> Option<(bool, String)> {
    let Ok(output) = Command::new("systemd-analyze").args(arguments).output() else {
        skipped("there is no systemd-analyze here");
        return None;
    };
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8(text).unwrap()))
}

#[test]
fn the_units_are_what_systemd_takes() {
    let tree = Tree::empty();
    for name in ["streamfleet.service", "streamfleet-apply.service", "streamfleet-apply.timer"] {
        // The unit's binary isn't installed on the test machine.
        let text = std::fs::read_to_string(unit(name)).unwrap();
        let text = text.replace("/usr/local/bin/streamfleet", env!("CARGO_BIN_EXE_streamfleet"));
        let copy = tree.beside(name);
        std::fs::write(&copy, text).unwrap();
        let Some((is_sound, said)) = analyze(&["verify", "--man=no", copy.to_str().unwrap()]) else { return };
        let ours: Vec<&str> = said.lines().filter(|line| line.contains("streamfleet")).collect();
        assert!(is_sound && ours.is_empty(), "{name}: {said}");
    }
}

#[test]
fn the_service_takes_no_more_memory_than_it_may_and_leaves_no_core() {
    let text = std::fs::read_to_string(unit("streamfleet.service")).unwrap();
    for line in ["MemoryMax=4G", "LimitCORE=0"] {
        assert!(text.lines().any(|it| it == line), "{line}");
    }
}

#[test]
fn the_service_can_reach_little() {
    let service = unit("streamfleet.service");
    let Some((_, said)) = analyze(&["security", "--offline=true", service.to_str().unwrap()]) else { return };
    let overall = said.lines().find(|line| line.contains("Overall exposure level")).expect(&said);
    let number = overall.split_once(": ").unwrap().1.split_whitespace().next().unwrap();
    assert!(number.parse::<f64>().unwrap() <= EXPOSURE, "{said}");
}
