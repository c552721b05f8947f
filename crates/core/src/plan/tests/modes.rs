//! Waits because of the mode, because an earlier plan is being carried out, or because something failed.

use super::*;
use crate::plan::{Retry, Waiting};

fn guard_of(plan: &Plan) -> String {
    plan.fleets[0].guard.as_ref().unwrap().id.clone()
}

#[test]
fn with_approve_everything_on_a_fleet_waits_for_one_word_that_is_good_once() {
    let mut lab = Lab::new();
    lab.policy.mode = Mode::Approve;
    lab.cluster("orders", json!({}));
    let plan = lab.plan();
    // A resource without a fleet is only recorded.
    assert_eq!(running(&plan), ["acme"]);
    assert_eq!(waiting(&plan), ["acme/eu", "acme/orders"]);
    let id = guard_of(&plan);
    let why = "the settings require approval for every plan: `policy.mode` is `approve`".to_owned();
    let waits = [Waiting::Approval { id: id.clone(), why }];
    assert_eq!(change(&plan, "Cluster/acme/orders").waiting, waits);
    lab.approve(&id);
    let approved = lab.plan();
    assert_eq!(waiting(&approved), [""; 0]);
    // An additional change makes it another plan, and the approval is void.
    lab.cluster("payments", json!({}));
    let plan = lab.plan();
    assert_eq!((waiting(&plan).len(), &plan.fleets[0].void_approvals), (3, &vec![id]));
}

#[test]
fn with_approve_a_word_covers_no_other_edit_of_what_only_is_recorded() {
    let mut lab = Lab::with(&["orders"]);
    lab.policy.mode = Mode::Approve;
    lab.unprotected("orders");
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!((orders.steps.len(), orders.fields.len(), waiting(&plan).len()), (0, 1, 1));
    lab.approve(&guard_of(&plan));
    assert_eq!(waiting(&lab.plan()), [""; 0]);
    let tags = json!([{"key": "team", "value": "sales"}]);
    lab.cluster("orders", json!({"deletion_protection": false, "tags": tags}));
    assert_ne!(guard_of(&lab.plan()), guard_of(&plan));
    assert_eq!(waiting(&lab.plan()), ["acme/orders"]);
}

/// A cluster on each of two fleets behind one base domain, whose certificate was just renewed.
fn renewed() -> Lab {
    let mut lab = Lab::new();
    lab.domain("hmac:0000000000000001");
    lab.cluster("a", json!({}));
    lab.cluster("b", json!({}));
    lab.fleet("us", &["c"]);
    lab.settle();
    ["a", "b", "c"].iter().for_each(|name| lab.judged(name, Status::Healthy));
    lab.domain("hmac:0000000000000002");
    lab
}

#[test]
fn with_approve_a_word_covers_only_what_is_done_at_once() {
    let mut lab = renewed();
    lab.policy.mode = Mode::Approve;
    let plan = lab.plan();
    assert!(matches!(change(&plan, "Cluster/acme/a").waiting[..], [Waiting::Approval { .. }]));
    let later = Waiting::OneDisruption { after: key("Cluster/acme/a") };
    assert_eq!(change(&plan, "Cluster/acme/b").waiting, [later]);
}

#[test]
fn a_certificate_goes_to_no_other_fleet_while_one_may_be_getting_it() {
    let mut lab = renewed();
    let since = lab.policy.now;
    *lab.target() = ObservedFleet::unknown(Reach::UnderWay { since });
    let plan = lab.plan();
    assert_eq!(
        change(&plan, "Cluster/acme/c").waiting,
        [Waiting::OneDisruption { after: key("Cluster/acme/a") }]
    );
}

#[test]
fn with_plan_only_nothing_is_done_anywhere() {
    let mut lab = Lab::new();
    lab.policy.mode = Mode::PlanOnly;
    lab.cluster("orders", json!({}));
    let plan = lab.plan();
    assert_eq!((running(&plan).len(), waiting(&plan).len()), (0, 3));
    assert!(plan.changes().all(|change| change.waiting == [Waiting::PlanOnly]));
    assert!(!plan.has_work());
}

