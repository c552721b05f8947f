use std::collections::BTreeSet;

use super::preflight::{complete, planned};
use super::*;
use crate::plan::preflight::PreflightFacts;
use crate::plan::{Cause, FleetInputs, FleetPlan, Planner, Verdict, Waiting};

const ORDERS: &str = "Cluster/acme/orders";

/// A fleet on Kubernetes or of directories, with the cluster `orders` at a version.
pub(super) fn lab(infra_type: &str, version: &str, more: Value) -> Lab {
    let mut lab = Lab::new();
    let kubeconfig = (infra_type == "byok").then(|| json!({"redacted": true}));
    lab.set(
        "Fleet/acme/eu",
        json!({"organization": "acme", "identifier": "eu", "infra_type": infra_type, "tenancy_mode": "Shared",
            "max_tenants": 10, "max_kafka_units": 40, "advanced_config": {"kubeconfig": kubeconfig}}),
    );
    set(&mut lab, version, &more);
    lab.settle();
    runs(&mut lab, Status::Healthy, version, versions::metadata_version(version));
    lab
}

pub(super) fn set(lab: &mut Lab, version: &str, more: &Value) {
    let mut changes = more.clone();
    changes["advanced_config.version"] = json!(version);
    lab.cluster("orders", changes);
}

fn runs(lab: &mut Lab, status: Status, version: &str, metadata: &str) {
    lab.judged("orders", status);
    let judgement = lab.target().health.as_mut().unwrap().clusters.get_mut(&key(ORDERS)).unwrap();
    judgement.outputs.version = Some(version.to_owned());
    judgement.outputs.metadata_version = Some(metadata.to_owned());
}

fn told(lab: &Lab) -> (String, String) {
    let kafka = &lab.observed.fleets[&fleet_key()].objects[&object("Kafka", "orders", "orders")];
    let kafka = kafka.manifest.as_ref().unwrap().value();
    let text = |field: &str| kafka["spec"]["kafka"][field].as_str().unwrap().to_owned();
    (text("version"), text("metadataVersion"))
}

fn pins(version: &str, metadata: &str) -> (String, String) {
    (version.to_owned(), metadata.to_owned())
}

fn apply(lab: &mut Lab) -> Plan {
    let plan = lab.plan();
    lab.execute(&plan);
    plan
}

