mod after;
mod gateway;
mod probe_user;

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::yaml::to_yaml;
use super::*;
use crate::component::fixtures::{
    catalog, cluster, longest, with_domain, with_identity_provider, with_tiered_storage,
};
use crate::names::{Domain, Kind};
use crate::spec::{ClusterAccess, DnsProvider, Exposure, InfraType};

fn objects(cluster: ResolvedCluster) -> BTreeMap<String, Value> {
    objects_of(&catalog([cluster]))
}

fn objects_of(catalog: &Catalog) -> BTreeMap<String, Value> {
    render(catalog)
        .fleets
        .into_values()
        .flatten()
        .map(|(key, manifest)| (format!("{}/{}", key.kind, key.name), manifest.body.value()))
        .collect()
}

/// Parts of objects, by object and JSON pointer, as one YAML document. Missing parts are null.
fn parts(objects: &BTreeMap<String, Value>, names: &[(&str, &str)]) -> String {
    let part = |(object, pointer): &(&str, &str)| {
        let value = objects.get(*object).and_then(|body| body.pointer(pointer));
        (format!("{object}{pointer}"), value.cloned().unwrap_or_default())
    };
    to_yaml(&Value::Object(names.iter().map(part).collect()))
}

fn external(overlay: Value) -> ResolvedCluster {
    let mut cluster = cluster(overlay);
    Arc::make_mut(&mut cluster.spec).advanced_config.cluster_access = ClusterAccess::External;
    with_domain(cluster, DnsProvider::ExternalDns)
}

#[test]
fn a_standard_cluster_that_is_reached_from_outside() {
    let objects = objects(external(json!({"advanced_config": {"number_of_zones": "3"}})));
    let names: Vec<&String> = objects.keys().collect();
    insta::assert_json_snapshot!("standard_names", names);
    insta::assert_snapshot!("standard_kafka", to_yaml(&objects["Kafka/orders"]));
    insta::assert_snapshot!("standard_broker", to_yaml(&objects["KafkaNodePool/broker"]));
    insta::assert_snapshot!(
        "standard_rest",
        parts(
            &objects,
            &[
                ("KafkaNodePool/controller", "/spec/replicas"),
                ("KafkaNodePool/controller", "/spec/roles"),
                ("KafkaNodePool/controller", "/spec/storage/volumes/0/size"),
                ("KafkaNodePool/controller", "/metadata/annotations"),
                ("KafkaUser/orders-admin", "/spec"),
                ("LimitRange/orders", "/spec"),
                ("Namespace/kafka-acme--orders", ""),
                ("ResourceQuota/orders", "/spec"),
                ("Secret/orders-tls", ""),
            ]
        )
    );
}

#[test]
fn a_cluster_for_development() {
    let objects = objects(cluster(json!({"advanced_config": {
        "profile": "dev",
        "storage": {"class": "fast", "on_delete": "Delete"},
    }})));
    insta::assert_snapshot!("dev_pool", to_yaml(&objects["KafkaNodePool/dual"]["spec"]));
    insta::assert_snapshot!("dev_kafka", to_yaml(&objects["Kafka/orders"]["spec"]));
    let quota = parts(&objects, &[("ResourceQuota/orders", "/spec"), ("NetworkPolicy/default-deny", "")]);
    insta::assert_snapshot!("dev_quota", quota);
}

#[test]
fn an_isolated_cluster() {
    let operations = json!({"operations": {"metrics": true}});
    let objects = objects(cluster(json!({"tenancy_mode": "Isolated", "advanced_config": operations})));
    insta::assert_snapshot!(
        "isolated",
        parts(
            &objects,
            &[
                ("NetworkPolicy/default-deny", "/spec"),
                ("NetworkPolicy/allow-operators", "/spec"),
                ("NetworkPolicy/allow-egress", "/spec"),
                ("NetworkPolicy/allow-clients", "/spec"),
                ("NetworkPolicy/allow-metrics", "/spec"),
                ("KafkaNodePool/broker", "/spec/template/pod/affinity"),
                ("KafkaNodePool/controller", "/spec/template/pod/affinity"),
            ]
        )
    );
}

