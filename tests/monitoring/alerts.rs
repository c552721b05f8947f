//! Each alert by `promtool`: one cluster that makes it fire, a healthy one, and one that restarts.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::manifest;
use super::series::*;
use crate::support::prometheus::{command, promtool};
use crate::support::{Run, Tree};

const BROKER: &str = "orders-broker-1";
const CONTROLLER: &str = "orders-controller-1001";

/// The rules of the example: the fleet's alerts, and the sizes of its cluster.
pub fn rules() -> Value {
    let tree = Tree::example("monitoring");
    tree.run("apply tree --yes").expect(0);
    let of = |namespace: &str, name: &str| {
        manifest(&tree, "PrometheusRule", namespace, name)["spec"]["groups"].as_array().unwrap().clone()
    };
    let (sizes, alerts) =
        (of("kafka-acme--orders", "orders"), of("streamfleet-monitoring", "streamfleet-kafka"));
    json!({"groups": sizes.into_iter().chain(alerts).collect::<Vec<_>>()})
}

/// The alerts that fire at the end, each with the labels that say where.
pub struct Case {
    pub alert: &'static str,
    pub cluster: Cluster,
    labels: &'static str,
    /// Others that the same trouble makes fire, too.
    also: &'static [&'static str],
}

/// It begins at half the time.
fn since(value: f64) -> Samples {
    by(|index| if index < SAMPLES / 2 { 0.0 } else { value })
}

#[rustfmt::skip]
pub fn cases() -> Vec<Case> {
    let case = |alert, labels, cluster| Case { alert, cluster, labels, also: &[] };
    let healthy = Cluster::healthy;
    vec![
        case("KafkaPartitionsOffline", "", healthy().with(name(OFFLINE, CONTROLLER, ""), since(2.0))),
        case("KafkaUnderMinIsr", "pod", healthy().with(name(UNDER_MIN, BROKER, ""), since(1.0))),
        case("KafkaUnderReplicated", "pod", healthy().with(name(UNDER_REPLICATED, BROKER, ""), since(1.0))),
        case("KafkaActiveControllers", "", healthy().with(name(ACTIVE, CONTROLLER, ""), since(1.0))),
        case("KafkaBrokerLost", "", healthy().with(
            name("up", BROKER, ""),
            by(|_| 1.0).into_iter().enumerate().map(|(index, up)| up.filter(|_| index < SAMPLES / 2)).collect(),
        )),
        case("KafkaDiskFillsUp", "persistentvolumeclaim", healthy().with(claim(AVAILABLE, "data-0-orders-broker-1"), since(0.14 * DISK))),
        case("KafkaRequestHandlersBusy", "pod", healthy().with(name(IDLE, BROKER, ""), by(|index| index as f64 * 0.19 * STEP as f64 * 1e9))),
        case("KafkaCertificateExpires", "", healthy().with(certificate(), always(13.0 * 86400.0))),
        case("KafkaConsumerLagGrows", "consumergroup", healthy().with(lag("slow"), by(|index| index as f64))),
        case("KafkaUncleanLeaderElection", "", healthy().with(name(UNCLEAN, CONTROLLER, ""), by(|index| if index < SAMPLES - 10 { 0.0 } else { 1.0 }))),
        case("KafkaClientsThrottled", "pod", healthy().with(name(&format!("{THROTTLED}_sum"), BROKER, PRODUCE), by(|index| index as f64 * 3000.0 * 11.0))),
        case("KafkaConnectionsNearLimit", "listener", healthy().with(name(CONNECTIONS, BROKER, LISTENER), since(2401.0))),
    ]
}

/// Runs test cases: each a cluster, the minutes at which alerts are compared, and the names of those that fire.
fn check(tests: &[Value]) -> Run {
    let tree = Tree::empty();
    fs::write(tree.beside("rules.json"), rules().to_string()).unwrap();
    let all =
        json!({"rule_files": ["rules.json"], "evaluation_interval": format!("{STEP}s"), "tests": tests});
    fs::write(tree.beside("tests.json"), all.to_string()).unwrap();
    let mut promtool = command("promtool");
    promtool.args(["test", "rules", "tests.json"]).current_dir(tree.beside(""));
    promtool.output().unwrap().into()
}

/// The firing alerts at a minute, by name.
fn firing(minute: usize, alerts: &[&str]) -> Value {
    let alerts: BTreeSet<&&str> = alerts.iter().collect();
    let samples =
        alerts.iter().map(|alert| json!({"labels": format!("{{alertname=\"{alert}\"}}"), "value": 1}));
    json!({
        "expr": "count by (alertname) (ALERTS{alertstate=\"firing\"})",
        "eval_time": format!("{minute}m"),
        "exp_samples": samples.collect::<Vec<_>>(),
    })
}

