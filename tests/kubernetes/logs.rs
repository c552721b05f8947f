//! Logs of brokers, from a real API server and a kubelet that has only logs.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{on, reached_with};
use crate::rights::{give, tenant};
use crate::support::Tree;
use crate::support::control_plane::{ControlPlane, until};
use crate::support::kubelet::Kubelet;
use crate::support::serve::Serve;

const APPLY: &str = "apply tree --yes --config config.toml";
const NAMESPACE: &str = "kafka-acme--sandbox";

/// Prepares a namespace for pods, as Kubernetes' controllers would, with two brokers.
fn brokers(plane: &ControlPlane) -> Kubelet {
    plane.kubectl(&format!("delete resourcequotas --all --namespace={NAMESPACE}"), "").expect(0);
    plane.kubectl(&format!("create serviceaccount default --namespace={NAMESPACE}"), "").expect(0);
    let kubelet = Kubelet::start(plane, "node-1");
    for pod in ["sandbox-broker-0", "sandbox-broker-1"] {
        kubelet.run(plane, NAMESPACE, "sandbox", pod);
    }
    kubelet
}

fn at(second: i64) -> Timestamp {
    let noon: Timestamp = "2026-01-23T12:00:00.25Z".parse().unwrap();
    noon + SignedDuration::from_secs(second)
}

/// A command that runs on, with its lines.
struct Following {
    child: Child,
    lines: Receiver<String>,
}

impl Following {
    fn start(tree: &Tree, words: &str) -> Following {
        let mut child = tree.command(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Following { child, lines }
    }

    #[track_caller]
    fn says(&self, expected: &str) {
        let line = self.lines.recv_timeout(Duration::from_secs(120)).expect(expected);
        assert_eq!(line, expected);
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn logs_are_merged_by_time_escaped_and_bounded() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    tree.run(APPLY).expect(0);
    let kubelet = brokers(&plane);
    kubelet.log("sandbox-broker-0", at(0), "INFO first");
    kubelet.log("sandbox-broker-1", at(1), b"INFO \x1b[31mred\x1b[0m \xff");
    kubelet.log("sandbox-broker-0", at(2), "\tat org.apache.kafka.Main");
    kubelet.log("sandbox-broker-1", at(3), "x".repeat(3_000_000));
    let logs = |more: &str| tree.run(&format!("logs sandbox tree --config config.toml {more}"));
    let out = logs("").expect(0).out;
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "2026-01-23T12:00:00.250000000Z sandbox-broker-0 INFO first",
            "2026-01-23T12:00:01.250000000Z sandbox-broker-1 INFO \\u{1b}[31mred\\u{1b}[0m \u{fffd}",
            "2026-01-23T12:00:02.250000000Z sandbox-broker-0     at org.apache.kafka.Main",
        ]
    );
    assert!(lines.len() == 4 && lines[3].ends_with("xx…") && lines[3].len() < 17_000, "{}", lines[3].len());
    // With a daemon, the log comes by its route.
    let serve = Serve::start(&tree, "serve --specs tree --config config.toml");
    serve.says(&["planned", "looked="]);
    assert_eq!(logs("").expect(0).out, out);
    assert_eq!(serve.stop(), Some(0));
    // One broker needs no name.
    assert_eq!(
        logs("--broker 0 --since 2026-01-23T12:00:00.25Z").expect(0).out,
        "2026-01-23T12:00:00.250000000Z INFO first\n2026-01-23T12:00:02.250000000Z     at org.apache.kafka.Main\n"
    );
    logs("--broker 7")
        .expect(1)
        .says(&["cluster acme/sandbox has no broker 7 that runs", "its brokers are 0, 1"]);
    logs("--since yesterday").expect(64);
    tree.run("logs orders tree --config config.toml").expect(0).says(&["# no broker runs"]);
}

#[test]
fn a_followed_log_goes_on_over_a_restart_and_names_a_pod_that_is_gone() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    let serve = Serve::start(&tree, "serve --specs tree --config config.toml");
    serve.has_made(&["cluster acme/orders", "cluster acme/sandbox"]);
    assert_eq!(serve.stop(), Some(0));
    let kubelet = brokers(&plane);
    kubelet.log("sandbox-broker-0", at(0), "before");
    let words = "logs sandbox tree --config config.toml --follow";
    follow(&plane, &kubelet, &Following::start(&tree, words), 0);

    // The same by a daemon, which has the route of the API.
    let serve = Serve::start(&tree, "serve --specs tree --config config.toml");
    serve.says(&["planned", "looked="]);
    let since = format!("{words} --since {}", at(9));
    kubelet.log("sandbox-broker-0", at(10), "before");
    follow(&plane, &kubelet, &Following::start(&tree, &since), 10);
    assert_eq!(serve.stop(), Some(0));
}

