//! Nothing is deleted or disrupted by mistake: a test for each rule of planning.

use serde_json::json;

use super::*;
use crate::component;
use crate::names::Digest;
use crate::plan::{Cause, Verdict, Waiting};

fn unreadable() -> Origin {
    Origin { path: "acme/broken.yaml".parse().unwrap(), line: 3 }
}

#[test]
fn a_file_that_cannot_be_read_deletes_nothing() {
    let mut lab = Lab::with(&["orders", "payments"]);
    lab.unprotected("orders");
    lab.settle();
    lab.remove("Cluster/acme/orders");
    lab.absences.insert(key("Cluster/acme/orders"), Absence::Unknown { unreadable: unreadable() });
    lab.hold("Cluster/acme/payments", Hold::Unreadable { origin: unreadable() });
    lab.absences.insert(key("Cluster/acme/payments"), Absence::Unknown { unreadable: unreadable() });
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!((orders.verb, orders.steps.len()), (Verb::Keep, 0));
    assert_eq!(orders.waiting, [Waiting::UnreadableFile { origin: unreadable() }]);
    assert!(orders.record.is_some());
    assert_eq!(waiting(&plan), ["acme/orders", "acme/payments"]);
    // Once the file is readable again, their absence still isn't a clean removal.
    let suspicion = |plan: &Plan, name| plan.remember[&key(name)].durable.suspicion.clone();
    let why = "acme/broken.yaml:3, which can't be read, may contain it";
    assert_eq!(suspicion(&plan, "Cluster/acme/orders").as_deref(), Some(why));
    assert_eq!(suspicion(&plan, "Cluster/acme/payments").as_deref(), Some(why));
}

#[test]
fn an_invalid_spec_holds_its_objects_as_they_are() {
    let mut lab = Lab::with(&["orders"]);
    lab.hold("Cluster/acme/orders", Hold::Invalid { problems: 2 });
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!((orders.verb, orders.steps.len()), (Verb::Keep, 0));
    assert_eq!(orders.waiting, [Waiting::Held(Hold::Invalid { problems: 2 })]);
}

#[test]
fn a_suspicious_absence_is_deleted_only_when_approved() {
    let mut lab = Lab::with(&["orders"]);
    lab.unprotected("orders");
    lab.settle();
    lab.remove("Cluster/acme/orders");
    let why = "acme/clusters/orders.yaml was emptied".to_owned();
    lab.absences.insert(key("Cluster/acme/orders"), Absence::Suspicious { why: why.clone() });
    let plan = lab.plan();
    let id = plan.fleets[0].guard.as_ref().unwrap().id.clone();
    assert_eq!(change(&plan, "Cluster/acme/orders").waiting, [Waiting::Approval { id: id.clone(), why }]);
    lab.approve(&id);
    assert_eq!(running(&lab.plan()), ["acme/orders"]);
}

#[test]
fn a_rename_deletes_nothing() {
    let mut lab = Lab::with(&["orders"]);
    lab.unprotected("orders");
    lab.settle();
    lab.remove("Cluster/acme/orders");
    lab.absences.insert(key("Cluster/acme/orders"), Absence::Renamed { to: key("Cluster/acme/sales") });
    let plan = lab.plan();
    assert_eq!(change(&plan, "Cluster/acme/orders").verb, Verb::Keep);
    assert!(running(&plan).is_empty());
}

#[test]
fn protection_is_on_by_default_and_outlives_its_file() {
    let mut lab = Lab::with(&["orders"]);
    lab.remove("Cluster/acme/orders");
    assert_eq!(change(&lab.plan(), "Cluster/acme/orders").waiting, [Waiting::Protected]);
    lab.unprotected("orders");
    let plan = lab.plan();
    let off = change(&plan, "Cluster/acme/orders");
    assert_eq!((off.verb, off.verdict, off.steps.len()), (Verb::Update, Verdict::NoOp, 0));
    lab.remove("Cluster/acme/orders");
    assert_eq!(waiting(&lab.plan()), ["acme/orders"], "turning it off counts when it was applied");
    lab.unprotected("orders");
    lab.settle();
    lab.remove("Cluster/acme/orders");
    assert_eq!(running(&lab.plan()), ["acme/orders"]);
}

