//! Each alert fires in a running Prometheus, which has the rules of a fleet and recorded series of its clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::alerts::{Case, cases};
use super::manifest;
use super::series::{Cluster, SAMPLES, STEP, certificate};
use crate::support::control_plane::process::Folder;
use crate::support::control_plane::until;
use crate::support::names::{expiring, fields};
use crate::support::prometheus::{Server, command};
use crate::support::{Run, Tree};

const DOMAIN: &str = "acme/base-domains/stream.example.com.yaml";
const FLEET: &str = "acme/fleets/eu.yaml";
const ORDERS: &str = "acme/clusters/orders.yaml";
const CERTIFICATE: &str = "KafkaCertificateExpires";
/// What the series cover, in seconds.
const SPAN: i64 = ((SAMPLES - 1) * STEP) as i64;

/// The example's fleet with a cluster for each case. They share the certificate of their domain, which expires.
fn fleet(cases: &[Case]) -> Tree {
    let tree = Tree::example("prometheus");
    tree.edit(FLEET, "max_tenants: 3", &format!("max_tenants: {}", cases.len()));
    tree.edit(FLEET, "max_kafka_units: 6", &format!("max_kafka_units: {}", cases.len()));
    let text = tree.read(DOMAIN);
    let own = fields(&expiring(&["stream.example.com", "*.stream.example.com"], 13));
    tree.write(DOMAIN, text.split("tls_cert: ").next().unwrap().to_owned() + &own);
    let orders = tree.read(ORDERS);
    tree.remove(ORDERS);
    for name in cases.iter().map(cluster) {
        let text = orders.replace("identifier: orders", &format!("identifier: {name}"));
        tree.write(&format!("acme/clusters/{name}.yaml"), text);
    }
    tree.run("apply tree --yes --config tree/streamfleet.toml").expect(0);
    tree
}

/// The name of a case's cluster.
fn cluster(case: &Case) -> String {
    case.alert.to_lowercase()
}

/// The folder of a Prometheus: its configuration, its rules, and its `data`.
struct Disk {
    folder: Folder,
    /// The last moment with samples.
    end: i64,
}

impl Disk {
    /// Has what is mounted into the pod of the fleet's Prometheus, but no pods to read.
    fn mount(tree: &Tree) -> Disk {
        // Prometheus allocates large files ahead, which costs time in memory.
        let disk = Disk { folder: Folder::new(), end: Timestamp::now().as_second() };
        for name in ["prometheus", "prometheus-sizes"] {
            let map = manifest(tree, "ConfigMap", "kafka-monitoring", name);
            for (file, text) in map["data"].as_object().unwrap() {
                disk.write(file, text.as_str().unwrap());
            }
        }
        let mut configuration = disk.read("prometheus.yml");
        assert!(configuration["scrape_configs"].take().is_array());
        configuration["rule_files"] = json!(["alerts.yml", "sizes.yml"]);
        configuration["global"]["evaluation_interval"] = "1s".into();
        disk.write("prometheus.yml", &configuration.to_string());
        disk.write("empty.yml", "{}");
        disk
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).unwrap();
    }

    fn read(&self, file: &str) -> Value {
        serde_json::from_slice(&fs::read(self.folder.path().join(file)).unwrap()).unwrap()
    }

    fn serve(&self, configuration: &str) -> Server {
        Server::start(self.folder.path(), configuration)
    }

    /// Adds samples, given as lines of OpenMetrics.
    fn record(&self, lines: &str) {
        self.write("lines", &format!("{lines}# EOF\n"));
        let mut promtool = command("promtool");
        promtool.args(["tsdb", "create-blocks-from", "openmetrics", "lines", "data"]);
        Run::from(promtool.current_dir(self.folder.path()).output().unwrap()).expect(0);
    }

    /// Adds what a server that ran all the time would have recorded of the rules that have this field. `for` counts in a
    /// running server alone; it records since when an alert has had its reason, and reads this when it starts again.
    fn record_rules(&self, field: &str) {
        let server = self.serve("empty.yml");
        let rules = ["alerts.yml", "sizes.yml"].into_iter().flat_map(|file| rules(&self.read(file)));
        let rules = rules.filter(|rule| rule[field].is_string());
        self.record(&rules.map(|rule| self.recorded(&server, &rule)).collect::<String>());
    }

    fn recorded(&self, server: &Server, rule: &Value) -> String {
        let (start, end) = (self.end - SPAN, self.end);
        let query: String = form_urlencoded::byte_serialize(text(&rule["expr"]).as_bytes()).collect();
        let found = server.asked(&format!("query_range?start={start}&end={end}&step={STEP}&query={query}"));
        let mut lines = String::new();
        for series in found["result"].as_array().unwrap() {
            let mut labels: BTreeMap<String, String> = fields_of(&series["metric"]);
            labels.remove("__name__");
            labels.extend(fields_of(&rule["labels"]));
            let samples = series["values"].as_array().unwrap().iter();
            let samples: BTreeMap<i64, String> =
                samples.map(|sample| (sample[0].as_i64().unwrap(), text(&sample[1]))).collect();
            if rule["record"].is_string() {
                let series = series_of(&text(&rule["record"]), &labels);
                samples.iter().for_each(|(at, value)| lines += &format!("{series} {value} {at}\n"));
                continue;
            }
            labels.insert("alertname".to_owned(), text(&rule["alert"]));
            let steps = (start..=end).rev().step_by(STEP);
            if let Some(since) = steps.take_while(|step| samples.contains_key(step)).last() {
                lines += &format!("{} {since} {end}\n", series_of("ALERTS_FOR_STATE", &labels));
            }
        }
        lines
    }
}