#[test]
fn a_cluster_beside_an_operator_of_its_fleet() {
    let installed = |mut cluster: ResolvedCluster| {
        let mut fleet = (*cluster.fleet_spec).clone();
        fleet.advanced_config.components.strimzi = Some("1.2.0".to_owned());
        cluster.fleet_spec = fleet.into();
        objects(cluster)
    };
    let enforced = |objects: &BTreeMap<String, Value>| {
        let labels = &objects["Namespace/kafka-acme--orders"]["metadata"]["labels"];
        labels["pod-security.kubernetes.io/enforce"].as_str().unwrap().to_owned()
    };
    assert_eq!(enforced(&objects(cluster(json!({})))), "baseline");
    let isolated = installed(cluster(json!({"tenancy_mode": "Isolated"})));
    assert_eq!(enforced(&isolated), "restricted");
    let from = isolated["NetworkPolicy/allow-operators"].pointer("/spec/ingress/1/from/0/namespaceSelector");
    assert_eq!(from, Some(&json!({"matchLabels": {"kubernetes.io/metadata.name": "strimzi-operator"}})));
}

#[test]
fn what_runs_beside_the_brokers() {
    let rendered = |operations: Value| {
        let advanced_config = json!({"operations": operations});
        objects(cluster(json!({"tenancy_mode": "Dedicated", "advanced_config": advanced_config})))
    };
    let places = [
        ("Kafka/orders", "/spec/kafka/metricsConfig"),
        ("Kafka/orders", "/spec/kafkaExporter"),
        ("Kafka/orders", "/spec/entityOperator/topicOperator"),
        ("NetworkPolicy/allow-metrics", "/spec/ingress"),
        ("ResourceQuota/orders", "/spec/hard/limits.memory"),
        ("ResourceQuota/orders", "/spec/hard/pods"),
    ];
    insta::assert_snapshot!("operations_off", parts(&rendered(json!({})), &places));
    let all = json!({"metrics": true, "kafka_exporter": true, "topic_operator": true});
    insta::assert_snapshot!("operations_on", parts(&rendered(all), &places));
    for one in ["metrics", "kafka_exporter"] {
        assert!(rendered(json!({one: true})).contains_key("NetworkPolicy/allow-metrics"), "{one}");
    }
}

#[test]
fn zones_have_to_be_there_and_nodes_reserved_for_others_are_none() {
    let spread = |zones: u32, pool: &str| {
        let objects =
            objects(cluster(json!({"kafka_units": 3, "advanced_config": {"number_of_zones": zones}})));
        let template = &objects[&format!("KafkaNodePool/{pool}")]["spec"]["template"]["pod"];
        let constraints = template["topologySpreadConstraints"].as_array().unwrap().clone();
        assert!(constraints.iter().all(|constraint| constraint["nodeTaintsPolicy"] == "Honor"));
        let zone = constraints.iter().find(|it| it["topologyKey"] == "topology.kubernetes.io/zone");
        zone.map(|zone| zone["minDomains"].clone())
    };
    assert_eq!([1, 3, 9].map(|zones| spread(zones, "broker")), [None, Some(json!(3)), Some(json!(9))]);
    assert_eq!(spread(9, "controller"), Some(json!(3)), "three controllers can't be in more zones");
}

/// A tenth of a disk of terabytes would be far more than what arrives before a quota takes effect.
#[test]
fn what_is_kept_free_of_a_disk_is_what_was_never_meant_for_records() {
    let kept = |spec: Value| {
        let quotas = objects(cluster(spec))["Kafka/orders"]["spec"]["kafka"]["quotas"].clone();
        [quotas["minAvailableBytesPerVolume"].clone(), quotas["minAvailableRatioPerVolume"].clone()]
    };
    let size = |size_gib: u32| json!({"advanced_config": {"storage": {"size_gib": size_gib}}});
    // 10 GiB, and the writes of a minute: a third of 50 MiB a second, three copies.
    let reserve = json!((10_u64 << 30) + 60 * 3 * (50 * 1_048_576_u64).div_ceil(3));
    assert_eq!(kept(json!({})), [reserve.clone(), Value::Null]);
    assert_eq!(kept(size(10_000)), [reserve, Value::Null]);
    assert_eq!(kept(size(100)), [Value::Null, json!(0.1)]);
    assert_eq!(kept(json!({"advanced_config": {"profile": "dev"}})), [Value::Null, json!(0.1)]);
}

#[test]
fn a_cluster_without_a_way_in_opens_no_port_to_clients() {
    let overlay = json!({"tenancy_mode": "Isolated", "advanced_config": {"cluster_access": "External"}});
    let objects = objects(cluster(overlay));
    assert!(objects.contains_key("NetworkPolicy/default-deny"));
    assert!(!objects.contains_key("NetworkPolicy/allow-clients"));
}

