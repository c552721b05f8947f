//! A plan without a look at the target refuses what a plan with one refuses.

use super::*;
use crate::plan::{FieldChange, FleetInputs, Planner, changed_fields};
use crate::problem::Problem;

const ORDERS: &str = "Cluster/acme/orders";

fn told(problems: &[Problem]) -> Vec<(String, String)> {
    let errors = problems.iter().filter(|problem| problem.is_error());
    errors.map(|problem| (problem.message.clone(), format!("{:?}", problem.location))).collect()
}

/// Checks that a plan refuses something, with and without a look, and returns the changed fields of the cluster.
fn refused(lab: &Lab) -> Vec<FieldChange> {
    let (catalog, desired, fleet) = (lab.catalog(), lab.desired(), fleet_key());
    let observed = ObservedFleet::unknown(Reach::UnderWay { since: lab.policy.now });
    let site = FleetInputs { observed: Some(&observed), ..lab.site(&fleet, &desired) };
    let planner = Planner::new(&catalog, &lab.recorded, Default::default(), &lab.policy, None);
    let unseen = told(&planner.fleet(&site).into_problems());
    assert!(!unseen.is_empty());
    assert_eq!(unseen, told(&lab.plan().problems));
    changed_fields(&catalog.resources[&key(ORDERS)], &lab.recorded)
}

fn storage(size_gib: u32) -> Value {
    json!({"kafka_units": 2, "advanced_config.storage": {"size_gib": size_gib}})
}

#[test]
fn what_a_spec_asks_for_is_refused_without_a_look() {
    for (field, value) in [
        ("advanced_config.version", json!("4.2.1")),
        ("advanced_config.storage", json!({"size_gib": 10})),
        ("advanced_config.storage", json!({"size_gib": 100, "class": "fast"})),
        ("kafka_units", json!(1)),
    ] {
        let mut lab = Lab::with(&["orders", "payments"]);
        lab.cluster("orders", storage(100));
        lab.settle();
        let mut edited = storage(100);
        edited[field] = value;
        lab.cluster("orders", edited);
        let [change] = &refused(&lab)[..] else { panic!("{field}") };
        assert!(change.field.starts_with(field), "{change:?}");
    }
}

#[test]
fn what_is_being_made_is_judged_by_its_objects() {
    let mut lab = Lab::with(&["orders"]);
    lab.cluster("orders", storage(100));
    lab.settle();
    lab.recorded.resources.get_mut(&key(ORDERS)).unwrap().durable.creating = true;
    lab.cluster("orders", storage(10));
    assert_eq!(refused(&lab), []);
}

#[test]
fn what_is_taken_back_is_judged_by_the_objects_that_were_changed_before() {
    let mut lab = Lab::with(&["orders"]);
    lab.cluster("orders", storage(100));
    lab.settle();
    // The pools grew, and a later step failed.
    let record = lab.recorded.resources[&key(ORDERS)].clone();
    lab.cluster("orders", storage(200));
    lab.settle();
    lab.recorded.resources.insert(key(ORDERS), record);
    lab.cluster("orders", storage(100));
    assert_eq!(refused(&lab), []);
}