fn follow(plane: &ControlPlane, kubelet: &Kubelet, following: &Following, begin: i64) {
    let line = |second: i64, pod: u32, text: &str| {
        let time = at(begin + second).strftime("%Y-%m-%dT%H:%M:%S.%9fZ").to_string();
        format!("{time} sandbox-broker-{pod} {text}")
    };
    following.says(&line(0, 0, "before"));
    kubelet.log("sandbox-broker-1", at(begin + 1), "now");
    following.says(&line(1, 1, "now"));
    kubelet.restart("sandbox-broker-0");
    kubelet.log("sandbox-broker-0", at(begin + 2), "after the restart");
    following.says(&line(2, 0, "after the restart"));
    let pod = format!("pod sandbox-broker-1 --namespace={NAMESPACE}");
    plane.kubectl(&format!("delete {pod} --grace-period=0 --force"), "").expect(0);
    kubelet.restart("sandbox-broker-1");
    following.says("# pod sandbox-broker-1 is gone");
    kubelet.log("sandbox-broker-0", at(begin + 3), "goes on");
    following.says(&line(3, 0, "goes on"));
    kubelet.run(plane, NAMESPACE, "sandbox", "sandbox-broker-1");
    following.says("# pod sandbox-broker-1 is there again");
    kubelet.log("sandbox-broker-1", at(begin + 4), "another pod");
    following.says(&line(4, 1, "another pod"));
}

#[test]
fn without_the_right_the_refusal_says_who_gives_it() {
    let plane = ControlPlane::lease();
    let tree = reached_with(&tenant(&plane, ""));
    tree.run(APPLY).expect(0);
    let kubelet = brokers(&plane);
    kubelet.log("sandbox-broker-0", at(0), "seen");
    let logs = "logs sandbox tree --config config.toml";
    tree.run(logs).expect(1).says(&[
        "cannot read the logs of cluster acme/sandbox: the Kubernetes cluster of fleet acme/eu refuses them",
        "an administrator of the Kubernetes cluster gives the right with: streamfleet role --logs",
    ]);
    give(&plane, "--logs");
    until("the right holds", || (tree.run(logs).code == 0).then_some(()));
    tree.run(logs).expect(0).says(&["sandbox-broker-0 seen"]);
}

#[test]
fn a_folder_has_no_logs() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    tree.run("logs sandbox tree").expect(1).says(&[
        "cluster acme/sandbox has no logs: fleet acme/eu is a folder, so streamfleet can't read those of its pods",
        "read them where the manifests are applied: kubectl logs",
    ]);
}

/// Fields that need a controller which says something: a Gateway's its address, Strimzi's operator the versions that it
/// runs. Other tests have those.
const ELSEWHERE: [&str; 2] = ["cluster.new_version", "fleet.loadbalancer_dns"];

#[test]
fn every_field_that_an_installation_can_fill_is_filled_and_every_other_one_explained() {
    let plane = ControlPlane::lease();
    let (kubernetes, folder) = (on(&plane), Tree::example("quickstart"));
    let fleet = "acme/fleets/eu.yaml";
    kubernetes.write(fleet, kubernetes.read(fleet) + "  monitoring: {federate: true}\n");
    let sandbox = "acme/clusters/sandbox.yaml";
    kubernetes.write(sandbox, kubernetes.read(sandbox) + "  operations: {metrics: true}\n");
    let (mut filled, mut null) = (BTreeSet::new(), BTreeSet::new());
    for tree in [&kubernetes, &folder] {
        let settings = "console_url_template = \"https://c.example.com/{organization}/{fleet}/{cluster}\"\n\
                        [targets]\nallow_addresses = [\"127.0.0.0/8\"]\n\
                        [api]\nbase_url = \"https://k.example.com\"\n\
                        [prices]\ncurrency = \"EUR\"\ncpu_hour = 0.031\n";
        fs::write(tree.beside("config.toml"), settings).unwrap();
        tree.run(APPLY).expect(0);
        for (kind, path) in [("fleet", "acme/eu"), ("cluster", "acme/sandbox")] {
            let record =
                tree.run(&format!("get {kind}/{path} tree --config config.toml --format json")).expect(0).out;
            let record: Value = serde_json::from_str(&record).unwrap();
            let record = record.get(0).unwrap_or(&record);
            for (field, value) in record.as_object().unwrap() {
                let fields = if value.is_null() { &mut null } else { &mut filled };
                fields.insert(format!("{kind}.{field}"));
            }
            if kind == "fleet" && record["infra_type"] == "directory" {
                assert_eq!(
                    record["null_reasons"]["logs_endpoint"],
                    "the fleet is a folder, and nothing runs there"
                );
            }
            if kind == "fleet" && record["infra_type"] == "byok" {
                let base = "https://k.example.com/organizations/acme/infrastructure/eu";
                assert_eq!(record["logs_endpoint"], format!("{base}/logs"));
                assert_eq!(record["cost_endpoint"], format!("{base}/cost"));
            }
        }
    }
    for field in null.difference(&filled) {
        let page = tree_explains(&folder, field);
        // What a spec says and this one doesn't is no matter of the installation.
        let is_output = page.contains("Streamfleet: `get` and the API answer it");
        assert!(!is_output || page.contains("Always null") || ELSEWHERE.contains(&field.as_str()), "{page}");
    }
    for field in [
        "cluster.client_properties",
        "cluster.console_url",
        "cluster.metrics_endpoint",
        "cluster.storage_manifests_file_path",
        "fleet.cost_endpoint",
        "fleet.logs_endpoint",
        "fleet.metrics_endpoint",
    ] {
        assert!(filled.contains(field), "{field}");
    }
}

fn tree_explains(tree: &Tree, field: &str) -> String {
    tree.run(&format!("explain {field}")).expect(0).out
}
