//! Several writers share one repository.

use serde_json::{Value, json};

use super::{Api, ROOT, exchanges, git, new_token, push};
use crate::support::Tree;

const GLOBEX: &str = "
---
apiVersion: streamfleet/v1
kind: Organization
identifier: globex
members:
  - email: hank@globex.example.com
    role: admin
";

#[test]
fn what_one_organization_commits_is_not_told_to_another() {
    let tree = Tree::example("quickstart");
    tree.write("organizations.yaml", tree.read("organizations.yaml") + GLOBEX);
    let fleet = "apiVersion: streamfleet/v1\nkind: Fleet\norganization: globex\nidentifier: main\ninfra_type: directory\n\
                 tenancy_mode: Shared\nmax_tenants: 5\nmax_kafka_units: 10\n";
    tree.write("globex/fleets/main.yaml", fleet);
    let cluster =
        tree.read("acme/clusters/sandbox.yaml").replace("organization: acme", "organization: globex");
    let cluster = cluster.replace("infrastructure: eu", "infrastructure: main");
    tree.write(
        "globex/clusters/doomsday.yaml",
        cluster.replace("identifier: sandbox", "identifier: doomsday"),
    );
    let api = Api::start_git(&tree);
    api.settle();
    let ours = new_token(&tree, "platform@acme.example.com", "acme", "write");
    let theirs = new_token(&tree, "hank@globex.example.com", "globex", "write");
    let tags = |value: &str| json!({"tags": [{"key": "team", "value": value}]});
    api.call_as(&ours, "PATCH /v1/clusters/orders", &[], tags("ours")).expect(200);
    api.call_as(&theirs, "PATCH /v1/clusters/doomsday", &[], tags("theirs")).expect(200);
    let repository = tree.beside("specs.git");
    assert_eq!(
        git(&repository, "log -2 --format=%an:%s main"),
        "hank:Change tags of cluster globex/doomsday\nplatform:Change tags of cluster acme/orders"
    );
    let events = |token: &str| {
        let events = api.call_as(token, "GET /v1/events?page_size=200", &[], Value::Null).expect(200).body;
        events["items"].as_array().unwrap().clone()
    };
    let commit = git(&repository, "rev-parse main");
    api.serve.until("both are done", || {
        let is_done = |event: &Value| event["commit"]["id"] == commit && event["outcome"] == "done";
        events(&api.token).iter().any(is_done).then_some(())
    });
    for (token, own, others) in
        [(&ours, "acme", ["globex", "hank", "doomsday"]), (&theirs, "globex", ["acme", "platform", "orders"])]
    {
        let events = events(token);
        assert!(events.iter().any(|event| event["resource"].to_string().contains(own)), "{events:#?}");
        for event in &events {
            let text = event.to_string();
            assert!(!others.iter().any(|other| text.contains(other)), "{text}");
            // The last commit may be another organization's.
            let known: Vec<&String> =
                event["commit"].as_object().into_iter().flat_map(|it| it.keys()).collect();
            assert!(known.is_empty() || known == ["id"], "{text}");
        }
    }
    api.call("PATCH /v1/clusters/orders", tags("by those who run it")).expect(200);
    let written = |token: &str| -> Vec<String> {
        let is_write =
            |event: &&Value| event["what"].as_str().is_some_and(|what| what.starts_with("Change tags"));
        let told = |event: &Value| {
            format!("{}: {}", event["actor"].as_str().unwrap(), event["resource"].as_str().unwrap())
        };
        events(token).iter().filter(is_write).map(told).collect()
    };
    let [by_ours, by_theirs] = [
        "platform@acme.example.com (token test): Cluster/acme/orders",
        "hank@globex.example.com (token test): Cluster/globex/doomsday",
    ];
    assert_eq!(written(&ours), [by_ours, "a super user: Cluster/acme/orders"]);
    assert_eq!(written(&theirs), [by_theirs]);
    let by_root = format!("{ROOT} (token test): Cluster/acme/orders");
    assert_eq!(written(&api.token), [by_ours, by_theirs, &by_root]);
    let of_acme = api.get("/v1/events?organization=acme&page_size=200").expect(200).body.to_string();
    assert!(of_acme.contains("platform@acme.example.com (token test)"), "{of_acme}");

    // Creation accepts only the tag `*`: a list has none.
    let tag = api.get("/v1/clusters/orders").expect(200).header("etag").unwrap();
    let made =
        |tag: &str| api.call_as(&ours, "POST /v1/clusters", &[("If-Match", tag)], exchanges::cluster());
    made(&tag).refused(412, "stale", "it changed since the version in `If-Match`");
    made("*").expect(201);

    let all = events(&api.token);
    let author = |event: &Value| event["commit"]["author"] == "hank <hank@globex.example.com>";
    assert!(all.iter().any(author), "whoever runs the installation sees it: {all:#?}");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn limits_are_lowered_by_what_is_there_now_and_nothing_newer_is_undone() {
    let tree = Tree::example("quickstart");
    let api = Api::start_git(&tree);
    api.settle();
    let path = "/organizations/acme";
    let read = api.get(path).expect(200);
    let tag = read.header("etag").unwrap();
    let with = |clusters: u32| {
        let mut body = read.body.clone();
        body["quotas"]["clusters"] = json!(clusters);
        body
    };
    // A concurrent push that no plan has read: a third cluster, a comment, and another fleet in the same
    // file.
    let third = tree.read("acme/clusters/sandbox.yaml").replace("identifier: sandbox", "identifier: third");
    tree.write("acme/clusters/third.yaml", third);
    tree.write("organizations.yaml", tree.read("organizations.yaml") + GLOBEX + "# Ask Hank.\n");
    push(&tree, "theirs");
    let repository = tree.beside("specs.git");
    let theirs = git(&repository, "rev-parse main");
    let put = |body: Value, headers: &[(&str, &str)]| {
        api.call_as(&api.token, &format!("PUT {path}"), headers, body)
    };
    put(with(2), &[]).refused(
        409,
        "capacity",
        "`quotas.clusters` of organization acme can't be 2: 3 are in use",
    );
    assert_eq!(git(&repository, "rev-parse main"), theirs);
    // A tag covers its own document only.
    put(with(3), &[("If-Match", &tag)]).expect(200);
    assert_eq!(git(&repository, "rev-parse main~1"), theirs);
    let diff = git(&repository, "diff --unified=0 main~1 main");
    let changed: Vec<&str> = diff.lines().filter(|line| line.starts_with(['+', '-'])).skip(2).collect();
    assert_eq!(changed, ["-  clusters: 10", "+  clusters: 3"]);

    // The limits changed meanwhile: a request with the old tag is refused.
    let tag = api.get(path).expect(200).header("etag").unwrap();
    git(&tree.path(), "pull --quiet ../specs.git main");
    tree.edit("organizations.yaml", "  kafka_units: 20", "  kafka_units: 15");
    push(&tree, "lower");
    let lower = git(&repository, "rev-parse main");
    put(with(4), &[("If-Match", &tag)]).refused(412, "stale", "it changed since the version in `If-Match`");
    assert_eq!(git(&repository, "rev-parse main"), lower);
    // A patch changes only the fields it names.
    api.call(&format!("PATCH {path}"), json!({"quotas": {"clusters": 4}})).expect(200);
    let file = git(&repository, "show main:organizations.yaml");
    assert!(file.contains("  clusters: 4\n  kafka_units: 15\n") && file.contains("# Ask Hank."), "{file}");
    assert_eq!(api.serve.stop(), Some(0));
}
