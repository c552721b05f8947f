//! A fleet whose API server is out to harm: what it sends costs neither memory nor disk without bounds, reaches no terminal,
//! and holds up no other organization.
//!
//! The fleet of one organization is applied to a real control plane first, so that everything of it is watched and judged.
//! Then a proxy before it turns on whoever asks. The other organization's fleet is a folder.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::Tree;
use crate::support::control_plane::ControlPlane;
use crate::support::proxy::attack::{Attack, answers};
use crate::support::proxy::{Fault, Proxy, Rule};
use crate::support::serve::Serve;

const SERVE: &str = "serve --specs tree --state-dir state --output-dir output --config config.toml";

/// The spec that the other organization edits.
const THEIRS: &str = "globex/clusters/events.yaml";

/// The most memory that the process may have had.
const MEMORY: usize = 300 * 1024 * 1024;

/// How many bytes log and state may grow by in a minute.
const GROWTH: f64 = 10.0 * 1024.0 * 1024.0;

/// How long the other organization waits for an edit, beyond twice what it waits where nobody attacks. That is for a process
/// that was not optimized, on a machine that runs other tests.
const PROMPT: Duration = Duration::from_secs(2);

/// Two organizations: one with a fleet behind a proxy, one with a folder.
fn tree(proxy: &Proxy) -> Tree {
    let tree = Tree::example("two-organizations");
    fs::write(tree.beside("config.toml"), "[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n").unwrap();
    let fleet = "acme/fleets/main.yaml";
    tree.edit(fleet, "infra_type: directory", "infra_type: byok");
    let text = tree.read(fleet);
    tree.write(fleet, format!("{text}advanced_config:\n  kubeconfig: '{}'\n", proxy.kubeconfig()));
    let cluster = "acme/clusters/events.yaml";
    tree.edit(cluster, "cluster_type", "cloud_provider: byok\ncluster_type");
    tree
}

/// Edits the other organization's cluster, and gives how long it took until that was applied.
fn edit(serve: &Serve<'_>, units: u32) -> Duration {
    let tree = serve.tree;
    tree.edit(THEIRS, &format!("kafka_units: {}", units - 1), &format!("kafka_units: {units}"));
    let since = Instant::now();
    let pool = tree.beside("output/globex/main/kafka-globex--events/kafkanodepool-broker.yaml");
    let replicas = format!("replicas: {}\n", units * 3);
    serve.until(&format!("the other organization has {units} units"), || {
        fs::read_to_string(&pool).unwrap_or_default().contains(&replicas).then_some(())
    });
    since.elapsed()
}

/// How many bytes there are in a file or a folder.
fn size(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    match metadata.is_dir() {
        true => {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| size(&entry.path())).sum()
        }
        false => metadata.len(),
    }
}

fn written(tree: &Tree) -> u64 {
    size(&tree.beside("serve.log")) + size(&tree.beside("state"))
}

/// Attacks, while the other organization edits its cluster again and again.
fn survives(attack: Attack, rule: impl Fn(Rule) -> Rule) {
    let plane = ControlPlane::start();
    let proxy = Proxy::before(&plane);
    let tree = tree(&proxy);
    let serve = Serve::start(&tree, SERVE);
    serve.has_made(&["cluster acme/events", "cluster globex/events"]);
    let undisturbed = edit(&serve, 2).max(edit(&serve, 3));
    // From the beginning of a process on, everything is listed and watched.
    assert_eq!(serve.stop(), Some(0));
    proxy.inject(rule(Rule::always(Fault::Attack(attack))));
    let serve = Serve::start(&tree, SERVE);
    let (began, before, harmed) = (Instant::now(), written(&tree), answers());
    serve.until("the attack is under way", || (answers() > harmed).then_some(()));

    let mut slowest = Duration::ZERO;
    for units in 4..=6 {
        slowest = slowest.max(edit(&serve, units));
        // Each edit meets another moment of the attack.
        let rounds = serve.rounds();
        serve.until("there are more rounds", || (serve.rounds() > rounds).then_some(()));
    }
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    let (memory, growth) = (serve.most_memory(), (written(&tree) - before) as f64 / minutes.max(0.5));
    eprintln!(
        "{attack:?}: undisturbed {undisturbed:?}, slowest {slowest:?}, {} MiB, {} KiB a minute, {} answers in {:.0} s",
        memory >> 20,
        growth as u64 >> 10,
        answers() - harmed,
        minutes * 60.0
    );
    assert!(memory < MEMORY, "{attack:?}: {} MiB of memory", memory >> 20);
    assert!(growth < GROWTH, "{attack:?}: {growth} bytes a minute\n{}", serve.log());
    assert!(
        slowest < PROMPT + 2 * undisturbed,
        "{attack:?}: {slowest:?}, and {undisturbed:?} without\n{}",
        serve.log()
    );
    harmless(&serve.log());
    harmless(&tree.run("status tree --state-dir state --output-dir output --config config.toml").out);
}

/// Nothing in a text commands a terminal or deceives who reads it.
#[track_caller]
fn harmless(text: &str) {
    let is_bad = |it: char| it != '\n' && (it.is_control() || "\u{202e}\u{200b}\u{2028}".contains(it));
    let bad = text.lines().find(|line| line.contains(is_bad));
    assert_eq!(bad, None);
    let longest = text.lines().map(str::len).max().unwrap_or_default();
    assert!(longest < 100_000, "a line of {longest} bytes");
}

/// What a list is asked for by.
const LISTS: &str = "limit=500";

#[test]
fn endless_pages() {
    survives(Attack::EndlessPages, |rule| rule.on("GET", LISTS));
}

#[test]
fn endless_events() {
    survives(Attack::EndlessEvents, |rule| rule.on("GET", "watch=true"));
}

#[test]
fn huge_answers() {
    survives(Attack::HugeAnswer, |rule| rule.but("kube-system"));
}

#[test]
fn huge_names() {
    survives(Attack::HugeNames, |rule| rule.on("GET", LISTS));
}

#[test]
fn changing_names() {
    survives(Attack::ChangingNames, |rule| rule.on("GET", LISTS).but("configmaps"));
}

#[test]
fn escapes() {
    survives(Attack::Escapes, |rule| rule.on("GET", LISTS).but("configmaps"));
}

#[test]
fn slow_answers() {
    survives(Attack::SlowAnswers, |rule| rule.but("kube-system"));
}
