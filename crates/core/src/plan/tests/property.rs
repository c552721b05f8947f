//! Invariants of every plan, on random small installations.

use proptest::prelude::*;

use super::*;
use crate::plan::{Verdict, Waiting};

#[derive(Debug, Clone)]
enum Fate {
    Absent,
    Is { units: u32, patch: u32, protected: bool, delete_data: bool },
    Suspended,
    Unreadable,
    Suspicious,
}

fn fate() -> impl Strategy<Value = Fate> {
    let is = (1..4u32, 0..3u32, any::<bool>(), any::<bool>())
        .prop_map(|(units, patch, protected, delete_data)| Fate::Is { units, patch, protected, delete_data });
    prop_oneof![
        2 => Just(Fate::Absent),
        6 => is,
        1 => Just(Fate::Suspended),
        1 => Just(Fate::Unreadable),
        1 => Just(Fate::Suspicious),
    ]
}

fn set(lab: &mut Lab, name: &str, fate: &Fate) {
    let text = format!("Cluster/acme/{name}");
    let known = lab.resources.contains_key(&key(&text));
    lab.absences.remove(&key(&text));
    match fate {
        Fate::Is { units, patch, protected, delete_data } => {
            let storage = json!({"on_delete": if *delete_data { "Delete" } else { "Retain" }});
            let changes = json!({"kafka_units": units, "deletion_protection": protected,
                "advanced_config.version": format!("4.3.{patch}"), "advanced_config.storage": storage});
            lab.cluster(name, changes);
        }
        Fate::Suspended if known => lab.hold(&text, Hold::Suspended { by: key(&text) }),
        Fate::Suspended => {}
        Fate::Absent | Fate::Unreadable | Fate::Suspicious => {
            let unreadable = Origin { path: "acme/x.yaml".parse().unwrap(), line: 1 };
            // A cluster that may be missing by mistake is kept as it was applied.
            let (absence, hold) = match fate {
                Fate::Unreadable => {
                    let hold = Hold::Unreadable { origin: unreadable.clone() };
                    (Absence::Unknown { unreadable }, Some(hold))
                }
                Fate::Suspicious => {
                    let why = "acme/x.yaml was emptied".to_owned();
                    (Absence::Suspicious { why }, Some(Hold::Absent))
                }
                _ => (Absence::Removed, None),
            };
            match hold.filter(|_| known && lab.recorded.resources.contains_key(&key(&text))) {
                Some(hold) => lab.hold(&text, hold),
                None if known => lab.remove(&text),
                None => {}
            }
            lab.absences.insert(key(&text), absence);
        }
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn check(lab: &Lab, plan: &Plan) {
    assert_eq!(&lab.plan(), plan, "planning twice gives the same plan");
    assert_eq!(&Plan::from_json(&plan.to_json()).unwrap(), plan, "JSON holds the whole plan");
    let mut disrupted = 0;
    for change in plan.changes().filter(|change| change.waiting.is_empty()) {
        assert_ne!(change.verb, Verb::Keep);
        assert_ne!(change.verdict, Verdict::Refused);
        disrupted += u32::from(change.verdict == Verdict::RollingRestart);
        if change.verb == Verb::Delete {
            assert!(!lab.recorded.resources[&change.resource].durable.protected);
            assert_eq!(lab.catalog().absent[&change.resource], Absence::Removed);
        }
        let deleted: Vec<_> = change.steps.iter().filter(|step| step.verb == Verb::Delete).collect();
        assert!(change.verb == Verb::Delete || deleted.is_empty());
        let namespace = deleted.iter().any(|step| step.object.kind == "Namespace");
        assert!(!namespace || change.verdict == Verdict::DataLoss);
    }
    assert!(disrupted <= 1);
    let lost = plan.changes().filter(|change| change.waiting.is_empty() && change.verb == Verb::Delete);
    assert!(lost.filter(|change| change.resource.kind == Kind::Cluster).count() <= 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_keeps_the_rules_and_ends(
        rounds in proptest::collection::vec(proptest::collection::vec(fate(), NAMES.len()), 1..4)
    ) {
        let mut lab = Lab::new();
        for fates in rounds {
            NAMES.iter().zip(&fates).for_each(|(name, fate)| set(&mut lab, name, fate));
            // Each round makes at least one of the four changes that may have to follow one another.
            for _ in 0..10 {
                let plan = lab.plan();
                check(&lab, &plan);
                lab.execute(&plan);
                lab.later(2);
            }
            let end = lab.plan();
            prop_assert_eq!(running(&end), Vec::<String>::new());
            let stays = |waiting: &Waiting| !matches!(waiting, Waiting::OneDisruption { .. } | Waiting::Children { .. });
            prop_assert!(end.changes().flat_map(|change| &change.waiting).all(stays));
        }
    }
}
