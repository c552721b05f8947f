use serde_json::{Value, json};

use super::COMPONENT;
use crate::catalog::ResolvedCluster;
use crate::component::{ClusterPart, fixtures};
use crate::config::Config;
use crate::spec::{DnsProvider, Exposure, Fleet};

fn config() -> Config {
    let mut config = Config::default();
    config.images.console = Some(format!("quay.io/streamshub/console-api@sha256:{}", "0c".repeat(32)));
    config
}

/// A cluster with a console, on a fleet with that exposure.
fn cluster(exposure: Exposure) -> ResolvedCluster {
    let with_console = fixtures::cluster(json!({"advanced_config": {
        "version": "4.3.1",
        "cluster_access": "Internal & External",
        "operations": {"console": true},
    }}));
    let cluster = fixtures::with_domain(with_console, DnsProvider::ExternalDns);
    let mut fleet = Fleet::clone(&cluster.fleet_spec);
    fleet.advanced_config.exposure = exposure;
    ResolvedCluster { fleet_spec: fleet.into(), ..cluster }
}

fn part(cluster: &ResolvedCluster) -> ClusterPart {
    (COMPONENT.in_cluster)(cluster, &config()).unwrap()
}

#[test]
fn a_console_behind_the_gateway_has_no_secret_but_a_certificate_and_the_key_of_its_sessions() {
    let part = part(&cluster(Exposure::TlsRoute));
    let objects: Vec<Value> = part.objects.iter().map(|manifest| manifest.body.value()).collect();
    let texts: Vec<String> = objects.iter().map(crate::render::yaml::to_yaml).collect();
    insta::assert_snapshot!(texts.join("---\n"));
    assert_eq!((part.quota.pods, part.quota.load_balancers), (2, 0));
    let pod = &objects[0]["spec"]["template"]["spec"];
    let secrets =
        pod["volumes"].as_array().unwrap().iter().filter_map(|it| it["secret"]["secretName"].as_str());
    assert_eq!(secrets.collect::<Vec<_>>(), ["orders-tls", "orders-cluster-ca-cert"]);
    let variables = pod["containers"][0]["env"].as_array().unwrap().iter();
    let keys = variables.filter_map(|it| it.pointer("/valueFrom/secretKeyRef"));
    assert_eq!(keys.collect::<Vec<_>>(), [&json!({"name": "orders-console.session", "key": "session-key"})]);
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(part.traffic.outbound_urls, [""; 0]);
}

#[test]
fn a_console_with_a_load_balancer_has_its_name_for_external_dns() {
    let part = part(&cluster(Exposure::LoadBalancer));
    assert_eq!(part.quota.load_balancers, 1);
    let service = part.objects.iter().find(|it| it.key.kind == "Service").unwrap().body.value();
    let annotations = &service["metadata"]["annotations"];
    assert_eq!(annotations["external-dns.alpha.kubernetes.io/hostname"], "console--orders.k.example.com");
}

#[test]
fn nothing_is_made_without_an_image_or_a_console() {
    let with = cluster(Exposure::TlsRoute);
    assert!((COMPONENT.in_cluster)(&with, &Config::default()).is_none());
    assert!((COMPONENT.in_cluster)(&fixtures::cluster(json!({})), &config()).is_none());
}
