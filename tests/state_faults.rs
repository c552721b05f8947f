//! Every fault of every file of a state folder, with the messages and the outcome, recorded in
//! `snapshots/all__state_faults__table.snap`, which can be read as documentation.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Run, Tree, approval_id, copy, skipped};

const ORDERS: &str = "acme/clusters/orders.yaml";
const SANDBOX: &str = "acme/clusters/sandbox.yaml";
const STATE: &str = ".streamfleet/state";
const TOKENS: &str = "tokens.jsonl";

fn applied() -> Tree {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    tree
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[derive(Clone, Copy)]
enum Fault {
    Corrupt,
    CorruptLine,
    /// Without the first line, which identifies the file's installation.
    NoFirstLine,
    /// A torn last line, as after a power cut.
    TornLine,
    /// Zeros at the end, as some file systems leave them after a power cut.
    Zeros,
    DuplicatedTail,
    Truncated,
    Empty,
    Missing,
    Newer,
    /// A folder in place of a file, or the reverse.
    AnotherSort,
    Link,
    /// Readable and writable by other users.
    TooOpen,
}
use Fault::{
    AnotherSort, Corrupt, CorruptLine, DuplicatedTail, Empty, Link, Missing, Newer, NoFirstLine, TooOpen,
    TornLine, Truncated, Zeros,
};

/// The faults of a file of lines with a checksum each.
const OF_LINES: &[(Fault, &str)] = &[
    (Corrupt, "corrupt"),
    (CorruptLine, "a corrupt line in the middle"),
    (TornLine, "a torn last line"),
    (Zeros, "zeros at its end"),
    (DuplicatedTail, "a duplicated tail"),
    (Empty, "empty"),
    (Missing, "missing"),
    (Newer, "of a newer version"),
    (AnotherSort, "a folder in its place"),
    (Link, "a link in its place"),
    (TooOpen, "open to others"),
];

/// Each file or folder of the state, with its possible faults and their names.
const TABLE: [(&str, &[(Fault, &str)]); 9] = [
    (
        "cache-v1",
        &[
            (Corrupt, "corrupt"),
            (Truncated, "truncated"),
            (Missing, "missing"),
            (Newer, "of a newer version"),
            (AnotherSort, "a file in its place"),
            (Link, "a link in its place"),
            (TooOpen, "open to others"),
        ],
    ),
    (
        "registry.jsonl",
        &[
            (Corrupt, "corrupt"),
            (CorruptLine, "a corrupt line in the middle"),
            (NoFirstLine, "the first line missing"),
            (TornLine, "a torn last line"),
            (Zeros, "zeros at its end"),
            (DuplicatedTail, "a duplicated tail"),
            (Truncated, "cut in half"),
            (Empty, "empty"),
            (Missing, "missing"),
            (Newer, "of a newer version"),
            (AnotherSort, "a folder in its place"),
            (Link, "a link in its place"),
            (TooOpen, "open to others"),
        ],
    ),
    (
        "audit.jsonl",
        &[
            (CorruptLine, "a corrupt line in the middle"),
            (TornLine, "a torn last line"),
            (DuplicatedTail, "a duplicated tail"),
            (Empty, "empty"),
            (Missing, "missing"),
            (Newer, "of a newer version"),
            (AnotherSort, "a folder in its place"),
            (Link, "a link in its place"),
            (TooOpen, "open to others"),
        ],
    ),
    (TOKENS, OF_LINES),
    ("sizes.jsonl", OF_LINES),
    (
        "events.jsonl",
        &[
            (CorruptLine, "a corrupt line in the middle"),
            (TornLine, "a torn last line"),
            (Zeros, "zeros at its end"),
            (Empty, "empty"),
            (Missing, "missing"),
            (AnotherSort, "a folder in its place"),
            (Link, "a link in its place"),
            (TooOpen, "open to others"),
        ],
    ),
    ("identity.age-keys", KEY_FAULTS),
    ("fingerprint.key", KEY_FAULTS),
    // The folder itself.
    ("", &[(AnotherSort, "a file in its place"), (Link, "a link in its place"), (TooOpen, "open to others")]),
];

const KEY_FAULTS: &[(Fault, &str)] = &[
    (Corrupt, "corrupt"),
    (Truncated, "truncated"),
    (Empty, "empty"),
    (Missing, "missing"),
    (AnotherSort, "a folder in its place"),
    (Link, "a link in its place"),
    (TooOpen, "open to others"),
];

impl Fault {
    fn harm(self, tree: &Tree, file: &str) {
        let path = tree.path().join(STATE).join(file);
        let path = if file.is_empty() { tree.path().join(STATE) } else { path };
        match (self, path.is_dir()) {
            (Missing, true) => fs::remove_dir_all(path).unwrap(),
            (Missing, false) => fs::remove_file(path).unwrap(),
            (Link, _) => {
                let elsewhere = tree.beside("elsewhere");
                fs::rename(&path, &elsewhere).unwrap();
                symlink(elsewhere, path).unwrap();
            }
            (TooOpen, true) => set_mode(&path, 0o755),
            (TooOpen, false) => set_mode(&path, 0o666),
            (AnotherSort, is_dir) => {
                fs::rename(&path, tree.beside("elsewhere")).unwrap();
                if is_dir { fs::write(path, "").unwrap() } else { fs::create_dir(path).unwrap() }
            }
            (Corrupt, true) => fs::write(path.join("conf"), "garbage, and more than a few bytes").unwrap(),
            (Truncated, true) => {
                let db = path.join("db");
                let bytes = fs::read(&db).unwrap();
                fs::write(db, &bytes[..bytes.len() / 3]).unwrap();
            }
            (Newer, true) => drop(sled::open(path).unwrap().insert("version", "2").unwrap()),
            (_, _) => fs::write(&path, self.edited(&fs::read(&path).unwrap())).unwrap(),
        }
    }

    fn edited(self, bytes: &[u8]) -> Vec<u8> {
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
        match self {
            Corrupt => lines.insert(0, b"\xff\xfe\x00"),
            CorruptLine => lines[2] = b"{\"v\":1,\"rec\n",
            NoFirstLine => drop(lines.remove(0)),
            TornLine => lines.push(b"{\"at\":\"2027-01"),
            Zeros => lines.push(&[0; 4096]),
            DuplicatedTail => lines.extend_from_within(lines.len() - 3..),
            Truncated => return bytes[..bytes.len() / 2].to_vec(),
            Empty => lines.clear(),
            Newer => lines.insert(2, b"{\"v\":2,\"record\":\"from the future\"}\n"),
            _ => {}
        }
        lines.concat()
    }
}

/// The output without values that differ between runs.
fn told(run: &Run, tree: &Tree) -> String {
    let dir = tree.path().join(STATE);
    // Temporary file names are random.
    let line = |line: &str| format!("{}\n", line.split(" at path ").next().unwrap_or_default());
    let err: String = run.err.lines().map(line).collect();
    format!("exit {}\n{err}", run.code).replace(dir.to_str().unwrap(), "DIR")
}

fn outcomes(file: &str, faults: &[(Fault, &str)]) -> String {
    let tree = applied();
    for _ in 0..if file == TOKENS { 3 } else { 0 } {
        tree.run("token create tree --name ci --owner ada@example.com --organization acme").expect(0);
    }
    let (state, saved) = (tree.path().join(STATE), tree.beside("saved"));
    copy(&state, &saved);
    let (output, orders) = (tree.output(), tree.read(ORDERS));
    let called = if file.is_empty() { "the folder" } else { file };
    let mut told_all = String::new();
    for (fault, name) in faults {
        fault.harm(&tree, file);
        let path = if file.is_empty() { state.clone() } else { state.join(file) };
        let harmed = fs::read(&path).ok();
        let run = tree.run("apply tree --yes");
        told_all.push_str(&format!("## {called}: {name}\n{}\n", told(&run, &tree)));

        assert_eq!(tree.output(), output, "{called}: {name}: something was applied");
        if run.code == 0 {
            assert!(run.out.contains("Nothing to do"), "{called}: {name}: {}", run.out);
            tree.remove(ORDERS);
            tree.run("plan tree").expect(3).says(&["deletion_protection"]);
            tree.write(ORDERS, &orders);
        } else {
            assert_eq!(fs::read(&path).ok(), harmed, "{called}: {name}: it was replaced");
            let again = tree.run("plan tree");
            assert_eq!(again.code, run.code, "{called}: {name}: a second look says something else");
        }
        for path in [state.clone(), tree.beside("elsewhere")] {
            let is_dir = path.symlink_metadata().is_ok_and(|found| found.is_dir());
            let removed = if is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            drop(removed);
        }
        copy(&saved, &state);
        set_mode(&state, 0o700);
    }
    told_all
}

#[test]
fn table() {
    let told_all: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> =
            TABLE.iter().map(|(file, faults)| scope.spawn(|| outcomes(file, faults))).collect();
        parts.into_iter().map(|part| part.join().unwrap()).collect()
    });
    insta::assert_snapshot!("table", told_all.concat());
}

