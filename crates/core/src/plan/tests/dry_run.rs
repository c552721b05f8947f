use super::*;
use crate::plan::{
    AlikeDryRuns, Audience, Contest, DryRun, DryRuns, Planner, Remark, Step, Waiting, display,
};

/// Returns the plan with these dry runs, and the objects that could and could not be asked about.
fn asked(lab: &Lab, runs: &DryRuns) -> (Plan, Vec<String>, Vec<String>) {
    let (catalog, desired) = (lab.catalog(), lab.desired());
    let planner = Planner::new(&catalog, &lab.recorded, lab.observed.protected(), &lab.policy, None);
    let fleet = fleet_key();
    let site = lab.site(&fleet, &desired);
    let first = planner.fleet(&site);
    let questions = first.dry_run_requests();
    let steps = questions.steps.iter().map(|step| step.object.to_string()).collect();
    let why = |run: &DryRun| match run {
        DryRun::Unverified { why } => why.clone(),
        other => panic!("{other:?}"),
    };
    let foregone = questions.foregone.iter().map(|(object, run)| format!("{object} {}", why(run))).collect();
    let second = planner.index(site).compare(None).part(Some(runs));
    (planner.finish(vec![second]), steps, foregone)
}

fn contest(manager: &str) -> Contest {
    Contest { manager: manager.to_owned(), field: ".spec.x".to_owned() }
}

#[test]
fn what_is_to_be_put_into_a_new_namespace_is_not_asked_about() {
    let mut lab = Lab::with(&["orders"]);
    assert!(asked(&lab, &DryRuns::new()).1.is_empty(), "where nothing differs nothing is asked");

    lab.cluster("orders", json!({"kafka_units": 2}));
    lab.cluster("payments", json!({}));
    let (_, steps, foregone) = asked(&lab, &DryRuns::new());
    assert_eq!(steps, ["KafkaNodePool kafka-acme--orders/broker", "Namespace kafka-acme--payments"]);
    assert_eq!(foregone.len(), 4);
    assert!(
        foregone.iter().all(|it| it.ends_with(" until Namespace kafka-acme--payments exists")),
        "{foregone:?}"
    );
}

/// New Namespaces are alike. Some are asked about, and the others only if one of those is refused.
#[test]
fn of_many_new_namespaces_some_are_asked_about_until_one_is_refused() {
    let mut lab = Lab::with(&["orders"]);
    for number in 0..10 {
        lab.cluster(&format!("new-{number}"), json!({}));
    }
    let (catalog, desired) = (lab.catalog(), lab.desired());
    let planner = Planner::new(&catalog, &lab.recorded, lab.observed.protected(), &lab.policy, None);
    let fleet = fleet_key();
    let site = lab.site(&fleet, &desired);
    let part = planner.fleet(&site);
    let requests = part.dry_run_requests();
    let objects = |steps: &[&Step]| steps.iter().map(|step| step.object.clone()).collect::<Vec<_>>();
    let (sample, alike) = (objects(&requests.steps), objects(&requests.alike));
    assert_eq!((sample.len(), alike.len()), (8, 2));
    assert!(sample.iter().chain(&alike).all(|object| object.kind == "Namespace"));

    let accepted = || DryRun::Accepted { overwritten: vec![], left: vec![] };
    let why = |why: &str| DryRun::Unverified { why: why.to_owned() };
    let refused = DryRun::Refused { reason: "403 no".to_owned(), hint: "ask".to_owned() };
    let answers = |last: DryRun| -> DryRuns {
        let accepted = sample.iter().map(|object| (object.clone(), accepted()));
        accepted.chain([(sample[7].clone(), last)]).collect()
    };
    for (last, expected) in [
        (accepted(), Some(alike.iter().map(|object| why(&format!("until {object} exists"))).collect())),
        (why("because of a webhook"), Some(vec![why("because of a webhook"); 2])),
        (refused, None),
    ] {
        let foregone = match requests.of_alike(&answers(last)) {
            AlikeDryRuns::Asked(steps) => {
                assert_eq!(objects(steps), alike);
                None
            }
            AlikeDryRuns::Foregone(runs) => Some(alike.iter().map(|object| runs[object].clone()).collect()),
        };
        assert_eq!(foregone, expected);
    }

    // The plan counts such a Namespace among the objects that are unverified until it exists.
    let AlikeDryRuns::Foregone(runs) = requests.of_alike(&answers(accepted())) else {
        panic!("none is refused")
    };
    let runs: DryRuns = requests.foregone.clone().into_iter().chain(runs).collect();
    let (plan, ..) = asked(&lab, &runs);
    let count = |cluster: &str| match change(&plan, cluster).remarks.as_slice() {
        [Remark::Unverified { objects, .. }] => *objects,
        other => panic!("{other:?}"),
    };
    assert_eq!((count("Cluster/acme/new-0"), count("Cluster/acme/new-9")), (4, 5));
}

