//! `streamfleet events`, with and without a running daemon.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::quiet;
use crate::support::Tree;
use crate::support::serve::Serve;

fn events(tree: &Tree, filters: &str) -> Vec<Value> {
    let out = tree.run(&format!("events tree --format json {filters}")).expect(0).out;
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn decisions_and_outcomes_are_recorded_by_commands() {
    let tree = quiet();
    assert_eq!(tree.run("events tree").expect(0).out, "");
    assert!(!tree.path().join(".streamfleet").exists(), "looking leaves nothing behind");
    tree.run("apply tree --yes").expect(0);
    let orders = events(&tree, "--resource acme/orders");
    let told: Vec<(&str, &str)> = orders
        .iter()
        .map(|event| (event["outcome"].as_str().unwrap(), event["what"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("decided", "to be created"), ("done", "created")]);
    let done = &orders[1];
    assert_eq!(done["verb"], "create");
    assert_eq!(done["fleet"], "acme/eu");
    assert!(done["why"].as_str().unwrap().starts_with("new spec (acme/clusters/orders.yaml:"));
    assert!(done["actor"].as_str().unwrap().ends_with("(command line)"));
    assert!(done["plan"].is_string() && done["commit"].is_null());

    fs::remove_file(tree.path().join("acme/clusters/orders.yaml")).unwrap();
    tree.run("apply tree --yes").expect(3);
    let last = events(&tree, "--resource cluster/acme/orders").pop().unwrap();
    assert_eq!((last["outcome"].as_str(), last["what"].as_str()), (Some("waits"), Some("to be deleted")));
    assert!(last["why"].as_str().unwrap().contains("deletion protection is on"), "{last}");

    let count = |filters: &str| events(&tree, filters).len();
    assert_eq!(count("--resource orders"), count("--resource acme/orders"));
    let unknown = |filters: &str| tree.run(&format!("events tree {filters}")).expect(1).err;
    assert_eq!(
        unknown("--resource acme/nothing"),
        "error: there are no events about a resource acme/nothing\n  help: there are events about base domain \
         acme/kafka.acme.example.com, cluster acme/orders, cluster acme/sandbox, fleet acme/eu, organization acme\n"
    );
    assert_eq!(
        unknown("--fleet acme/nowhere"),
        "error: there are no events on fleet acme/nowhere\n  help: there are events about acme/eu\n"
    );
    assert_eq!(count("--since 2100-01-01T00:00:00Z"), 0);
    assert_eq!(count("--since 1h"), count(""));
    assert!((1..count("")).contains(&count("--fleet acme/eu")));
    tree.run("events tree").expect(0).says(&[
        "waits",
        "cluster acme/orders to be deleted on acme/eu: ",
        "(command line), plan ",
    ]);
    tree.run("events tree --format yaml").expect(0).says(&["---\n", "what: created\n"]);
    tree.run("events tree --since yesterday").expect(64).says(&[
        "invalid value 'yesterday' for '--since <TIME>': it is neither a time such as 2026-11-22T07:00:00Z nor an age such \
         as 30m, 12h or 7d",
    ]);
    tree.run("events tree --fleet acme").expect(64);
}

#[test]
fn events_are_followed_while_the_daemon_runs() {
    let tree = quiet();
    let serve = Serve::start(&tree, "serve --specs tree");
    serve.says(&["done", "cluster acme/orders"]);
    let mut follow = tree
        .command("events tree --follow --format json --resource acme/sandbox")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["outcome"], "decided");
    assert_eq!(next()["outcome"], "done");
    let sandbox = "acme/clusters/sandbox.yaml";
    let spec = tree.read(sandbox);
    tree.write(sandbox, spec.replace("deletion_protection: false", "deletion_protection: true"));
    let mut event = next();
    while event["outcome"] != "done" {
        event = next();
    }
    assert_eq!(
        (event["what"].as_str(), event["actor"].as_str().map(|it| it.ends_with("(serve)"))),
        (Some("changed"), Some(true))
    );
    follow.kill().unwrap();
    follow.wait().unwrap();
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_deletion_says_that_its_spec_was_removed_and_from_where() {
    let tree = quiet();
    tree.run("apply tree --yes").expect(0);
    fs::remove_file(tree.path().join("acme/clusters/sandbox.yaml")).unwrap();
    tree.run("apply tree --yes").expect(0);
    let told = events(&tree, "--resource sandbox");
    let why = |outcome: &str| {
        let event = told.iter().rfind(|event| event["outcome"] == outcome).unwrap();
        event["why"].as_str().unwrap().to_owned()
    };
    let removed = "spec removed (was acme/clusters/sandbox.yaml:2)";
    assert_eq!((why("decided"), why("done")), (removed.to_owned(), removed.to_owned()));
}
