//! A base domain's new certificate, which rolls out to one cluster after another.

use super::*;
use crate::plan::Waiting;

fn twenty() -> Vec<String> {
    (0..20).map(|number| format!("c{number:02}")).collect()
}

/// Twenty clusters of one base domain, on fleets of these sizes. The first fleet is `acme/eu`.
fn behind_one_domain(sizes: &[usize]) -> Lab {
    let names = twenty();
    let mut names = names.iter().map(String::as_str);
    let mut lab = Lab { infra_type: "byok", ..Lab::new() };
    lab.domain("hmac:0000000000000001");
    for (number, size) in sizes.iter().enumerate() {
        let clusters: Vec<&str> = names.by_ref().take(*size).collect();
        match number {
            0 => clusters.iter().for_each(|name| lab.cluster(name, json!({}))),
            _ => lab.fleet(&format!("f{number}"), &clusters),
        }
    }
    assert_eq!(names.next(), None, "all twenty are on a fleet");
    lab.settle();
    twenty().iter().for_each(|name| lab.judged(name, Status::Healthy));
    lab
}

/// Renews the certificate and follows it through all clusters. Returns their order.
fn follow_renewal(lab: &mut Lab) -> Vec<String> {
    lab.domain("hmac:0000000000000002");
    let mut order: Vec<String> = Vec::new();
    while order.len() < 20 {
        let plan = lab.plan();
        let clusters = |changes: Vec<String>| -> Vec<String> {
            changes.iter().filter_map(|it| it.strip_prefix("acme/c")).map(|it| format!("c{it}")).collect()
        };
        let [next] = <[String; 1]>::try_from(clusters(running(&plan))).expect("one at a time");
        let after = Waiting::OneDisruption { after: key(&format!("Cluster/acme/{next}")) };
        let held = clusters(waiting(&plan));
        assert_eq!(held.len(), 19 - order.len(), "the plan says of all others that they wait");
        for name in &held {
            let waits = &change(&plan, &format!("Cluster/acme/{name}")).waiting;
            let fleet_mate = waits.len() == 1 && matches!(&waits[0], Waiting::OneDisruption { .. });
            assert!(fleet_mate || *waits == [after.clone()], "{name}: {waits:?}");
        }
        lab.execute(&plan);
        // It restarts and then has some trouble; until that is over, no other cluster starts.
        for status in [Status::Updating, Status::Degraded] {
            lab.judged(&next, status);
            assert_eq!(clusters(running(&lab.plan())), [""; 0], "while {next} is {status}");
        }
        lab.judged(&next, Status::Healthy);
        order.push(next);
    }
    assert!(lab.plan().is_empty());
    order
}

/// On fleets of their own, nothing but the certificate connects the clusters.
#[test]
fn the_next_cluster_takes_the_certificate_when_the_one_before_is_reached_with_it() {
    let mut lab = behind_one_domain(&[1; 20]);
    lab.domain("hmac:0000000000000002");
    let plan = lab.plan();
    let clusters =
        |plan: &Plan| running(plan).into_iter().filter(|it| it.starts_with("acme/c")).collect::<Vec<_>>();
    assert_eq!(clusters(&plan), ["acme/c00"]);
    lab.execute(&plan);
    lab.reached("c00", false);
    let plan = lab.plan();
    assert_eq!(clusters(&plan), [""; 0]);
    let unconfirmed = Waiting::Unconfirmed { cluster: key("Cluster/acme/c00") };
    assert_eq!(change(&plan, "Cluster/acme/c01").waiting, [unconfirmed]);
    lab.reached("c00", true);
    assert_eq!(clusters(&lab.plan()), ["acme/c01"]);
}

#[test]
fn twenty_clusters_of_one_fleet_roll_one_after_another() {
    let mut lab = behind_one_domain(&[20]);
    assert_eq!(follow_renewal(&mut lab), twenty());
}

#[test]
fn twenty_clusters_of_three_fleets_roll_one_after_another() {
    let mut lab = behind_one_domain(&[8, 8, 4]);
    assert_eq!(follow_renewal(&mut lab), twenty());
}

