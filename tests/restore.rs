//! Restores lost files step by step, as a person does.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::serve::Serve;
use crate::support::{Tree, approval_id, copy, files};

const ORDERS: &str = "acme/clusters/orders.yaml";
const SANDBOX: &str = "acme/clusters/sandbox.yaml";
pub const STATE: &str = ".streamfleet/state";
const STAGED: &str = ".streamfleet/state.restoring";
pub const REGISTRY: &str = ".streamfleet/state/registry.jsonl";
const AUDIT: &str = ".streamfleet/state/audit.jsonl";
pub const IDENTITIES: &str = ".streamfleet/state/identity.age-keys";
pub const FINGERPRINT: &str = ".streamfleet/state/fingerprint.key";
const SIZES: &str = ".streamfleet/state/sizes.jsonl";
const KEPT: [&str; 5] = [REGISTRY, AUDIT, SIZES, IDENTITIES, FINGERPRINT];

pub fn applied() -> Tree {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    tree
}

/// An installation with a backup of it in `FILE.tar`.
pub fn backed_up() -> Tree {
    let tree = applied();
    tree.run("backup FILE.tar tree").expect(0);
    tree
}

pub fn lose(tree: &Tree, path: &str) {
    fs::remove_dir_all(tree.path().join(path)).unwrap();
}

/// Takes one file from the backup in `FILE.tar`, as the messages about a lost file say.
pub fn take_back(tree: &Tree, file: &str) {
    let (state, name) = file.rsplit_once('/').unwrap();
    let mut tar = std::process::Command::new("tar");
    tar.arg("-xf").arg(tree.beside("FILE.tar")).arg("-C").arg(tree.path().join(state)).arg(name);
    assert!(tar.status().unwrap().success());
}

pub fn kept(tree: &Tree) -> Vec<Vec<u8>> {
    KEPT.map(|file| tree.read_bytes(file)).to_vec()
}

pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_backup_can_be_made_while_another_process_uses_the_state() {
    let tree = applied();
    let dir = camino::Utf8PathBuf::from_path_buf(tree.path().join(STATE)).unwrap();
    let held = streamfleet::state::State::open(&dir).unwrap();
    tree.run("plan tree").expect(0);
    tree.run("backup FILE.tar tree").expect(0);
    tree.run("restore FILE.tar tree")
        .expect(1)
        .says(&[&format!("process {} is using it", std::process::id())]);
    drop(held);
    lose(&tree, STATE);
    tree.run("restore FILE.tar tree").expect(0);
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
}

#[test]
fn a_lost_cache_is_no_loss() {
    let tree = applied();
    lose(&tree, ".streamfleet/state/cache-v1");
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
    tree.remove(ORDERS);
    tree.run("plan tree").expect(3).says(&["deletion_protection"]);
}

#[test]
fn a_restored_state_says_that_a_deletion_may_take_more_than_it_knows() {
    let tree = backed_up();
    lose(&tree, STATE);
    tree.run("restore FILE.tar tree").expect(0);
    tree.remove(SANDBOX);
    let run = tree.run("plan tree");
    assert_eq!(
        run.err,
        "warning: the applied spec of cluster acme/sandbox is lost, because the state was restored from a backup or lost \
         its cache: a deletion may remove more than this plan shows, including Namespaces and data\n",
        "{}",
        run.out
    );
}

