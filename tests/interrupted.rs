//! Kills a run between any two steps, and checks what the next runs do, from disk to disk.

use std::fs;

use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use streamfleet::catalog::Recorded;
use tempfile::TempDir;

use crate::pipeline::{Surroundings, converge, plan_round};
use crate::support::{Tree, copy, memory_folder, one_in};

const DOMAIN: &str = "acme/base-domains/kafka.acme.example.com.yaml";
const ORDERS: &str = "acme/clusters/orders.yaml";
const SANDBOX: &str = "acme/clusters/sandbox.yaml";

/// A tree that is always restored to one path, since the path is part of what is recorded.
struct Stage {
    tree: Tree,
    /// The tree before the killed run, with its state and output.
    before: TempDir,
}

impl Stage {
    /// Applies the quickstart as changed by `first`, then makes `edit`.
    async fn new(first: impl Fn(&Tree), edit: impl Fn(&Tree)) -> Stage {
        let tree = Tree::example("quickstart");
        let around = Surroundings::default();
        first(&tree);
        drop(converge(&tree, &around).await);
        Self::at(tree, edit)
    }

    /// A stage before the first apply. The installation has its id and keys.
    async fn untouched() -> Stage {
        let tree = Tree::example("quickstart");
        drop(plan_round(&tree, &Surroundings::default()).await);
        Self::at(tree, |_| {})
    }

    fn at(tree: Tree, edit: impl Fn(&Tree)) -> Stage {
        edit(&tree);
        let before = memory_folder();
        copy(&tree.path(), before.path());
        Stage { tree, before }
    }

    fn rewind(&self) {
        fs::remove_dir_all(self.tree.path()).unwrap();
        copy(self.before.path(), &self.tree.path());
    }

    /// Plans and is killed after so many polls. Returns whether the run was over before.
    async fn kill(&self, polls: usize) -> bool {
        plan_round(&self.tree, &Surroundings::default()).await.killed_after(polls).await
    }

    /// Runs until nothing more can be done. Returns the number of rounds and the result.
    async fn end(&self) -> (usize, End) {
        let (rounds, round) = converge(&self.tree, &Surroundings::default()).await;
        let waiting: Vec<String> = round.plan.changes().map(|change| change.resource.to_string()).collect();
        (rounds, End { waiting, recorded: comparable(round.recorded), files: output(&self.tree) })
    }

    /// Kills the run everywhere, and a second time at another place while it is resumed. The result must be
    /// that of an undisturbed run, after as many rounds.
    async fn kill_everywhere(&self) {
        let (rounds, expected) = self.end().await;
        assert_eq!(expected.waiting, [""; 0], "the undisturbed run ends");
        for (number, first) in (0..).step_by(one_in(3)).enumerate() {
            self.rewind();
            if self.kill(first).await {
                assert!(first > 10, "there are only {first} places");
                return;
            }
            if number % 3 == 1 {
                // Spreads the second kills over early, middle and late places.
                self.kill(first * 7 % 41).await;
            }
            let (again, end) = self.end().await;
            assert_same(&end, &expected, &format!("killed after {first} polls"));
            assert!(again <= rounds, "{again} rounds instead of {rounds}, killed after {first} polls");
        }
    }
}

#[derive(Debug, PartialEq)]
struct End {
    waiting: Vec<String>,
    recorded: Recorded,
    files: Vec<(String, String)>,
}

/// Compares two results piece by piece, so that the difference is readable.
#[track_caller]
fn assert_same(found: &End, expected: &End, when: &str) {
    assert_eq!(found.waiting, expected.waiting, "{when}");
    let names = |end: &End| end.files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "{when}");
    for (found, expected) in found.files.iter().zip(&expected.files) {
        assert_eq!(found, expected, "{when}");
    }
    for (key, resource) in found.recorded.resources.iter() {
        assert_eq!(Some(resource), expected.recorded.resources.get(key), "{key}, {when}");
    }
    assert_eq!(found.recorded, expected.recorded, "{when}");
}

/// The records without random values: a Secret's file has a random line, so its digest is random, and a lost
/// manifest can't be read back from it.
fn comparable(mut recorded: Recorded) -> Recorded {
    let objects = recorded.fleets.values_mut().flat_map(|fleet| &mut fleet.objects);
    for (_, object) in objects.filter(|(key, _)| key.kind == "Secret") {
        (object.uid, object.manifest) = (None, None);
    }
    recorded
}

/// All files and folders of the output, byte for byte except for random values.
pub fn output(tree: &Tree) -> Vec<(String, String)> {
    without_chance(tree.output())
}

/// Replaces random values in files.
pub fn without_chance(files: Vec<(String, Vec<u8>)>) -> Vec<(String, String)> {
    let text = |path: &str, bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        if path.ends_with("inventory.json") { inventory_without_random(&text) } else { without_random(&text) }
    };
    files.into_iter().map(|(path, bytes)| (text(&path, bytes), path)).map(|(t, p)| (p, t)).collect()
}

