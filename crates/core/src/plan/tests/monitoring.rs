//! Reasons why a Prometheus doesn't select a fleet's objects; clusters never wait for them.

use serde_json::{Value, json};

use super::preflight::{complete, planned, told};
use super::*;
use crate::component::PrometheusSelectors;
use crate::plan::FleetPlan;
use crate::plan::preflight::PreflightFacts;

const API: &str = "monitoring.coreos.com/v1";

/// A cluster that is to be created, on a fleet with `prometheus: existing`.
fn lab(namespace: Value) -> Lab {
    let mut lab = Lab::new();
    lab.cluster("orders", json!({}));
    let monitoring = json!({"prometheus": "existing", "namespace": namespace});
    let fleet = json!({"organization": "acme", "identifier": "eu", "infra_type": "directory",
        "advanced_config": {"monitoring": monitoring}, "tenancy_mode": "Shared", "max_tenants": 10,
        "max_kafka_units": 40});
    lab.set("Fleet/acme/eu", fleet);
    lab
}

fn prometheus(name: &str, spec: &Value) -> PrometheusSelectors {
    let object = json!({"metadata": {"namespace": "monitoring", "name": name}, "spec": spec});
    PrometheusSelectors::of(&object).unwrap()
}

/// A cluster with the Prometheus operator's kinds, and with these Prometheus objects.
fn served(prometheuses: &[Value]) -> PreflightFacts {
    let mut facts = complete();
    let kinds = ["PodMonitor", "PrometheusRule", "Prometheus"].map(str::to_owned);
    facts.kinds.insert(API.to_owned(), kinds.into());
    let numbered = prometheuses.iter().enumerate();
    facts.prometheuses =
        Some(numbered.map(|(number, spec)| prometheus(&format!("k{number}"), spec)).collect());
    let labels = |name: &str| {
        let name = ("kubernetes.io/metadata.name".to_owned(), name.to_owned());
        [name, ("team".to_owned(), "data".to_owned())].into()
    };
    facts.namespaces = Some(["monitoring", "default"].map(|name| (name.to_owned(), labels(name))).into());
    facts
}

fn written(plan: &FleetPlan) -> Vec<String> {
    let steps = plan.changes.iter().flat_map(|change| &change.steps);
    let monitoring = steps.filter(|step| {
        step.object.api_version == API || step.object.namespace.as_deref() == Some("monitoring")
    });
    monitoring.map(|step| step.object.to_string()).collect()
}

fn look(namespace: Value, facts: &PreflightFacts) -> (String, Vec<String>) {
    let plan = planned(&lab(namespace), facts, |_, _| {});
    assert!(plan.changes.iter().all(|change| change.waiting.is_empty()), "clusters wait");
    (told(&plan), written(&plan))
}

const OBJECTS: [&str; 3] = [
    "PrometheusRule monitoring/streamfleet-kafka",
    "PodMonitor kafka-acme--orders/orders",
    "PrometheusRule kafka-acme--orders/orders",
];

#[test]
fn without_the_definitions_the_fleet_says_so_and_clusters_go_on() {
    let mut facts = served(&[]);
    assert_eq!(look(json!("monitoring"), &facts), (String::new(), OBJECTS.map(str::to_owned).into()));
    facts.kinds.insert(API.to_owned(), Default::default());
    let (told, written) = look(json!("monitoring"), &facts);
    assert_eq!(
        told,
        "[warning] MonitoringMissing: the cluster doesn't have PodMonitor and PrometheusRule of \
         monitoring.coreos.com/v1, so no Prometheus reads the clusters' metrics; everything else of them is applied; \
         install the Prometheus operator with its resource definitions, or set `prometheus: none` in \
         `advanced_config.monitoring` of the fleet\n"
    );
    assert_eq!(written, [""; 0]);
    // A kind that isn't known to be missing is applied.
    facts.kinds.remove(API);
    assert_eq!(look(json!("monitoring"), &facts).1, OBJECTS);
}

#[test]
fn a_namespace_that_is_not_there_is_told_and_nothing_waits_for_it() {
    let mut facts = served(&[]);
    facts.namespaces.as_mut().unwrap().remove("monitoring");
    let (told, written) = look(json!("monitoring"), &facts);
    assert_eq!(
        told,
        "[warning] MonitoringMissing: there is no namespace monitoring, where the fleet's alerts and dashboards \
         belong; create it, or name another one in `advanced_config.monitoring.namespace` of the fleet, or none to get \
         one of streamfleet's own\n"
    );
    assert_eq!(written, OBJECTS[1..]);
}

#[test]
fn what_no_prometheus_takes_is_told_with_the_label_that_is_missing() {
    let all = json!({});
    let released = json!({"matchLabels": {"release": "stack"}});
    let of_team = json!({"matchExpressions": [{"key": "team", "operator": "In", "values": ["data", "web"]}]});
    let both = |objects: &Value, namespaces: &Value| {
        json!({"podMonitorSelector": objects, "podMonitorNamespaceSelector": namespaces, "ruleSelector": objects,
            "ruleNamespaceSelector": namespaces})
    };
    let tell = |prometheuses: &[Value]| look(json!("monitoring"), &served(prometheuses)).0;
    // One that takes everything is enough.
    assert_eq!(tell(&[both(&all, &all)]), "");
    assert_eq!(tell(&[both(&released, &all), both(&all, &all)]), "");
    // Without any, something else may read the objects.
    assert_eq!(tell(&[]), "");
    let mut said = String::new();
    said += &tell(&[both(&released, &all)]);
    said += &tell(&[both(&all, &of_team)]);
    said += &tell(&[json!({"podMonitorSelector": {}, "ruleSelector": {}})]);
    said += &tell(&[json!({})]);
    let without = json!({"matchExpressions": [
        {"key": "app.kubernetes.io/part-of", "operator": "NotIn", "values": ["streamfleet"]}]});
    said += &tell(&[both(&without, &all)]);
    let marked = json!({"matchExpressions": [{"key": "scrape", "operator": "Exists"}]});
    said += &tell(&[both(&marked, &all), both(&all, &of_team)]);
    insta::assert_snapshot!(said);
}
