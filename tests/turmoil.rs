//! Random edits while `serve` runs, is killed at any moment and restarted. The final state must equal that of
//! one clean run.
//!
//! ```sh
//! STREAMFLEET_TURMOIL=1000 cargo test --test all turmoil      # so many edits instead of a few
//! STREAMFLEET_TURMOIL_SEED=7 cargo test --test all turmoil    # other edits
//! ```

mod cluster;
mod specs;

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use fastrand::Rng;

use crate::interrupted::without_chance;
use crate::pipeline::{Surroundings, plan_round};
use crate::support::serve::Serve;
use crate::support::{Tree, copy, files};
use specs::Specs;

const EDITS: usize = 60;

const PAUSE: Duration = Duration::from_millis(400);

const SHOWN: usize = 150;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// How many edits are asked for.
pub fn edits(usual: usize) -> usize {
    number("STREAMFLEET_TURMOIL").map_or(usual, |number| usize::try_from(number).unwrap())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Folder,
    /// A repository that the tree is pushed to.
    Git,
}

struct Turmoil<'t> {
    specs: Specs<'t>,
    source: Source,
    chance: Rng,
    serve: Option<Serve<'t>>,
    /// Clusters of the permanent set that have appeared.
    seen: BTreeSet<String>,
    history: Vec<String>,
    kills: usize,
    stops: usize,
    done: usize,
}

impl<'t> Turmoil<'t> {
    fn new(specs: Specs<'t>, source: Source) -> Self {
        let tree = specs.tree;
        let from = match source {
            Source::Folder => String::new(),
            Source::Git => format!("[source]\ngit = \"{}\"\n", tree.beside("specs.git").display()),
        };
        let config = format!(
            "[policy]\ncluster_deletions_per_hour = 1000\n[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n{from}\
             [secrets]\nallow_plain_in_git = true\n"
        );
        fs::write(tree.beside("config.toml"), config).unwrap();
        // Planning creates the installation, so that a clean run has the same ids and keys.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        drop(runtime.block_on(plan_round(tree, &Surroundings::default())));
        let made = tree.path().join(".streamfleet");
        for state in ["state", "fresh"] {
            copy(&made.join("state"), &tree.beside(state));
        }
        fs::remove_dir_all(made).unwrap();
        let seed = number("STREAMFLEET_TURMOIL_SEED").unwrap_or(1);
        let turmoil = Turmoil {
            specs,
            source,
            chance: Rng::with_seed(seed),
            serve: None,
            seen: BTreeSet::new(),
            history: vec![format!("seed {seed}")],
            kills: 0,
            stops: 0,
            done: 0,
        };
        if source == Source::Git {
            turmoil.git("init --quiet --bare --initial-branch=main ../specs.git");
            turmoil.git("init --quiet --initial-branch=main");
        }
        turmoil.publish();
        turmoil
    }

