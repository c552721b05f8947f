//! Unreadable objects: what was applied last decides what they may become, or else a person does.

use super::*;
use crate::plan::{Cause, Remark, Verdict, Waiting};

const ORDERS: &str = "Cluster/acme/orders";

fn large() -> Lab {
    let mut lab = Lab::new();
    disks(&mut lab, 200);
    lab.settle();
    lab
}

fn disks(lab: &mut Lab, gib: u32) {
    lab.cluster("orders", json!({"advanced_config.storage": {"size_gib": gib}}));
}

/// Overwrites an object's file with something that is no manifest.
fn scribble(lab: &mut Lab, object: &ObjectKey) {
    let there = lab.target().objects.get_mut(object).unwrap();
    (there.uid, there.unchanged, there.manifest) = ("scribbled".into(), false, None);
}

/// Loses this host's memory, and with it all applied manifests.
fn forget(lab: &mut Lab) {
    lab.recorded.fleets.clear();
    lab.target().inventory.values_mut().for_each(|known| known.manifest = None);
}

fn brokers() -> ObjectKey {
    object("KafkaNodePool", "orders", "broker")
}

#[test]
fn a_pool_that_cannot_be_read_is_judged_by_what_was_applied() {
    let mut lab = large();
    scribble(&mut lab, &brokers());
    // Writing it again unchanged needs no approval, even if only the target remembers what was applied.
    for lost in [false, true] {
        if lost {
            forget(&mut lab);
        }
        let plan = lab.plan();
        let orders = change(&plan, ORDERS);
        assert!(matches!(orders.cause, Cause::Drift { .. }));
        assert_eq!(
            (orders.verdict, running(&plan)),
            (Verdict::RollingRestart, vec!["acme/orders".to_owned()])
        );
        assert_eq!(orders.remarks, [Remark::Unreadable { object: brokers(), known: true }]);
    }

    let mut lab = large();
    scribble(&mut lab, &brokers());
    disks(&mut lab, 100);
    let plan = lab.plan();
    let orders = change(&plan, ORDERS);
    let why = format!("the disks of {} would shrink from 200Gi to 100Gi, and disks only grow", brokers());
    assert!(orders.waiting.contains(&Waiting::Refused { why }), "{:?}", orders.waiting);
    assert_eq!(orders.verdict, Verdict::Refused);
}

#[test]
fn a_kafka_that_cannot_be_read_deletes_records_only_when_a_person_says_so_and_restarts_one_at_a_time() {
    let mut lab = Lab::new();
    let retention = |lab: &mut Lab, days: u64| {
        for name in ["orders", "payments"] {
            let config = json!({"log.retention.ms": days * 86_400_000});
            lab.cluster(name, json!({"advanced_config.config": config}));
        }
    };
    retention(&mut lab, 30);
    lab.settle();
    ["orders", "payments"].iter().for_each(|name| scribble(&mut lab, &object("Kafka", name, name)));
    retention(&mut lab, 1);
    let plan = lab.plan();
    assert_eq!(change(&plan, ORDERS).verdict, Verdict::DataLoss);
    // Unreadable objects are restored as they were applied, and also one after another.
    let ready: Vec<&Change> = plan.changes().filter(|change| change.is_ready()).collect();
    assert!(matches!(ready.as_slice(), [Change { repair: true, .. }]), "{ready:?}");
    lab.approve(&plan.fleets[0].guard.as_ref().unwrap().id);
    let plan = lab.plan();
    assert_eq!(running(&plan), ["acme/orders"], "it may restart brokers, too");
    assert!(!change(&plan, ORDERS).repair);
}