#[test]
fn what_is_not_ours_is_left_alone_and_reported() {
    let mut lab = Lab::new();
    lab.cluster("orders", json!({}));
    let theirs = object("Kafka", "orders", "orders");
    let foreign = ObservedObject { ours: false, ..there("x".into(), json!({}).into()) };
    lab.target().objects.insert(theirs.clone(), foreign);
    let plan = lab.plan();
    assert_eq!(plan.fleets[0].foreign, std::slice::from_ref(&theirs));
    assert_eq!(
        change(&plan, "Cluster/acme/orders").waiting,
        [Waiting::ForeignObject { object: theirs.clone() }]
    );
    assert!(plan.fleets[0].ordered_steps().next().is_none());
}

#[test]
fn what_replaced_ours_is_not_deleted_in_its_place() {
    let mut lab = Lab::with(&["orders"]);
    lab.unprotected("orders");
    lab.settle();
    lab.remove("Cluster/acme/orders");
    let replaced = object("Kafka", "orders", "orders");
    lab.target().objects.get_mut(&replaced).unwrap().ours = false;
    let plan = lab.plan();
    assert!(plan.fleets[0].ordered_steps().all(|(_, step)| step.object != replaced));
    assert_eq!(plan.fleets[0].foreign, [replaced]);
}

/// What only lies in the namespace keeps the namespace. What an operator acts on may belong to a cluster in
/// use, and the kinds that say so are the components' own.
#[test]
fn a_foreign_object_that_an_operator_acts_on_holds_up_a_deletion_whatever_its_kind() {
    let mut removed = Lab::with(&["orders"]);
    removed.unprotected("orders");
    removed.settle();
    removed.remove("Cluster/acme/orders");
    let waits_for = |lab: &Lab, object: &ObjectKey| {
        let waiting = Waiting::ForeignObject { object: object.clone() };
        change(&lab.plan(), "Cluster/acme/orders").waiting.contains(&waiting)
    };
    let known = component::kinds().map(|kind| (kind.api_version, kind.kind, kind.custom));
    for (api_version, kind, is_custom) in known.chain([("kafka.strimzi.io/v1", "KafkaConnect", true)]) {
        let theirs = ObjectKey {
            namespace: Some("kafka-acme--orders".to_owned()),
            kind: kind.to_owned(),
            name: "theirs".to_owned(),
            api_version: api_version.to_owned(),
        };
        let before = removed.target().clone();
        let known = RecordedObject {
            owner: key("Cluster/acme/orders"),
            uid: Some("theirs".to_owned()),
            applied: Digest::of("theirs"),
            manifest: None,
        };
        let foreign = ObservedObject { ours: false, ..there("theirs".to_owned(), json!({}).into()) };
        removed.target().inventory.insert(theirs.clone(), known);
        removed.target().objects.insert(theirs.clone(), foreign);
        assert_eq!(waits_for(&removed, &theirs), is_custom, "{theirs}");
        *removed.target() = before;
    }
}

#[test]
fn deletions_name_the_very_object_that_was_seen() {
    let mut lab = three_removed();
    lab.target().objects.get_mut(&object("Kafka", "a", "a")).unwrap().uid = "seen".into();
    let plan = lab.plan();
    let steps = &change(&plan, "Cluster/acme/a").steps;
    assert!(steps.iter().all(|step| step.uid.is_some()));
    assert!(steps.iter().any(|step| step.uid.as_deref() == Some("seen")));
}

#[test]
fn an_object_that_was_only_intended_is_made_and_not_taken_for_drift() {
    let mut lab = Lab::with(&["orders"]);
    let pool = object("KafkaNodePool", "orders", "broker");
    lab.target().objects.remove(&pool);
    lab.target().inventory.get_mut(&pool).unwrap().uid = None;
    let plan = lab.plan();
    assert!(!matches!(change(&plan, "Cluster/acme/orders").cause, Cause::Drift { .. }));
}

