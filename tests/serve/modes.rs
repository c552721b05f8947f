//! The effect of `policy.mode`.

use std::fs;

use super::{ORDERS, SERVE, brokers, pool, units};
use crate::support::Tree;
use crate::support::serve::Serve;

fn with_mode(mode: &str) -> (Tree, String) {
    let tree = Tree::example("quickstart");
    fs::write(tree.beside("config.toml"), format!("[policy]\nmode = \"{mode}\"\n")).unwrap();
    (tree, format!("{SERVE} --config config.toml"))
}

fn asked(serve: &Serve<'_>, not: &str) -> String {
    serve.until("something waits for approval", || {
        let log = serve.log();
        let id = log.split("approve=\"").last()?.split('"').next()?.to_owned();
        (log.contains("approve=\"") && id != not).then_some(id)
    })
}

#[test]
fn with_approve_each_plan_waits_until_somebody_approves_it_beside_the_running_process() {
    let (tree, words) = with_mode("approve");
    let serve = Serve::start(&tree, &words);
    let first = asked(&serve, "");
    serve.says(&[
        "on hold for approval: the settings require approval for every plan: `policy.mode` is `approve`",
    ]);
    assert_eq!(pool(&tree), "");
    let folders = "tree --state-dir state --output-dir output --config config.toml";
    let approve = |id: &str| tree.run(&format!("approve {id} {folders}"));
    approve("123456789abc").expect(1).says(&[
        "error: no step of the current plan waits for approval as `123456789abc`",
        &format!("waiting for approval now: {first} on fleet acme/eu; the steps may have changed since you saw them"),
    ]);
    approve(&first).expect(0).says(&[&format!("Approved {first} on fleet acme/eu: create fleet acme/eu, ")]);
    brokers(&serve, 3);
    serve.says(&["done", "cluster acme/sandbox"]);

    // The approval covered that change and nothing else.
    tree.write(ORDERS, units(&tree, 2));
    let second = asked(&serve, &first);
    assert!(pool(&tree).contains("replicas: 3\n"));
    approve(&first).expect(1).says(&["no step of the current plan waits for approval as"]);
    approve(&second).expect(0).says(&["update cluster acme/orders"]);
    brokers(&serve, 6);
    let audit = fs::read_to_string(tree.beside("state/audit.jsonl")).unwrap();
    assert!(
        audit.contains(&format!("approved {second} on fleet acme/eu: update cluster acme/orders")),
        "{audit}"
    );
    assert_eq!(serve.stop(), Some(0));

    // Without a daemon, the command line uses the same settings.
    tree.write(ORDERS, units(&tree, 3));
    let plan = tree.run(&format!("plan {folders}")).expect(3).out;
    tree.run(&format!("apply {folders} --yes")).expect(3);
    assert!(pool(&tree).contains("replicas: 6\n"));
    approve(&crate::support::approval_id(&plan))
        .expect(0)
        .says(&["It takes effect with the next apply: streamfleet apply"]);
    tree.run(&format!("apply {folders} --yes")).expect(0);
    assert!(pool(&tree).contains("replicas: 9\n"));
}

#[test]
fn with_plan_only_what_would_be_done_is_told_once_and_nothing_is() {
    let (tree, words) = with_mode("plan-only");
    let serve = Serve::start(&tree, &words);
    let told = "blocked: the settings allow no changes: `policy.mode` is `plan-only`";
    serve.says(&["cluster acme/orders", told]);
    tree.write(ORDERS, units(&tree, 2));
    serve.until("there is another plan", || (serve.rounds() > 1).then_some(()));
    assert!(!tree.beside("output").exists());
    let log = serve.log();
    let lines = log.lines().filter(|line| line.contains("cluster acme/orders") && line.contains(told));
    assert_eq!(lines.count(), 1, "{log}");
    assert_eq!(serve.stop(), Some(0));
    let folders = "tree --state-dir state --output-dir output --config config.toml";
    tree.run(&format!("apply {folders} --yes")).expect(3).says(&["waiting"]);
    assert!(!tree.beside("output").exists());

    // Drift of what was applied before is left as it is.
    fs::write(tree.beside("auto.toml"), "[policy]\nmode = \"auto\"\n").unwrap();
    tree.run("apply tree --yes --state-dir state --output-dir output --config auto.toml").expect(0);
    let drifted = tree.beside("output/acme/eu/kafka-acme--orders/kafkanodepool-broker.yaml");
    fs::write(&drifted, pool(&tree).replace("replicas: 6", "replicas: 5")).unwrap();
    let serve = Serve::start(&tree, &words);
    serve.says(&["cluster acme/orders", "cause=\"drift\"", told]);
    assert_eq!(serve.stop(), Some(0));
    assert!(pool(&tree).contains("replicas: 5\n"));
}

#[test]
fn what_is_suspended_is_left_alone_until_it_no_longer_is() {
    let tree = Tree::example("quickstart");
    let serve = Serve::start(&tree, SERVE);
    brokers(&serve, 3);
    tree.write(ORDERS, format!("{}suspend: true\n", units(&tree, 2)));
    serve.says(&["cluster acme/orders", "blocked: suspend is true on cluster acme/orders"]);
    assert!(pool(&tree).contains("replicas: 3\n"));
    tree.write(ORDERS, tree.read(ORDERS).replace("suspend: true\n", ""));
    brokers(&serve, 6);
    // A fleet's change has one approval for all of its clusters.
    let fleet = "acme/fleets/eu.yaml";
    tree.write(fleet, format!("{}suspend: true\n", tree.read(fleet)));
    serve.says(&["fleet acme/eu", "blocked: suspend is true on fleet acme/eu"]);
    tree.write(ORDERS, units(&tree, 3));
    serve.says(&["cluster acme/orders", "blocked: suspend is true on fleet acme/eu"]);
    assert!(pool(&tree).contains("replicas: 6\n"));
    tree.write(fleet, tree.read(fleet).replace("suspend: true\n", ""));
    brokers(&serve, 9);
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn what_is_to_be_approved_is_told_each_time_and_so_is_that_nothing_is_any_more() {
    let (tree, words) = with_mode("approve");
    let serve = Serve::start(&tree, &words);
    let folders = "tree --state-dir state --output-dir output --config config.toml";
    let first = asked(&serve, "");
    tree.run(&format!("approve {first} {folders}")).expect(0);
    brokers(&serve, 3);
    for number in [2, 3] {
        tree.write(ORDERS, units(&tree, number));
        serve.says(&[
            "cluster acme/orders on hold for approval: the settings require approval for every plan",
            &format!(". To update it: kafka_units 1 → {number} (acme/clusters/orders.yaml:9). "),
            "brokers and rebalances",
            "approve=",
        ]);
    }
    tree.write(ORDERS, units(&tree, 1));
    serve.says(&["cluster acme/orders no longer waits: nothing to do"]);
    assert_eq!(serve.stop(), Some(0));
}