/// A daemon answers in the place of the command, which shows the same warning.
#[test]
fn commands_that_ask_a_daemon_say_that_a_deletion_may_take_more_than_it_knows() {
    let tree = backed_up();
    lose(&tree, STATE);
    tree.run("restore FILE.tar tree").expect(0);
    // It is protected, so the daemon keeps it.
    tree.remove(ORDERS);
    let serve = Serve::start(&tree, "serve --specs tree");
    serve.says(&["looked="]);
    let warning = "warning: the applied spec of cluster acme/orders is lost, because the state was restored from a backup or \
                   lost its cache: a deletion may remove more than this plan shows, including Namespaces and data\n";
    for words in ["plan tree", "apply tree --yes", "status tree"] {
        let run = tree.run(words);
        assert!(run.err.starts_with("the running daemon (pid "), "{words}: {}", run.err);
        assert_eq!(run.err.matches(warning).count(), 1, "{words}: {}", run.err);
    }
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn lost_identities_stop_everything_delete_nothing_and_are_mended_by_a_restore() {
    let tree = Tree::example("tiered-storage");
    let file = "acme/cloud-accounts/minio.yaml";
    let plain = tree.read(file);
    let head = plain.split("credentials: |").next().unwrap().to_owned();
    let secret = "[default]\naws_access_key_id = a\naws_secret_access_key = b\n";
    let sealed =
        tree.run_with("secret encrypt CloudAccount/acme/minio#credentials tree", &[], secret).expect(0);
    tree.write(file, format!("{head}{}", sealed.out));
    tree.run("apply tree --yes").expect(0);
    tree.run("backup FILE.tar tree").expect(0);
    let (before, keys) = (tree.output(), tree.read(IDENTITIES));
    tree.remove(IDENTITIES);
    for verb in ["plan tree", "apply tree --yes", "secret recipient tree"] {
        tree.run(verb).expect(1).says(&[
            "the key file identity.age-keys is missing from ",
            "where fingerprint.key is",
            "take it from a backup: tar -xf FILE -C ",
            " identity.age-keys; if it is lost for good, create a new one with `age-keygen -o ",
        ]);
    }
    assert_eq!(tree.output(), before);
    assert!(!tree.path().join(IDENTITIES).exists());
    take_back(&tree, IDENTITIES);
    assert_eq!(tree.read(IDENTITIES), keys);
    assert_eq!(mode(&tree.path().join(IDENTITIES)), 0o600);
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);

    // With other keys, a secret that can't be opened is reported as soon as it is needed, and nothing
    // changes.
    let other = applied();
    tree.write(IDENTITIES, other.read(IDENTITIES));
    lose(&tree, ".streamfleet/state/cache-v1");
    let told = tree.run("apply tree --yes");
    told.says(&["acme/cloud-accounts/minio.yaml", "can't be opened"]);
    assert_eq!(tree.output(), before);
}

#[test]
fn a_state_that_is_lost_as_a_whole_is_restored_with_its_ids_and_protection() {
    let tree = backed_up();
    let (before, output) = (kept(&tree), tree.output());
    lose(&tree, STATE);
    // Applied without the restore, nothing existing changes.
    tree.run("apply tree --yes").expect(3).says(&[
        "another installation of streamfleet writes to this folder",
        "restore that installation's state: streamfleet restore FILE TREE",
    ]);
    assert_eq!(tree.output(), output);
    tree.run("restore FILE.tar tree").expect(1).says(&["the folder isn't empty: `.gitignore` is in it"]);

    lose(&tree, STATE);
    tree.run("restore FILE.tar tree").expect(0).says(&[
        "Restored from the backup of ",
        "  registry.jsonl\n  audit.jsonl\n  sizes.jsonl\n  identity.age-keys\n  fingerprint.key\n",
        "Check the plan before you apply it, because the backup may be older than the targets: streamfleet plan tree\n",
    ]);
    assert_eq!(mode(&tree.path().join(STATE)), 0o700);
    for (file, before) in KEPT.iter().zip(&before) {
        assert_eq!(mode(&tree.path().join(file)), 0o600, "{file}");
        assert!(tree.read_bytes(file).starts_with(before), "{file}");
    }
    assert!(
        tree.read(AUDIT).contains(
            "restored registry.jsonl, audit.jsonl, sizes.jsonl, identity.age-keys, fingerprint.key"
        )
    );
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
    assert_eq!(tree.output(), output);
    tree.remove(ORDERS);
    tree.run("apply tree --yes").expect(3).says(&["deletion_protection"]);
    assert_eq!(tree.output(), output);
}

#[test]
fn without_a_backup_a_lost_state_is_begun_anew_with_the_ids_and_protection_that_the_target_remembers() {
    let tree = applied();
    let (id, output) = (id_of(&tree, "cluster/acme/orders"), tree.output());
    lose(&tree, STATE);
    tree.run("apply tree --yes").expect(3).says(&[
        "use that installation's state with `state_dir`, or set another folder with `output_dir`; if that state is lost, \
         move what is in its place away and restore that installation's state: streamfleet restore FILE TREE; without a \
         backup, remove the line `installation` from the inventory to take over the folder with its ids and protection",
    ]);
    let inventory = ".streamfleet/output/acme/eu/.streamfleet-inventory.json";
    let kept: String =
        tree.read(inventory).lines().filter(|line| !line.contains("\"installation\"")).collect();
    tree.write(inventory, kept);
    for _ in 0..2 {
        tree.run("apply tree --yes").expect(0);
        assert_eq!(id_of(&tree, "cluster/acme/orders"), id);
        // The fingerprint key differs, so the Secret was rewritten with a new random line.
        let (now, before) = (tree.output(), output.clone());
        let but_secrets = |files: &[(String, Vec<u8>)]| -> Vec<(String, Vec<u8>)> {
            manifests(files).into_iter().filter(|(path, _)| !path.contains("/secrets/")).cloned().collect()
        };
        assert!(but_secrets(&now) == but_secrets(&before), "ids or manifests changed");
    }
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
    tree.remove(ORDERS);
    tree.run("apply tree --yes").expect(3).says(&["deletion_protection"]);
}

