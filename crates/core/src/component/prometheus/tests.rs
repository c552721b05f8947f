use std::collections::BTreeMap;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use crate::catalog::{ResolvedCluster, ResolvedPrometheus};
use crate::component::dns_records::NamedResource;
use crate::component::fixtures::{catalog, cluster, longest, secret, with_domain};
use crate::component::monitoring::sizes;
use crate::config::Config;
use crate::names::{Kind, ResourceKey};
use crate::render::{Renderer, render};
use crate::spec::{DnsProvider, Fleet};

fn catalog_with(advanced_config: Value) -> crate::catalog::Catalog {
    let spec = json!({"advanced_config": {"cluster_access": "External", "operations": {"metrics": true}}});
    let mut cluster: ResolvedCluster = with_domain(cluster(spec), DnsProvider::Rfc2136);
    let fleet: &mut Fleet = Arc::make_mut(&mut cluster.fleet_spec);
    fleet.advanced_config = serde_json::from_value(advanced_config).unwrap();
    let domain = cluster.domain.clone().unwrap();
    let key = cluster.fleet.clone();
    let mut catalog = catalog([cluster]);
    let mut config = Config::default();
    config.images.prometheus = Some(format!("quay.io/prometheus/prometheus@sha256:{}", "0a".repeat(32)));
    catalog.config = Arc::new(config);
    let fleet = Arc::make_mut(catalog.fleets.get_mut(&key).unwrap());
    let password = secret(&ResourceKey::new(Kind::Fleet, &key.organization, "eu"), "monitoring.own.password");
    fleet.own_prometheus = Some(ResolvedPrometheus { domain, password });
    catalog
}

fn monitoring() -> Value {
    json!({"prometheus": "own", "own": {"password": "not rendered", "disk_gib": 100}})
}

/// The objects in its namespace, by kind and name.
fn objects(advanced_config: Value) -> BTreeMap<String, Value> {
    let fleets = render(&catalog_with(advanced_config)).fleets.into_values().flatten();
    let ours = fleets.filter(|(key, _)| key.to_string().contains("kafka-monitoring"));
    ours.map(|(key, manifest)| (key.to_string(), manifest.body.value())).collect()
}

#[test]
fn a_prometheus_behind_the_gateway() {
    let routed = json!({"exposure": "tlsroute", "gateway": {"class": "envoy"}, "monitoring": monitoring()});
    let mut objects = objects(routed);
    objects.retain(|name, _| !name.starts_with("ConfigMap kafka-monitoring/streamfleet-"));
    for map in objects.values_mut().filter(|it| it["kind"] == "ConfigMap") {
        for file in map["data"].as_object_mut().unwrap().values_mut() {
            let content: Value = serde_json::from_str(file.as_str().unwrap()).unwrap();
            let is_long = content.pointer("/groups/1").is_some();
            *file = if is_long { content["groups"][0].clone() } else { content };
        }
    }
    insta::assert_json_snapshot!(objects);
}

#[test]
fn the_sizes_of_a_thousand_clusters_fit_a_config_map() {
    let mut cluster = with_domain(cluster(json!({"identifier": longest("c")})), DnsProvider::Rfc2136);
    Arc::make_mut(&mut cluster.spec).advanced_config.operations.metrics = true;
    Arc::make_mut(&mut cluster.spec).organization = longest("o").parse().unwrap();
    cluster.fleet.fleet = longest("f").parse().unwrap();
    let names = CertificateParams::new(["*.k.example.com".to_owned()]).unwrap();
    let certificate = names.self_signed(&KeyPair::generate().unwrap()).unwrap();
    cluster.domain.as_mut().unwrap().tls_cert = certificate.pem();
    cluster.namespace = crate::names::namespace(&cluster.spec.organization, &cluster.spec.identifier);
    let group = sizes::group(&cluster, &Config::default().units);
    assert_eq!(group["rules"].as_array().unwrap().len(), 10);
    assert!(group.to_string().len() * 1000 < 1 << 20, "{group}");
}

#[test]
fn a_load_balancer_has_its_name_and_is_private_where_the_fleet_says_so() {
    let annotations = |private: bool| {
        let mut monitoring = monitoring();
        monitoring["own"]["private"] = private.into();
        let objects = objects(json!({"monitoring": monitoring}));
        let service = objects["Service kafka-monitoring/prometheus"].clone();
        assert_eq!(service["spec"]["type"], "LoadBalancer");
        assert!(!objects.contains_key("TLSRoute kafka-monitoring/prometheus"));
        service["metadata"]["annotations"].clone()
    };
    assert_eq!(annotations(true)["streamfleet.io/host"], "metrics--eu.k.example.com");
    assert_eq!(annotations(true)["networking.gke.io/load-balancer-type"], "Internal");
    assert_eq!(annotations(false)["networking.gke.io/load-balancer-type"], Value::Null);
}

#[test]
fn its_name_is_among_those_with_records() {
    let catalog = catalog_with(json!({"monitoring": monitoring()}));
    let fleet = catalog.fleets.keys().find(|key| key.fleet.as_str() == "eu").unwrap();
    let named: Vec<NamedResource> = Renderer::new(&catalog).named_resources(fleet);
    let names: Vec<String> = named.iter().map(|it| format!("{} in {}", it.key, it.namespace)).collect();
    assert_eq!(names, ["cluster acme/orders in kafka-acme--orders", "fleet acme/eu in kafka-monitoring"]);
}

#[test]
fn alerts_and_dashboards_are_left_out_where_the_fleet_says_so() {
    let mut monitoring = monitoring();
    monitoring["alerts"] = false.into();
    monitoring["dashboards"] = false.into();
    let objects = objects(json!({"monitoring": monitoring}));
    let alerts = &objects["ConfigMap kafka-monitoring/prometheus"]["data"]["alerts.yml"];
    assert_eq!(alerts, r#"{"groups":[]}"#);
    assert!(objects.keys().all(|name| !name.contains("streamfleet-kafka")), "{:?}", objects.keys());
}