#[test]
fn what_was_moved_to_a_bucket_stays_there_and_is_told() {
    let mut lab = Lab::with(&["orders"]);
    lab.unprotected("orders");
    lab.settle();
    let kafka = lab.target().objects.get_mut(&object("Kafka", "orders", "orders")).unwrap();
    kafka.unchanged = false;
    let config = json!({"storage.s3.bucket.name": "history", "key.prefix": "acme/orders/"});
    let storage = json!({"remoteStorageManager": {"config": config}});
    kafka.manifest.as_mut().unwrap().edit(|kafka| kafka["spec"]["kafka"]["tieredStorage"] = storage);
    lab.remove("Cluster/acme/orders");
    assert_eq!(
        change(&lab.plan(), "Cluster/acme/orders").effects,
        [
            "the cluster is deleted; its namespace and disks are kept: kafka-acme--orders",
            "the older part of its log stays in bucket history, under the prefix acme/orders/; delete it there if you \
             don't need it",
        ]
    );
}

#[test]
fn disks_and_their_namespace_survive_the_cluster() {
    let mut lab = Lab::with(&["orders"]);
    lab.unprotected("orders");
    lab.settle();
    lab.remove("Cluster/acme/orders");
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!(orders.verdict, Verdict::ServiceLoss);
    assert_eq!(
        orders.effects,
        ["the cluster is deleted; its namespace and disks are kept: kafka-acme--orders"]
    );
    assert!(orders.steps.iter().all(|step| step.object.kind != "Namespace"));
    lab.execute(&plan);
    assert!(lab.target().objects.contains_key(&object("Namespace", "orders", "")));
    assert!(lab.plan().is_empty(), "what was kept is nobody's to delete later");
}

#[test]
fn data_goes_only_after_on_delete_was_applied() {
    let mut lab = Lab::with(&["orders"]);
    let storage = json!({"on_delete": "Delete"});
    lab.cluster("orders", json!({"deletion_protection": false, "advanced_config.storage": storage}));
    let plan = lab.plan();
    assert_eq!(
        change(&plan, "Cluster/acme/orders").effects,
        ["deleting the cluster now deletes its data", "it is deleted if its file is removed",]
    );
    lab.settle();
    lab.remove("Cluster/acme/orders");
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!((orders.verdict, orders.guarded), (Verdict::DataLoss, true));
    assert_eq!(orders.steps.last().unwrap().object.kind, "Namespace");
}

#[test]
fn a_pool_that_would_take_its_disks_is_said_to_lose_data_whatever_the_record_says() {
    let mut lab = Lab::with(&["orders"]);
    lab.unprotected("orders");
    lab.settle();
    let pool = lab.target().objects.get_mut(&object("KafkaNodePool", "orders", "broker")).unwrap();
    pool.unchanged = false;
    pool.manifest
        .as_mut()
        .unwrap()
        .edit(|pool| pool["spec"]["storage"]["volumes"][0]["deleteClaim"] = json!(true));
    lab.remove("Cluster/acme/orders");
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!(orders.verdict, Verdict::DataLoss);
    assert!(orders.steps.iter().all(|step| step.object.kind != "Namespace"));
}

#[test]
fn custom_resource_definitions_are_never_deleted() {
    let mut lab = three_removed();
    let crd = ObjectKey {
        namespace: None,
        kind: "CustomResourceDefinition".into(),
        name: "kafkas.kafka.strimzi.io".into(),
        api_version: "apiextensions.k8s.io/v1".into(),
    };
    let known = RecordedObject {
        owner: key("Cluster/acme/a"),
        uid: Some("1".into()),
        applied: crate::names::Digest::of("x"),
        manifest: None,
    };
    lab.target().inventory.insert(crd.clone(), known);
    lab.target().objects.insert(crd.clone(), there("1".into(), json!({}).into()));
    let plan = lab.plan();
    assert_eq!(running(&plan), ["acme/a"]);
    assert!(plan.changes().flat_map(|change| &change.steps).all(|step| step.object != crd));
}