#[test]
fn an_approval_that_was_torn_by_a_power_cut_is_asked_for_again() {
    let tree = applied();
    tree.write(SANDBOX, "");
    let id = approval_id(&tree.run("plan tree").expect(3).out);
    tree.run(&format!("approve {id} tree")).expect(0);
    let registry = format!("{STATE}/registry.jsonl");
    let text = tree.read(&registry);
    tree.write(&registry, &text[..text.len() - 9]);
    let output = tree.output();
    tree.run("apply tree --yes").expect(3).says(&[
        "was cut short by a crash and was dropped; it had not taken effect",
        &format!("to delete it: streamfleet approve {id} tree"),
    ]);
    assert_eq!(tree.output(), output);
}

#[test]
fn a_second_process_is_told_who_uses_the_state_and_how_to_go_on() {
    let tree = applied();
    let dir = camino::Utf8PathBuf::from_path_buf(tree.path().join(STATE)).unwrap();
    let held = streamfleet::state::State::open(&dir).unwrap();
    let pid = std::process::id();
    assert_eq!(
        told(&tree.run("apply tree --yes"), &tree),
        format!(
            "exit 1\nwaiting up to 5 s for process {pid}, which is using the state in `DIR`\nerror: cannot open the state \
             in `DIR`\n  because: cannot use the state in `DIR`: process {pid} is using it\n  help: wait until process \
             {pid} is done or stop it; only one streamfleet at a time may change a state folder\n"
        )
    );
    for verb in ["plan tree", "status tree"] {
        assert_eq!(told(&tree.run(verb), &tree), "exit 0\n");
    }
    drop(held);
    tree.run("plan tree").expect(0);
}

