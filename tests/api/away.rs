//! An unreachable repository.

use std::fs;

use serde_json::{Value, json};

use super::exchanges::cluster;
use super::{Api, git};
use crate::support::Tree;

#[test]
fn with_the_remote_away_a_write_leaves_nothing_and_succeeds_once_when_it_is_back() {
    let tree = Tree::example("quickstart");
    let api = Api::start_git(&tree);
    api.settle();
    let (remote, away) = (tree.beside("specs.git"), tree.beside("away.git"));
    let before = git(&remote, "rev-parse main");
    fs::rename(&remote, &away).unwrap();
    let answer = api.call("POST /v1/clusters", cluster());
    assert_eq!(
        (answer.status, answer.body["code"].as_str()),
        (503, Some("unavailable")),
        "{:#}",
        answer.body
    );
    assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
    assert_eq!(api.get("/v1/clusters/payments").status, 404);

    fs::rename(&away, &remote).unwrap();
    git(&remote, "branch --quiet -m main gone");
    let answer = api.call("POST /v1/clusters", cluster());
    answer.refused(
        503,
        "unavailable",
        "the branch in the git repository of the specs is missing; nothing was written",
    );
    assert_eq!(answer.header("retry-after").unwrap(), "60");
    git(&remote, "branch --quiet -m gone main");
    assert_eq!(git(&remote, "rev-parse main"), before);
    api.call("POST /v1/clusters", cluster()).expect(201);
    assert_eq!(git(&remote, "rev-parse main~1"), before);
    api.call("POST /v1/clusters", cluster()).refused(
        409,
        "duplicate",
        "cluster acme/payments exists already",
    );
    assert_eq!(git(&remote, "rev-parse main~1"), before, "it was written once");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn with_the_folder_of_the_specs_away_writes_are_to_be_tried_again_and_nobody_hears_where_it_is() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let (there, away) = (tree.path(), tree.beside("away"));
    fs::rename(&there, &away).unwrap();
    for (what, body) in [
        ("PATCH /v1/clusters/orders", json!({"kafka_units": 2})),
        ("POST /v1/clusters", cluster()),
        ("PATCH /v1/clusters/orders?dry_run=true", json!({"kafka_units": 2})),
    ] {
        let answer = api.call(what, body);
        // Until the kernel reports that the folder is gone, the error is about the missing file.
        let file = if what.starts_with("POST") { "payments" } else { "orders" };
        let of_the_file =
            format!("`acme/clusters/{file}.yaml` can't be read or written in the specs; nothing was written");
        let of_all = "cannot read the folder of the specs; nothing was written";
        let why = if answer.body["detail"] == of_all { of_all } else { &of_the_file };
        answer.refused(503, "unavailable", why);
        assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
    }
    fs::rename(&away, &there).unwrap();
    api.call("POST /v1/clusters", cluster()).expect(201);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_is_going_is_deleted_once_more_without_harm_and_the_plan_of_that_is_the_one_there_is() {
    let tree = Tree::example("quickstart");
    let policy = "[policy]\ncluster_deletions_per_hour = 0\n";
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", policy);
    api.settle();
    // The change waits for approval.
    for _ in 0..2 {
        let going = api.call("DELETE /v1/clusters/sandbox", Value::Null).expect(202);
        assert_eq!(going.body["status"], "Deleting");
    }
    let planned = api.call("DELETE /v1/clusters/sandbox?dry_run=true", Value::Null).expect(200).body;
    let fleets = planned["fleets"].as_array().unwrap();
    let mut changes = fleets.iter().flat_map(|fleet| fleet["changes"].as_array().unwrap());
    let change = changes.find(|change| change["resource"] == "Cluster/acme/sandbox").expect("it is planned");
    assert_eq!(change["verb"], "delete", "{change:#}");
    assert_eq!(api.serve.stop(), Some(0));
}
