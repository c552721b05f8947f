//! Broker options that keep less than before: records are deleted only after approval.

use super::*;
use crate::plan::{Cause, Verdict, Waiting};

const ORDERS: &str = "Cluster/acme/orders";

fn retention(lab: &mut Lab, name: &str, days: Option<u64>) {
    let config = days.map_or(json!({}), |days| json!({"log.retention.ms": days * 86_400_000}));
    lab.cluster(name, json!({"advanced_config.config": config}));
}

fn thirty_days() -> Lab {
    let mut lab = Lab::new();
    retention(&mut lab, "orders", Some(30));
    lab.settle();
    lab
}

#[test]
fn records_are_deleted_only_when_a_person_says_so() {
    for (days, told) in [
        (
            Some(1),
            "records older than 1 day are deleted, in topics without a `retention.ms` of their own (30 days before)",
        ),
        (
            None,
            "records older than 7 days are deleted, in topics without a `retention.ms` of their own (30 days before; \
             Kafka's default applies now)",
        ),
    ] {
        let mut lab = thirty_days();
        retention(&mut lab, "orders", days);
        let plan = lab.plan();
        let orders = change(&plan, ORDERS);
        assert_eq!((orders.verdict, orders.guarded), (Verdict::DataLoss, true));
        assert_eq!(orders.effects, [told, "brokers use new options without a restart"]);
        let id = plan.fleets[0].guard.as_ref().unwrap().id.clone();
        let why = "it permanently deletes data that the cluster keeps now".to_owned();
        assert_eq!(orders.waiting, [Waiting::Approval { id: id.clone(), why }]);
        lab.approve(&id);
        assert_eq!(running(&lab.plan()), ["acme/orders"]);
    }
}

#[test]
fn keeping_records_longer_needs_nobody() {
    let mut lab = thirty_days();
    retention(&mut lab, "orders", Some(31));
    let plan = lab.plan();
    let orders = change(&plan, ORDERS);
    assert_eq!((orders.verdict, orders.guarded), (Verdict::InPlace, false));
    assert_eq!(running(&plan), ["acme/orders"]);
}

/// It was raised by hand to keep what would now be deleted.
#[test]
fn a_retention_that_was_raised_by_hand_is_lowered_only_when_a_person_says_so() {
    let mut lab = thirty_days();
    let kafka = lab.target().objects.get_mut(&object("Kafka", "orders", "orders")).unwrap();
    kafka.unchanged = false;
    let manifest = kafka.manifest.as_mut().unwrap();
    manifest.edit(|it| it["spec"]["kafka"]["config"]["log.retention.ms"] = json!(-1));
    let plan = lab.plan();
    let orders = change(&plan, ORDERS);
    assert!(matches!(orders.cause, Cause::Drift { .. }));
    assert_eq!((orders.verdict, waiting(&plan)), (Verdict::DataLoss, vec!["acme/orders".to_owned()]));
}

/// Without the option Kafka's default applied, so restoring the option deletes newer records.
#[test]
fn a_retention_that_was_removed_by_hand_with_all_around_it_is_put_back_only_when_a_person_says_so() {
    let gone: [fn(&mut Value); 2] = [
        |it| drop(it["spec"]["kafka"].as_object_mut().unwrap().remove("config")),
        |it| drop(it.as_object_mut().unwrap().remove("spec")),
    ];
    for remove in gone {
        let mut lab = Lab::new();
        retention(&mut lab, "orders", Some(1));
        lab.settle();
        let kafka = lab.target().objects.get_mut(&object("Kafka", "orders", "orders")).unwrap();
        kafka.unchanged = false;
        kafka.manifest.as_mut().unwrap().edit(remove);
        let plan = lab.plan();
        let orders = change(&plan, ORDERS);
        assert!(matches!(orders.cause, Cause::Drift { .. }));
        assert_eq!((orders.verdict, waiting(&plan)), (Verdict::DataLoss, vec!["acme/orders".to_owned()]));
        let told = "records older than 1 day are deleted, in topics without a `retention.ms` of their own";
        assert!(orders.effects.iter().any(|effect| effect.starts_with(told)), "{:?}", orders.effects);
    }
}