#[test]
fn what_nobody_knows_any_more_is_rewritten_only_when_a_person_says_so() {
    for object in [brokers(), object("Kafka", "orders", "orders")] {
        let mut lab = large();
        // Only the operator's report of the brokers' versions is left.
        lab.judged("orders", Status::Healthy);
        let target = lab.target().health.as_mut().unwrap();
        let outputs = &mut target.clusters.get_mut(&key(ORDERS)).unwrap().outputs;
        (outputs.version, outputs.metadata_version) = (Some("4.3.1".into()), Some("4.3-IV0".into()));
        scribble(&mut lab, &object);
        forget(&mut lab);
        disks(&mut lab, 100);
        lab.cluster("orders", json!({"advanced_config.config": {"num.partitions": 3}, "advanced_config.storage": {"size_gib": 100}}));
        for key in [brokers(), super::object("KafkaNodePool", "orders", "controller")] {
            if key != object {
                // Only one of them matters here.
                let after = lab.desired().fleets[&fleet_key()][&key].clone();
                let known = lab.target().inventory.get_mut(&key).unwrap();
                known.applied = after.digest();
                lab.target().objects.insert(key, there("1".into(), after.body));
            }
        }
        let plan = lab.plan();
        let orders = change(&plan, ORDERS);
        assert_eq!(orders.remarks, [Remark::Unreadable { object: object.clone(), known: false }]);
        let id = plan.fleets[0].guard.as_ref().unwrap().id.clone();
        let why = format!(
            "{object} can't be read and its earlier content is unknown, so the change may delete data"
        );
        assert_eq!(orders.waiting, [Waiting::Approval { id: id.clone(), why }]);
        lab.approve(&id);
        assert_eq!(running(&lab.plan()), ["acme/orders"]);
    }
}

#[test]
fn a_pool_that_cannot_be_read_takes_its_disks_along_if_it_was_applied_so() {
    let mut lab = Lab::new();
    let spec = json!({"deletion_protection": false, "advanced_config.storage": {"on_delete": "Delete"}});
    lab.cluster("orders", spec);
    lab.settle();
    scribble(&mut lab, &brokers());
    scribble(&mut lab, &object("KafkaNodePool", "orders", "controller"));
    lab.remove(ORDERS);
    assert_eq!(change(&lab.plan(), ORDERS).verdict, Verdict::DataLoss);
}

#[test]
fn what_cannot_be_read_is_told() {
    let mut lab = large();
    scribble(&mut lab, &brokers());
    let told = "can't be read: it is compared with what was applied last, and rewritten";
    let look = lab.look();
    assert!(look.contains(told), "{look}");
}

/// Sets the default class of a fleet's disks, with a position of its own.
fn inherit(lab: &mut Lab, class: Option<&str>) {
    let fleet = json!({"organization": "acme", "identifier": "eu", "infra_type": "directory",
        "tenancy_mode": "Shared", "max_tenants": 10, "max_kafka_units": 40,
        "advanced_config": {"storage_class": class}});
    lab.set("Fleet/acme/eu", fleet);
}

#[test]
fn disks_of_the_fleets_class_keep_it_though_no_record_of_it_is_left() {
    for (was, is) in [(Some("gp3"), Some("io2")), (Some("gp3"), None), (None, Some("io2"))] {
        let mut lab = Lab::new();
        inherit(&mut lab, was);
        lab.cluster("orders", json!({}));
        lab.settle();
        forget(&mut lab);
        lab.recorded.resources.values_mut().for_each(|record| record.cached.last_good = None);
        inherit(&mut lab, is);
        let plan = lab.plan();
        assert_eq!(change(&plan, ORDERS).verdict, Verdict::Refused);
        assert_eq!(running(&plan), [""; 0]);
        let has = was
            .map_or("the Kubernetes cluster's default class".to_owned(), |class| format!("class `{class}`"));
        let put_back = was.map_or("remove".to_owned(), |class| format!("restore `{class}` in"));
        let expected = format!(
            "cluster acme/orders has no class of its own, and its disks have {has}: {put_back} \
             `advanced_config.storage_class` of fleet acme/eu, and set another class in new clusters"
        );
        for problem in &plan.problems {
            assert_eq!((problem.code.as_str(), problem.hint.as_ref()), ("storage-changed", Some(&expected)));
        }
        assert_eq!(plan.problems.len(), 2, "one a pool");
    }
}