#[test]
fn metadata_follows_when_all_brokers_run_the_new_version() {
    let mut lab = lab("byok", "4.2.1", json!({}));
    set(&mut lab, "4.3.1", &json!({}));
    insta::assert_snapshot!(lab.look(), @r#"
    fleet acme/eu   byok, Healthy      units 1 → 2 of 40    clusters 1 → 2 of 10
      ~ cluster orders     advanced_config.version 4.2.1 → 4.3.1             acme/clusters/orders.yaml:1
          Kafka changes from 4.2.1 to 4.3.1; brokers and controllers restart one by one, clients reconnect and continue
          then metadata 4.2-IV1 → 4.3-IV0, which can't be undone, once all brokers run 4.3.1
          ~ Kafka kafka-acme--orders/orders
                  config:
                    rendering: 1
                  metadataVersion: 4.2-IV1
            -     version: "4.2.1"
            +     version: "4.3.1"

    1 to change, 0 to create, 0 to delete, 0 waiting.    plan …
    "#);
    apply(&mut lab);
    assert_eq!(told(&lab), pins("4.3.1", "4.2-IV1"));

    for (status, version) in
        [(Status::Upgrading, "4.2.1"), (Status::Healthy, "4.2.1"), (Status::Degraded, "4.3.1")]
    {
        runs(&mut lab, status, version, "4.2-IV1");
        let plan = lab.plan();
        let waits =
            Waiting::Upgrade { version: "4.3.1".into(), from: "4.2-IV1".into(), to: "4.3-IV0".into() };
        let waiting = change(&plan, ORDERS);
        assert_eq!((waiting.verb, waiting.waiting.as_slice()), (Verb::Keep, [waits].as_slice()));
        assert!(!plan.has_work(), "{status} {version}");
    }
    insta::assert_snapshot!(lab.look(), @"
    fleet acme/eu   byok, Healthy      units 1 → 2 of 40    clusters 1 → 2 of 10
      ! cluster orders     waiting: all brokers must run Kafka 4.3.1 and be healthy first; then metadata 4.2-IV1 → 4.3-IV0, which can't be undone  acme/clusters/orders.yaml:1
      ! cluster orders is Degraded

    0 to change, 0 to create, 0 to delete, 1 waiting.    plan …
    ");

    runs(&mut lab, Status::Healthy, "4.3.1", "4.2-IV1");
    insta::assert_snapshot!(lab.look(), @r#"
    fleet acme/eu   byok, Healthy      units 1 → 2 of 40    clusters 1 → 2 of 10
      ~ cluster orders                                                       acme/clusters/orders.yaml:1
          because the upgrade to Kafka 4.3.1 continues
          Kafka's metadata version changes from 4.2-IV1 to 4.3-IV0, which can't be undone
          ~ Kafka kafka-acme--orders/orders
                kafka:
                  config:
                    rendering: 1
            -     metadataVersion: 4.2-IV1
            +     metadataVersion: 4.3-IV0
                  version: "4.3.1"

    1 to change, 0 to create, 0 to delete, 0 waiting.    plan …
    "#);
    let plan = apply(&mut lab);
    let raised = change(&plan, ORDERS);
    assert_eq!(raised.cause, Cause::Upgrade { version: "4.3.1".into(), unseen: false });
    assert_eq!((raised.verdict, raised.guarded), (Verdict::InPlace, false));
    assert_eq!(told(&lab), pins("4.3.1", "4.3-IV0"));
    assert!(lab.plan().is_empty());
}

#[test]
fn an_edit_takes_no_metadata_along() {
    let mut lab = lab("directory", "4.2.1", json!({}));
    set(&mut lab, "4.3.1", &json!({}));
    apply(&mut lab);
    assert!(change(&lab.plan(), ORDERS).guarded, "a person says when");
    set(&mut lab, "4.3.1", &json!({"tags": [{"key": "team", "value": "checkout"}]}));
    apply(&mut lab);
    assert_eq!(told(&lab), pins("4.3.1", "4.2-IV1"));
}

#[test]
fn a_lost_state_changes_nothing_of_an_upgrade() {
    let mut lab = lab("byok", "4.2.1", json!({}));
    set(&mut lab, "4.3.1", &json!({}));
    apply(&mut lab);
    runs(&mut lab, Status::Upgrading, "4.2.1", "4.2-IV1");
    lab.recorded.fleets.clear();
    lab.recorded.resources.values_mut().for_each(|record| record.cached.last_good = None);
    lab.target().inventory.values_mut().for_each(|known| known.manifest = None);
    assert!(!lab.plan().has_work());
    runs(&mut lab, Status::Healthy, "4.3.1", "4.2-IV1");
    apply(&mut lab);
    assert_eq!(told(&lab), pins("4.3.1", "4.3-IV0"));
}

#[test]
fn a_version_can_go_back_until_its_metadata_is_raised() {
    let mut lab = lab("byok", "4.2.1", json!({}));
    set(&mut lab, "4.3.1", &json!({}));
    apply(&mut lab);
    set(&mut lab, "4.2.1", &json!({}));
    apply(&mut lab);
    assert_eq!(told(&lab), pins("4.2.1", "4.2-IV1"));
    assert!(lab.plan().is_empty());

    set(&mut lab, "4.3.1", &json!({}));
    apply(&mut lab);
    runs(&mut lab, Status::Healthy, "4.3.1", "4.2-IV1");
    apply(&mut lab);
    runs(&mut lab, Status::Healthy, "4.3.1", "4.3-IV0");
    set(&mut lab, "4.2.1", &json!({}));
    insta::assert_snapshot!(lab.look(), @r#"
    fleet acme/eu   byok, Healthy      units 1 → 2 of 40    clusters 1 → 2 of 10
      ! cluster orders     refused: Kafka's metadata version would go back from 4.3-IV0 to 4.2-IV1, and it only goes forward  acme/clusters/orders.yaml:1
          advanced_config.version 4.3.1 → 4.2.1
          Kafka changes from 4.3.1 to 4.2.1; brokers and controllers restart one by one, clients reconnect and continue
          ~ Kafka kafka-acme--orders/orders
                kafka:
                  config:
                    rendering: 1
            -     metadataVersion: 4.3-IV0
            -     version: "4.3.1"
            +     metadataVersion: 4.2-IV1
            +     version: "4.2.1"

    0 to change, 0 to create, 0 to delete, 1 waiting.    plan …
    "#);
    apply(&mut lab);
    assert_eq!(told(&lab), pins("4.3.1", "4.3-IV0"));
    set(&mut lab, "4.3.0", &json!({}));
    apply(&mut lab);
    assert_eq!(told(&lab), pins("4.3.0", "4.3-IV0"));
}

/// Somebody else raised the metadata and reset the field: the versions that the operator reports count.
#[test]
fn metadata_that_was_raised_by_others_stops_a_downgrade() {
    let mut lab = lab("byok", "4.2.1", json!({}));
    set(&mut lab, "4.3.1", &json!({}));
    apply(&mut lab);
    runs(&mut lab, Status::Healthy, "4.3.1", "4.3-IV0");
    set(&mut lab, "4.2.1", &json!({}));
    let plan = lab.plan();
    assert_eq!(
        change(&plan, ORDERS).waiting,
        [Waiting::Refused {
            why: "Kafka's metadata version is 4.3-IV0, which only goes forward, and Kafka 4.2.1 reads up to 4.2-IV1"
                .into()
        }]
    );
    assert_eq!(plan.problems[0].code, "metadata-downgrade");
}

#[test]
fn other_changes_come_before_the_metadata() {
    let mut lab = lab("byok", "4.2.1", json!({}));
    set(&mut lab, "4.3.1", &json!({}));
    apply(&mut lab);
    runs(&mut lab, Status::Healthy, "4.3.1", "4.2-IV1");
    set(&mut lab, "4.3.1", &json!({"kafka_units": 2}));
    let plan = apply(&mut lab);
    let grown = change(&plan, ORDERS);
    assert_eq!(grown.cause, Cause::Spec);
    assert!(grown.effects.iter().any(|effect| effect.starts_with("then metadata 4.2-IV1 → 4.3-IV0")));
    assert_eq!(told(&lab), pins("4.3.1", "4.2-IV1"));
    apply(&mut lab);
    assert_eq!(told(&lab), pins("4.3.1", "4.3-IV0"));
}

#[test]
fn where_nothing_can_be_seen_a_person_lets_the_metadata_follow() {
    let mut lab = lab("directory", "4.2.1", json!({}));
    lab.target().health = None;
    set(&mut lab, "4.3.1", &json!({}));
    apply(&mut lab);
    assert_eq!(told(&lab), pins("4.3.1", "4.2-IV1"));
    let look = lab.look();
    let plan = apply(&mut lab);
    let id = plan.fleets[0].guard.as_ref().unwrap().id.clone();
    insta::assert_snapshot!(look.replace(&id, "ID"), @r#"
    fleet acme/eu   directory      units 1 → 2 of 40    clusters 1 → 2 of 10
      ! cluster orders     on hold for approval: streamfleet can't see whether all brokers run Kafka 4.3.1, and the metadata version can't go back  acme/clusters/orders.yaml:1
          to approve: streamfleet approve ID specs
          because the upgrade to Kafka 4.3.1 continues
          Kafka's metadata version changes from 4.2-IV1 to 4.3-IV0, which can't be undone
          ~ Kafka kafka-acme--orders/orders
                kafka:
                  config:
                    rendering: 1
            -     metadataVersion: 4.2-IV1
            +     metadataVersion: 4.3-IV0
                  version: "4.3.1"

    0 to change, 0 to create, 0 to delete, 1 waiting.    plan …
    "#);
    assert_eq!(told(&lab), pins("4.3.1", "4.2-IV1"));
    lab.approve(&id);
    apply(&mut lab);
    assert_eq!(told(&lab), pins("4.3.1", "4.3-IV0"));
    assert!(lab.plan().is_empty());
}

/// A Kubernetes cluster with an operator that supports these versions.
fn facts(versions: &[&str]) -> PreflightFacts {
    let mut facts = complete();
    for operator in facts.operators.iter_mut().flatten() {
        operator.kafka_versions = versions.iter().map(|version| (*version).to_owned()).collect();
    }
    facts
}

pub(super) fn with_operator(lab: &Lab, versions: &[&str]) -> FleetPlan {
    planned(lab, &facts(versions), |_, _| {})
}

#[test]
fn patch_releases_are_followed_as_far_as_the_operator_runs_them() {
    let follows = json!({"advanced_config.auto_upgrade": true});
    let mut lab = lab("byok", "4.3.0", follows);
    assert!(with_operator(&lab, &["4.2.1", "4.3.0"]).changes.is_empty());
    // An unknown operator gets no new version.
    assert!(planned(&lab, &PreflightFacts::default(), |_, _| {}).changes.is_empty());

    let plan = with_operator(&lab, &["4.3.0", "4.3.1"]);
    let followed = &plan.changes[0];
    assert_eq!(followed.cause, Cause::Upgrade { version: "4.3.1".into(), unseen: false });
    assert_eq!((followed.verdict, followed.guarded), (Verdict::RollingRestart, false));
    assert!(followed.waiting.is_empty());
    insta::assert_snapshot!(followed.effects.join("\n"), @"
    Kafka changes from 4.3.0 to 4.3.1; brokers and controllers restart one by one, clients reconnect and continue
    ");
    let whole = Plan { fleets: vec![plan], ..lab.plan() };
    lab.execute(&whole);
    assert_eq!(told(&lab), pins("4.3.1", "4.3-IV0"));

    // A followed patch release is kept, whatever is known of the operator later.
    for known in [["4.3.0", "4.3.1"], ["4.2.1", "4.3.0"]] {
        let plan = with_operator(&lab, &known);
        assert!(plan.changes.iter().all(|change| change.steps.is_empty()), "{plan:#?}");
    }
    assert!(lab.plan().is_empty());
}

/// Its `version` applies again: to stay, the spec has to name the running version.
#[test]
fn a_cluster_that_no_longer_follows_patch_releases_is_as_its_spec_says() {
    let mut lab = lab("byok", "4.3.0", json!({"advanced_config.auto_upgrade": true}));
    let followed = Plan { fleets: vec![with_operator(&lab, &["4.3.0", "4.3.1"])], ..lab.plan() };
    lab.execute(&followed);
    runs(&mut lab, Status::Healthy, "4.3.1", "4.3-IV0");
    set(&mut lab, "4.3.1", &json!({"advanced_config.auto_upgrade": false}));
    assert!(lab.plan().changes().all(|change| change.steps.is_empty()));
    set(&mut lab, "4.3.0", &json!({"advanced_config.auto_upgrade": false}));
    assert_eq!(apply(&mut lab).changes().next().unwrap().verdict, Verdict::RollingRestart);
    assert_eq!(told(&lab), pins("4.3.0", "4.3-IV0"));
}

#[test]
fn a_cluster_that_follows_patch_releases_goes_to_the_newest_one_of_another_release() {
    let follows = json!({"advanced_config.auto_upgrade": true});
    let known = ["4.2.1", "4.3.0", "4.3.1"];
    let mut lab = lab("byok", "4.2.1", follows.clone());
    set(&mut lab, "4.3.0", &follows);
    let step = |lab: &mut Lab| {
        let plan = Plan { fleets: vec![with_operator(lab, &known)], ..lab.plan() };
        lab.execute(&plan);
        told(lab)
    };
    assert_eq!(step(&mut lab), pins("4.3.1", "4.2-IV1"));
    runs(&mut lab, Status::Healthy, "4.3.1", "4.2-IV1");
    assert_eq!(step(&mut lab), pins("4.3.1", "4.3-IV0"));
    runs(&mut lab, Status::Healthy, "4.3.1", "4.3-IV0");
    assert!(with_operator(&lab, &known).changes.is_empty());
}

#[test]
fn one_cluster_at_a_time_follows_a_patch_release() {
    let follows = json!({"advanced_config.auto_upgrade": true});
    let mut lab = lab("byok", "4.3.0", follows.clone());
    let mut second = follows;
    second["advanced_config.version"] = json!("4.3.0");
    lab.cluster("second", second);
    lab.settle();
    let plan = with_operator(&lab, &["4.3.0", "4.3.1"]);
    let waiting: Vec<_> = plan.changes.iter().map(|change| change.waiting.as_slice()).collect();
    assert_eq!(waiting, [[].as_slice(), &[Waiting::OneDisruption { after: key(ORDERS) }]]);
}

#[test]
fn the_newest_version_that_the_operator_runs_is_told() {
    let lab = lab("byok", "4.2.1", json!({}));
    let (catalog, desired, fleet) = (lab.catalog(), lab.desired(), fleet_key());
    let (recorded, observed) = (lab.recorded.fleets.get(&fleet), lab.observed.fleets.get(&fleet));
    let desired = desired.fleets.get(&fleet);
    let site = FleetInputs { fleet: &fleet, desired, recorded, observed };
    let planner = Planner::new(&catalog, &lab.recorded, BTreeSet::new(), &lab.policy, None);
    let newer = [(key(ORDERS), "4.3.1")].into();
    let facts = facts(&["4.2.1", "4.3.1"]);
    let part = planner.index(site).compare(Some(&facts)).part(None);
    assert_eq!(*part.newer(), newer);
    assert_eq!(*planner.unchanged_fleet(&fleet, part.quiet().unwrap(), None).unwrap().newer(), newer);
    assert!(planner.fleet(&site).newer().is_empty());
}

fn unpin(lab: &mut Lab, fields: &[&str]) {
    let kafka = lab.target().objects.get_mut(&object("Kafka", "orders", "orders")).unwrap();
    kafka.unchanged = false;
    kafka.manifest.as_mut().unwrap().edit(|body| {
        let spec = body["spec"]["kafka"].as_object_mut().unwrap();
        fields.iter().for_each(|field| drop(spec.remove(*field)));
    });
}

fn forget(lab: &mut Lab) {
    lab.recorded.fleets.clear();
    lab.target().inventory.values_mut().for_each(|known| known.manifest = None);
    let judged = lab.target().health.as_mut().unwrap().clusters.get_mut(&key(ORDERS)).unwrap();
    judged.outputs = crate::component::health::Outputs::default();
}

#[test]
fn a_pin_that_is_taken_out_of_the_object_raises_no_metadata() {
    for fields in [&["metadataVersion"][..], &["version"], &["version", "metadataVersion"]] {
        let mut lab = lab("byok", "4.2.1", json!({}));
        set(&mut lab, "4.3.1", &json!({}));
        apply(&mut lab);
        runs(&mut lab, Status::Upgrading, "4.2.1", "4.2-IV1");
        unpin(&mut lab, fields);
        apply(&mut lab);
        assert_eq!(told(&lab), pins("4.3.1", "4.2-IV1"), "{fields:?} by the record");
        unpin(&mut lab, fields);
        forget(&mut lab);
        runs(&mut lab, Status::Upgrading, "4.2.1", "4.2-IV1");
        apply(&mut lab);
        assert_eq!(told(&lab), pins("4.3.1", "4.2-IV1"), "{fields:?} by the status");
    }
}

#[test]
fn where_nobody_knows_the_metadata_nothing_of_the_cluster_is_written() {
    let mut lab = lab("byok", "4.2.1", json!({}));
    set(&mut lab, "4.3.1", &json!({}));
    apply(&mut lab);
    unpin(&mut lab, &["metadataVersion"]);
    forget(&mut lab);
    let plan = lab.plan();
    let waits = Waiting::MetadataUnknown { to: "4.3-IV0".into() };
    assert_eq!(change(&plan, ORDERS).waiting, std::slice::from_ref(&waits));
    assert!(!plan.has_work());
    // Nor is it recreated over its existing disks.
    lab.target().objects.remove(&object("Kafka", "orders", "orders"));
    let plan = lab.plan();
    assert_eq!(change(&plan, ORDERS).waiting, [waits]);
    assert!(!plan.has_work());
}
