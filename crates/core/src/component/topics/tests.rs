use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{objects, released};
use crate::catalog::{ResolvedCluster, ResolvedTopic};
use crate::component::fixtures;
use crate::names::{Json, Kind, ResourceKey};
use crate::render::yaml::to_yaml;

fn topic(mut fields: Value) -> ResolvedTopic {
    fields["organization"] = "acme".into();
    fields["cluster"] = "orders".into();
    let spec: crate::spec::Topic = serde_json::from_value(fields).unwrap();
    let key = ResourceKey::on_cluster(Kind::Topic, &spec.organization, &spec.cluster, &spec.name);
    ResolvedTopic { key, id: Uuid::from_u128(8), spec: Arc::new(spec) }
}

fn written(cluster: &ResolvedCluster) -> String {
    let all = objects(cluster).into_iter().map(|object| to_yaml(&object.body.value()));
    all.collect::<Vec<_>>().join("---\n")
}

fn acls(fields: Value) -> Value {
    let mut cluster = fixtures::cluster(json!({}));
    cluster.users = vec![fixtures::user(fields)];
    objects(&cluster)[0].body.value()["spec"]["authorization"]["acls"].clone()
}

#[test]
fn a_topic_and_a_user_are_objects_of_their_cluster() {
    let mut cluster = fixtures::cluster(json!({}));
    cluster.topics = vec![
        topic(json!({"name": "payments.events.v1", "partitions": 12, "replicas": 3,
            "config": {"retention.ms": 604_800_000, "cleanup.policy": "delete"}})),
        topic(json!({"name": "Audit_Log"})),
    ];
    cluster.users = vec![fixtures::user(json!({
        "produce": ["payments.events.v1"],
        "consume": [{"topic": "payments.*", "group": "billing"}, {"topic": "payments.*", "group": "billing-*"}],
        "transactional_ids": ["billing-*"],
        "rules": [
            {"resource": "cluster", "operations": ["DescribeConfigs", "Describe"]},
            {"resource": "topic", "name": "*", "operations": ["Delete"], "effect": "deny", "host": "10.0.0.1"},
        ],
    }))];
    insta::assert_snapshot!(written(&cluster));
    let owners: Vec<String> = objects(&cluster).iter().map(|object| object.owner.to_string()).collect();
    assert_eq!(
        owners,
        ["topic acme/orders/payments.events.v1", "topic acme/orders/Audit_Log", "user acme/orders/billing"]
    );
}

#[test]
fn a_right_is_given_once_and_ends_where_the_name_does() {
    assert_eq!(
        acls(json!({"produce": ["a", "a", "a*", "*"]})),
        json!([
            {"resource": {"type": "topic", "name": "a", "patternType": "literal"},
                "operations": ["Describe", "Write"], "host": "*", "type": "allow"},
            {"resource": {"type": "topic", "name": "a", "patternType": "prefix"},
                "operations": ["Describe", "Write"], "host": "*", "type": "allow"},
            {"resource": {"type": "topic", "name": "*", "patternType": "literal"},
                "operations": ["Describe", "Write"], "host": "*", "type": "allow"},
        ])
    );
    assert_eq!(acls(json!({})), json!([]));
    assert_eq!(acls(json!({"consume": [{"topic": "a"}]})).as_array().unwrap().len(), 1);
}

#[test]
fn a_user_logs_in_as_its_cluster_says() {
    let authentication = |mut cluster: ResolvedCluster| {
        cluster.users = vec![fixtures::user(json!({}))];
        objects(&cluster)[0].body.value()["spec"]["authentication"].clone()
    };
    assert_eq!(authentication(fixtures::cluster(json!({})))["type"], "scram-sha-512");
    let mtls = fixtures::cluster(json!({"advanced_config": {"authentication": "mtls"}}));
    assert_eq!(authentication(mtls)["type"], "tls");
    let tokens = fixtures::with_identity_provider(fixtures::cluster(json!({})), json!({}));
    assert_eq!(authentication(tokens), Value::Null);
}

#[test]
fn a_password_of_the_spec_is_in_a_secret_beside_the_user() {
    let mut cluster = fixtures::cluster(json!({}));
    cluster.users = vec![fixtures::user(json!({"password": "hunter2"}))];
    let [secret, user] = &objects(&cluster)[..] else { panic!("a Secret and a user") };
    assert_eq!(secret.owner, user.owner);
    assert_eq!((secret.key.kind.as_str(), secret.key.name.as_str()), ("Secret", "billing.password"));
    assert!(!secret.body.value().to_string().contains("hunter2"));
    assert_eq!(
        user.body.value()["spec"]["authentication"]["password"]["valueFrom"]["secretKeyRef"],
        json!({"name": "billing.password", "key": "password"})
    );
}

#[test]
fn a_topic_is_let_go_once() {
    let before = Json::from(&json!({"metadata": {"name": "a", "annotations": {"x": "y"}}, "spec": {}}));
    let after = released(&before).unwrap();
    assert_eq!(after.value()["metadata"]["annotations"], json!({"x": "y", "strimzi.io/managed": "false"}));
    assert_eq!(released(&after), None);
}
