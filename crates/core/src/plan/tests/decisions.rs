use serde_json::json;

use super::*;
use crate::catalog::{Condition, LastGood, RecordedResource};
use crate::plan::{Audience, Cause, Verdict, Waiting, display};

#[test]
fn a_new_cluster_says_what_it_is_made_of() {
    let mut lab = Lab::with(&[]);
    lab.cluster("orders", json!({"kafka_units": 2}));
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!((orders.verb, orders.verdict, &orders.cause), (Verb::Create, Verdict::InPlace, &Cause::Spec));
    assert_eq!(orders.effects, ["creates a cluster of 6 brokers and 3 controllers"]);
    let kinds: Vec<&str> = orders.steps.iter().map(|step| step.object.kind.as_str()).collect();
    assert_eq!(kinds, ["Namespace", "NetworkPolicy", "Kafka", "KafkaNodePool", "KafkaNodePool"]);
    assert_eq!((plan.exit_code(), plan.summary.create, plan.summary.unchanged), (2, 1, 2));
}

#[test]
fn a_record_keeps_its_birth_and_what_cannot_change() {
    let mut lab = Lab::with(&["orders"]);
    let record =
        |lab: &Lab| -> RecordedResource { lab.recorded.resources[&key("Cluster/acme/orders")].clone() };
    let born = record(&lab);
    assert_eq!(born.durable.created_at, at(12));
    let immutable: Vec<&str> = born.durable.immutable.keys().map(String::as_str).collect();
    let expected = [
        "/advanced_config/profile",
        "/advanced_config/storage/class",
        "/cluster_type",
        "/infrastructure",
        "/tenancy_mode",
    ];
    assert_eq!(immutable, expected);
    lab.cluster("orders", json!({"kafka_units": 2}));
    let now = lab.policy.now;
    lab.settle();
    let grown = record(&lab);
    assert_eq!(
        (grown.durable.id, grown.durable.created_at, grown.cached.updated_at),
        (born.durable.id, born.durable.created_at, now)
    );
    assert_eq!(grown.durable.immutable, born.durable.immutable);
}

#[test]
fn a_document_that_moves_is_remembered_and_not_shown() {
    let mut lab = Lab::with(&["orders"]);
    lab.resources.get_mut(&key("Cluster/acme/orders")).unwrap().origin.line = 7;
    let plan = lab.plan();
    assert!(plan.is_empty());
    assert_eq!(plan.remember.len(), 1);
}

#[test]
fn a_field_that_a_new_version_adds_is_no_edit() {
    let mut lab = Lab::with(&["orders"]);
    let record = lab.recorded.resources.get_mut(&key("Cluster/acme/orders")).unwrap();
    let good = record.cached.last_good.as_ref().unwrap();
    let (mut spec, origin) = (good.spec().clone(), good.origin.clone());
    spec.edit(|spec| drop(spec.as_object_mut().unwrap().remove("suspend")));
    record.cached.last_good = Some(LastGood::new(spec, origin));
    assert!(lab.plan().is_empty());
}

#[test]
fn what_was_deleted_by_hand_is_put_back() {
    let mut lab = Lab::with(&["orders"]);
    lab.target().objects.remove(&object("NetworkPolicy", "orders", "deny"));
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!((orders.verb, &orders.cause), (Verb::Update, &Cause::Drift { by: None }));
    assert_eq!(orders.effects, ["restores what was deleted from the target"]);
    assert_eq!((orders.steps.len(), orders.steps[0].verb), (1, Verb::Create));
}

#[test]
fn drift_names_who_caused_it() {
    let mut lab = Lab::with(&["orders"]);
    let pool = lab.target().objects.get_mut(&object("KafkaNodePool", "orders", "broker")).unwrap();
    pool.unchanged = false;
    pool.changed_by = Some("kubectl".into());
    pool.manifest.as_mut().unwrap().edit(|pool| pool["spec"]["replicas"] = json!(2));
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!(orders.cause, Cause::Drift { by: Some("kubectl".into()) });
    assert_eq!(orders.effects, ["adds 1 broker and rebalances; clients keep their connections"]);
}

