//! Predictions from records alone equal what the plan refuses.

use super::*;
use crate::plan::foresee::{PossibleRefusal, possible_refusal, refused};
use crate::plan::{FleetInputs, ObservedFleet};
use crate::problem::Problem;

const ORDERS: &str = "Cluster/acme/orders";

fn told(problems: &[Problem]) -> Vec<(String, String)> {
    let errors = problems.iter().filter(|problem| problem.is_error());
    errors.map(|problem| (problem.message.clone(), format!("{:?}", problem.location))).collect()
}

/// Predicts refusals for the cluster, by its own objects alone if no other resource is concerned.
fn foreseen(lab: &Lab, is_changing: bool) -> (PossibleRefusal, Vec<(String, String)>) {
    let (catalog, orders) = (lab.catalog(), key(ORDERS));
    let suspect = possible_refusal(&catalog, &lab.recorded, &orders, is_changing);
    let observed = ObservedFleet::unknown(Reach::UnderWay { since: lab.policy.now });
    let mut held = lab.recorded.fleets[&fleet_key()].clone();
    held.objects.retain(|_, object| object.owner == orders);
    let mut desired = lab.desired().fleets.remove(&fleet_key()).unwrap();
    desired.retain(|_, manifest| manifest.owner == orders);
    let fleet = &fleet_key();
    let site = FleetInputs {
        fleet,
        desired: Some(&desired),
        recorded: Some(&held),
        observed: Some(&observed),
        dry_runs: None,
    };
    let refused = refused(&catalog, &lab.recorded, &lab.policy, (&site, Some(&orders)));
    (suspect, told(&refused))
}

#[test]
fn what_is_foreseen_is_what_a_plan_says() {
    let before = json!({"kafka_units": 2, "advanced_config.storage": {"size_gib": 100}});
    for (edit, pointer) in [
        (json!({"advanced_config.version": "4.2.1"}), "/advanced_config/version"),
        (json!({"advanced_config.storage": {"size_gib": 10}}), "/advanced_config/storage/size_gib"),
        (
            json!({"advanced_config.storage": {"size_gib": 100, "class": "fast"}}),
            "/advanced_config/storage/class",
        ),
        (json!({"kafka_units": 1}), "/kafka_units"),
    ] {
        let mut lab = Lab::with(&["orders", "payments"]);
        lab.cluster("orders", before.clone());
        lab.settle();
        let mut all = before.clone();
        all.as_object_mut().unwrap().extend(edit.as_object().unwrap().clone());
        lab.cluster("orders", all);
        let planned = told(&lab.plan().problems);
        assert!(!planned.is_empty(), "{edit}");
        let (suspect, foreseen) = foreseen(&lab, false);
        assert_eq!(foreseen, planned, "{edit}");
        assert_eq!(suspect.pointer.as_deref(), Some(pointer));
        assert_eq!((suspect.fleets.len(), suspect.only), (1, Some(key(ORDERS))));
    }
}

#[test]
fn nothing_is_asked_where_nothing_can_be_refused() {
    let mut lab = Lab::with(&["orders"]);
    lab.cluster("payments", json!({}));
    lab.cluster("orders", json!({"region": "eu", "tags": [{"key": "a", "value": "b"}]}));
    for name in ["orders", "payments"] {
        let suspect =
            possible_refusal(&lab.catalog(), &lab.recorded, &key(&format!("Cluster/acme/{name}")), false);
        assert!(suspect.fleets.is_empty(), "{name}: {suspect:?}");
    }
}

#[test]
fn what_is_being_made_is_judged_by_its_objects() {
    let mut lab = Lab::with(&["orders"]);
    lab.cluster("orders", json!({"advanced_config.storage": {"size_gib": 100}}));
    lab.settle();
    lab.recorded.resources.get_mut(&key(ORDERS)).unwrap().durable.creating = true;
    lab.cluster("orders", json!({"advanced_config.storage": {"size_gib": 10}}));
    let (suspect, foreseen) = foreseen(&lab, false);
    assert_eq!((suspect.fleets.len(), suspect.pointer), (1, None));
    assert_eq!(foreseen, told(&lab.plan().problems));
    assert!(!foreseen.is_empty());
}

#[test]
fn what_is_taken_back_is_judged_by_the_objects_that_were_changed_before() {
    let mut lab = Lab::with(&["orders"]);
    let storage = |size: u32| json!({"advanced_config.storage": {"size_gib": size}});
    lab.cluster("orders", storage(100));
    lab.settle();
    // The pools grew, and a later step failed.
    let record = lab.recorded.resources[&key(ORDERS)].clone();
    lab.cluster("orders", storage(200));
    lab.settle();
    lab.recorded.resources.insert(key(ORDERS), record);
    lab.cluster("orders", storage(100));
    let (suspect, refused) = foreseen(&lab, true);
    assert_eq!((suspect.fleets.len(), suspect.pointer), (1, None));
    assert_eq!(refused, told(&lab.plan().problems));
    assert!(!refused.is_empty());
}