#[test]
fn what_restarts_brokers_beside_it_is_still_one_at_a_time_and_the_rest_holds_up_nobody() {
    let mut lab = Lab::new();
    for name in ["a", "b"] {
        retention(&mut lab, name, Some(30));
    }
    lab.settle();
    let approved = |lab: &mut Lab| {
        let id = lab.plan().fleets[0].guard.as_ref().unwrap().id.clone();
        lab.approve(&id);
        running(&lab.plan())
    };
    for name in ["a", "b"] {
        retention(&mut lab, name, Some(1));
    }
    assert_eq!(approved(&mut lab), ["acme/a", "acme/b"], "no broker restarts");
    lab.recorded.approvals.clear();
    for name in ["a", "b"] {
        let config = json!({"log.retention.ms": 1000, "num.partitions": 3});
        lab.cluster(name, json!({"advanced_config.config": config}));
    }
    assert_eq!(approved(&mut lab), ["acme/a"], "brokers restart, one cluster after another");
}

/// An approval of two changes covers both, though the second has to wait for its turn.
#[test]
fn a_change_that_is_approved_and_has_to_wait_for_its_turn_stays_approved() {
    let mut lab = Lab::new();
    for name in ["a", "b", "c"] {
        retention(&mut lab, name, Some(30));
    }
    lab.settle();
    ["a", "b", "c"].iter().for_each(|name| lab.judged(name, Status::Healthy));
    let config = json!({"log.retention.ms": 1000, "num.partitions": 3});
    for name in ["a", "b"] {
        lab.cluster(name, json!({"advanced_config.config": config}));
    }
    lab.approve(&lab.plan().fleets[0].guard.as_ref().unwrap().id.clone());
    let plan = lab.plan();
    assert_eq!(running(&plan), ["acme/a"]);
    lab.execute(&plan);
    let after = Waiting::OneDisruption { after: key("Cluster/acme/a") };
    for status in [Status::Updating, Status::Degraded] {
        lab.judged("a", status);
        assert_eq!(change(&lab.plan(), "Cluster/acme/b").waiting, std::slice::from_ref(&after), "{status}");
    }
    lab.judged("a", Status::Healthy);
    let plan = lab.plan();
    assert_eq!((running(&plan), waiting(&plan)), (vec!["acme/b".to_owned()], vec![]));

    // It covers nothing that is added meanwhile, and it expires at its original time.
    retention(&mut lab, "c", Some(1));
    assert_eq!(waiting(&lab.plan()), ["acme/b", "acme/c"]);
    retention(&mut lab, "c", Some(30));
    let now = lab.policy.now;
    lab.later(25);
    assert_eq!(waiting(&lab.plan()), ["acme/b"]);
    lab.policy.now = now;
    let plan = lab.plan();
    lab.execute(&plan);
    assert_eq!(lab.recorded.approvals, [], "and each change uses it once");
}

/// Records and disks outlive the object that configures them.
#[test]
fn what_is_gone_from_the_target_is_judged_by_what_was_applied() {
    let mut lab = thirty_days();
    lab.target().objects.remove(&object("Kafka", "orders", "orders"));
    assert_eq!(running(&lab.plan()), ["acme/orders"]);
    retention(&mut lab, "orders", Some(1));
    let plan = lab.plan();
    let orders = change(&plan, ORDERS);
    assert_eq!((orders.verdict, waiting(&plan)), (Verdict::DataLoss, vec!["acme/orders".to_owned()]));
}

#[test]
fn a_pool_that_is_gone_from_the_target_comes_back_with_no_smaller_disks() {
    let mut lab = Lab::new();
    lab.cluster("orders", json!({"advanced_config.storage": {"size_gib": 200}}));
    lab.settle();
    let pools: Vec<_> =
        lab.target().objects.keys().filter(|key| key.kind == "KafkaNodePool").cloned().collect();
    pools.iter().for_each(|pool| drop(lab.target().objects.remove(pool)));
    lab.cluster("orders", json!({"advanced_config.storage": {"size_gib": 100}}));
    let plan = lab.plan();
    let Some(Waiting::Refused { why }) = change(&plan, ORDERS).waiting.first() else {
        panic!("{plan:#?}");
    };
    assert!(why.contains("200Gi") && why.contains("100Gi"), "{why}");
}

#[test]
fn a_call_that_changed_nothing_leaves_the_record_as_it_is() {
    let mut lab = Lab::with(&["orders"]);
    let key: ResourceKey = "Cluster/acme/orders".to_owned().try_into().unwrap();
    let told = crate::plan::Announced { made: None, changed: Some(lab.policy.now) };
    lab.policy.announced.insert(key.clone(), told);
    let plan = lab.plan();
    assert_eq!((plan.remember.get(&key), plan.exit_code()), (None, 0));
}
