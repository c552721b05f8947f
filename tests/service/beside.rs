//! Concurrent commands, also beside a daemon that starts, works or was killed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::support::serve::Serve;
use crate::support::{Run, Tree, skipped};

const SERVE: &str = "serve --specs tree";
const STATE: &str = ".streamfleet/state";
const ORDERS: &str = "acme/clusters/orders.yaml";

fn at_once(tree: &Tree, words: &[&str]) -> Vec<Run> {
    let start = |words: &&str| {
        let mut command: Command = tree.command(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let started: Vec<_> = words.iter().map(start).collect();
    started.into_iter().map(|child| Run::from(child.wait_with_output().unwrap())).collect()
}

#[test]
fn many_commands_at_once_beside_an_apply_and_a_starting_daemon_all_do_their_work() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    let readers = [
        "status tree",
        "get clusters tree",
        "why orders tree",
        "events tree",
        "validate tree",
        "status tree",
    ];
    let words = [&readers[..], &["apply tree --yes"], &readers[..]].concat();
    for run in at_once(&tree, &words) {
        run.expect(0);
    }
    let serve = Serve::start(&tree, SERVE);
    for run in at_once(&tree, &readers) {
        run.expect(0);
    }
    serve.says(&["looked="]);
    for run in at_once(&tree, &readers) {
        run.expect(0);
    }
    assert_eq!(serve.stop(), Some(0));
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
}

#[test]
fn a_daemon_waits_for_who_uses_the_state() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    let dir = camino::Utf8PathBuf::from_path_buf(tree.path().join(STATE)).unwrap();
    let held = streamfleet::state::State::open(&dir).unwrap();
    let serve = Serve::start(&tree, SERVE);
    serve.says(&[&format!(
        "waiting up to 60 s for process {}, which is using the state in `",
        std::process::id()
    )]);
    drop(held);
    serve.says(&["looked="]);
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn what_a_killed_daemon_did_is_shown_by_the_next_command() {
    let tree = Tree::example("quickstart");
    let serve = Serve::start(&tree, SERVE);
    serve.has_made(&["fleet acme/eu", "cluster acme/orders", "cluster acme/sandbox"]);
    serve.signal("KILL");
    drop(serve);
    for run in at_once(&tree, &["plan tree", "plan tree", "plan tree"]) {
        let run = run.expect(0).says(&["Nothing to do"]);
        assert!(run.err.is_empty(), "{}", run.err);
    }
}

#[test]
fn a_state_that_can_only_be_read_is_enough_to_look() {
    let heeds = Command::new("setpriv")
        .args(["--bounding-set=-dac_override,-dac_read_search", "--", "true"])
        .status();
    if !heeds.is_ok_and(|status| status.success()) {
        skipped("root can't give up that permissions mean nothing to it (no setpriv)");
        return;
    }
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    let state = tree.path().join(STATE);
    let modes = |folder: u32, file: u32| {
        for entry in fs::read_dir(state.join("cache-v1")).unwrap().chain(fs::read_dir(&state).unwrap()) {
            let path = entry.unwrap().path();
            let mode = if path.is_dir() { folder } else { file };
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(&state, Permissions::from_mode(folder)).unwrap();
    };
    modes(0o500, 0o400);
    for words in
        ["plan tree", "status tree", "get clusters tree", "why orders tree", "events tree", "validate tree"]
    {
        let run = tree.run_bound(words).expect(0);
        assert!(!run.err.contains("warning"), "{words}: {}", run.err);
    }
    modes(0o700, 0o600);
}

#[test]
fn an_apply_beside_a_daemon_shows_its_plan_and_leaves_it_the_work() {
    let tree = Tree::example("quickstart");
    fs::write(tree.beside("settings.toml"), "[policy]\nmode = \"plan-only\"\n").unwrap();
    tree.run("apply tree --yes").expect(0);
    let serve = Serve::start(&tree, SERVE);
    serve.says(&["looked="]);
    tree.run("apply tree --yes").expect(0).says(&["Nothing to do"]);
    assert_eq!(serve.stop(), Some(0));

    let serve = Serve::start(&tree, &format!("{SERVE} --config settings.toml"));
    serve.says(&["looked="]);
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    let output = tree.output();
    tree.run("apply tree --yes --config settings.toml").expect(3).says(&["kafka_units 1 → 2"]);
    assert_eq!(tree.output(), output);
    assert_eq!(serve.stop(), Some(0));
}