#[test]
fn where_an_earlier_plan_is_being_carried_out_everything_waits_and_no_approval_ends() {
    let mut lab = Lab::with(&["orders"]);
    lab.unprotected("orders");
    lab.settle();
    lab.remove("Cluster/acme/orders");
    lab.policy.cluster_deletions_per_hour = 0;
    let id = guard_of(&lab.plan());
    lab.approve(&id);
    let since = lab.policy.now;
    *lab.target() = ObservedFleet::unknown(Reach::UnderWay { since });
    let plan = lab.plan();
    assert_eq!(change(&plan, "Cluster/acme/orders").waiting[..1], [Waiting::UnderWay { since }]);
    assert_eq!((running(&plan).len(), plan.fleets[0].void_approvals.len()), (0, 0));
    // A fleet without changes isn't mentioned.
    let mut lab = Lab::with(&["orders"]);
    *lab.target() = ObservedFleet::unknown(Reach::UnderWay { since });
    assert!(lab.plan().is_empty());
}

#[test]
fn an_approval_outlasts_the_pause_after_a_failure() {
    let mut lab = Lab::with(&["orders"]);
    lab.unprotected("orders");
    lab.settle();
    lab.remove("Cluster/acme/orders");
    lab.policy.cluster_deletions_per_hour = 0;
    let id = guard_of(&lab.plan());
    lab.approve(&id);
    let until = lab.policy.now + SignedDuration::from_secs(4);
    let retry = Retry { failed: "no".to_owned(), hint: String::new(), until };
    lab.policy.pauses.failed.insert(fleet_key(), retry);
    let plan = lab.plan();
    assert_eq!((running(&plan).len(), plan.fleets[0].void_approvals.len()), (0, 0));
    lab.policy.pauses = Pauses::default();
    assert_eq!(running(&lab.plan()), ["acme/orders"]);
}

#[test]
fn a_cluster_that_failed_alone_holds_up_no_other() {
    let mut lab = Lab::with(&["orders", "other"]);
    for name in ["orders", "other"] {
        lab.cluster(name, json!({"advanced_config.storage": {"size_gib": 400}}));
    }
    let until = lab.policy.now + SignedDuration::from_secs(4);
    let retry = Retry { failed: "no".to_owned(), hint: "do".to_owned(), until };
    lab.policy.pauses.failed_alone.insert(key("Cluster/acme/orders"), retry);
    let plan = lab.plan();
    let waiting = Waiting::Retry { failed: "no".to_owned(), hint: "do".to_owned(), until };
    assert_eq!(change(&plan, "Cluster/acme/orders").waiting, [waiting]);
    assert_eq!(change(&plan, "Cluster/acme/other").waiting, []);
}

#[test]
fn a_clock_that_is_set_lets_a_fleet_lose_no_more_clusters_and_lets_no_approval_last() {
    let mut lab = Lab::with(&["a", "b", "c", "d"]);
    ["a", "b"].iter().for_each(|name| lab.unprotected(name));
    lab.settle();
    lab.remove("Cluster/acme/a");
    let plan = lab.plan();
    assert_eq!(running(&plan), ["acme/a"]);
    lab.execute(&plan);
    lab.remove("Cluster/acme/b");
    let waits =
        |lab: &Lab| matches!(change(&lab.plan(), "Cluster/acme/b").waiting[..], [Waiting::Approval { .. }]);
    assert!(waits(&lab));
    let deleted = lab.policy.now;
    // The clock is set back by a day, which allows nothing more.
    lab.later(-24);
    assert!(waits(&lab));
    // The clock is set ahead, but a running process knows that no hour has passed.
    lab.policy.now = deleted;
    lab.later(24);
    lab.policy.pauses.lost.insert(fleet_key(), 1);
    assert!(waits(&lab));
    lab.policy.pauses = Pauses::default();
    assert!(!waits(&lab));

    lab.policy.now = deleted;
    let id = guard_of(&lab.plan());
    lab.approve(&id);
    assert!(!waits(&lab));
    for hours in [25, -50] {
        lab.later(hours);
        assert!(change(&lab.plan(), "Cluster/acme/b").waiting.is_empty() == (hours > 0), "{hours}");
        let plan = lab.plan();
        let guard = plan.fleets[0].guard.as_ref();
        assert!(guard.is_none_or(|guard| guard.approved_by.is_none()));
    }
}
