use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::catalog::Status;
use crate::component::health::timing::DEADLINE;
use crate::component::health::{GatewayWithoutAddress, OperatorState};

#[test]
fn a_fleet_is_as_well_as_its_operator() {
    let operator = |wanted, ready| OperatorState::Found { name: "kafka/strimzi".into(), wanted, ready };
    let effect = "clusters keep running, but changes and lost pods wait";
    let steps = [
        (OperatorState::Unknown, 0, "Pending: the Strimzi operator has not been observed yet".to_owned()),
        (
            OperatorState::Missing,
            0,
            format!(
                "Provisioning: the Strimzi operator isn't installed: {effect}; install it, or set a version to install in \
                 `advanced_config.components.strimzi` of the fleet"
            ),
        ),
        (operator(1, 1), 60, "Healthy: ".to_owned()),
        (operator(1, 0), 0, "Healthy: ".to_owned()),
        (
            operator(1, 0),
            10,
            format!(
                "Degraded: the Strimzi operator `kafka/strimzi` has no ready pod, 1 wanted: {effect}; find out why its \
                 pods don't start"
            ),
        ),
        (
            operator(0, 0),
            1,
            format!(
                "Degraded: the Strimzi operator `kafka/strimzi` is scaled to 0: {effect}; scale it up again"
            ),
        ),
        (operator(1, 1), 1, "Healthy: ".to_owned()),
    ];
    let mut now: Timestamp = "2026-11-21T11:00:00Z".parse().unwrap();
    let mut memory = FleetMemory::default();
    for (operator, wait, expected) in steps {
        now = now.checked_add(SignedDuration::from_secs(wait)).unwrap();
        let (status, next) = judge(&operator, &[], &memory, now);
        memory = next;
        assert_eq!(format!("{}: {}", status.status, status.reason.unwrap_or_default()), expected);
    }
}

#[test]
fn an_operator_that_never_comes_fails_its_fleet() {
    let now: Timestamp = "2026-11-21T11:00:00Z".parse().unwrap();
    let (_, memory) = judge(&OperatorState::Missing, &[], &FleetMemory::default(), now);
    let late = now.checked_add(DEADLINE).unwrap();
    assert_eq!(judge(&OperatorState::Missing, &[], &memory, late).0.status, Status::Failed);
}

#[test]
fn clusters_in_trouble_are_counted_and_leave_the_fleet_as_it_is() {
    let operator = OperatorState::Found { name: "kafka/strimzi".into(), wanted: 1, ready: 1 };
    let clusters = [Status::Healthy, Status::Degraded, Status::Failed, Status::Updating];
    let now: Timestamp = "2026-11-21T11:00:00Z".parse().unwrap();
    let (status, _) = judge(&operator, &clusters, &FleetMemory::default(), now);
    assert_eq!(status.status, Status::Healthy);
    assert_eq!(status.conditions[0].message, "2 of 4 clusters are not healthy");
}

#[test]
fn a_gateway_that_gets_no_address_is_told_after_a_while() {
    let operator = OperatorState::Found { name: "kafka/strimzi".into(), wanted: 1, ready: 1 };
    let made: Timestamp = "2026-11-21T11:00:00Z".parse().unwrap();
    let unserved = GatewayWithoutAddress {
        gateway: "streamfleet-gateway/kafka".into(),
        made: Some(made),
        controller_message: Some("no address is left.".into()),
    };
    let waits = FleetObservation { operator, unserved: Some(unserved), ..FleetObservation::default() };
    let served = FleetObservation { gateway: Some("192.0.2.1".into()), unserved: None, ..waits.clone() };
    let mut memory = FleetMemories::default();
    let mut judge = |seen: &FleetObservation, minute: i64| {
        let now = made.checked_add(SignedDuration::from_mins(minute)).unwrap();
        let (health, next) = judge_all(&BTreeMap::new(), seen, &memory, now);
        memory = next;
        (health.status, memory.due(now))
    };
    // The time is counted from the creation, even on the first observation.
    let (status, due) = judge(&waits, 2);
    assert_eq!((status.status, status.conditions), (Status::Healthy, vec![]));
    assert_eq!(due, Some(made.checked_add(DEADLINE).unwrap()));
    let (status, _) = judge(&waits, 8);
    assert_eq!(status.status, Status::Degraded);
    let told = "Gateway streamfleet-gateway/kafka has had no address since 2026-11-21 11:00 UTC, so clients outside of \
                Kubernetes can't reach clusters through it; its controller says: no address is left; check that the \
                controller of its GatewayClass runs and that the cluster provides load balancers";
    assert_eq!(status.reason.as_deref(), Some(told));
    assert_eq!(status.conditions[0].kind, "GatewayUnserved");
    assert_eq!(judge(&served, 9).0.status, Status::Healthy);
    // For a Gateway that had an address, it is counted from when the address was lost.
    assert_eq!(judge(&waits, 20).0.status, Status::Healthy);
    assert_eq!(judge(&waits, 28).0.status, Status::Degraded);
}
