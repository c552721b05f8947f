//! Clusters that can't be observed.

use super::*;
use crate::catalog::Condition;
use crate::health::{FleetMemories, FleetObservation, judge_all};

#[test]
fn what_cannot_be_looked_at_is_as_it_was_a_moment_ago_and_then_unknown() {
    let lab = Lab::healthy();
    let key: ResourceKey = "Cluster/acme/orders".to_owned().try_into().unwrap();
    let wanted = BTreeMap::from([(key.clone(), lab.wanted.clone())]);
    let operator = OperatorState::Found { name: "kafka/strimzi".into(), wanted: 1, ready: 1 };
    let seen = FleetObservation {
        operator,
        clusters: [(key.clone(), lab.seen())].into(),
        ..FleetObservation::default()
    };
    let (health, memory) = judge_all(&wanted, &seen, &FleetMemories::default(), lab.now);
    assert_eq!(
        (health.status.status, health.clusters[&key].status.status),
        (Status::Healthy, Status::Healthy)
    );

    let hidden = |degraded| {
        let hidden = Condition { kind: "NotSeen".into(), degraded, message: "no".into() };
        FleetObservation { unobservable: vec![hidden], ..FleetObservation::default() }
    };
    let read = |seen: &FleetObservation, after: SignedDuration| {
        let (health, next) = judge_all(&wanted, seen, &memory, lab.now + after);
        assert_eq!(next.clusters, memory.clusters, "nothing new is remembered");
        assert!(health.clusters[&key].outputs.cluster_id.is_some());
        (health.status.status, health.clusters[&key].status.status)
    };
    assert_eq!(read(&hidden(false), SignedDuration::from_secs(1)), (Status::Healthy, Status::Healthy));
    assert_eq!(read(&hidden(false), OBSERVATION_GAP), (Status::Healthy, Status::Unreachable));
    assert_eq!(read(&hidden(true), OBSERVATION_GAP), (Status::Degraded, Status::Unreachable));

    // After a change, the earlier status doesn't count.
    let applied = vec![Digest::of("another configuration")];
    let changed = BTreeMap::from([(key.clone(), AppliedCluster { applied, ..lab.wanted.clone() })]);
    let now = lab.now + SignedDuration::from_secs(1);
    let (health, _) = judge_all(&changed, &hidden(false), &memory, now);
    assert_eq!(health.clusters[&key].status.status, Status::Unreachable);
    assert_eq!(health.clusters[&key].clear_certificates, Some(true), "its certificates are as they were");
    let certificates = [("external".to_owned(), Digest::of("another"))].into();
    let renewed = AppliedCluster { certificates, ..lab.wanted.clone() };
    let (health, _) = judge_all(&[(key.clone(), renewed)].into(), &hidden(false), &memory, now);
    assert_eq!(health.clusters[&key].clear_certificates, Some(false), "it may be from new ones");
}