#[test]
fn a_dedicated_cluster() {
    let objects = objects(cluster(json!({"tenancy_mode": "Dedicated"})));
    assert!(objects.contains_key("NetworkPolicy/default-deny"));
    let pod = |object: &str, pointer: &str| objects[object].pointer(pointer).cloned().unwrap_or_default();
    let broker = pod("KafkaNodePool/broker", "/spec/template/pod");
    insta::assert_snapshot!("dedicated", to_yaml(&json!([broker["affinity"], broker["tolerations"]])));
    for (object, pointer) in [
        ("KafkaNodePool/controller", "/spec/template/pod"),
        ("Kafka/orders", "/spec/entityOperator/template/pod"),
        ("Kafka/orders", "/spec/cruiseControl/template/pod"),
    ] {
        let other = pod(object, pointer);
        assert_eq!(other["affinity"], broker["affinity"], "{object}{pointer}");
        assert_eq!(other["tolerations"], broker["tolerations"], "{object}{pointer}");
    }
}

#[test]
fn a_cluster_with_an_identity_provider() {
    let overlay = json!({"username_claim": "email", "ca_cert": "-----BEGIN CERTIFICATE-----\nAA==\n"});
    let objects = objects(with_identity_provider(external(json!({})), overlay));
    insta::assert_snapshot!(
        "oauth",
        parts(
            &objects,
            &[
                ("Kafka/orders", "/spec/kafka/listeners/0/authentication"),
                ("Kafka/orders", "/spec/kafka/listeners/1"),
                ("Kafka/orders", "/spec/kafka/config/principal.builder.class"),
                ("Kafka/orders", "/spec/entityOperator/template"),
                ("ConfigMap/orders-oauth-ca", "/data"),
                ("KafkaNodePool/broker", "/spec/template/kafkaContainer"),
                ("KafkaNodePool/broker", "/spec/template/pod/metadata"),
                ("KafkaNodePool/broker", "/spec/template/pod/volumes"),
                ("KafkaNodePool/controller", "/spec/template/pod/volumes"),
            ]
        )
    );
}

#[test]
fn a_cluster_with_tiered_storage() {
    let objects = objects(with_tiered_storage(cluster(json!({}))));
    insta::assert_snapshot!(
        "tiered_storage",
        parts(
            &objects,
            &[
                ("Kafka/orders", "/spec/kafka/tieredStorage"),
                (
                    "Kafka/orders",
                    "/spec/kafka/config/rlmm.config.remote.log.metadata.topic.replication.factor"
                ),
                ("KafkaNodePool/broker", "/spec/template/kafkaContainer"),
                ("KafkaNodePool/broker", "/spec/template/pod/volumes"),
                ("Secret/orders-tiered-storage", "/data"),
            ]
        )
    );
}

#[test]
fn the_plugin_of_tiered_storage_is_mounted_from_an_image_of_its_own() {
    let mut cluster = with_tiered_storage(cluster(json!({})));
    cluster.tiered_storage.as_mut().unwrap().plugin.plugin_image =
        Some("registry.example.com/tiered:1.1.0".into());
    let objects = objects(cluster);
    insta::assert_snapshot!(
        "tiered_storage_plugin",
        parts(
            &objects,
            &[
                ("Kafka/orders", "/spec/kafka/tieredStorage/remoteStorageManager/classPath"),
                ("KafkaNodePool/broker", "/spec/template/kafkaContainer"),
                ("KafkaNodePool/broker", "/spec/template/pod/volumes"),
            ]
        )
    );
}

#[test]
fn listeners_follow_access_and_exposure() {
    let check = |access: &str, exposure: &str, private: bool, expected: &[&str]| {
        let mut cluster = with_domain(
            cluster(json!({"advanced_config": {"cluster_access": access, "private_access": private}})),
            DnsProvider::None,
        );
        Arc::make_mut(&mut cluster.fleet_spec).advanced_config.exposure =
            serde_json::from_value(json!(exposure)).unwrap();
        let listeners = objects(cluster)["Kafka/orders"]["spec"]["kafka"]["listeners"].clone();
        let found: Vec<String> = listeners
            .as_array()
            .unwrap()
            .iter()
            .map(|listener| {
                let broker = listener.pointer("/configuration/perBrokerAnnotationsTemplate");
                let annotated = broker.is_some_and(|it| it.to_string().contains("internal"));
                let mark = if annotated { " private" } else { "" };
                format!("{}:{}{mark}", listener["name"].as_str().unwrap(), listener["type"].as_str().unwrap())
            })
            .collect();
        assert_eq!(found, expected, "{access} {exposure}");
    };
    let (tls, admin) = ("tls:internal", "admin:internal");
    check("Internal", "loadbalancer", false, &[tls, admin]);
    check("External", "loadbalancer", false, &["external:loadbalancer", admin]);
    check("External", "loadbalancer", true, &["external:loadbalancer private", admin]);
    check("Internal & External", "loadbalancer", false, &[tls, "external:loadbalancer", admin]);
    check("External", "tlsroute", true, &["external:tlsroute", admin]);
}

