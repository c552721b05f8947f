use serde_json::{Value, json};

use super::COMPONENT;
use crate::catalog::ResolvedCluster;
use crate::component::{ClusterPart, fixtures};
use crate::config::Config;
use crate::spec::{Cluster, DnsProvider, Exposure, Fleet};

fn config() -> Config {
    let mut config = Config::default();
    config.images.schema_registry =
        Some(format!("quay.io/apicurio/apicurio-registry@sha256:{}", "0a".repeat(32)));
    config
}

/// A cluster with a registry, on a fleet with that exposure.
fn cluster(overlay: Value, exposure: Exposure) -> ResolvedCluster {
    let with_registry = fixtures::cluster(json!({"advanced_config": {
        "version": "4.3.1",
        "cluster_access": "Internal & External",
        "oauth": "sso",
        "schema_registry": {"enabled": true, "developer_group": "developers"},
    }}));
    let mut cluster = fixtures::with_domain(with_registry, DnsProvider::ExternalDns);
    cluster = fixtures::with_identity_provider(cluster, overlay);
    let mut fleet = Fleet::clone(&cluster.fleet_spec);
    fleet.advanced_config.exposure = exposure;
    ResolvedCluster { fleet_spec: fleet.into(), ..cluster }
}

fn part(cluster: &ResolvedCluster) -> ClusterPart {
    (COMPONENT.in_cluster)(cluster, &config()).unwrap()
}

fn objects(part: &ClusterPart) -> Vec<Value> {
    part.objects.iter().map(|manifest| manifest.body.value()).collect()
}

#[test]
fn a_registry_behind_the_gateway() {
    let part = part(&cluster(json!({"ca_cert": "AUTHORITY"}), Exposure::TlsRoute));
    let texts: Vec<String> = objects(&part).iter().map(crate::render::yaml::to_yaml).collect();
    insta::assert_snapshot!(texts.join("---\n"));
    assert_eq!((part.quota.pods, part.quota.load_balancers), (3, 0));
    assert_eq!(part.traffic.outbound_urls, ["https://idp.example.com/jwks"]);
}

#[test]
fn a_registry_with_a_load_balancer_has_its_name_for_external_dns_and_no_route() {
    let mut cluster = cluster(json!({}), Exposure::LoadBalancer);
    let part = part(&cluster);
    assert_eq!(part.quota.load_balancers, 1);
    let objects = objects(&part);
    let kinds: Vec<&Value> = objects.iter().map(|object| &object["kind"]).collect();
    assert_eq!(kinds, ["Deployment", "PodDisruptionBudget", "Service", "KafkaUser"]);
    let service = &objects[2];
    assert_eq!(service["spec"]["type"], "LoadBalancer");
    assert_eq!(
        service["metadata"]["annotations"]["external-dns.alpha.kubernetes.io/hostname"],
        "registry--orders.k.example.com"
    );

    // One that is private stays so, and a small one has a single replica.
    let mut spec = Cluster::clone(&cluster.spec);
    spec.advanced_config.private_access = true;
    spec.advanced_config.profile = crate::spec::Profile::Dev;
    cluster.spec = spec.into();
    let part = self::part(&cluster);
    let objects = self::objects(&part);
    let kinds: Vec<&Value> = objects.iter().map(|object| &object["kind"]).collect();
    assert_eq!(kinds, ["Deployment", "Service", "KafkaUser"]);
    assert_eq!(objects[0]["spec"]["replicas"], 1);
    let annotations = &objects[1]["metadata"]["annotations"];
    assert_eq!(annotations["service.beta.kubernetes.io/aws-load-balancer-scheme"], "internal");
}

#[test]
fn nothing_is_made_without_an_image_or_a_registry() {
    let with = cluster(json!({}), Exposure::TlsRoute);
    assert!((COMPONENT.in_cluster)(&with, &Config::default()).is_none());
    let without = fixtures::cluster(json!({}));
    assert!((COMPONENT.in_cluster)(&without, &config()).is_none());
}