fn told_beforehand(infra_types: [&'static str; 2]) -> String {
    let mut lab = Lab { infra_type: infra_types[1], ..Lab::new() };
    lab.domain("hmac:0000000000000001");
    lab.fleet("us", &["b", "c"]);
    lab.infra_type = infra_types[0];
    lab.domain("hmac:0000000000000001");
    lab.cluster("a", json!({}));
    lab.settle();
    lab.domain("hmac:0000000000000002");
    let plan = lab.plan();
    let lines = plan.changes().map(|change| {
        let told =
            change.effects.iter().cloned().chain(change.waiting.iter().map(|it| format!("waiting: {it}")));
        format!("{}: {}", change.resource, told.collect::<Vec<_>>().join("; "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_plan_says_beforehand_how_a_certificate_is_renewed() {
    insta::assert_snapshot!(told_beforehand(["byok", "byok"]), @r#"
    base domain acme/k.example.com: 3 clusters restart their brokers with the new certificate, one cluster after another, each when the one before is Healthy
    cluster acme/a: brokers restart one by one with the new certificate; clients reconnect and continue
    cluster acme/b: brokers restart one by one with the new certificate; clients reconnect and continue; waiting: one disruption at a time; cluster acme/a is first
    cluster acme/c: brokers restart one by one with the new certificate; clients reconnect and continue; waiting: one disruption at a time; cluster acme/b is first
    "#);
}

#[test]
fn the_plan_promises_nothing_of_what_others_apply() {
    insta::assert_snapshot!(told_beforehand(["byok", "directory"]), @r#"
    base domain acme/k.example.com: 1 cluster restarts its brokers with the new certificate; 2 clusters on directory fleets may restart at the same time: each apply writes one, and streamfleet doesn't wait for the tool that applies the files
    cluster acme/a: brokers restart one by one with the new certificate; clients reconnect and continue
    cluster acme/b: brokers restart one by one with the new certificate; clients reconnect and continue; the tool that applies the files decides when brokers restart, and streamfleet can't see whether they are healthy: the next cluster doesn't wait for this one; waiting: one disruption at a time; cluster acme/a is first
    cluster acme/c: brokers restart one by one with the new certificate; clients reconnect and continue; the tool that applies the files decides when brokers restart, and streamfleet can't see whether they are healthy: the next cluster doesn't wait for this one; waiting: one disruption at a time; cluster acme/b is first
    "#);
    insta::assert_snapshot!(told_beforehand(["directory", "directory"]), @r#"
    base domain acme/k.example.com: 3 clusters on directory fleets may restart at the same time: each apply writes one, and streamfleet doesn't wait for the tool that applies the files
    cluster acme/a: brokers restart one by one with the new certificate; clients reconnect and continue; the tool that applies the files decides when brokers restart, and streamfleet can't see whether they are healthy: the next cluster doesn't wait for this one
    cluster acme/b: brokers restart one by one with the new certificate; clients reconnect and continue; the tool that applies the files decides when brokers restart, and streamfleet can't see whether they are healthy: the next cluster doesn't wait for this one; waiting: one disruption at a time; cluster acme/a is first
    cluster acme/c: brokers restart one by one with the new certificate; clients reconnect and continue; the tool that applies the files decides when brokers restart, and streamfleet can't see whether they are healthy: the next cluster doesn't wait for this one; waiting: one disruption at a time; cluster acme/b is first
    "#);
}

#[test]
fn a_fleet_out_of_reach_holds_up_no_other_and_a_cluster_in_trouble_takes_it_at_once() {
    let mut lab = behind_one_domain(&[10, 10]);
    lab.domain("hmac:0000000000000002");
    // A Degraded cluster comes before one that works, since it can only improve.
    lab.judged("c15", Status::Degraded);
    assert_eq!(running(&lab.plan()), ["acme/k.example.com", "acme/c15"]);
    lab.judged("c15", Status::Healthy);
    lab.target().reach = Reach::Unreachable {
        reason: "no answer".into(),
        hint: String::new(),
        refused: false,
        lost: false,
        concealed: false,
        last_seen: None,
    };
    assert_eq!(running(&lab.plan()), ["acme/k.example.com", "acme/c10"]);
}

#[test]
fn clusters_in_trouble_take_a_certificate_one_after_another_and_none_while_it_makes_another_unwell() {
    let mut lab = behind_one_domain(&[10, 10]);
    lab.domain("hmac:0000000000000002");
    for status in [Status::Updating, Status::Upgrading, Status::Unreachable] {
        lab.judged("c15", status);
        assert_eq!(
            running(&lab.plan()),
            ["acme/k.example.com", "acme/c00"],
            "{status} is no reason to go first"
        );
    }
    lab.judged("c03", Status::Degraded);
    lab.judged("c15", Status::Degraded);
    let plan = lab.plan();
    assert_eq!(running(&plan), ["acme/k.example.com", "acme/c03"]);
    let waits = |plan: &Plan| change(plan, "Cluster/acme/c15").waiting.clone();
    assert_eq!(waits(&plan), [Waiting::OneDisruption { after: key("Cluster/acme/c03") }]);
    lab.execute(&plan);
    let plan = lab.plan();
    assert_eq!(running(&plan), [""; 0]);
    let (after, domain) = (key("Cluster/acme/c03"), key("BaseDomain/acme/k.example.com"));
    assert_eq!(waits(&plan), [Waiting::Renewal { after, domain }]);
}

/// Sets whether a Degraded cluster's trouble has another cause than its certificate; `None` if unknown.
fn otherwise(lab: &mut Lab, name: &str, clear: Option<bool>) {
    lab.judged(name, Status::Degraded);
    let healths = lab.observed.fleets.values_mut().filter_map(|fleet| fleet.health.as_mut());
    let cluster = key(&format!("Cluster/acme/{name}"));
    let judged = healths.filter_map(|health| health.clusters.get_mut(&cluster)).next().unwrap();
    judged.clear_certificates = clear;
}

#[test]
fn a_cluster_that_is_unwell_by_the_new_certificate_stops_the_roll_and_one_that_is_so_otherwise_does_not() {
    let mut lab = behind_one_domain(&[10, 10]);
    lab.domain("hmac:0000000000000002");
    let plan = lab.plan();
    assert_eq!(running(&plan), ["acme/k.example.com", "acme/c00"]);
    lab.execute(&plan);

    // The first one isn't Healthy with it: on both fleets all others wait for it.
    lab.judged("c00", Status::Degraded);
    let plan = lab.plan();
    assert_eq!(running(&plan), [""; 0]);
    let holder = key("Cluster/acme/c00");
    let domain = key("BaseDomain/acme/k.example.com");
    let waits = |name: &str| change(&plan, &format!("Cluster/acme/{name}")).waiting.clone();
    assert_eq!(waits("c01"), [Waiting::OneDisruption { after: holder.clone() }]);
    assert_eq!(waits("c10"), [Waiting::Renewal { after: holder, domain }]);

    // With another cause of trouble it holds up no others, and the plan says so.
    otherwise(&mut lab, "c00", Some(true));
    let plan = lab.plan();
    assert_eq!(running(&plan), ["acme/c01"]);
    assert_eq!(
        change(&plan, "Cluster/acme/c01").effects,
        [
            "brokers restart one by one with the new certificate; clients reconnect and continue",
            "it doesn't wait for cluster acme/c00, whose trouble isn't caused by the new certificate"
        ]
    );
    // Any other disruption on its fleet still waits for it.
    lab.cluster("c02", json!({"advanced_config.version": "4.3.0"}));
    lab.domain("hmac:0000000000000001");
    let plan = lab.plan();
    assert_eq!(
        change(&plan, "Cluster/acme/c02").waiting.last(),
        Some(&Waiting::OneDisruption { after: key("Cluster/acme/c00") })
    );
}

/// A certificate alone, and with the chain above it, in PEM.
pub(super) fn with_and_without_chain() -> [String; 2] {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
    let (authority_key, own_key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "authority");
    (authority.not_before, authority.not_after) = (date_time_ymd(2026, 1, 1), date_time_ymd(2036, 1, 1));
    let above = authority.self_signed(&authority_key).unwrap().pem();
    let mut own = CertificateParams::new(vec!["*.k.example.com".to_owned()]).unwrap();
    (own.not_before, own.not_after) = (date_time_ymd(2026, 1, 1), date_time_ymd(2027, 1, 1));
    let own = own.signed_by(&own_key, &Issuer::new(authority, authority_key)).unwrap().pem();
    [own.clone(), own + &above]
}

#[test]
fn a_chain_that_changes_above_the_same_certificate_restarts_nobody_and_waits_for_nobody() {
    let [short, long] = with_and_without_chain();
    let mut lab = Lab { infra_type: "byok", chain: short, ..Lab::new() };
    lab.domain("hmac:0000000000000001");
    lab.cluster("a", json!({}));
    lab.fleet("us", &["b", "c"]);
    lab.settle();
    ["a", "b", "c"].iter().for_each(|name| lab.judged(name, Status::Healthy));
    // The change restarts nothing, so a Degraded cluster doesn't have to wait.
    lab.judged("b", Status::Degraded);
    lab.chain = long;
    lab.domain("hmac:0000000000000002");
    let plan = lab.plan();
    assert_eq!(waiting(&plan), [""; 0]);
    let first = change(&plan, "Cluster/acme/a");
    assert_eq!(first.verdict, crate::plan::Verdict::InPlace);
    insta::assert_snapshot!(first.effects.join("\n"), @r"
    no broker restarts, because Strimzi compares only the domain's own certificate, which stays the same: brokers use the new chain from their next restart. If clients need it sooner, and before the old chain ends on 2027-01-01: kubectl annotate strimzipodset -n kafka-acme--a -l strimzi.io/cluster=a strimzi.io/manual-rolling-update=true
    no broker restarts: the key is the same in another encoding
    ");
    assert_eq!(change(&plan, "BaseDomain/acme/k.example.com").effects, [""; 0]);
}

#[test]
fn where_it_was_forgotten_what_ails_a_cluster_the_next_takes_the_certificate_when_a_person_says_so() {
    let mut lab = behind_one_domain(&[10, 10]);
    lab.domain("hmac:0000000000000002");
    lab.execute(&lab.plan());
    otherwise(&mut lab, "c00", None);
    let plan = lab.plan();
    assert_eq!(running(&plan), [""; 0]);
    let id = plan.fleets[0].guard.as_ref().unwrap().id.clone();
    let why = "cluster acme/c00 has the new certificate and isn't Healthy, and whether the certificate is the cause is \
               unknown: once another cluster is Healthy with it, the others continue by themselves";
    let next = key("Cluster/acme/c01");
    let waits = |plan: &Plan, name: &str| change(plan, &format!("Cluster/acme/{name}")).waiting.clone();
    assert_eq!(waits(&plan, "c01"), [Waiting::Approval { id: id.clone(), why: why.to_owned() }]);
    assert_eq!(waits(&plan, "c10"), [Waiting::OneDisruption { after: next }]);

    lab.approve(&id);
    lab.policy.mode = Mode::Approve;
    assert_eq!(running(&lab.plan()), ["acme/c01"], "a word is a word");
    lab.policy.mode = Mode::Auto;
    let plan = lab.plan();
    assert_eq!(running(&plan), ["acme/c01"]);
    assert_eq!(plan.fleets[0].void_approvals, [""; 0]);
    lab.execute(&plan);
    assert_eq!(lab.recorded.approvals, []);
    lab.judged("c01", Status::Updating);
    assert_eq!(running(&lab.plan()), [""; 0]);
    // The certificate works there, so the first cluster's trouble has another cause.
    lab.judged("c01", Status::Healthy);
    let plan = lab.plan();
    assert_eq!(running(&plan), ["acme/c02"]);
    let told = "it doesn't wait for cluster acme/c00, whose trouble isn't caused by the new certificate";
    assert!(change(&plan, "Cluster/acme/c02").effects.contains(&told.to_owned()));
    // If the certificate doesn't work elsewhere either, the forgotten cause doesn't matter.
    lab.judged("c01", Status::Degraded);
    assert_eq!(running(&lab.plan()), [""; 0]);
}

/// A cluster that has never worked has nothing that a restart could disrupt.
#[test]
fn a_cluster_that_never_worked_takes_the_certificate_out_of_turn() {
    let mut lab = behind_one_domain(&[10, 10]);
    lab.domain("hmac:0000000000000002");
    lab.judged("c15", Status::Failed);
    let plan = lab.plan();
    assert_eq!(running(&plan), ["acme/k.example.com", "acme/c00", "acme/c15"]);
    assert_eq!(change(&plan, "Cluster/acme/c15").waiting, []);
}

/// One that is made gets the certificate from its beginning.
#[test]
fn a_cluster_that_is_made_meanwhile_takes_no_new_certificate() {
    let mut lab = Lab { infra_type: "byok", ..Lab::new() };
    lab.domain("hmac:0000000000000001");
    lab.cluster("a", json!({}));
    lab.settle();
    lab.judged("a", Status::Healthy);
    lab.domain("hmac:0000000000000002");
    lab.cluster("new", json!({}));
    let plan = lab.plan();
    assert_eq!(change(&plan, "BaseDomain/acme/k.example.com").effects, [""; 0]);
    assert_eq!(running(&plan), ["acme/k.example.com", "acme/a", "acme/new"]);
}