#[test]
fn saved_plans() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 8] = [
        ("corrupt", |path| fs::write(path, "x{}").unwrap()),
        ("truncated", |path| {
            // Cut at a fixed byte in every version, so that the message is the same.
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..20]).unwrap();
        }),
        ("empty", |path| fs::write(path, "").unwrap()),
        ("missing", |path| fs::remove_file(path).unwrap()),
        ("of a newer version", |path| {
            let text = fs::read_to_string(path).unwrap();
            fs::write(path, text.replacen("\"format\": 1", "\"format\": 9", 1)).unwrap();
        }),
        ("a folder in its place", |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
        ("a link to nowhere", |path| {
            fs::remove_file(path).unwrap();
            symlink("nowhere", path).unwrap();
        }),
        ("changed by hand", |path| {
            let text = fs::read_to_string(path).unwrap();
            fs::write(path, text.replace("\"replicas\": 6", "\"replicas\": 9")).unwrap();
        }),
    ];
    let mut told_all = String::new();
    for (name, harm) in harms {
        let tree = applied();
        tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
        tree.run("plan tree --out plan.json").expect(2);
        let output = tree.output();
        harm(&tree.beside("plan.json"));
        let run = tree.run("apply plan.json --yes");
        told_all.push_str(&format!("## {name}\n{}\n", told(&run, &tree)));
        if name == "changed by hand" {
            // Apply executes a new plan; the file only tells that it was seen.
            let pool = ".streamfleet/output/acme/eu/kafka-acme--orders/kafkanodepool-broker.yaml";
            assert!(tree.read(pool).contains("replicas: 6"));
        } else {
            assert_eq!(tree.output(), output, "{name}");
        }
    }
    insta::assert_snapshot!("saved_plans", told_all);
}