fn without_random(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with("# Random")).collect()
}

fn inventory_without_random(text: &str) -> String {
    let mut inventory: Value = serde_json::from_str(text).unwrap();
    for (key, entry) in inventory["objects"].as_object_mut().unwrap() {
        if key.contains("|Secret|") {
            entry["written"]["content"] = Value::Null;
        }
    }
    inventory.to_string()
}

pub fn certificate(tree: &Tree) -> String {
    let text = tree.read(DOMAIN);
    let lines = text.lines().skip_while(|line| *line != "tls_cert: |").skip(1);
    lines.map_while(|line| line.strip_prefix("  ")).map(|line| format!("{line}\n")).collect()
}

/// Another certificate for the quickstart's domain, valid for a long time.
pub fn replace_certificate(tree: &Tree) {
    let names = ["kafka.acme.example.com", "*.kafka.acme.example.com"];
    let params = CertificateParams::new(names.map(str::to_owned)).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let indented = |pem: &str| pem.lines().map(|line| format!("  {line}\n")).collect::<String>();
    tree.write(
        DOMAIN,
        format!(
            "apiVersion: streamfleet/v1\nkind: BaseDomain\norganization: acme\ndomain: kafka.acme.example.com\n\
             tls_cert: |\n{}tls_key: |\n{}",
            indented(&certificate),
            indented(&key.serialize_pem())
        ),
    );
}

fn more_units(tree: &Tree) {
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
}

fn add_payments(tree: &Tree) {
    tree.write("acme/clusters/payments.yaml", tree.read(ORDERS).replace("orders", "payments"));
}

#[tokio::test]
async fn the_first_apply_can_be_killed_anywhere() {
    Stage::untouched().await.kill_everywhere().await;
}

#[tokio::test]
async fn a_change_of_units_can_be_killed_anywhere() {
    Stage::new(|_| {}, more_units).await.kill_everywhere().await;
}

#[tokio::test]
async fn a_deletion_with_data_can_be_killed_anywhere() {
    Stage::new(|_| {}, |tree| tree.remove(SANDBOX)).await.kill_everywhere().await;
}

#[tokio::test]
async fn a_new_certificate_can_be_killed_anywhere() {
    Stage::new(|_| {}, replace_certificate).await.kill_everywhere().await;
}

#[tokio::test]
async fn a_new_certificate_of_two_clusters_can_be_killed_anywhere() {
    Stage::new(add_payments, replace_certificate).await.kill_everywhere().await;
}

#[tokio::test]
async fn several_edits_at_once_can_be_killed_anywhere() {
    let edit = |tree: &Tree| {
        more_units(tree);
        tree.remove(SANDBOX);
        replace_certificate(tree);
    };
    Stage::new(|_| {}, edit).await.kill_everywhere().await;
}

#[tokio::test]
async fn what_was_half_made_and_removed_from_the_specs_is_deleted() {
    let stage = Stage::untouched().await;
    stage.tree.remove(SANDBOX);
    let (_, expected) = stage.end().await;
    for polls in (0..).step_by(one_in(3)) {
        stage.rewind();
        if stage.kill(polls).await {
            break;
        }
        stage.tree.remove(SANDBOX);
        let (_, end) = stage.end().await;
        assert_eq!(end.waiting, [""; 0], "killed after {polls} polls");
        assert_eq!(end.files, expected.files, "killed after {polls} polls");
        let keys = |end: &End| end.recorded.resources.keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&end), keys(&expected), "killed after {polls} polls");
    }
}

#[tokio::test]
async fn what_was_half_made_and_protected_stays_and_says_so_and_is_made_whole_when_it_is_back() {
    let stage = Stage::untouched().await;
    let (_, expected) = stage.end().await;
    let (mut stayed, mut went) = (0, 0);
    for polls in (0..).step_by(one_in(2) * 3) {
        stage.rewind();
        let text = stage.tree.read(ORDERS);
        if stage.kill(polls).await {
            break;
        }
        let there = stage.tree.output().iter().any(|(path, _)| path.contains("--orders"));
        stage.tree.remove(ORDERS);
        let (_, end) = stage.end().await;
        if there {
            assert_eq!(end.waiting, ["cluster acme/orders"], "killed after {polls} polls");
            stayed += 1;
        } else {
            assert_eq!(end.waiting, [""; 0], "nothing is there to protect, killed after {polls} polls");
            assert!(
                end.files.iter().all(|(path, text)| !path.contains("orders") && !text.contains("orders"))
            );
            went += 1;
        }
        stage.tree.write(ORDERS, text);
        let (_, end) = stage.end().await;
        assert_eq!(end.waiting, [""; 0], "killed after {polls} polls");
        let paths = |end: &End| end.files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
        assert_eq!(paths(&end), paths(&expected), "killed after {polls} polls");
    }
    assert!(stayed > 10 / one_in(2) && went > 1, "{stayed} stayed, {went} went");
}