#[test]
fn a_changed_reference_stays_the_cause_until_all_have_it() {
    let mut lab = Lab::with(&["a", "b"]);
    lab.domain("hmac:0011223344556677");
    lab.settle();
    lab.domain("hmac:8899aabbccddeeff");
    let because = Cause::Reference { to: key("BaseDomain/acme/k.example.com") };
    let plan = lab.plan();
    for name in ["a", "b"] {
        let change = change(&plan, &format!("Cluster/acme/{name}"));
        assert_eq!((&change.cause, change.verdict), (&because, Verdict::RollingRestart));
    }
    lab.execute(&plan);
    let plan = lab.plan();
    assert_eq!(change(&plan, "Cluster/acme/b").cause, because);
    assert_eq!(running(&plan), ["acme/b"], "the domain itself is done");
    lab.execute(&plan);
    assert!(lab.plan().is_empty());
}

#[test]
fn brokers_are_never_removed_and_the_problem_shows_the_line() {
    let mut lab = Lab::new();
    lab.cluster("orders", json!({"kafka_units": 2}));
    lab.settle();
    lab.cluster("orders", json!({"kafka_units": 1}));
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!(orders.verdict, Verdict::Refused);
    assert!(matches!(orders.waiting.as_slice(), [Waiting::Refused { .. }]));
    let [problem] = plan.problems.as_slice() else { panic!("{:?}", plan.problems) };
    assert_eq!(problem.location.as_ref().unwrap().origin().to_string(), "acme/clusters/orders.yaml:8");
    let text = format!("{}: {}\n{}", problem.code, problem.message, problem.hint.as_deref().unwrap());
    insta::assert_snapshot!(text, @r#"
    brokers-removed: cluster acme/orders can't be changed this way: KafkaNodePool kafka-acme--orders/broker would shrink from 6 to 3 brokers, and the removed ones may hold the only copies of data
    restore `kafka_units`, or confirm the change with `advanced_config.scale_down_to`, for at most half of the brokers at a time
    "#);
    assert_eq!(plan.exit_code(), 1);
}

#[test]
fn a_refusal_shows_its_own_field_and_not_another_that_changed() {
    let spec = |units: u32, gib: u32, protected: bool| json!({"kafka_units": units, "advanced_config.storage": {"size_gib": gib}, "deletion_protection": protected});
    for (units, gib, shown) in [
        (1, 200, "brokers-removed acme/clusters/orders.yaml:8"),
        // The size has no line here.
        (2, 100, "storage-shrunk acme/clusters/orders.yaml:1"),
    ] {
        let mut lab = Lab::new();
        lab.cluster("orders", spec(2, 200, true));
        lab.settle();
        lab.cluster("orders", spec(units, gib, false));
        let plan = lab.plan();
        let [problem, ..] = plan.problems.as_slice() else { panic!("nothing is refused") };
        assert_eq!(format!("{} {}", problem.code, problem.location.as_ref().unwrap().origin()), shown);
    }
}

#[test]
fn brokers_are_removed_where_the_spec_confirms_it_one_cluster_at_a_time() {
    let mut lab = Lab::new();
    ["a", "b"].iter().for_each(|name| lab.cluster(name, json!({"kafka_units": 2})));
    lab.settle();
    let fewer = json!({"kafka_units": 1, "advanced_config.scale_down_to": 1});
    ["a", "b"].iter().for_each(|name| lab.cluster(name, fewer.clone()));
    let plan = lab.plan();
    assert_eq!(change(&plan, "Cluster/acme/a").verdict, Verdict::BrokerRemoval);
    assert_eq!(running(&plan), ["acme/a"]);
    assert_eq!(
        change(&plan, "Cluster/acme/b").waiting,
        [Waiting::OneDisruption { after: key("Cluster/acme/a") }]
    );
    lab.settle();
    // The confirmation is still in the spec, but doesn't cover brokers that somebody adds by hand.
    let pool = lab.target().objects.get_mut(&object("KafkaNodePool", "a", "broker")).unwrap();
    pool.unchanged = false;
    pool.manifest.as_mut().unwrap().edit(|pool| pool["spec"]["replicas"] = json!(5));
    assert_eq!(change(&lab.plan(), "Cluster/acme/a").verdict, Verdict::Refused);
    // Nor does it cover other edits.
    let mut edited = fewer;
    edited["tags"] = json!([{"key": "team", "value": "checkout"}]);
    lab.cluster("a", edited);
    assert_eq!(change(&lab.plan(), "Cluster/acme/a").verdict, Verdict::Refused);
}

#[test]
fn brokers_go_only_from_a_cluster_that_is_healthy() {
    let mut lab = Lab::new();
    lab.cluster("a", json!({"kafka_units": 4}));
    lab.settle();
    lab.cluster("a", json!({"kafka_units": 2, "advanced_config.scale_down_to": 2}));
    for status in [Status::Updating, Status::Degraded] {
        lab.judged("a", status);
        assert_eq!(change(&lab.plan(), "Cluster/acme/a").waiting, [Waiting::Unsettled]);
    }
    lab.judged("a", Status::Healthy);
    assert_eq!(running(&lab.plan()), ["acme/a"]);
}

#[test]
fn brokers_that_somebody_added_by_hand_are_not_removed() {
    let mut lab = Lab::with(&["orders"]);
    let pool = lab.target().objects.get_mut(&object("KafkaNodePool", "orders", "broker")).unwrap();
    pool.unchanged = false;
    pool.manifest.as_mut().unwrap().edit(|pool| pool["spec"]["replicas"] = json!(5));
    let plan = lab.plan();
    assert_eq!(change(&plan, "Cluster/acme/orders").verdict, Verdict::Refused);
    assert_eq!(
        plan.problems[0].hint.as_deref(),
        Some("the target was changed by hand: change it back there, or set the same in the spec")
    );
}

#[test]
fn a_fleet_that_cannot_be_reached_is_planned_from_memory_and_waits() {
    let mut lab = Lab::with(&["orders"]);
    lab.cluster("orders", json!({"kafka_units": 2}));
    let reason = "connection refused".to_owned();
    lab.target().reach = Reach::Unreachable {
        reason: reason.clone(),
        hint: String::new(),
        refused: false,
        lost: true,
        concealed: false,
        last_seen: Some(at(9)),
    };
    lab.target().inventory.clear();
    lab.target().objects.clear();
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!(
        orders.waiting,
        [Waiting::Unreachable { reason, hint: String::new(), refused: false, lost: true, concealed: false }]
    );
    let [step] = orders.steps.as_slice() else { panic!("{:?}", orders.steps) };
    assert_eq!(step.before.as_ref().unwrap().value()["spec"]["replicas"], json!(3));
}

#[test]
fn why_a_fleet_cannot_be_reached_is_said_once_for_all_its_clusters() {
    let mut lab = Lab::with(&["orders", "payments"]);
    lab.cluster("orders", json!({"kafka_units": 2}));
    lab.cluster("payments", json!({"kafka_units": 2}));
    lab.target().reach = Reach::Unreachable {
        reason: "connection refused".to_owned(),
        hint: String::new(),
        refused: false,
        lost: true,
        concealed: false,
        last_seen: Some(at(9)),
    };
    lab.target().inventory.clear();
    lab.target().objects.clear();
    let plan = lab.plan();
    let text = display(&plan, Audience { color: false, width: 100, tree: "specs" });
    assert_eq!(text.matches("connection refused").count(), 1, "{text}");
    assert!(text.contains("\n  ! the target can't be reached: connection refused\n"), "{text}");
    assert_eq!(text.matches("waiting: fleet acme/eu can't be reached").count(), 2, "{text}");
}

#[test]
fn a_fleet_without_a_target_says_so() {
    let mut lab = Lab::new();
    lab.observed.fleets.clear();
    lab.set(
        "Fleet/acme/eu",
        json!({"organization": "acme", "identifier": "eu", "infra_type": "byok",
            "tenancy_mode": "Shared", "max_tenants": 1, "max_kafka_units": 1}),
    );
    let plan = lab.plan();
    let reason = "no valid spec describes its target".to_owned();
    assert_eq!(
        change(&plan, "Fleet/acme/eu").waiting,
        [Waiting::Unreachable { reason, hint: String::new(), refused: false, lost: false, concealed: false }]
    );
}

#[test]
fn a_secret_that_cannot_be_opened_here_holds_only_what_would_write_it() {
    let mut lab = Lab::with(&["orders"]);
    lab.domain("hmac:0011223344556677");
    let domain = lab.resources.get_mut(&key("BaseDomain/acme/k.example.com")).unwrap();
    domain.secrets.get_mut("tls_key").unwrap().unavailable = Some("no identity here opens it".into());
    let plan = lab.plan();
    let expected = Waiting::SecretUnavailable {
        secret: "`tls_key` of base domain acme/k.example.com".into(),
        reason: "no identity here opens it".into(),
    };
    assert_eq!(change(&plan, "Cluster/acme/orders").waiting, [expected]);
    assert_eq!(running(&plan), ["acme/k.example.com", "acme/eu"]);
}

#[test]
fn a_suspended_cluster_is_always_mentioned_and_never_touched() {
    let mut lab = Lab::with(&["orders"]);
    let by = key("Cluster/acme/orders");
    lab.hold("Cluster/acme/orders", Hold::Suspended { by: by.clone() });
    lab.target().objects.clear();
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!((orders.verb, orders.steps.len()), (Verb::Keep, 0));
    assert_eq!(orders.waiting, [Waiting::Held(Hold::Suspended { by })]);
    assert_eq!(plan.exit_code(), 3);
}

#[test]
fn an_object_of_another_api_version_is_the_same_object() {
    let mut lab = Lab::with(&["orders"]);
    let new = object("Kafka", "orders", "orders");
    let old = ObjectKey { api_version: "kafka.strimzi.io/v1beta2".into(), ..new.clone() };
    lab.recorded.fleets.clear();
    let target = lab.target();
    let (known, there) = (target.inventory.remove(&new).unwrap(), target.objects.remove(&new).unwrap());
    target.inventory.insert(old.clone(), known);
    target.objects.insert(old, there);
    assert!(lab.plan().is_empty());
}

#[test]
fn objects_of_owners_that_nobody_knows_are_left_alone() {
    let mut lab = Lab::with(&["orders"]);
    lab.recorded.resources.remove(&key("Cluster/acme/orders"));
    lab.remove("Cluster/acme/orders");
    assert!(lab.plan().is_empty());
}

#[test]
fn a_plan_is_json_with_a_schema_that_it_fits() {
    let mut lab = Lab::with(&["a", "b", "c"]);
    lab.domain("hmac:0011223344556677");
    lab.unprotected("a");
    lab.cluster("b", json!({"kafka_units": 3}));
    lab.remove("Cluster/acme/c");
    let mut plan = lab.plan();
    plan.fleets[0].conditions.push(Condition {
        kind: "OverCommitted".into(),
        degraded: true,
        message: "more is in use than the limit".into(),
    });
    assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
    let required = &crate::plan::schema()["required"];
    let value: Value = serde_json::from_str(&plan.to_json()).unwrap();
    for name in required.as_array().unwrap() {
        assert!(value.get(name.as_str().unwrap()).is_some(), "{name}");
    }
}

#[test]
fn a_text_that_is_no_plan_says_what_to_do() {
    let message = |text: &str| Plan::from_json(text).unwrap_err().to_string();
    assert_eq!(
        message("{}"),
        "this is not a plan of streamfleet; make one with `streamfleet plan --out FILE`"
    );
    assert_eq!(
        message("{\"format\": 7}"),
        "the plan has format 7, and this version reads format 1; make the plan again"
    );
}

#[test]
fn the_health_of_what_was_applied_is_unknown_until_it_is_observed() {
    use crate::plan::Index;
    use crate::record::{Audience, StandingInputs};

    for (infra_type, expected, reason) in [
        ("byok", Status::Pending, Some("applied; its health has not been observed yet")),
        ("directory", Status::Written, Some(crate::record::WRITTEN)),
    ] {
        let mut lab = Lab { infra_type, ..Lab::new() };
        lab.fleet("us", &["orders"]);
        lab.settle();
        // An earlier plan is still being carried out there.
        let since = lab.policy.now;
        lab.observed.fleets.insert(fleet_of("us"), ObservedFleet::unknown(Reach::UnderWay { since }));
        let (catalog, plan) = (lab.catalog(), lab.plan());
        let inputs = StandingInputs {
            catalog: &catalog,
            recorded: &lab.recorded,
            plan: &plan,
            index: &Index::of(&plan),
            judged: None,
            unplanned: None,
            audience: Audience::Host,
        };
        let standing = inputs.standing(&key("Cluster/acme/orders"));
        assert_eq!((standing.status, standing.reason.as_deref()), (expected, reason));
        let organization = inputs.standing(&key("Organization/acme/acme"));
        assert_eq!(organization.status, Status::Healthy, "it has no health to observe");
    }
}