#[test]
fn restoring_over_anything_is_refused_and_changes_nothing() {
    let tree = backed_up();
    let before = kept(&tree);
    let dir = tree.path().join(STATE).canonicalize().unwrap();
    let dir = dir.to_str().unwrap();
    let refused = tree.run("restore FILE.tar tree").expect(1);
    assert_eq!(
        refused.err.replace(dir, "DIR"),
        "error: cannot restore the state in `DIR`\n  because: the folder isn't empty: `.gitignore` is in it\n  help: \
         nothing was changed: a backup may lack ids, protection and keys that were recorded since; move `DIR` away, keep \
         it, and restore again; to put back one lost file alone: tar -xf FILE -C DIR NAME\n"
    );
    assert_eq!(kept(&tree), before);
    lose(&tree, STATE);
    tree.write(&format!("{STATE}/notes"), "mine");
    tree.run("restore FILE.tar tree").expect(1).says(&["the folder isn't empty: `notes` is in it"]);
    assert_eq!(files(&tree.path().join(STATE)).len(), 1);
    tree.remove(&format!("{STATE}/notes"));
    tree.run("restore FILE.tar tree").expect(0);
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
}

#[test]
fn a_damaged_file_is_taken_from_the_backup_and_what_was_recorded_since_stays() {
    let tree = backed_up();
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    tree.run("apply tree --yes").expect(0);
    let audit = tree.read(AUDIT);
    let text = tree.read(REGISTRY);
    tree.write(REGISTRY, text.replacen("\"v\":1", "\"v\":", 3));
    tree.run("plan tree").expect(1).says(&["take it from a backup: tar -xf FILE -C ", " registry.jsonl"]);
    fs::rename(tree.path().join(REGISTRY), tree.beside("damaged")).unwrap();
    take_back(&tree, REGISTRY);
    tree.run("plan tree").expect(0);
    assert_eq!(tree.read(AUDIT), audit);
}

#[test]
fn keys_that_were_made_after_the_backup_are_kept() {
    let tree = backed_up();
    tree.run("secret rotate tree").expect(0);
    let keys = tree.read(IDENTITIES);
    tree.remove(FINGERPRINT);
    take_back(&tree, FINGERPRINT);
    assert_eq!(tree.read(IDENTITIES), keys);
    tree.run("plan tree").expect(0);
}

#[test]
fn a_restored_installation_goes_on_where_its_tree_is_at_another_path() {
    let here = backed_up();
    let there = Tree::empty();
    copy(&here.path(), &there.path());
    fs::remove_dir_all(there.path().join(STATE)).unwrap();
    fs::copy(here.beside("FILE.tar"), there.beside("FILE.tar")).unwrap();
    there.run("restore FILE.tar tree").expect(0);
    there.remove(SANDBOX);
    let plan = there.run("plan tree").expect(3).says(&["on hold for approval: the spec tree was "]);
    let output = there.output();
    there.run("apply tree --yes").expect(3);
    assert_eq!(there.output(), output);
    there.run(&format!("approve {} tree", approval_id(&plan.out))).expect(0);
    there.run("apply tree --yes").expect(0);
    there.run("plan tree").expect(0).says(&["Nothing to do"]);
    // From then on it is the active tree.
    there.edit(ORDERS, "kafka_units: 1", "kafka_units: 1\ndeletion_protection: false");
    there.run("apply tree --yes").expect(0);
    there.remove(ORDERS);
    there
        .run("plan tree")
        .expect(3)
        .says(&["limit of 1 cluster deletion per fleet and hour"])
        .says_nothing_of(&["the spec tree is"]);
}

