//! Drift is restored to what was applied last, whatever else waits.

use serde_json::json;

use super::*;
use crate::plan::{Cause, Remark, Verdict, Waiting};

const ORDERS: &str = "Cluster/acme/orders";

fn kafka() -> ObjectKey {
    object("Kafka", "orders", "orders")
}

/// A cluster that a new version of the software would restart, which waits for approval.
fn waits_for_approval() -> Lab {
    let mut lab = Lab::with(&["orders"]);
    (lab.rendering, lab.policy.software) = (2, "0.2.0".into());
    assert!(matches!(change(&lab.plan(), ORDERS).waiting.as_slice(), [Waiting::Approval { .. }]));
    lab
}

fn repair(plan: &Plan) -> Option<Change> {
    let mut repairs = plan.changes().filter(|change| change.repair);
    let repair = repairs.next().cloned();
    assert_eq!(repairs.next(), None);
    repair
}

fn repaired(plan: &Plan) -> Vec<String> {
    let steps = repair(plan).into_iter().flat_map(|repair| repair.steps);
    steps.map(|step| format!("{} {}", step.verb, step.object)).collect()
}

fn edit(lab: &mut Lab, key: &ObjectKey, pointer: &str, value: Value) {
    let there = lab.target().objects.get_mut(key).unwrap();
    (there.unchanged, there.changed_by) = (false, Some("kubectl-edit".into()));
    there.manifest.as_mut().unwrap().edit(|body| *body.pointer_mut(pointer).unwrap() = value);
}

#[test]
fn what_was_deleted_is_put_back_while_a_change_waits_for_approval() {
    let mut lab = waits_for_approval();
    let applied = lab.target().objects.remove(&kafka()).unwrap();
    let plan = lab.plan();
    insta::assert_snapshot!(lab.look());
    let repair = repair(&plan).unwrap();
    assert_eq!(
        (repair.verb, repair.guarded, &repair.cause),
        (Verb::Update, false, &Cause::Drift { by: None })
    );
    let [step] = repair.steps.as_slice() else { panic!("{:?}", repair.steps) };
    assert_eq!(Some(&step.after.as_ref().unwrap().body), applied.manifest.as_ref(), "as it was applied");
    assert_eq!(
        (running(&plan), waiting(&plan)),
        (vec!["acme/orders".to_owned()], vec!["acme/orders".into()])
    );
    let recorded = lab.recorded.resources[&key(ORDERS)].clone();
    lab.execute(&plan);
    assert_eq!(lab.recorded.resources[&key(ORDERS)], recorded, "nothing else was applied");

    // The change still waits, and is made after approval.
    let plan = lab.plan();
    assert_eq!((running(&plan), self::repair(&plan)), (vec![], None));
    lab.approve(&plan.fleets[0].guard.as_ref().unwrap().id.clone());
    lab.settle();
    let kafka = lab.target().objects[&kafka()].manifest.as_ref().unwrap().value();
    assert_eq!(kafka["spec"]["kafka"]["config"]["rendering"], json!(2));
}

#[test]
fn a_change_that_is_made_now_takes_what_drifted_along() {
    let mut lab = waits_for_approval();
    lab.target().objects.remove(&object("NetworkPolicy", "orders", "deny"));
    let plan = lab.plan();
    assert_eq!(repaired(&plan), ["create NetworkPolicy kafka-acme--orders/deny"]);
    lab.approve(&plan.fleets[0].guard.as_ref().unwrap().id.clone());
    let plan = lab.plan();
    assert_eq!((repair(&plan), running(&plan)), (None, vec!["acme/orders".to_owned()]));
    assert_eq!(change(&plan, ORDERS).steps.len(), 2);
}

#[test]
fn no_approval_ends_for_what_is_about_to_be_put_back() {
    let mut lab = waits_for_approval();
    lab.approve(&lab.plan().fleets[0].guard.as_ref().unwrap().id.clone());
    lab.target().objects.remove(&object("NetworkPolicy", "orders", "deny"));
    let plan = lab.plan();
    assert_eq!((repaired(&plan).len(), &plan.fleets[0].void_approvals), (1, &vec![]));
    lab.execute(&plan);
    assert_eq!(running(&lab.plan()), ["acme/orders"]);
}

/// One cluster restarts, and the change of the other waits for its turn.
fn waits_for_its_turn() -> Lab {
    let mut lab = Lab::with(&["orders", "payments"]);
    lab.judged("payments", Status::Updating);
    lab.judged("orders", Status::Healthy);
    lab
}

#[test]
fn what_disrupts_nothing_is_put_back_while_another_cluster_restarts() {
    let mut lab = waits_for_its_turn();
    lab.cluster("orders", json!({"advanced_config.config": {"num.partitions": 3}}));
    assert!(matches!(change(&lab.plan(), ORDERS).waiting.as_slice(), [Waiting::OneDisruption { .. }]));
    lab.target().objects.remove(&object("NetworkPolicy", "orders", "deny"));
    edit(&mut lab, &kafka(), "/spec/kafka/config/rendering", json!(7));
    let plan = lab.plan();
    assert_eq!(repaired(&plan), ["create NetworkPolicy kafka-acme--orders/deny"]);
    // A repair that restarts brokers waits for its turn and is made with the change.
    lab.judged("payments", Status::Healthy);
    let plan = lab.plan();
    assert_eq!((repair(&plan), change(&plan, ORDERS).steps.len()), (None, 2));
}

