//! Maintenance windows, in which disruptions begin that nobody asks for at that moment.

use super::certificate::with_and_without_chain;
use super::upgrade::{lab as followed, set, with_operator};
use super::*;
use crate::plan::{Cause, FleetPlan, Waiting};
use crate::spec::MaintenanceWindow;

const ORDERS: &str = "Cluster/acme/orders";

fn windows(value: &Value) -> Vec<MaintenanceWindow> {
    serde_json::from_value(value.clone()).unwrap()
}

/// At noon UTC on Saturday, it opens on Tuesday at one.
fn in_berlin() -> Value {
    json!([{"days": ["tue", "thu"], "from": "02:00", "hours": 4, "zone": "Europe/Berlin"}])
}

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn waits(change: &Change) -> String {
    change.waiting.iter().map(Waiting::labelled).collect::<Vec<_>>().join("; ")
}

fn following() -> Lab {
    let mut lab = followed("byok", "4.3.0", json!({"advanced_config.auto_upgrade": true}));
    lab.policy.maintenance = windows(&in_berlin());
    lab
}

fn upgrade(lab: &Lab) -> FleetPlan {
    with_operator(lab, &["4.3.0", "4.3.1"])
}

#[test]
fn a_patch_release_is_followed_in_the_window() {
    let mut lab = following();
    let plan = upgrade(&lab);
    let change = &plan.changes[0];
    insta::assert_snapshot!(waits(change), @"waiting: may begin from 2026-11-24T01:00:00Z, in the maintenance window (Tue, Thu 02:00 for 4 h, Europe/Berlin)");
    insta::assert_snapshot!(crate::plan::wait_remedy(change, &change.waiting[0], "specs").unwrap(), @"to begin now: set `version: 4.3.1` in its spec");
    lab.policy.now = moment("2026-11-24T01:00:00Z");
    assert_eq!(upgrade(&lab).changes[0].waiting, []);
    lab.policy.now = moment("2026-11-24T05:00:00Z");
    assert!(waits(&upgrade(&lab).changes[0]).contains("2026-11-26T01:00:00Z"));
}

#[test]
fn what_somebody_asks_for_begins_at_once_and_takes_the_rest_along() {
    let mut lab = following();
    set(&mut lab, "4.3.0", &json!({"advanced_config.auto_upgrade": true, "kafka_units": 2}));
    let plan = upgrade(&lab);
    assert_eq!(plan.changes[0].waiting, []);
    assert!(plan.changes[0].effects.concat().contains("4.3.0 to 4.3.1"), "{:?}", plan.changes[0].effects);
    // As does the version itself.
    let mut lab = following();
    set(&mut lab, "4.3.1", &json!({"advanced_config.auto_upgrade": true}));
    assert_eq!(upgrade(&lab).changes[0].waiting, []);
}

/// Its fleet's edit is about all of its clusters, and no wish to restart this one.
#[test]
fn an_edit_of_the_fleet_takes_no_patch_release_along() {
    let mut lab = following();
    lab.rendering += 1;
    lab.set(
        "Fleet/acme/eu",
        json!({"organization": "acme", "identifier": "eu", "infra_type": "byok", "tenancy_mode": "Shared",
            "max_tenants": 11, "max_kafka_units": 40, "advanced_config": {"kubeconfig": {"redacted": true}}}),
    );
    let plan = upgrade(&lab);
    let orders = plan.changes.iter().find(|change| change.resource == key(ORDERS)).unwrap();
    assert_eq!(orders.cause, Cause::Reference { to: key("Fleet/acme/eu") });
    assert!(waits(orders).contains("maintenance window"), "{orders:#?}");
}

#[test]
fn a_fleets_own_windows_take_the_place_of_those_of_the_settings() {
    let mut lab = following();
    let own = |lab: &mut Lab, windows: Value| {
        lab.set(
            "Fleet/acme/eu",
            json!({"organization": "acme", "identifier": "eu", "infra_type": "byok", "tenancy_mode": "Shared",
                "max_tenants": 10, "max_kafka_units": 40,
                "advanced_config": {"kubeconfig": {"redacted": true}, "maintenance": windows}}),
        );
        lab.settle();
        let plan = upgrade(lab);
        waits(plan.changes.iter().find(|change| change.resource == key(ORDERS)).unwrap())
    };
    assert!(own(&mut lab, json!([{"from": "13:00", "hours": 1}])).contains("daily 13:00 for 1 h, UTC"));
    assert_eq!(own(&mut lab, json!([])), "");
    assert!(own(&mut lab, Value::Null).contains("Europe/Berlin"));
}

#[test]
fn who_approves_every_plan_chooses_the_time() {
    let mut lab = following();
    lab.policy.mode = Mode::Approve;
    assert!(waits(&upgrade(&lab).changes[0]).starts_with("on hold for approval"));
}

/// Two clusters of a domain whose certificate, which ends on January 1, 2027, was just replaced.
fn renewed(renewal: CertificateRenewal) -> Lab {
    let [[before, _], [after, _]] = [with_and_without_chain(), with_and_without_chain()];
    let mut lab = Lab { infra_type: "byok", chain: before, ..Lab::new() };
    lab.policy.maintenance = windows(&in_berlin());
    lab.policy.certificate_renewal = renewal;
    lab.domain("hmac:0000000000000001");
    lab.cluster("a", json!({}));
    lab.cluster("b", json!({}));
    lab.settle();
    ["a", "b"].iter().for_each(|name| lab.judged(name, Status::Healthy));
    lab.chain = after;
    lab.domain("hmac:0000000000000002");
    lab
}

