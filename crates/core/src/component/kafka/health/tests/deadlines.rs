use super::*;

const MOMENT: SignedDuration = SignedDuration::from_secs(1);

fn change(lab: &mut Lab) {
    lab.edit("Kafka/orders", "/metadata/generation", json!(2));
    assert_eq!(lab.status(), Status::Updating);
}

fn rebalance(lab: &mut Lab) {
    lab.objects.get_mut("Kafka/orders").unwrap()["status"]["autoRebalance"] =
        json!({"state": "RebalanceOnScaleUp"});
}

#[test]
fn a_moment_of_trouble_is_not_told_and_trouble_that_lasts_is() {
    let mut lab = Lab::healthy();
    lab.broker(json!({}));
    assert_eq!(lab.after(DEBOUNCE - MOMENT).status.status, Status::Healthy);
    assert_eq!(lab.after(MOMENT).status.status, Status::Degraded);
}

#[test]
fn a_first_look_believes_what_it_sees() {
    let mut lab = Lab::healthy();
    lab.memory = HealthMemory::default();
    lab.broker(json!({}));
    assert_eq!(lab.status(), Status::Degraded);
}

#[test]
fn in_a_rolling_restart_one_pod_may_be_away_until_the_deadline() {
    let mut lab = Lab::healthy();
    change(&mut lab);
    lab.broker(json!({}));
    assert_eq!(lab.after(DEADLINE - MOMENT).status.status, Status::Updating);
    assert_eq!(lab.after(MOMENT).status.status, Status::Degraded);
}

#[test]
fn in_a_rolling_restart_two_pods_may_not_be_away() {
    let mut lab = Lab::healthy();
    change(&mut lab);
    for id in [0, 1] {
        lab.pod("broker", id, json!({}));
    }
    assert_eq!(lab.after(DEBOUNCE).status.status, Status::Degraded);
}

#[test]
fn an_operator_that_is_down_restarts_nothing() {
    let mut lab = Lab::healthy();
    change(&mut lab);
    lab.broker(json!({}));
    lab.operator = OperatorState::Missing;
    assert_eq!(
        lab.told(),
        "Degraded: 5 of 6 pods are ready: `orders-broker-0` is starting; the Strimzi operator isn't installed"
    );
}

#[test]
fn a_change_in_which_nothing_moves_is_told_after_the_deadline() {
    let mut lab = Lab::healthy();
    change(&mut lab);
    assert_eq!(lab.after(DEADLINE - MOMENT).status.status, Status::Updating);
    let status = lab.after(MOMENT).status;
    assert_eq!(status.status, Status::Degraded);
    assert_eq!(status.reason.unwrap(), "no progress for 8 minutes: the operator is applying the last change");
}

#[test]
fn a_change_begins_to_count_when_it_is_made() {
    let mut lab = Lab::healthy();
    lab.after(DEADLINE + DEADLINE);
    lab.wanted.version = Some("4.4.0".into());
    assert_eq!(lab.after(DEADLINE - MOMENT).status.status, Status::Upgrading);
    assert_eq!(lab.after(MOMENT).status.status, Status::Degraded);
}

#[test]
fn time_without_an_operator_does_not_count() {
    let mut lab = Lab::healthy();
    change(&mut lab);
    lab.operator = OperatorState::Missing;
    assert_eq!(lab.after(DEADLINE + DEADLINE).status.status, Status::Updating);
    let mut lab = Lab::new_cluster();
    lab.operator = OperatorState::Missing;
    assert_eq!(lab.after(DEADLINE + DEADLINE).status.status, Status::Provisioning);
}

#[test]
fn a_new_cluster_that_does_not_come_up_fails_at_the_deadline_and_not_before() {
    let mut lab = Lab::new_cluster();
    lab.edit("Kafka/orders", "/metadata/generation", json!(2));
    assert_eq!(lab.after(DEADLINE - MOMENT).status.status, Status::Provisioning);
    assert_eq!(lab.after(MOMENT).status.status, Status::Failed);
}

#[test]
fn a_cluster_that_the_operator_never_looks_at_fails_and_says_what_to_check() {
    let mut lab = Lab::new_cluster();
    lab.edit("Kafka/orders", "/status", json!({}));
    assert_eq!(lab.told(), "Pending: the operator hasn't processed it yet");
    let status = lab.after(DEADLINE).status;
    assert_eq!(status.status, Status::Failed);
    assert_eq!(
        status.reason.unwrap(),
        "the Strimzi operator hasn't processed it: check that it watches namespace `kafka-acme--orders`"
    );
}

#[test]
fn a_change_whose_end_is_not_announced_is_done_when_all_is_still() {
    let mut lab = Lab::healthy();
    lab.wanted.pools.get_mut("broker").unwrap().replicas = 2;
    lab.edit("KafkaNodePool/broker", "/spec/replicas", json!(2));
    lab.edit("KafkaNodePool/broker", "/metadata/generation", json!(2));
    assert_eq!(lab.status(), Status::Updating);
    lab.edit(
        "KafkaNodePool/broker",
        "/status",
        json!({"observedGeneration": 2, "replicas": 2, "nodeIds": [0, 1]}),
    );
    lab.objects.remove("Pod/orders-broker-2");
    assert_eq!(lab.after(QUIET_PERIOD - MOMENT).status.status, Status::Updating);
    assert_eq!(lab.after(MOMENT).status.status, Status::Healthy);
}

#[test]
fn partitions_may_be_moved_for_longer_than_any_deadline() {
    let mut lab = Lab::healthy();
    rebalance(&mut lab);
    let status = lab.after(DEADLINE + DEADLINE).status;
    assert_eq!(status.status, Status::Updating);
    assert_eq!(status.reason.unwrap(), "partitions are being moved");
    lab.broker(json!({}));
    assert_eq!(
        lab.after(DEADLINE).status.status,
        Status::Degraded,
        "a pod that is away is told all the same"
    );

    // Everything else that is under way has to move.
    let mut lab = Lab::healthy();
    rebalance(&mut lab);
    change(&mut lab);
    assert_eq!(lab.after(DEADLINE).status.status, Status::Degraded);
}