/// Runs the binary through wrapper programs that exec their arguments.
fn run_through(tree: &Tree, wrapper: &[&str], words: &str) -> Run {
    let inner = tree.command(words);
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(inner.get_program()).args(inner.get_args());
    command.current_dir(inner.get_current_dir().unwrap()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.stdin(Stdio::null()).output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Root bypasses permissions unless it drops that capability. `None` where it can't.
fn as_one_who_heeds_permissions() -> Option<&'static [&'static str]> {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let heeding: &[&str] = match is_root {
        true => &["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"],
        false => &["env"],
    };
    let tried = Command::new(heeding[0]).args(&heeding[1..]).arg("true").status();
    tried.is_ok_and(|status| status.success()).then_some(heeding)
}

#[test]
fn what_cannot_be_written() {
    let Some(heeding) = as_one_who_heeds_permissions() else {
        skipped("root can't give up that permissions mean nothing to it (no setpriv)");
        return;
    };
    let mut told_all = String::new();
    type Modes = &'static [(&'static str, u32)];
    let cases: [(&str, Modes, &str); 7] = [
        ("registry.jsonl", &[("registry.jsonl", 0o400)], "apply tree --yes"),
        ("audit.jsonl", &[("audit.jsonl", 0o400)], "apply tree --yes"),
        ("cache-v1", &[("cache-v1/db", 0o400), ("cache-v1", 0o500)], "apply tree --yes"),
        ("lock", &[("lock", 0o400)], "apply tree --yes"),
        ("keys", &[("identity.age-keys", 0o400), ("fingerprint.key", 0o400)], "apply tree --yes"),
        ("the folder", &[("", 0o500)], "secret rotate tree"),
        ("a saved plan", &[("../..", 0o500)], "plan tree --out tree/plan.json"),
    ];
    for (name, modes, verb) in cases {
        let tree = applied();
        let before: Vec<_> = ["registry.jsonl", "identity.age-keys", "fingerprint.key"]
            .map(|file| tree.read_bytes(&format!("{STATE}/{file}")))
            .into();
        let of = |path: &str| tree.path().join(STATE).join(path);
        modes.iter().for_each(|(path, mode)| set_mode(&of(path), *mode));
        let run = run_through(&tree, heeding, verb);
        told_all.push_str(&format!("## {name}\n{}\n", told(&run, &tree)));
        modes.iter().rev().for_each(|(path, _)| set_mode(&of(path), 0o700));
        for (file, before) in ["registry.jsonl", "identity.age-keys", "fingerprint.key"].iter().zip(before) {
            assert_eq!(tree.read_bytes(&format!("{STATE}/{file}")), before, "{name}: {file} changed");
        }
        modes.iter().filter(|(path, _)| of(path).is_file()).for_each(|(path, _)| set_mode(&of(path), 0o600));
        tree.run("plan tree").expect(0);
    }
    insta::assert_snapshot!("what_cannot_be_written", told_all);
}

