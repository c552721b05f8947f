//! Sentences about changes whose effect was observed with a running operator.

use super::*;
use crate::plan::compare::effects::{drop_repeated_restarts, of_a_single_broker};

fn effects(kind: &str, before: Value, after: Value) -> Vec<String> {
    judge([step(kind, Some(before), Some(after))].iter(), Permits::default()).effects
}

#[test]
fn limits_of_connections_restart_brokers_and_no_controller() {
    for field in ["maxConnections", "maxConnectionCreationRate"] {
        let listener =
            |limit: u32| json!({"spec": {"kafka": {"listeners": [{"configuration": {field: limit}}]}}});
        let restarts = ["brokers restart one by one; clients reconnect and continue"];
        assert_eq!(effects("Kafka", listener(5), listener(9)), restarts);
        let fewer = effects("Kafka", listener(9), listener(5));
        assert!(fewer[0].starts_with("brokers restart one by one, and each accepts fewer"), "{fewer:?}");
    }
}

#[test]
fn other_sizes_of_disks_restart_cruise_control_where_there_is_one() {
    let pool = |replicas: u32, role: &str, size: &str| {
        let storage = json!({"volumes": [{"size": size}]});
        json!({"spec": {"replicas": replicas, "roles": [role], "storage": storage}})
    };
    let grown = |replicas: u32, role: &str| {
        let [before, after] = ["17Gi", "20Gi"].map(|size| pool(replicas, role, size));
        effects("KafkaNodePool", before, after).remove(0)
    };
    let grows = "disks of KafkaNodePool ns/x grow from 17Gi to 20Gi; its nodes may restart one by one";
    assert_eq!(grown(3, "broker"), format!("{grows}, and Cruise Control restarts"));
    assert_eq!(grown(1, "broker"), grows);
    assert_eq!(grown(3, "controller"), grows);
}

#[test]
fn the_operators_that_restart_are_those_that_are_there() {
    let kafka = |topics: bool, cpu: u32| {
        let operator = json!({"resources": {"requests": {"cpu": cpu}}});
        let mut operators = json!({"userOperator": operator});
        if topics {
            operators["topicOperator"] = operator;
        }
        json!({"spec": {"entityOperator": operators}})
    };
    for (before, after, expected) in [
        (kafka(false, 1), kafka(false, 2), "the user operator restarts"),
        (kafka(true, 1), kafka(true, 2), "the topic and user operators restart"),
        (
            kafka(false, 1),
            kafka(true, 1),
            "the user operator restarts, and the topic operator starts beside it",
        ),
        (kafka(true, 1), kafka(false, 1), "the user operator restarts, and the topic operator is removed"),
    ] {
        assert_eq!(effects("Kafka", before, after), [format!("{expected}; clients notice nothing")]);
    }
}

#[test]
fn one_restart_is_told_once() {
    let told = |effects: &[&str], single: bool| {
        let mut effects: Vec<String> = effects.iter().map(ToString::to_string).collect();
        if single {
            of_a_single_broker(&mut effects);
        }
        drop_repeated_restarts(&mut effects);
        effects
    };
    let nodes = "the nodes of KafkaNodePool ns/broker restart one by one; clients reconnect and continue";
    let brokers = "brokers restart one by one; clients reconnect and continue";
    let all = "brokers and controllers restart one by one; clients reconnect and continue";
    let quotas =
        "brokers and controllers restart one by one with other client quotas; clients reconnect and continue";
    assert_eq!(told(&[brokers, all, quotas, nodes], false), [quotas]);
    assert_eq!(told(&[brokers, nodes], false), [brokers, nodes]);
    assert_eq!(told(&[brokers, all], false), [all]);
    let inside = "brokers restart one by one, and clients outside of Kubernetes can't reach them any more";
    assert_eq!(
        told(&[brokers, inside], true),
        [
            "its only broker restarts, and clients outside of Kubernetes can't reach it any more",
            "the cluster has a single broker: while it restarts, clients can't read or write",
        ]
    );
}