    fn git(&self, words: &str) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]);
        git.args(["-c", "gc.auto=0"]).args(words.split_whitespace()).current_dir(self.specs.tree.path());
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        let output = git.output().expect("the tests of git need git");
        assert!(output.status.success(), "git {words}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes saved edits visible to the process.
    fn publish(&self) {
        if self.source == Source::Folder {
            return;
        }
        self.git("add --all");
        self.git("commit --quiet --allow-empty --message=edit");
        self.git("push --quiet ../specs.git main");
        // Before its first plan it may not handle signals yet, and fetches anyway.
        if let Some(serve) = self.serve.as_ref().filter(|serve| serve.rounds() > 0) {
            serve.signal("HUP");
        }
    }

    fn words(&self, verb: &str, folder: &str) -> String {
        let tree = match (self.source, verb) {
            (Source::Git, _) => "",
            (Source::Folder, "serve") => "--specs tree",
            (Source::Folder, _) => "tree",
        };
        let yes = if verb == "apply" { "--yes" } else { "" };
        format!(
            "{verb} {tree} {yes} --config config.toml --state-dir {folder}state --output-dir {folder}output"
        )
    }

    /// Starts it, and mostly waits for its first plan: on a busy machine it would otherwise never get
    /// anything done.
    fn start(&mut self) {
        let words = self.words("serve", "");
        let serve = self.serve.insert(Serve::start(self.specs.tree, &words));
        if self.chance.u32(..4) > 0 {
            serve.until("it has planned", || (serve.rounds() > 0).then_some(()));
        }
    }

    /// Makes one edit, and perhaps ends the process at any moment.
    fn step(&mut self) {
        let told = self.specs.edit(&mut self.chance);
        self.history.push(told);
        self.publish();
        // The only sleep of this test: events at any moment are what is tested.
        let pause = if self.chance.u32(..3) == 0 { 0.0 } else { self.chance.f64() };
        sleep(PAUSE.mul_f64(pause * pause));
        match self.chance.u32(..30) {
            0..5 => self.kill(),
            5 => self.stop(),
            _ => {}
        }
        self.assert_permanent_clusters();
    }

    fn kill(&mut self) {
        self.history.push("killed".to_owned());
        self.kills += 1;
        self.ends();
        // Drop sends SIGKILL.
        self.serve = None;
        if self.chance.bool() {
            self.history.push("apply, killed".to_owned());
            let mut apply = self.specs.tree.command(&self.words("apply", ""));
            let apply = apply.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut apply = apply.spawn().unwrap();
            sleep(PAUSE.mul_f64(self.chance.f64()));
            apply.kill().unwrap();
            apply.wait().unwrap();
        }
        self.start();
    }

    fn stop(&mut self) {
        self.history.push("ended".to_owned());
        self.stops += 1;
        self.ends();
        // Before it handles signals, SIGTERM ends it without an exit code.
        let code = self.serve.take().and_then(Serve::stop);
        assert!(matches!(code, Some(0) | None), "{code:?}");
        self.start();
    }

    /// Asserts that the process still runs before it is ended, and counts its work.
    fn ends(&mut self) {
        let serve = self.serve.as_mut().unwrap();
        assert_eq!(serve.end(), None, "it ended by itself");
        self.done += serve.log().lines().filter(|line| line.contains("execute: done")).count();
    }

    /// Asserts that permanent clusters stay after they first appear.
    fn assert_permanent_clusters(&mut self) {
        let output = self.specs.tree.beside("output");
        for name in self.specs.staying() {
            for fleet in ["eu", "us"] {
                let folder = format!("acme/{fleet}/kafka-acme--{name}");
                let count = files(&output.join(&folder)).len();
                if count > 0 {
                    self.seen.insert(folder.clone());
                }
                assert!(count > 0 || !self.seen.contains(&folder), "{folder} is gone");
            }
        }
    }

    /// Waits until no work is left, and stops the process.
    fn settle(&mut self) {
        let serve = self.serve.take().unwrap();
        serve.until("it has planned", || (serve.rounds() > 0).then_some(()));
        let done = || {
            let log = serve.log();
            log.lines().filter(|line| [": done", ": decided"].iter().any(|it| line.contains(it))).count()
        };
        let mut quiet = 0;
        let mut before = done();
        serve.until("nothing is done any more", || {
            let rounds = serve.rounds();
            serve.signal("HUP");
            serve.until("there was another round", || (serve.rounds() > rounds + 1).then_some(()));
            quiet = if done() == before { quiet + 1 } else { 0 };
            before = done();
            (quiet == 3).then_some(())
        });
        assert_eq!(serve.stop(), Some(0));
    }

    /// The result of one clean run with the same ids.
    fn clean(&self) -> Vec<(String, String)> {
        let tree = self.specs.tree;
        let folder = tree.beside("clean");
        drop(fs::remove_dir_all(&folder));
        fs::create_dir(&folder).unwrap();
        copy(&tree.beside("fresh"), &folder.join("state"));
        tree.run(&self.words("apply", "clean/")).expect(0);
        without_chance(files(&folder.join("output")))
    }

    /// Asserts that no cluster was deleted that was always in the specs.
    fn assert_kept(&self) {
        let audit = fs::read_to_string(self.specs.tree.beside("state/audit.jsonl")).unwrap();
        for name in self.specs.staying() {
            let named = format!("cluster acme/{name}\"");
            let deleted = audit.lines().find(|line| line.contains(&named) && line.contains("delete"));
            assert_eq!(deleted, None, "{audit}");
        }
    }
}

impl Drop for Turmoil<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.specs.tree.beside("serve.log")).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            let lines = &lines[lines.len().saturating_sub(SHOWN)..];
            eprintln!("--- what was done\n{}\n--- log\n{}", self.history.join("\n"), lines.join("\n"));
        }
    }
}

/// Files without ids: a deleted and recreated cluster has another one, and how often that happens is random.
fn without_ids(files: &[(String, String)]) -> Vec<(String, String)> {
    let text = |text: &String| {
        let mut parts = text.split_inclusive("streamfleet.io/id: ");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + &part[part.find('\n').unwrap_or(part.len())..])
    };
    let files = files.iter().filter(|(path, _)| !path.ends_with("inventory.json"));
    files.map(|(path, content)| (path.clone(), text(content))).collect()
}

fn output(tree: &Tree) -> Vec<(String, String)> {
    without_chance(files(&tree.beside("output")))
}

fn assert_same(found: &[(String, String)], expected: &[(String, String)]) {
    let paths = |files: &[(String, String)]| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(found), paths(expected));
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected);
    }
}

fn folders_end_as_after_one_clean_run(source: Source, edits: usize) {
    let tree = Tree::example("quickstart");
    let mut turmoil = Turmoil::new(Specs::write(&tree, |_, text| text), source);
    turmoil.start();
    turmoil.serve.as_ref().unwrap().has_made(&["acme/orders", "acme/stays-a", "acme/stays-b"]);
    for _ in 0..edits {
        turmoil.step();
    }
    turmoil.specs.mend();
    turmoil.publish();
    turmoil.settle();
    assert_same(&without_ids(&output(&tree)), &without_ids(&turmoil.clean()));
    assert!(turmoil.kills > edits / 10, "{} kills", turmoil.kills);
    assert!(turmoil.done > edits / 20, "{} changes were done", turmoil.done);
    turmoil.assert_kept();

    turmoil.specs.remove_others();
    turmoil.publish();
    let apply = turmoil.words("apply", "");
    tree.run(&apply).expect(0);
    tree.run(&turmoil.words("plan", "")).expect(0);
    assert_same(&output(&tree), &turmoil.clean());
    turmoil.assert_kept();
    let Turmoil { kills, stops, done, .. } = &turmoil;
    println!("{edits} edits, {kills} kills, {stops} stops, {done} changes");
}

#[test]
fn folders_end_as_after_one_clean_run_whatever_happens_to_a_tree() {
    folders_end_as_after_one_clean_run(Source::Folder, edits(EDITS));
}

#[test]
fn folders_end_as_after_one_clean_run_whatever_is_pushed_to_a_repository() {
    folders_end_as_after_one_clean_run(Source::Git, edits(EDITS / 3));
}