/// The fleet `eu` with another limit, which has nothing to do with certificates.
fn edit_fleet(lab: &mut Lab) {
    let fleet = json!({"organization": "acme", "identifier": "eu", "infra_type": "byok", "domain": "k.example.com",
        "tenancy_mode": "Shared", "max_tenants": 11, "max_kafka_units": 40,
        "advanced_config": {"kubeconfig": {"redacted": true}}});
    lab.set("Fleet/acme/eu", fleet);
}

fn clusters(plan: &Plan) -> [String; 2] {
    ["a", "b"].map(|name| waits(change(plan, &format!("Cluster/acme/{name}"))))
}

#[test]
fn a_new_certificate_waits_for_the_window_where_the_settings_say_so() {
    let one_after_another = "waiting: one disruption at a time; cluster acme/a is first".to_owned();
    assert_eq!(
        clusters(&renewed(CertificateRenewal::Auto).plan()),
        [String::new(), one_after_another.clone()]
    );

    let mut lab = renewed(CertificateRenewal::Window);
    let in_window = "waiting: may begin from 2026-11-24T01:00:00Z, in the maintenance window (Tue, Thu 02:00 for 4 h, \
                     Europe/Berlin)";
    assert_eq!(clusters(&lab.plan()), [in_window, in_window]);
    lab.policy.now = moment("2026-11-24T03:00:00Z");
    assert_eq!(clusters(&lab.plan()), [String::new(), one_after_another.clone()]);
    // Once the old one ends soon, it counts no longer; and the wait ends at that moment, not with the next window.
    lab.policy.now = moment("2026-12-17T12:00:00Z");
    lab.policy.maintenance = windows(&json!([{"days": ["sat"], "from": "02:00", "hours": 4}]));
    let soon = "waiting: may begin from 2026-12-18T00:00:00Z, 14 days before the old certificate ends; the maintenance window \
                (Sat 02:00 for 4 h, UTC) is later";
    assert_eq!(clusters(&lab.plan()), [soon, soon]);
    lab.policy.now = moment("2026-12-18T00:00:00Z");
    assert_eq!(clusters(&lab.plan()), [String::new(), one_after_another]);
}

#[test]
fn a_new_certificate_waits_for_approval_where_the_settings_say_so() {
    let mut lab = renewed(CertificateRenewal::Approve);
    let told = "on hold for approval: brokers restart for a new certificate, and `policy.certificate_renewal` of the \
                settings is `approve`";
    assert!(clusters(&lab.plan())[0].starts_with(told), "{:?}", clusters(&lab.plan()));
    lab.policy.now = moment("2026-12-18T00:00:00Z");
    assert_eq!(clusters(&lab.plan())[0], "");
}

#[test]
fn no_other_edit_takes_the_place_of_the_approval_of_a_certificate() {
    let mut lab = renewed(CertificateRenewal::Approve);
    lab.cluster("a", json!({"tags": [{"key": "team", "value": "payments"}]}));
    edit_fleet(&mut lab);
    let plan = lab.plan();
    assert!(
        clusters(&plan).iter().all(|waits| waits.starts_with("on hold for approval")),
        "{:?}",
        clusters(&plan)
    );
    // Nor does a patch release that the cluster follows.
    lab.cluster("b", json!({"advanced_config.version": "4.3.0", "advanced_config.auto_upgrade": true}));
    let mut settled = lab;
    settled.policy.certificate_renewal = CertificateRenewal::Auto;
    settled.settle();
    ["a", "b"].iter().for_each(|name| settled.judged(name, Status::Healthy));
    let [[after, _], _] = [with_and_without_chain(), with_and_without_chain()];
    settled.chain = after;
    settled.domain("hmac:0000000000000003");
    edit_fleet(&mut settled);
    settled.policy.certificate_renewal = CertificateRenewal::Approve;
    let plan = upgrade(&settled);
    let b = plan.changes.iter().find(|change| change.resource == key("Cluster/acme/b")).unwrap();
    assert!(waits(b).starts_with("on hold for approval"), "{b:#?}");
}

#[test]
fn a_new_version_of_streamfleet_lets_no_certificate_expire() {
    let mut lab = renewed(CertificateRenewal::Window);
    lab.execute(&lab.plan());
    lab.policy.software = "0.2.0".into();
    assert!(
        clusters(&lab.plan())[0].contains("the cause is streamfleet 0.2.0"),
        "{:?}",
        clusters(&lab.plan())
    );
    lab.policy.now = moment("2026-12-18T00:00:00Z");
    assert_eq!(clusters(&lab.plan())[0], "");
}

#[test]
fn a_broken_cluster_gets_another_certificate_at_once() {
    let mut lab = renewed(CertificateRenewal::Window);
    lab.judged("b", Status::Degraded);
    assert_eq!(clusters(&lab.plan())[1], "");
}