/// A wrapper that can mount a small file system for the process alone; `None` where that isn't possible.
pub fn namespace() -> Option<&'static [&'static str]> {
    const MOUNT: &str = "mount -t tmpfs -o size=64k tmpfs /mnt";
    let ways: [&[&str]; 2] = [&["unshare", "-m"], &["unshare", "-rm"]];
    let works = |way: &&&[&str]| {
        let tried =
            Command::new(way[0]).args(&way[1..]).args(["bash", "-c", MOUNT]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    ways.iter().find(works).copied()
}

/// Runs a command with the state on a file system with this many KiB left, and copies the resulting state
/// back to the tree.
fn run_on_full_disk(tree: &Tree, namespace: &[&str], folder: &str, verb: &str, left: u32) -> Run {
    let script = format!(
        "s=tree/{folder}; cp -a $s before && mount -t tmpfs -o size=16m,mode=700 tmpfs $s && cp -a before/. $s && \
         free=$(df --output=avail -k $s | tail -1) && dd if=/dev/zero of=$s/.fill bs=1K count=$((free - {left})) status=none \
         || exit 99; \"$@\"; code=$?; rm $s/.fill; cp -a $s after; exit $code"
    );
    let wrapper: Vec<&str> = namespace.iter().copied().chain(["bash", "-c", &script, "bash"]).collect();
    let run = run_through(tree, &wrapper, verb);
    assert_ne!(run.code, 99, "{}", run.err);
    fs::remove_dir_all(tree.path().join(folder)).unwrap();
    copy(&tree.beside("after"), &tree.path().join(folder));
    set_mode(&tree.path().join(folder), 0o700);
    for copy in ["before", "after"] {
        fs::remove_dir_all(tree.beside(copy)).unwrap();
    }
    run
}

#[test]
fn a_full_disk_loses_nothing_and_the_next_run_finishes() {
    let Some(namespace) = namespace() else {
        skipped("a small file system can't be mounted here");
        return;
    };
    let edit = |tree: &Tree| {
        tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
        let another = tree.read(SANDBOX).replace("identifier: sandbox", "identifier: another");
        tree.write("acme/clusters/another.yaml", another);
    };
    let mut refused = 0;
    for left in [0, 4, 8, 16, 64, 256, 1024, 4096] {
        let tree = applied();
        let registry = tree.read(&format!("{STATE}/registry.jsonl"));
        edit(&tree);
        let run = run_on_full_disk(&tree, namespace, STATE, "apply tree --yes", left);
        if run.code != 0 {
            refused += 1;
            let run = run.expect(1).says(&["No space left on device"]);
            let run = run.says(&["free some space"]).says_nothing_of(&["panicked"]);
            assert!(run.err.contains("cannot write") || run.err.contains("cannot open"), "{}", run.err);
        }
        let now = tree.read(&format!("{STATE}/registry.jsonl"));
        assert!(now.starts_with(&registry) && now.ends_with('\n'), "{left}: {now}");
        let next = tree.run("apply tree --yes").expect(0);
        assert!(!next.err.contains("error"), "{left}: {}", next.err);
        tree.run("plan tree").expect(0).says(&["Nothing to do"]);
        assert_eq!(tree.output().iter().filter(|(path, _)| path.contains("kafka-acme--another/")).count(), 5);
    }
    assert!(refused >= 2, "only {refused} runs met a full disk");
}

#[test]
fn a_restore_on_a_full_disk_changes_nothing() {
    let Some(namespace) = namespace() else {
        skipped("a small file system can't be mounted here");
        return;
    };
    let tree = applied();
    tree.run("backup FILE.tar tree").expect(0);
    let registry = tree.read(&format!("{STATE}/registry.jsonl"));
    fs::remove_dir_all(tree.path().join(STATE)).unwrap();
    let run = run_on_full_disk(&tree, namespace, ".streamfleet", "restore FILE.tar tree", 0);
    run.expect(1).says(&["No space left on device", "free some space and try again; no records are lost"]);
    assert!(!tree.path().join(STATE).exists());
    assert!(!tree.path().join(".streamfleet/state.restoring").exists());
    tree.run("restore FILE.tar tree").expect(0);
    assert_eq!(tree.read(&format!("{STATE}/registry.jsonl")), registry);
    tree.run("plan tree").expect(0);
}