#[test]
fn of_what_drifted_only_that_waits_for_its_turn_which_disrupts() {
    let mut lab = waits_for_its_turn();
    lab.target().objects.remove(&object("NetworkPolicy", "orders", "deny"));
    edit(&mut lab, &kafka(), "/spec/kafka/config/rendering", json!(7));
    let plan = lab.plan();
    let orders = change(&plan, ORDERS);
    assert!(matches!(orders.cause, Cause::Drift { .. }) && !orders.waiting.is_empty(), "{orders:?}");
    assert_eq!(repaired(&plan), ["create NetworkPolicy kafka-acme--orders/deny"]);
    lab.execute(&plan);
    assert_eq!(repair(&lab.plan()), None);
}

#[test]
fn what_disrupts_is_put_back_in_its_turn_while_a_change_waits_for_a_person() {
    let mut lab = waits_for_approval();
    edit(&mut lab, &object("KafkaNodePool", "orders", "broker"), "/spec/resources/requests/cpu", json!("1"));
    lab.judged("orders", Status::Healthy);
    let plan = lab.plan();
    assert_eq!(repaired(&plan), ["update KafkaNodePool kafka-acme--orders/broker"]);
    let repair = repair(&plan).unwrap();
    assert_eq!(repair.verdict, Verdict::RollingRestart);
    assert_eq!(repair.cause, Cause::Drift { by: Some("kubectl-edit".into()) });
    lab.cluster("payments", json!({}));
    lab.execute(&lab.plan());
    lab.judged("payments", Status::Updating);
    assert_eq!(repaired(&lab.plan()), [""; 0]);
}

#[test]
fn what_is_held_is_put_back_and_what_is_suspended_is_not() {
    let over = Hold::OverCapacity {
        limited_by: key("Fleet/acme/eu"),
        what: "max_kafka_units".into(),
        used: 1,
        wanted: 1,
        limit: 1,
    };
    let suspended = Hold::Suspended { by: key(ORDERS) };
    for (hold, expected) in [(over, 1), (Hold::Invalid { problems: 1 }, 1), (suspended, 0)] {
        let mut lab = Lab::with(&["orders"]);
        lab.hold(ORDERS, hold.clone());
        assert_eq!(repair(&lab.plan()), None);
        lab.target().objects.remove(&kafka());
        assert_eq!(repaired(&lab.plan()).len(), expected, "{hold:?}");
    }
}

#[test]
fn a_mistake_in_the_document_of_a_suspended_cluster_has_nothing_put_back() {
    let mut lab = Lab::with(&["orders"]);
    lab.recorded.resources.get_mut(&key(ORDERS)).unwrap().durable.suspended = true;
    lab.hold(ORDERS, Hold::Invalid { problems: 1 });
    lab.target().objects.remove(&kafka());
    assert_eq!(repaired(&lab.plan()), [""; 0]);
}

#[test]
fn a_cluster_whose_deletion_waits_is_put_back_and_stays() {
    let mut lab = Lab::with(&["orders"]);
    lab.remove(ORDERS);
    assert_eq!(change(&lab.plan(), ORDERS).waiting, [Waiting::Protected]);
    lab.target().objects.remove(&kafka());
    let plan = lab.plan();
    assert_eq!(repaired(&plan), ["create Kafka kafka-acme--orders/orders"]);
    lab.execute(&plan);
    assert!(lab.recorded.resources.contains_key(&key(ORDERS)));
    assert_eq!(repair(&lab.plan()), None);

    // A cluster that is being deleted isn't restored.
    lab.target().objects.remove(&kafka());
    lab.recorded.resources.get_mut(&key(ORDERS)).unwrap().durable.deleting = true;
    assert_eq!(repair(&lab.plan()), None);
}

/// The same plan records the suspicion, and a repair must not overwrite that.
#[test]
fn a_repair_records_what_the_plan_found_out() {
    let mut lab = Lab::with(&["orders"]);
    lab.remove(ORDERS);
    lab.absences.insert(key(ORDERS), Absence::Suspicious { why: "its file was emptied".into() });
    lab.target().objects.remove(&kafka());
    let plan = lab.plan();
    let record = repair(&plan).unwrap().record.unwrap();
    assert_eq!(record.durable.suspicion.as_deref(), Some("its file was emptied"));
    lab.execute(&plan);
    assert_eq!(lab.recorded.resources[&key(ORDERS)], record);
}