#[test]
fn what_is_said_holds_back_only_whose_object_it_is_about() {
    let mut lab = Lab::with(&["orders", "payments"]);
    lab.cluster("orders", json!({"kafka_units": 2}));
    lab.cluster("payments", json!({"kafka_units": 2}));
    let refused = DryRun::Refused { reason: "403 no".to_owned(), hint: "ask".to_owned() };
    let runs = DryRuns::from([(object("KafkaNodePool", "orders", "broker"), refused)]);
    let (plan, ..) = asked(&lab, &runs);
    let orders = change(&plan, "Cluster/acme/orders");
    assert!(
        matches!(orders.waiting.as_slice(), [Waiting::RefusedByTarget { reason, .. }] if reason == "403 no")
    );
    // It no longer counts as the one disruption at a time, either.
    assert!(change(&plan, "Cluster/acme/payments").waiting.is_empty());
}

#[test]
fn what_is_overwritten_left_or_made_anew_is_shown() {
    let mut lab = Lab::with(&["orders"]);
    lab.cluster("orders", json!({"kafka_units": 2}));
    let pool = object("KafkaNodePool", "orders", "broker");
    let left = Contest { field: ".spec.replicas".to_owned(), ..contest("autoscaler") };
    let accepted = DryRun::Accepted { overwritten: vec![contest("kubectl-edit")], left: vec![left] };
    let (plan, ..) = asked(&lab, &DryRuns::from([(pool.clone(), accepted)]));
    let reader = Audience { color: false, width: 100, tree: "specs" };
    let lines = |plan: &Plan| -> String {
        let text = display(plan, reader);
        let from = text.find("~ KafkaNodePool").or_else(|| text.find("± KafkaNodePool")).unwrap();
        text[from..]
            .lines()
            .take_while(|line| !line.is_empty())
            .map(|line| format!("{}\n", line.trim_end()))
            .collect()
    };
    assert_eq!(
        lines(&plan),
        "~ KafkaNodePool kafka-acme--orders/broker\n          kubectl-edit changed `.spec.x`: it is set to the spec's \
         value\n          autoscaler manages `.spec.replicas`: it is left unchanged\n"
    );

    let (plan, ..) = asked(&lab, &DryRuns::from([(pool, DryRun::Immutable)]));
    let step = &change(&plan, "Cluster/acme/orders").steps[0];
    assert_eq!((step.verb, step.uid.is_some()), (Verb::Recreate, true));
    assert!(lines(&plan).starts_with(
        "± KafkaNodePool kafka-acme--orders/broker: deleted and recreated, because it can't be changed\n"
    ));
}

#[test]
fn what_is_left_to_others_is_shown_each_time_and_holds_nothing_back() {
    let mut lab = Lab::with(&["orders"]);
    let pool = object("KafkaNodePool", "orders", "broker");
    lab.target().objects.get_mut(&pool).unwrap().contested = vec![contest("autoscaler")];
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!(orders.verb, Verb::Keep);
    let waiting = Waiting::Contested { object: pool.clone(), contest: contest("autoscaler") };
    assert_eq!((orders.waiting.as_slice(), plan.exit_code()), ([waiting].as_slice(), 3));

    lab.rendering = 2;
    let plan = lab.plan();
    let orders = change(&plan, "Cluster/acme/orders");
    assert_eq!(orders.verb, Verb::Update);
    assert!(!orders.waiting.iter().any(|it| matches!(it, Waiting::Contested { .. })));
    assert_eq!(orders.remarks, [Remark::Leaves { object: pool, contest: contest("autoscaler") }]);
}

/// There is one answer per object, for the waiting change. A repair that writes something else ignores it.
#[test]
fn what_would_be_refused_of_a_change_holds_up_no_repair() {
    let mut lab = Lab::with(&["orders"]);
    (lab.rendering, lab.policy.software) = (2, "0.2.0".into());
    let (kafka, policy) = (object("Kafka", "orders", "orders"), object("NetworkPolicy", "orders", "deny"));
    lab.target().objects.remove(&kafka);
    lab.target().objects.remove(&policy);
    let (plan, steps, _) = asked(&lab, &DryRuns::new());
    assert_eq!(steps, [policy.to_string(), kafka.to_string()]);
    let repaired = |plan: &Plan| -> Vec<ObjectKey> {
        let repairs = plan.changes().filter(|change| change.repair).flat_map(|change| &change.steps);
        repairs.map(|step| step.object.clone()).collect()
    };
    assert_eq!(repaired(&plan), [policy.clone(), kafka.clone()]);
    let refused = DryRun::Refused { reason: "403 no".to_owned(), hint: "ask".to_owned() };
    let (plan, ..) = asked(&lab, &DryRuns::from([(kafka.clone(), refused.clone())]));
    assert_eq!(repaired(&plan), [policy.clone(), kafka.clone()]);
    // Both changes write the same policy.
    let (plan, ..) = asked(&lab, &DryRuns::from([(policy, refused)]));
    assert_eq!(repaired(&plan), [kafka]);
}