#[test]
fn an_old_backup_over_a_newer_target_deletes_nothing_and_says_what_it_does_not_know() {
    let tree = Tree::example("quickstart");
    let sandbox = tree.read(SANDBOX);
    tree.remove(SANDBOX);
    tree.run("apply tree --yes").expect(0);
    tree.run("backup FILE.tar tree").expect(0);
    tree.write(SANDBOX, &sandbox);
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    tree.run("apply tree --yes").expect(0);
    let id = id_of(&tree, "cluster/acme/sandbox");
    let output = tree.output();
    lose(&tree, STATE);
    tree.run("restore FILE.tar tree").expect(0);

    // The cache is lost too: the first run observes what is there, and the next one continues.
    let output_is_whole = |tree: &Tree| assert!(manifests(&tree.output()) == manifests(&output));
    tree.run("apply tree --yes").expect(3).says(&["waiting: cluster acme/orders can't be used yet"]);
    output_is_whole(&tree);
    // With its spec it is adopted under its former id.
    tree.run("plan tree").expect(2).says(&["+ cluster sandbox"]).says_nothing_of(&["- "]);
    // Without a spec it stays and is reported.
    tree.remove(SANDBOX);
    for verb in ["plan tree", "apply tree --yes", "status tree"] {
        tree.run(verb).says(&[
            "warning: fleet acme/eu has objects of cluster acme/sandbox (5), which is neither recorded nor in the tree, as \
             after the restore of an older backup: they are kept; to manage or delete it, restore its spec and apply first",
        ]);
        output_is_whole(&tree);
    }
    tree.write(SANDBOX, &sandbox);
    tree.run("apply tree --yes").expect(0);
    assert_eq!(id_of(&tree, "cluster/acme/sandbox"), id);
    output_is_whole(&tree);
    tree.remove(SANDBOX);
    tree.run("apply tree --yes").expect(0).says_nothing_of(&["warning"]);
    assert!(tree.output().iter().all(|(path, _)| !path.contains("sandbox")));
}

fn id_of(tree: &Tree, what: &str) -> String {
    let record = tree.run(&format!("get {what} tree --format json")).expect(0).out;
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    record["id"].as_str().unwrap_or_else(|| panic!("no id in {record}")).to_owned()
}

fn manifests(output: &[(String, Vec<u8>)]) -> Vec<&(String, Vec<u8>)> {
    output.iter().filter(|(path, _)| !path.contains("inventory")).collect()
}

#[test]
fn a_restore_that_was_killed_before_its_rename_has_done_nothing_and_can_be_repeated() {
    let tree = backed_up();
    let whole = kept(&tree);
    let part = tree.read_bytes(REGISTRY)[..10].to_vec();
    for folder_is_there in [false, true] {
        lose(&tree, STATE);
        tree.write(&format!("{STAGED}/registry.jsonl"), &part);
        tree.write(&format!("{STAGED}/kubeconfigs.json"), "{");
        if folder_is_there {
            fs::create_dir(tree.path().join(STATE)).unwrap();
        }
        tree.run("restore FILE.tar tree").expect(0).says(&["  registry.jsonl\n"]);
        for (file, whole) in KEPT.iter().zip(&whole) {
            assert!(tree.read_bytes(file).starts_with(whole), "{file}");
        }
        assert!(!tree.path().join(STATE).join("kubeconfigs.json").exists());
        assert!(!tree.path().join(STAGED).exists());
        tree.run("plan tree").expect(0).says(&["Nothing to do"]);
    }
}

#[test]
fn kills_during_a_restore_leave_a_state_that_a_rerun_finishes() {
    let tree = backed_up();
    let whole = kept(&tree);
    let start = std::time::Instant::now();
    lose(&tree, STATE);
    tree.run("restore FILE.tar tree").expect(0);
    let life = start.elapsed();
    for number in 0..20 {
        lose(&tree, STATE);
        let mut child =
            tree.command("restore FILE.tar tree").stdout(std::process::Stdio::null()).spawn().unwrap();
        // A kill at any moment is what is tested; no assertion depends on how far the restore gets.
        std::thread::sleep(life.mul_f64(f64::from(number) / 20.0));
        child.kill().unwrap();
        child.wait().unwrap();
        let found: Vec<bool> = KEPT.iter().map(|file| tree.path().join(file).exists()).collect();
        assert!(found.iter().all(|there| *there == found[0]), "{found:?}");
        tree.run("restore FILE.tar tree");
        for (file, whole) in KEPT.iter().zip(&whole) {
            assert!(tree.read_bytes(file).starts_with(whole), "{file} after {number}");
        }
        tree.run("plan tree").expect(0).says(&["Nothing to do"]);
    }
    assert!(!tree.path().join(STAGED).exists());
}