/// The rules of a file, with the labels of their groups.
fn rules(file: &Value) -> Vec<Value> {
    let mut rules = Vec::new();
    for group in file["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            let mut labels = fields_of(&group["labels"]);
            labels.extend(fields_of(&rule["labels"]));
            let mut rule = rule.clone();
            rule["labels"] = json!(labels);
            rules.push(rule);
        }
    }
    rules
}

fn fields_of(object: &Value) -> BTreeMap<String, String> {
    object.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn series_of(name: &str, labels: &BTreeMap<String, String>) -> String {
    let labels: Vec<String> = labels.iter().map(|(label, value)| format!("{label}={value:?}")).collect();
    format!("{name}{{{}}}", labels.join(","))
}

/// The samples of a cluster of this name until a moment, as lines of OpenMetrics.
fn lines(name: &str, cluster: &Cluster, end: i64) -> String {
    let mut lines = String::new();
    // The fleet's own rules give that of the certificate.
    for (series, samples) in cluster.0.iter().filter(|(series, _)| **series != certificate()) {
        let series = series.replace("orders", name).replace(", ", ",");
        for (at, sample) in (end - SPAN..).step_by(STEP).zip(samples) {
            if let Some(value) = sample {
                lines += &format!("{series} {value} {at}\n");
            }
        }
    }
    lines
}

#[test]
fn each_alert_fires_in_a_running_prometheus_for_the_cluster_in_trouble_and_for_no_other() {
    let cases = cases();
    let disk = Disk::mount(&fleet(&cases));
    disk.record(&cases.iter().map(|case| lines(&cluster(case), &case.cluster, disk.end)).collect::<String>());
    disk.record_rules("record");
    disk.record_rules("alert");
    let server = disk.serve("prometheus.yml");
    let active = until("no alert is pending", || {
        let active = server.asked("alerts")["alerts"].take();
        let active = active.as_array().filter(|active| !active.is_empty())?.clone();
        active.iter().all(|alert| alert["state"] == "firing").then_some(active)
    });
    let firing: BTreeSet<(String, String)> = active
        .iter()
        .map(|alert| (text(&alert["labels"]["cluster"]), text(&alert["labels"]["alertname"])))
        .collect();
    let expected: BTreeSet<(String, String)> = cases
        .iter()
        .flat_map(|case| [case.alert, CERTIFICATE].map(|alert| (cluster(case), alert.to_owned())))
        .collect();
    assert_eq!(firing, expected);
    assert_eq!(server.judged().len(), 12);
}
