//! `serve` on directory fleets: every way to save specs, and failures of everything it depends on.

pub mod clock;
mod disk;
mod files;
mod log;
mod modes;
mod silent;
mod software;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::Tree;
use crate::support::control_plane::ControlPlane;
use crate::support::proxy::{Fault, Proxy, Rule};
use crate::support::serve::Serve;

/// With everything beside the tree, so that the tree can be moved away.
const SERVE: &str = "serve --specs tree --state-dir state --output-dir output";

const ORDERS: &str = "acme/clusters/orders.yaml";
const SANDBOX: &str = "acme/clusters/sandbox.yaml";

fn pool(tree: &Tree) -> String {
    let path = tree.beside("output/acme/eu/kafka-acme--orders/kafkanodepool-broker.yaml");
    fs::read_to_string(path).unwrap_or_default()
}

#[track_caller]
fn brokers(serve: &Serve<'_>, count: u32) {
    let line = format!("replicas: {count}\n");
    serve.until(&format!("there are {count} brokers"), || pool(serve.tree).contains(&line).then_some(()));
}

fn units(tree: &Tree, units: u32) -> String {
    let spec = tree.read(ORDERS);
    let lines = spec.lines().map(|line| match line.starts_with("kafka_units:") {
        true => format!("kafka_units: {units}\n"),
        false => format!("{line}\n"),
    });
    lines.collect()
}

/// Adds a fleet behind a proxy with one of the clusters, and settings that allow connecting to it.
fn far(tree: &Tree, proxy: &Proxy) {
    let config = "[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n";
    fs::write(tree.beside("config.toml"), config).unwrap();
    let fleet = tree.read("acme/fleets/eu.yaml");
    let far =
        fleet.replace("identifier: eu", "identifier: far").replace("domain: kafka.acme.example.com\n", "");
    let far = far.replace("infra_type: directory", "infra_type: byok");
    tree.write(
        "acme/fleets/far.yaml",
        format!("{far}advanced_config:\n  kubeconfig: '{}'\n", proxy.kubeconfig()),
    );
    let sandbox = tree.read(SANDBOX).replace("infrastructure: eu", "infrastructure: far");
    tree.write(SANDBOX, sandbox.replace("cluster_type", "cloud_provider: byok\ncluster_type"));
}

#[test]
fn a_cluster_that_hangs_while_it_is_changed_holds_up_no_other_fleet() {
    let plane = ControlPlane::lease();
    let proxy = Proxy::before(&plane);
    let tree = Tree::example("quickstart");
    far(&tree, &proxy);
    // Reads are answered; writes get no answer and are waited for.
    proxy.inject(Rule::always(Fault::Silence).changing(true));
    let serve = Serve::start(&tree, &format!("{SERVE} --config config.toml"));
    brokers(&serve, 3);
    serve.says(&["waiting: ", "fleet=\"acme/far\"", "an earlier plan has been running there since"]);
    for more in 2..5 {
        tree.write(ORDERS, units(&tree, more));
        brokers(&serve, more * 3);
    }
    let log = serve.log();
    assert!(
        !log.lines().any(|line| line.contains("execute: done") && line.contains("cluster acme/sandbox")),
        "{log}"
    );
    // Retries are logged each time.
    serve.says(&["ERROR", "fleet=acme/far", "again="]);
    tree.write(ORDERS, units(&tree, 5));
    brokers(&serve, 15);
    proxy.reset();
    serve.says(&["execute: done", "cluster acme/sandbox"]);
    assert_eq!(serve.stop(), Some(0));
}

/// Kubernetes gives a pod 30 s by default, and systemd's unit 40 s.
#[test]
fn a_signal_ends_it_within_the_grace_of_a_pod_though_a_cluster_hangs() {
    let plane = ControlPlane::lease();
    let proxy = Proxy::before(&plane);
    let tree = Tree::example("quickstart");
    far(&tree, &proxy);
    proxy.inject(Rule::always(Fault::Silence).changing(true));
    let serve = Serve::start(&tree, &format!("{SERVE} --config config.toml"));
    serve.says(&["waiting: ", "fleet=\"acme/far\"", "an earlier plan has been running there since"]);
    let began = Instant::now();
    assert_eq!(serve.stop(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[test]
fn a_second_process_waits_for_the_one_that_has_the_state_and_says_so() {
    let tree = Tree::example("quickstart");
    let serve = Serve::start(&tree, SERVE);
    brokers(&serve, 3);
    let expected =
        format!("waiting up to 60 s for process {}, which is using the state in `state`\n", serve.id());
    let mut second = tree.command(SERVE).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(second.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said.replace(tree.beside("state").to_str().unwrap(), "state"), expected);
    second.kill().unwrap();
    second.wait().unwrap();
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_state_that_is_taken_away_ends_the_process_before_anything_is_lost_in_it() {
    let tree = Tree::example("quickstart");
    let serve = Serve::start(&tree, SERVE);
    brokers(&serve, 3);
    serve.says(&["done", "cluster acme/sandbox"]);
    fs::rename(tree.beside("state"), tree.beside("aside")).unwrap();
    tree.write(ORDERS, units(&tree, 2));
    assert_eq!(serve.ended(), Some(4), "so that nobody starts it anew beside nothing");
    let log = fs::read_to_string(tree.beside("serve.log")).unwrap();
    let told = "cannot continue with the state in `state`: the folder was removed or replaced while in use";
    assert!(log.contains(told), "{log}");
    assert!(pool(&tree).contains("replicas: 3\n"));
    // After the folder is restored, work continues.
    fs::rename(tree.beside("aside"), tree.beside("state")).unwrap();
    let serve = Serve::start(&tree, SERVE);
    brokers(&serve, 6);
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_lost_cache_changes_nothing() {
    let tree = Tree::example("quickstart");
    let serve = Serve::start(&tree, SERVE);
    brokers(&serve, 3);
    serve.says(&["done", "cluster acme/sandbox"]);
    assert_eq!(serve.stop(), Some(0));
    let output = || crate::support::files(&tree.beside("output"));
    let before = output();
    fs::remove_dir_all(tree.beside("state/cache-v1")).unwrap();
    let serve = Serve::start(&tree, SERVE);
    serve.says(&["planned", "looked=1"]);
    assert_eq!(output(), before);
    tree.write(ORDERS, units(&tree, 2));
    brokers(&serve, 6);
    assert!(!serve.log().contains("cluster acme/sandbox"), "{}", serve.log());
    assert_eq!(serve.stop(), Some(0));
    let after = output();
    assert_eq!(after.len(), before.len());
    let changed = before.iter().zip(&after).filter(|(before, after)| before != after);
    let changed: Vec<&str> = changed.map(|((path, _), _)| path.as_str()).collect();
    let expected = [
        "acme/eu/.streamfleet-inventory.json",
        "acme/eu/kafka-acme--orders/kafka-orders.yaml",
        "acme/eu/kafka-acme--orders/kafkanodepool-broker.yaml",
        "acme/eu/kafka-acme--orders/resourcequota-orders.yaml",
    ];
    assert_eq!(changed, expected);
}