#[test]
fn the_ways_to_be_reached_from_outside() {
    let mut cluster = external(json!({"advanced_config": {"private_access": true}}));
    let mut configuration = |exposure| {
        Arc::make_mut(&mut cluster.fleet_spec).advanced_config.exposure = exposure;
        let mut listener = objects(cluster.clone())["Kafka/orders"]["spec"]["kafka"]["listeners"][0].clone();
        listener["configuration"].take()
    };
    let ways = [configuration(Exposure::LoadBalancer), configuration(Exposure::TlsRoute)];
    insta::assert_snapshot!("exposure", to_yaml(&json!(ways)));
}

#[test]
fn clients_log_in_as_the_cluster_says_and_the_administrator_by_password() {
    for (overlay, oauth, expected) in [
        (json!({}), false, ["scram-sha-512", "scram-sha-512"]),
        (json!({"advanced_config": {"authentication": "mtls"}}), false, ["tls", "scram-sha-512"]),
        (json!({}), true, ["custom", "scram-sha-512"]),
    ] {
        let mut cluster = cluster(overlay);
        if oauth {
            cluster = with_identity_provider(cluster, json!({}));
        }
        let objects = objects(cluster);
        let kafka = &objects["Kafka/orders"]["spec"]["kafka"];
        let types = [0, 1].map(|index| kafka["listeners"][index]["authentication"]["type"].clone());
        assert_eq!(types, expected);
        assert_eq!(kafka["authorization"], json!({"type": "simple", "superUsers": ["orders-admin"]}));
        assert_eq!(objects["KafkaUser/orders-admin"]["spec"]["authentication"]["type"], "scram-sha-512");
    }
}

#[test]
fn what_brokers_read_only_at_start_restarts_them_when_it_changes() {
    let pods = |cluster| objects(cluster)["KafkaNodePool/broker"]["spec"]["template"]["pod"].clone();
    let one = with_tiered_storage(cluster(json!({})));
    let mut two = one.clone();
    two.tiered_storage.as_mut().unwrap().credentials.mark.fingerprint = Some("f2".to_owned());
    assert_ne!(pods(one), pods(two));
}

#[test]
fn a_folder_has_no_secrets_where_the_installation_says_so() {
    let mut cluster = with_tiered_storage(external(json!({})));
    Arc::make_mut(&mut cluster.fleet_spec).infra_type = InfraType::Directory;
    let secrets = |write_to_output| {
        let mut catalog = catalog([cluster.clone()]);
        Arc::make_mut(&mut catalog.config).secrets.write_to_output = write_to_output;
        let kinds = render(&catalog).fleets.into_values().flatten().map(|(key, _)| key.kind);
        kinds.filter(|kind| kind == "Secret").count()
    };
    assert_eq!((secrets(true), secrets(false)), (2, 0));
}

#[test]
fn a_fleet_without_clusters_is_there() {
    let desired = render(&catalog([cluster(json!({}))]));
    let counts: BTreeMap<String, bool> =
        desired.fleets.iter().map(|(fleet, objects)| (fleet.to_string(), objects.is_empty())).collect();
    assert_eq!(counts, BTreeMap::from([("acme/empty".to_owned(), true), ("acme/eu".to_owned(), false)]));
}

/// Clusters of every shape, with short and with the longest identifiers.
fn any_cluster() -> impl Strategy<Value = ResolvedCluster> {
    let tenancy = prop_oneof![Just("Shared"), Just("Isolated"), Just("Dedicated")];
    let access = prop_oneof![Just("Internal"), Just("External"), Just("Internal & External")];
    let shape = (tenancy, access, any::<bool>(), 1..=256u32, "[1-9]", any::<[bool; 8]>());
    shape.prop_map(
        |(tenancy, access, dev, units, zones, [long, private, dns, domain, oauth, tiered, mtls, routed])| {
            let (organization, name) =
                if long { (longest("o"), longest("c")) } else { ("a".into(), "b".into()) };
            let mut cluster = cluster(json!({
                "organization": organization,
                "infrastructure": if long { longest("f") } else { "f".into() },
                "identifier": name,
                "tenancy_mode": tenancy,
                "kafka_units": units,
                "advanced_config": {
                    "number_of_zones": zones,
                    "cluster_access": access,
                    "private_access": private,
                    "profile": if dev { "dev" } else { "standard" },
                    "authentication": if mtls { "mtls" } else { "scram-sha-512" },
                },
            }));
            if routed {
                Arc::make_mut(&mut cluster.fleet_spec).advanced_config.exposure = Exposure::TlsRoute;
            }
            if domain {
                let provider = if dns { DnsProvider::ExternalDns } else { DnsProvider::None };
                cluster = with_domain(cluster, provider);
            }
            if oauth {
                cluster = with_identity_provider(cluster, json!({"ca_cert": "x"}));
            }
            if tiered { with_tiered_storage(cluster) } else { cluster }
        },
    )
}

