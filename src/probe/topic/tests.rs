use std::collections::BTreeMap;

use super::super::requests::AdvertisedBroker;
use super::*;
use crate::component::probe::{ProbeTrust, PublicName};
use crate::names::{Identifier, Kind, ResourceKey};

fn order(ids: &[u32]) -> ProbeOrder {
    let name = |host: String| PublicName { host, port: 9094 };
    let acme: Identifier = "acme".parse().unwrap();
    ProbeOrder {
        cluster: ResourceKey::new(Kind::Cluster, &acme, "orders"),
        bootstrap: name("orders.example.com".to_owned()),
        brokers: ids.iter().map(|id| (*id, name(format!("broker-{id}--orders.example.com")))).collect(),
        trust: ProbeTrust::System,
        certificate: None,
        login: None,
    }
}

/// Partitions, each with its leader and its replicas.
fn partitions(all: &[(i32, &[i32])]) -> Vec<Partition> {
    let numbered = (0..).zip(all);
    numbered
        .map(|(index, (leader, replicas))| Partition { index, leader: *leader, replicas: replicas.to_vec() })
        .collect()
}

fn assigned(ids: &[u32], all: &[(i32, &[i32])]) -> Vec<(u32, i32, i32)> {
    let assigned = Layout::new(&order(ids), &partitions(all)).assigned;
    assigned.into_iter().map(|(id, it)| (id, it.partition, it.leader)).collect()
}

#[test]
fn a_broker_has_the_partition_that_it_is_to_lead() {
    // As it is created.
    assert_eq!(assigned(&[0, 1], &[(0, &[0, 1]), (1, &[1, 0])]), [(0, 0, 0), (1, 1, 1)]);
    // While broker 1 restarts, broker 0 leads both; neither is given away.
    assert_eq!(assigned(&[0, 1], &[(0, &[0, 1]), (0, &[1, 0])]), [(0, 0, 0), (1, 1, 0)]);
    // A partition that was moved away leaves the broker one that it leads, or none.
    assert_eq!(assigned(&[0, 1], &[(0, &[0, 1]), (1, &[0, 1])]), [(0, 0, 0), (1, 1, 1)]);
    assert_eq!(assigned(&[0, 1], &[(0, &[0]), (0, &[0])]), [(0, 0, 0)]);
    // Numbers of brokers have gaps, and brokers that the plan removed keep theirs.
    assert_eq!(assigned(&[3, 7], &[(3, &[3]), (5, &[5]), (-1, &[7])]), [(3, 0, 3), (7, 2, -1)]);
    // Of several, the one that it leads comes first.
    assert_eq!(assigned(&[1], &[(0, &[1, 0]), (1, &[1, 0])]), [(1, 1, 1)]);
}

#[test]
fn partitions_are_added_for_brokers_of_the_plan_that_are_there() {
    let order = order(&[0, 1, 2]);
    let metadata = ClusterMetadata {
        brokers: [0, 1, 9].map(|id| AdvertisedBroker { id, host: String::new(), port: 0 }).into(),
        cluster: None,
        topic: None,
    };
    let layout = Layout::new(&order, &partitions(&[(0, &[0])]));
    assert_eq!(layout.without_partition(&order, &metadata), [1]);
    let layout = Layout::new(&order, &partitions(&[(0, &[0]), (0, &[1])]));
    assert_eq!(layout.without_partition(&order, &metadata), [] as [u32; 0]);
}

#[test]
fn what_was_just_created_is_waited_for_unless_it_was_refused() {
    let mut layout = Layout::new(&order(&[0]), &partitions(&[(-1, &[0])]));
    assert!(layout.is_young(&[]));
    layout.leaders = BTreeMap::from([(0, 0)]);
    assert!(!layout.is_young(&[]) && layout.is_young(&[1]));
    let failure = ProbeFailure::Topic { attempted: "add", code: 39 };
    layout.refused = BTreeMap::from([(1, failure)]);
    assert!(!layout.is_young(&[1]));
}