#[test]
fn with_approve_every_plan_waits_and_with_plan_only_nothing_is_put_back() {
    for mode in [Mode::Approve, Mode::PlanOnly] {
        let mut lab = waits_for_approval();
        lab.policy.mode = mode;
        lab.target().objects.remove(&kafka());
        let plan = lab.plan();
        assert_eq!((repair(&plan), running(&plan)), (None, vec![]));
        assert_eq!(change(&plan, ORDERS).steps.len(), 1);
    }
}

#[test]
fn what_nobody_knows_any_more_waits_and_the_plan_says_so() {
    let mut lab = waits_for_approval();
    lab.target().objects.remove(&kafka());
    lab.target().objects.remove(&object("NetworkPolicy", "orders", "deny"));
    let forget = |known: &mut RecordedObject| known.manifest = None;
    lab.target().inventory.values_mut().for_each(forget);
    let recorded = lab.recorded.fleets.get_mut(&fleet_key()).unwrap();
    recorded.objects.values_mut().for_each(forget);
    let plan = lab.plan();
    // The spec is the same as what was applied.
    assert_eq!(repaired(&plan), ["create NetworkPolicy kafka-acme--orders/deny"]);
    let told = "Kafka kafka-acme--orders/orders differs from what was applied, and what was applied last is unknown, so \
                its repair waits too";
    let effects = &change(&plan, ORDERS).effects;
    assert!(effects.iter().any(|effect| effect == told), "{effects:?}");
}

#[test]
fn a_secret_that_is_another_one_by_now_waits_with_the_change() {
    let mut lab = Lab::with(&["orders", "payments"]);
    lab.domain("hmac:0011223344556677");
    lab.settle();
    lab.domain("hmac:8899aabbccddeeff");
    lab.chain = "another cert".into();
    lab.judged("payments", Status::Updating);
    lab.judged("orders", Status::Healthy);
    let secret = object("Secret", "orders", "tls");
    lab.target().objects.remove(&secret);
    lab.target().objects.remove(&kafka());
    let plan = lab.plan();
    assert_eq!(repaired(&plan), ["create Kafka kafka-acme--orders/orders"]);
    let told = "Secret kafka-acme--orders/tls differs from what was applied, and its secret is no longer available, so its \
                repair waits too";
    let effects = &change(&plan, ORDERS).effects;
    assert!(effects.iter().any(|effect| effect == told), "{effects:?}");
}

#[test]
fn what_a_person_has_to_decide_stays_with_the_change() {
    let pool = object("KafkaNodePool", "orders", "broker");
    for (pointer, value) in [
        ("/spec/storage/volumes/0/size", json!("900Gi")),
        ("/spec/replicas", json!(9)),
        ("/spec/roles", json!(["controller"])),
    ] {
        let mut lab = waits_for_approval();
        edit(&mut lab, &pool, pointer, value);
        assert_eq!(repaired(&lab.plan()), [""; 0], "{pointer}");
    }
    // A manual setting that keeps disks from being deleted is respected.
    let mut lab = Lab::new();
    lab.cluster("orders", json!({"advanced_config.storage": {"on_delete": "Delete"}}));
    lab.settle();
    (lab.rendering, lab.policy.software) = (2, "0.2.0".into());
    edit(&mut lab, &pool, "/spec/storage/volumes/0/deleteClaim", json!(false));
    assert_eq!(repaired(&lab.plan()), [""; 0]);
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let mut lab = waits_for_approval();
    let policy = object("NetworkPolicy", "orders", "deny");
    let there = lab.target().objects.get_mut(&policy).unwrap();
    (there.ours, there.unchanged) = (false, false);
    assert_eq!(repair(&lab.plan()), None);
}

#[test]
fn no_cluster_is_made_over_disks_that_were_kept_without_a_person() {
    let disks = || ["data-0-orders-broker-0".to_owned()].into();
    let mut lab = waits_for_approval();
    lab.infra_type = "byok";
    for gone in [
        kafka(),
        object("KafkaNodePool", "orders", "broker"),
        object("KafkaNodePool", "orders", "controller"),
    ] {
        lab.target().objects.remove(&gone);
    }
    lab.target().objects.remove(&object("NetworkPolicy", "orders", "deny"));
    lab.target().kept.insert(key(ORDERS), disks());
    assert_eq!(repaired(&lab.plan()), ["create NetworkPolicy kafka-acme--orders/deny"]);
}

/// The pools have the id of the cluster, so nothing is lost.
#[test]
fn a_kafka_that_is_gone_while_its_pools_are_there_is_put_back_at_once() {
    let mut lab = Lab::with(&["orders"]);
    lab.target().objects.remove(&kafka());
    let plan = lab.plan();
    let orders = change(&plan, ORDERS);
    assert_eq!((orders.waiting.as_slice(), orders.guarded), (&[][..], false));
    assert_eq!(orders.remarks, [Remark::NewAuthorities { is_seen: false }]);
    insta::assert_snapshot!(lab.look());
    // Nothing is known about a cluster whose creation was never completed.
    lab.recorded.resources.get_mut(&key(ORDERS)).unwrap().durable.creating = true;
    assert!(!change(&lab.plan(), ORDERS).remarks.contains(&Remark::NewAuthorities { is_seen: false }));
}