#[test]
fn parents_wait_for_their_children() {
    let mut lab = Lab::with(&["orders"]);
    lab.unprotected("orders");
    lab.domain("hmac:0011223344556677");
    lab.settle();
    lab.remove("Cluster/acme/orders");
    for text in ["Fleet/acme/eu", "BaseDomain/acme/k.example.com", "Organization/acme/acme"] {
        lab.remove(text);
    }
    lab.recorded.resources.get_mut(&key("Fleet/acme/eu")).unwrap().durable.protected = false;
    let plan = lab.plan();
    assert_eq!(running(&plan), ["acme/orders"]);
    let count = |text: &str| match change(&plan, text).waiting.as_slice() {
        [Waiting::Children { count, .. }] => *count,
        other => panic!("{other:?}"),
    };
    assert_eq!(count("Fleet/acme/eu"), 1);
    assert_eq!(count("BaseDomain/acme/k.example.com"), 1);
    assert_eq!(count("Organization/acme/acme"), 3);
    lab.execute(&plan);
    let namespace = object("Namespace", "orders", "");
    let left = Waiting::Leftovers { count: 1, example: namespace.clone() };
    assert_eq!(change(&lab.plan(), "Fleet/acme/eu").waiting, [left]);
    lab.target().objects.remove(&namespace);
    lab.settle();
    assert!(lab.recorded.resources.is_empty());
}

#[test]
fn a_gateway_stays_as_long_as_a_cluster_is_reached_through_it() {
    let mut lab = Lab::with(&["orders", "payments"]);
    lab.exposed("tlsroute".into(), json!({"class": "envoy"}));
    lab.settle();
    let gateway: ObjectKey = GATEWAY.to_owned().try_into().unwrap();
    assert!(lab.target().objects.contains_key(&gateway));
    lab.remove("Cluster/acme/payments");
    lab.exposed("loadbalancer".into(), Value::Null);
    let waiting = |plan: &Plan| change(plan, "Fleet/acme/eu").waiting.clone();
    let stays =
        |count, example: &str| vec![Waiting::InUse { object: gateway.clone(), count, example: key(example) }];
    // Other differences of the fleet don't wait for it.
    lab.execute(&lab.plan());
    assert_eq!(
        waiting(&lab.plan()),
        stays(1, "Cluster/acme/payments"),
        "one is protected, and its document is gone"
    );
    lab.unprotected("payments");
    lab.execute(&lab.plan());
    let plan = lab.plan();
    assert_eq!(running(&plan), ["acme/eu"]);
    lab.execute(&plan);
    assert!(!lab.target().objects.contains_key(&gateway));
    lab.settle();
}

#[test]
fn a_saved_plan_knows_when_it_is_stale() {
    let mut lab = three_removed();
    let saved = lab.plan();
    lab.later(1);
    assert_eq!(saved.staleness(&lab.plan()), [""; 0], "time alone changes nothing");
    lab.judged("a", Status::Degraded);
    assert_eq!(saved.staleness(&lab.plan()), [""; 0], "nor does status");

    lab.target().objects.get_mut(&object("Kafka", "a", "a")).unwrap().uid = "other".into();
    assert_eq!(saved.staleness(&lab.plan()), ["the objects on fleet acme/eu changed: Kafka kafka-acme--a/a"]);

    let mut lab = three_removed();
    lab.cluster("new", json!({}));
    assert_eq!(saved.staleness(&lab.plan()), ["the spec tree changed: see cluster acme/new"]);

    let mut lab = three_removed();
    lab.set("Organization/globex/globex", json!({"identifier": "globex"}));
    assert_eq!(saved.staleness(&lab.plan()), ["the spec tree changed: see organization globex"]);

    let mut lab = three_removed();
    lab.policy.software = "0.2.0".into();
    lab.policy.approval_lifetime = SignedDuration::from_hours(1);
    lab.approve("unrelated");
    let expected = [
        "streamfleet 0.1.0 made the plan, and this is 0.2.0",
        "a change was applied, approved or forgotten since",
        "the settings of the installation changed",
    ];
    assert_eq!(saved.staleness(&lab.plan()), expected);
}

#[test]
fn an_approval_that_has_ended_makes_a_saved_plan_stale() {
    let mut lab = three_removed();
    let id = lab.plan().fleets[0].guard.as_ref().unwrap().id.clone();
    lab.approve(&id);
    let saved = lab.plan();
    lab.later(30);
    let expected = "time has passed or a cluster's health changed: see cluster acme/b, cluster acme/c";
    assert_eq!(saved.staleness(&lab.plan()), [expected]);
}

