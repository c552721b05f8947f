use serde_json::json;

use super::*;
use crate::plan::Waiting;

#[test]
fn a_fleet_loses_one_cluster_an_hour_without_approval() {
    let mut lab = three_removed();
    let plan = lab.plan();
    assert_eq!(
        (running(&plan), waiting(&plan)),
        (vec!["acme/a".into()], vec!["acme/b".into(), "acme/c".into()])
    );
    lab.execute(&plan);
    assert_eq!(running(&lab.plan()), [""; 0], "another round in the same hour deletes no more");
    lab.later(1);
    assert_eq!(running(&lab.plan()), ["acme/b"]);
}

#[test]
fn an_approval_covers_what_was_shown_and_survives_unrelated_changes() {
    let mut lab = three_removed();
    let plan = lab.plan();
    let id = plan.fleets[0].guard.as_ref().unwrap().id.clone();
    assert_eq!(id.len(), 12);
    lab.approve(&id);
    lab.cluster("new", json!({}));
    assert_eq!(waiting(&lab.plan()), [""; 0]);
    let first = lab.plan();
    lab.execute(&first);
    assert_eq!(lab.recorded.approvals, [], "it is used once");
}

#[test]
fn an_approval_holds_when_the_hour_ends_and_fewer_need_it() {
    let mut lab = three_removed();
    let first = lab.plan();
    lab.execute(&first);
    let id = lab.plan().fleets[0].guard.as_ref().unwrap().id.clone();
    lab.approve(&id);
    lab.later(2);
    assert_eq!(waiting(&lab.plan()), [""; 0]);
}

#[test]
fn an_approval_ends() {
    let mut lab = three_removed();
    let id = lab.plan().fleets[0].guard.as_ref().unwrap().id.clone();
    lab.approve(&id);
    lab.later(25);
    assert_eq!(waiting(&lab.plan()), ["acme/b", "acme/c"]);
}

#[test]
fn an_approval_from_the_future_is_void_and_said_to_be() {
    let mut lab = three_removed();
    let id = lab.plan().fleets[0].guard.as_ref().unwrap().id.clone();
    lab.approve(&id);
    for minutes in [0, 5] {
        lab.policy.now -= SignedDuration::from_mins(minutes);
        let plan = lab.plan();
        assert_eq!(waiting(&plan), [""; 0], "clocks differ a little");
        assert_eq!(plan.fleets[0].void_approvals, [""; 0], "{minutes}");
    }
    lab.policy.now -= SignedDuration::from_secs(1);
    let plan = lab.plan();
    assert_eq!((waiting(&plan).len(), &plan.fleets[0].void_approvals), (2, &vec![id]));
    let [Waiting::Approval { why, .. }] = &change(&plan, "Cluster/acme/b").waiting[..] else {
        panic!("it waits for approval alone")
    };
    let at = lab.recorded.approvals[0].at;
    assert_eq!(
        *why,
        format!(
            "limit of 1 cluster deletion per fleet and hour. Deletes when the hour is over; restore the file to keep it, \
             approve to delete now; the approval by ada at {at} is not valid, because it lies in the future by this host's \
             clock"
        )
    );
}

#[test]
fn a_deletion_that_has_begun_goes_on() {
    let mut lab = three_removed();
    let first = lab.plan();
    lab.execute(&first);
    assert_eq!(waiting(&lab.plan()), ["acme/b", "acme/c"]);
    lab.recorded.resources.get_mut(&key("Cluster/acme/c")).unwrap().durable.deleting = true;
    assert_eq!(running(&lab.plan()), ["acme/c"]);
}

#[test]
fn a_new_guarded_step_waits_anew() {
    let mut lab = three_removed();
    let id = lab.plan().fleets[0].guard.as_ref().unwrap().id.clone();
    lab.approve(&id);
    lab.target().objects.get_mut(&object("Kafka", "c", "c")).unwrap().uid = "another".into();
    let plan = lab.plan();
    assert_ne!(plan.fleets[0].guard.as_ref().unwrap().id, id);
    assert_eq!(waiting(&plan), ["acme/b", "acme/c"]);
}

/// Objects that a lost inventory doesn't have may still exist, and would be orphaned.
#[test]
fn a_cluster_that_its_fleet_knows_nothing_of_is_forgotten_only_when_a_person_says_so() {
    let mut lab = Lab::with(&["orders"]);
    lab.unprotected("orders");
    lab.settle();
    lab.remove("Cluster/acme/orders");
    let target = lab.target();
    target.inventory.clear();
    target.objects.clear();
    lab.recorded.fleets.clear();
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert!(orders.verb == Verb::Delete && orders.steps.is_empty(), "{orders:#?}");
    let [Waiting::Approval { why, .. }] = &orders.waiting[..] else { panic!("{orders:#?}") };
    assert_eq!(why, "the fleet's target has no objects of it, so streamfleet would only forget it");
    // A cluster that was never created has no objects anywhere.
    lab.recorded.resources.get_mut(&key("Cluster/acme/orders")).unwrap().durable.creating = true;
    assert_eq!(running(&lab.plan()), ["acme/orders"]);
}

#[test]
fn what_waits_for_a_person_or_destroys_is_told_before_the_rest() {
    let mut lab = three_removed();
    lab.cluster("new", json!({}));
    let plan = lab.plan();
    let entries = crate::plan::entries(&plan);
    let told: Vec<String> =
        entries.iter().map(|entry| entry.resource().map(ToString::to_string).unwrap_or_default()).collect();
    // One may go at once, two need an approval.
    assert_eq!(told, ["cluster acme/b", "cluster acme/c", "cluster acme/a", "cluster acme/new"]);
    let section = &crate::plan::sections(&plan, &entries[..2], "TREE")[0];
    assert_eq!((section.items.len(), section.total), (2, 4));
    let [approval] = section.approvals.as_slice() else { panic!("{:?}", section.approvals) };
    assert_eq!(approval.changes, ["delete cluster b", "delete cluster c"]);
    assert!(approval.deletes && approval.total == 2);
}
