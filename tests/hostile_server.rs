//! A hostile API server: what it sends has bounded cost in memory and disk, never reaches a terminal
//! unescaped, and doesn't delay another organization.
//!
//! One organization's fleet is first applied to a real control plane, so that everything in it is watched and
//! judged. Then a proxy in front of it attacks the daemon. The other organization's fleet is a directory.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::control_plane::ControlPlane;
use crate::support::proxy::attack::Attack;
use crate::support::proxy::{Fault, Proxy, Rule};
use crate::support::serve::Serve;
use crate::support::{Tree, one_in};

const SERVE: &str = "serve --specs tree --state-dir state --output-dir output --config config.toml";

const THEIRS: &str = "globex/clusters/events.yaml";

/// Allowed memory under attack, in bytes beyond that without one. What is kept of one fleet's cluster is limited
/// to 176 MiB; the rest is for what is being read, and for what the allocator doesn't return.
const MEMORY: usize = 232 << 20;

/// Upper bound for the growth of log and state, in bytes per minute.
const GROWTH: f64 = 10.0 * 1024.0 * 1024.0;

/// Allowed latency of the other organization's edits under attack, beyond ten times that without one. It is
/// for an unoptimized build on a machine that runs other tests.
const PROMPT: Duration = Duration::from_secs(2);

/// Minimum number of the other organization's edits, and full duration of each attack.
const EDITS: usize = 5;
const LASTS: Duration = Duration::from_secs(10);

/// Two organizations: one with a fleet behind a proxy, one with a directory.
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

struct Edits {
    plain: String,
    done: u64,
}

impl Edits {
    /// Edits the spec, and returns how long it took until it was applied.
    fn edit(&mut self, serve: &Serve<'_>) -> Duration {
        self.done += 1;
        // The value only grows, so that no edit loses data.
        let value = format!("log.retention.ms: {}", 700_000_000 + self.done);
        serve.tree.write(THEIRS, format!("{}  config: {{{value}}}\n", self.plain));
        let since = Instant::now();
        let kafka = serve.tree.beside("output/globex/main/kafka-globex--events/kafka-events.yaml");
        serve.until(&format!("the other organization has {value}"), || {
            fs::read_to_string(&kafka).unwrap_or_default().contains(&value).then_some(())
        });
        since.elapsed()
    }
}

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

/// Restricts a rule to some calls.
type Narrow = fn(Rule) -> Rule;

/// The attack, the affected calls, and the expected log message.
const ATTACKS: [(Attack, Narrow, &str); 7] = [
    (Attack::EndlessPages, lists, "the server sends more than the limit for a fleet"),
    (Attack::EndlessEvents, |rule| rule.on("GET", "watch=true"), "looked="),
    (Attack::HugeAnswer, all, "a part of the answer is longer than 4096 KiB, the limit"),
    (Attack::HugeNames, lists, "a part of the answer is longer than 4096 KiB, the limit"),
    (Attack::ChangingNames, pods, "looked="),
    (Attack::Escapes, pods, "looked="),
    (Attack::SlowAnswers, all, "no complete answer within"),
];

fn lists(rule: Rule) -> Rule {
    rule.on("GET", "limit=500")
}

/// Only pods, by which health is judged, so that judging continues.
fn pods(rule: Rule) -> Rule {
    rule.on("GET", "/pods?")
}

/// All calls but the one that identifies the cluster.
fn all(rule: Rule) -> Rule {
    rule.except_path("kube-system")
}

#[test]
fn a_server_that_is_out_to_harm_costs_nobody_else_anything() {
    let plane = ControlPlane::lease();
    let proxy = Proxy::before(&plane);
    let tree = tree(&proxy);
    let mut edits = Edits { plain: tree.read(THEIRS), done: 0 };
    let serve = Serve::start(&tree, SERVE);
    serve.has_made(&["cluster acme/events", "cluster globex/events"]);
    let undisturbed = (0..EDITS).map(|_| edits.edit(&serve)).max().unwrap();
    let usual_memory = serve.most_memory();
    assert_eq!(serve.stop(), Some(0));

    let lasts_one_in = u32::try_from(one_in(4)).unwrap();
    let mut harms = Vec::new();
    for (attack, rule, says) in ATTACKS {
        proxy.reset();
        proxy.inject(rule(Rule::always(Fault::Attack(attack))));
        let (began, before, harmed) = (Instant::now(), size(&tree.beside("state")), proxy.harmed());
        let serve = Serve::start(&tree, SERVE);
        serve.until(&format!("{attack:?} is under way"), || (proxy.harmed() > harmed).then_some(()));
        let mut took = Vec::new();
        while took.len() < EDITS || began.elapsed() < LASTS / lasts_one_in {
            took.push(edits.edit(&serve));
        }
        took.sort();
        let (usual, slowest) = (took[took.len() / 2], took[took.len() - 1]);
        serve.says(&[says]);
        let lasted = began.elapsed();
        // Each process starts a new log.
        let grown = written(&tree).saturating_sub(before);
        let growth = grown as f64 / lasted.as_secs_f64().max(30.0) * 60.0;
        let memory = serve.most_memory().saturating_sub(usual_memory);
        let told = format!(
            "{attack:?}: {} answers in {lasted:?}, {} MiB more memory, {} KiB written a minute, edits took {usual:?}, the slowest \
             {slowest:?} ({undisturbed:?} without)",
            proxy.harmed() - harmed,
            memory >> 20,
            growth as u64 >> 10
        );
        eprintln!("{told}");
        // One edit may wait for a processor that other tests use.
        let prompt = PROMPT + 10 * undisturbed;
        if memory > MEMORY || growth > GROWTH || usual > prompt || slowest > 5 * prompt {
            harms.push(told);
        }
        harmless(&serve.log());
        harmless(&tree.run("status tree --state-dir state --output-dir output --config config.toml").out);
        harmless(&tree.run("events tree --state-dir state --output-dir output --config config.toml").out);
        proxy.reset();
        assert_eq!(serve.stop(), Some(0));
    }
    assert!(harms.is_empty(), "{}", harms.join("\n"));
}

/// Asserts that a text contains nothing that controls a terminal or deceives its reader.
#[track_caller]
fn harmless(text: &str) {
    let is_bad = |it: char| it != '\n' && (it.is_control() || "\u{202e}\u{200b}\u{2028}".contains(it));
    let bad = text.lines().find(|line| line.contains(is_bad));
    assert_eq!(bad, None);
    let longest = text.lines().map(str::len).max().unwrap_or_default();
    assert!(longest < 100_000, "a line of {longest} bytes");
}
