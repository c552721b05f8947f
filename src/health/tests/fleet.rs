//! How a fleet is judged by its operator.

use super::super::fleet::{FleetMemory, FleetSeen, Memories, judge, judge_all};
use super::*;
use crate::catalog::Condition;

#[test]
fn a_fleet_is_as_well_as_its_operator() {
    let operator = |wanted, ready| Operator::Found { name: "kafka/strimzi".into(), wanted, ready };
    let effect = "clusters go on running, while changes and lost pods wait";
    let steps = [
        (Operator::Unknown, 0, "Pending: nothing is known of the Strimzi operator yet".to_owned()),
        (
            Operator::Missing,
            0,
            format!(
                "Provisioning: the Strimzi operator isn't installed: {effect}; install it, or name a version to install in \
                 `advanced_config.components.strimzi` of the fleet"
            ),
        ),
        (operator(1, 1), 60, "Healthy: ".to_owned()),
        (operator(1, 0), 0, "Healthy: ".to_owned()),
        (
            operator(1, 0),
            10,
            format!(
                "Degraded: the Strimzi operator `kafka/strimzi` has no ready pod, 1 wanted: {effect}; see why its pods \
                 don't start"
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
    let (_, memory) = judge(&Operator::Missing, &[], &FleetMemory::default(), now);
    let late = now.checked_add(DEADLINE).unwrap();
    assert_eq!(judge(&Operator::Missing, &[], &memory, late).0.status, Status::Failed);
}

#[test]
fn clusters_in_trouble_are_counted_and_leave_the_fleet_as_it_is() {
    let operator = Operator::Found { name: "kafka/strimzi".into(), wanted: 1, ready: 1 };
    let clusters = [Status::Healthy, Status::Degraded, Status::Failed, Status::Updating];
    let now: Timestamp = "2026-11-21T11:00:00Z".parse().unwrap();
    let (status, _) = judge(&operator, &clusters, &FleetMemory::default(), now);
    assert_eq!(status.status, Status::Healthy);
    assert_eq!(status.conditions[0].message, "2 of 4 clusters are in trouble");
}

#[test]
fn what_cannot_be_looked_at_is_as_it_was_a_moment_ago_and_then_unknown() {
    let lab = Lab::healthy();
    let key: crate::names::ResourceKey = "Cluster/acme/orders".to_owned().try_into().unwrap();
    let wanted = BTreeMap::from([(key.clone(), lab.wanted.clone())]);
    let operator = Operator::Found { name: "kafka/strimzi".into(), wanted: 1, ready: 1 };
    let seen = FleetSeen { operator, clusters: [(key.clone(), lab.seen())].into(), ..FleetSeen::default() };
    let (health, memory) = judge_all(&wanted, &seen, &Memories::default(), lab.now);
    assert_eq!(
        (health.status.status, health.clusters[&key].status.status),
        (Status::Healthy, Status::Healthy)
    );

    let hidden = |degraded| {
        let hidden = Condition { kind: "NotSeen".into(), degraded, message: "no".into() };
        FleetSeen { hidden: vec![hidden], ..FleetSeen::default() }
    };
    let read = |seen: &FleetSeen, after: SignedDuration| {
        let (health, next) = judge_all(&wanted, seen, &memory, lab.now + after);
        assert_eq!(next.clusters, memory.clusters, "nothing new is remembered");
        assert!(health.clusters[&key].outputs.cluster_id.is_some());
        (health.status.status, health.clusters[&key].status.status)
    };
    assert_eq!(read(&hidden(false), SignedDuration::from_secs(1)), (Status::Healthy, Status::Healthy));
    assert_eq!(read(&hidden(false), GAP), (Status::Healthy, Status::Unreachable));
    assert_eq!(read(&hidden(true), GAP), (Status::Degraded, Status::Unreachable));
}
