//! A plan that is made after another, with what that one left as it was, is the same as one that is made alone.

use super::*;
use crate::catalog::Catalog;
use crate::component::fixtures;
use crate::plan::{PlanMemory, Planner};

const CLUSTER: &str = "Cluster/acme/orders";

fn planned(lab: &Lab, catalog: &Catalog, memory: Option<&PlanMemory>) -> Plan {
    let (desired, fleet) = (lab.desired(), fleet_key());
    let site = lab.site(&fleet, &desired);
    let planner = Planner::new(catalog, &lab.recorded, Default::default(), &lab.policy, memory);
    let part = planner.fleet(&site);
    planner.finish(vec![part])
}

/// The inputs of a cluster have its first topic, which may be one that was never applied.
#[test]
fn a_cluster_whose_first_topic_goes_is_recorded_with_the_next_one() {
    let mut lab = Lab::with(&["orders"]);
    for name in ["a", "b"] {
        let spec = json!({"organization": "acme", "cluster": "orders", "name": name});
        lab.set(&format!("Topic/acme/orders/{name}"), spec);
    }
    let mut catalog = lab.catalog();
    let cluster = ResolvedCluster { has_topics: true, ..fixtures::cluster(json!({})) };
    catalog.clusters.insert(key(CLUSTER), cluster.into());
    let memory = PlanMemory::default();
    let first = planned(&lab, &catalog, Some(&memory));
    for (key, record) in first.remember {
        lab.recorded.resources.insert(key, record);
    }
    let settled = planned(&lab, &catalog, Some(&memory));
    assert!(!settled.remember.contains_key(&key(CLUSTER)));
    catalog.resources.remove(&key("Topic/acme/orders/a"));
    let after = planned(&lab, &catalog, Some(&memory));
    assert_eq!(after, planned(&lab, &catalog, None));
    assert!(after.remember.contains_key(&key(CLUSTER)));
}
