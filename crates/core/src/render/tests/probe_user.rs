use super::*;
use crate::spec::Reachability;

#[test]
fn a_cluster_that_is_probed_has_a_user_with_rights_on_one_topic() {
    const USER: &str = "KafkaUser/orders-probe";
    let spec = |cluster: ResolvedCluster| objects(cluster).remove(USER).map(|user| user["spec"].clone());
    let scram = spec(external(json!({}))).unwrap();
    insta::assert_snapshot!("probe_user", to_yaml(&scram));
    let mtls = spec(external(json!({"advanced_config": {"authentication": "mtls"}}))).unwrap();
    assert_eq!(mtls["authentication"], json!({"type": "tls"}));
    assert_eq!(mtls["authorization"], scram["authorization"]);
    let fleet = |change: fn(&mut crate::spec::Fleet)| {
        let mut cluster = external(json!({}));
        change(Arc::make_mut(&mut cluster.fleet_spec));
        cluster
    };
    for other in [
        cluster(json!({})),
        with_identity_provider(external(json!({})), json!({})),
        fleet(|fleet| fleet.infra_type = InfraType::Directory),
        fleet(|fleet| fleet.advanced_config.reachability = Reachability::None),
    ] {
        assert_eq!(spec(other), None);
    }
}

#[test]
fn cruise_control_leaves_the_topic_of_the_probe_alone() {
    let config = |cluster: ResolvedCluster| {
        objects(cluster)["Kafka/orders"]["spec"]["cruiseControl"]["config"].clone()
    };
    let excluded = json!({"topics.excluded.from.partition.movement": "__streamfleet_probe"});
    assert_eq!(config(external(json!({}))), excluded);
    assert_eq!(config(cluster(json!({}))), Value::Null);
}