fn test(name: &str, cluster: &Cluster, expected: Vec<Value>) -> Value {
    json!({
        "name": name,
        "interval": format!("{STEP}s"),
        "input_series": cluster.input(),
        "promql_expr_test": expected,
    })
}

const END: usize = (SAMPLES - 1) * STEP / 60;

#[test]
fn each_alert_fires_for_its_trouble_and_for_no_other() {
    let cases = cases();
    let known: BTreeSet<String> = names(&rules(), "alert");
    assert_eq!(cases.iter().map(|case| case.alert.to_owned()).collect::<BTreeSet<_>>(), known);
    assert_eq!(known.len(), 12);
    let tests: Vec<Value> = cases
        .iter()
        .map(|Case { alert, cluster, labels, also }| {
            let fires: Vec<&str> = also.iter().chain([alert]).copied().collect();
            let labels = if labels.is_empty() { String::new() } else { format!(", {labels}!=\"\"") };
            // By these labels a person finds the cluster, and what of it is in trouble.
            let told = json!({
                "expr": format!(
                    "count(ALERTS{{alertname=\"{alert}\", alertstate=\"firing\", organization=\"acme\", \
                     cluster=\"orders\", severity=~\"critical|warning\"{labels}}})"
                ),
                "eval_time": format!("{END}m"),
                "exp_samples": [{"labels": "{}", "value": 1}],
            });
            test(alert, cluster, vec![firing(END, &fires), told])
        })
        .collect();
    check(&tests).expect(0);
}

fn names(rules: &Value, field: &str) -> BTreeSet<String> {
    let groups = rules["groups"].as_array().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
    rules.filter_map(|rule| rule[field].as_str().map(str::to_owned)).collect()
}

/// Every alert is silent at every minute.
fn is_silent(name: &str, cluster: &Cluster) {
    let quiet = (0..=END).map(|minute| firing(minute, &[])).collect();
    check(&[test(name, cluster, quiet)]).expect(0);
}

#[test]
fn a_healthy_cluster_makes_no_alert_fire() {
    is_silent("healthy", &Cluster::healthy());
}

#[test]
fn a_rolling_restart_of_ten_minutes_makes_no_alert_fire() {
    is_silent("restart", &Cluster::restarting());
}

#[test]
fn a_disk_that_will_be_full_within_a_day_is_told_before_it_is() {
    let fills = |speed: f64, free: f64| {
        Cluster::healthy().with(
            claim(AVAILABLE, "data-0-orders-broker-1"),
            by(|index| free * DISK - index as f64 * STEP as f64 * speed),
        )
    };
    let a_day = 86400.0;
    let told =
        |name: &str, cluster: Cluster, alerts: &[&str]| test(name, &cluster, vec![firing(END, alerts)]);
    check(&[
        told("within a day", fills(0.4 * DISK / a_day, 0.4), &["KafkaDiskFillsUp"]),
        told("later", fills(0.3 * DISK / a_day, 0.4), &[]),
        told("nearly empty", fills(0.9 * DISK / a_day, 0.9), &[]),
    ])
    .expect(0);
}

#[test]
fn prometheus_takes_the_rules() {
    let said = promtool("check rules --lint=all --lint-fatal /dev/stdin", &rules().to_string()).expect(0);
    assert!(said.out.contains("SUCCESS"), "{}", said.out);
}

#[test]
fn prometheus_understands_each_query_of_the_dashboards() {
    let tree = Tree::example("monitoring");
    tree.run("apply tree --yes").expect(0);
    let mut rules = Vec::new();
    for name in ["streamfleet-kafka", "streamfleet-topics"] {
        let map = manifest(&tree, "ConfigMap", "streamfleet-monitoring", name);
        let text = map["data"][format!("{name}.json")].as_str().unwrap().to_owned();
        let dashboard: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(dashboard["uid"], name);
        for panel in dashboard["panels"].as_array().unwrap() {
            let targets = panel["targets"].as_array().unwrap().iter();
            rules.extend(targets.map(|target| target["expr"].clone()));
        }
    }
    assert!(rules.len() > 20, "{rules:?}");
    let recorded = |(number, expression): (usize, &Value)| json!({"record": format!("query{number}"), "expr": expression});
    let rules: Vec<Value> = rules.iter().enumerate().map(recorded).collect();
    let rules = json!({"groups": [{"name": "dashboards", "rules": rules}]});
    promtool("check rules /dev/stdin", &rules.to_string()).expect(0);
}