#[test]
fn one_cluster_of_a_fleet_is_disrupted_at_a_time() {
    let mut lab = Lab::with(&["a", "b", "c"]);
    for name in ["a", "b"] {
        lab.cluster(name, json!({"advanced_config.version": "4.3.2"}));
    }
    lab.cluster("c", json!({"kafka_units": 2}));
    let plan = lab.plan();
    assert_eq!(running(&plan), ["acme/a", "acme/c"], "what disrupts nobody isn't held up");
    assert_eq!(
        change(&plan, "Cluster/acme/b").waiting,
        [Waiting::OneDisruption { after: key("Cluster/acme/a") }]
    );
    lab.execute(&plan);
    assert_eq!(running(&lab.plan()), ["acme/b"]);
    for status in [Status::Updating, Status::Upgrading, Status::Degraded, Status::Unreachable] {
        lab.judged("a", status);
        assert_eq!(running(&lab.plan()), [""; 0], "the next one waits until the last one works again");
    }
    for status in [Status::Healthy, Status::Provisioning, Status::Failed] {
        lab.judged("a", status);
        assert_eq!(running(&lab.plan()), ["acme/b"], "nothing of the other one can be disrupted");
    }
}

#[test]
fn disks_that_grow_restart_brokers_so_they_grow_cluster_by_cluster() {
    let mut lab = Lab::with(&["a", "b"]);
    for name in ["a", "b"] {
        lab.cluster(name, json!({"advanced_config.storage": {"size_gib": 2000}}));
    }
    let plan = lab.plan();
    assert_eq!(change(&plan, "Cluster/acme/a").verdict, Verdict::StorageGrowth);
    assert_eq!(running(&plan), ["acme/a"]);
}

#[test]
fn a_cluster_that_does_not_work_is_repaired_first() {
    let mut lab = Lab::with(&["a", "b"]);
    for name in ["a", "b"] {
        lab.cluster(name, json!({"advanced_config.version": "4.3.2"}));
    }
    lab.judged("b", Status::Degraded);
    assert_eq!(running(&lab.plan()), ["acme/b"]);
    lab.judged("b", Status::Failed);
    assert_eq!(running(&lab.plan()), ["acme/a", "acme/b"], "what never worked isn't disrupted");
}

#[test]
fn a_new_version_of_the_software_disrupts_nothing_unasked() {
    let mut lab = Lab::with(&["a", "b"]);
    lab.policy.software = "0.2.0".into();
    lab.rendering = 2;
    let plan = lab.plan();
    let id = plan.fleets[0].guard.as_ref().unwrap().id.clone();
    let a = change(&plan, "Cluster/acme/a");
    assert_eq!((&a.cause, a.guarded), (&Cause::Software { version: "0.2.0".into() }, true));
    let why = "the cause is streamfleet 0.2.0, not an edit of a spec".to_owned();
    assert_eq!(a.waiting, [Waiting::Approval { id: id.clone(), why }]);
    assert_eq!(
        change(&plan, "Cluster/acme/b").waiting,
        [Waiting::OneDisruption { after: key("Cluster/acme/a") }]
    );
    lab.approve(&id);
    assert_eq!(running(&lab.plan()), ["acme/a"]);
}

#[test]
fn an_edit_is_not_held_up_by_what_the_software_would_like_to_do() {
    let mut lab = Lab::with(&["a", "b"]);
    lab.rendering = 2;
    lab.cluster("b", json!({"advanced_config.version": "4.3.2"}));
    assert_eq!(running(&lab.plan()), ["acme/b"]);
}

#[test]
fn a_lost_state_store_plans_nothing_and_is_filled_again() {
    let mut lab = Lab::with(&["orders"]);
    let whole = lab.recorded.clone();
    lab.recorded.fleets.clear();
    for record in lab.recorded.resources.values_mut() {
        record.cached.last_good = None;
        record.cached.secrets.clear();
    }
    let plan = lab.plan();
    assert!(plan.is_empty(), "{}", lab.look());
    assert_eq!((plan.exit_code(), plan.remember.len()), (0, 3));
    lab.execute(&plan);
    assert_eq!(lab.recorded.resources, whole.resources);
}