fn labels_in(value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::Object(labels) if key == "labels" || key == "matchLabels" => {
                        found.extend(labels.iter().map(|(key, value)| (key.clone(), value.clone())));
                    }
                    _ => labels_in(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| labels_in(item, found)),
        _ => {}
    }
}

/// Collects the paths of nulls, and of empty objects and lists that don't mean "everything".
fn leftovers(value: &Value, path: &str, found: &mut Vec<String>) {
    let meant = ["podSelector", "namespaceSelector"].iter().any(|selector| path.ends_with(selector));
    let empty =
        value.as_object().is_some_and(|o| o.is_empty()) || value.as_array().is_some_and(|a| a.is_empty());
    if value.is_null() || (empty && !meant) {
        found.push(path.to_owned());
    }
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, v)| leftovers(v, &format!("{path}/{key}"), found))
        }
        Value::Array(items) => items.iter().for_each(|v| leftovers(v, &format!("{path}/-"), found)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_object_is_well_formed(cluster in any_cluster()) {
        let catalog = catalog([cluster.clone()]);
        let desired = render(&catalog);
        prop_assert_eq!(&desired, &render(&catalog));
        let count = render_cluster(&cluster, &catalog.config).len();
        prop_assert_eq!(desired.fleets[&cluster.fleet].len(), count, "two objects have one key");
        for (key, manifest) in &desired.fleets[&cluster.fleet] {
            let Manifest { key: own, owner, stage, body } = manifest;
            let body = &body.value();
            prop_assert_eq!((own, owner), (key, &cluster.key));
            prop_assert_eq!(&body["apiVersion"], &json!(key.api_version));
            prop_assert_eq!(&body["kind"], &json!(key.kind));
            prop_assert_eq!(&body["metadata"]["name"], &json!(key.name));
            // A name that is valid as a host name label is valid for every kind.
            prop_assert!(Domain::try_from(format!("{}.x", key.name)).is_ok(), "{}", key);
            let namespace = if key.kind == "Namespace" { None } else { Some(cluster.namespace.clone()) };
            prop_assert_eq!(&key.namespace, &namespace);
            prop_assert_eq!(body["metadata"]["namespace"].as_str(), namespace.as_deref());
            prop_assert_eq!(*stage == Stage::Namespace, key.kind == "Namespace");
            prop_assert_eq!(*stage == Stage::Custom, key.api_version == "kafka.strimzi.io/v1");
            prop_assert_eq!(&body["metadata"]["labels"]["app.kubernetes.io/managed-by"], "streamfleet");
            prop_assert_eq!(&body["metadata"]["annotations"]["streamfleet.io/id"], &json!(cluster.id));
            prop_assert!(body.get("status").is_none());
            let (mut nulls, mut labels) = (Vec::new(), Vec::new());
            leftovers(body, &key.kind, &mut nulls);
            prop_assert_eq!(nulls, Vec::<String>::new());
            labels_in(body, &mut labels);
            for (label, value) in labels {
                let value = value.as_str().unwrap_or_default().to_owned();
                prop_assert!(!value.is_empty() && value.len() <= 63, "{} = {}", label, value);
                prop_assert!(!value.starts_with('-') && !value.ends_with('-'), "{} = {}", label, value);
            }
        }
    }
}

#[test]
fn options_of_brokers_take_the_place_of_ours() {
    let config = json!({"auto.create.topics.enable": true, "log.retention.ms": 86_400_000, "compression.type": "zstd"});
    let objects = objects(cluster(json!({"advanced_config": {"config": config}})));
    let config = &objects["Kafka/orders"]["spec"]["kafka"]["config"];
    let read = |name: &str| config[name].clone();
    assert_eq!(read("auto.create.topics.enable"), json!(true));
    assert_eq!((read("log.retention.ms"), read("compression.type")), (json!(86_400_000), json!("zstd")));
    assert_eq!(read("min.insync.replicas"), json!(2));
}
