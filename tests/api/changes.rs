//! Calls that change resources: each edits a file, and the round does the rest.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::exchanges::{certificate, cluster, fleet};
use super::{Api, git, new_token, push};
use crate::support::Tree;

const ORDERS: &str = "/v1/clusters/orders?organization=acme";

/// A hand-written file with a second document, comments in odd places and both kinds of quotes.
const WRITTEN: &str = "# Who owns these: payments@acme.example.com
---
apiVersion: streamfleet/v1
kind: Cluster
organization: acme   # ours
infrastructure: \"eu\"
identifier: 'ledger'

cluster_type: kafka
tenancy_mode: Shared
# Raised before each Christmas.
kafka_units: 1       # see the runbook
advanced_config: {version: 4.3.1, number_of_zones: '3', cluster_access: Internal}
# the end
---
apiVersion: streamfleet/v1
kind: Cluster
organization: acme
infrastructure: eu
identifier: journal
cluster_type: kafka
tenancy_mode: Shared
kafka_units: 1
advanced_config:
  version: 4.3.1
  number_of_zones: 3
  cluster_access: Internal
";

#[test]
fn a_patch_of_a_file_with_comments_is_one_line_of_diff_by_the_caller_and_is_applied() {
    let tree = Tree::example("quickstart");
    tree.write("acme/clusters/ledger.yaml", WRITTEN);
    let api = Api::start_git(&tree);
    api.settle();
    let ada = new_token(&tree, "platform@acme.example.com", "acme", "write");
    let before = git(&tree.beside("specs.git"), "rev-parse main");
    let patch = json!({"kafka_units": 2});
    let answer = api.call_as(&ada, "PATCH /v1/clusters/ledger", &[], patch).expect(200);
    assert_eq!((&answer.body["kafka_units"], &answer.body["status"]), (&json!(2), &json!("Updating")));

    let repository = tree.beside("specs.git");
    assert_eq!(git(&repository, "rev-parse main~1"), before, "it is one commit");
    let log = git(&repository, "log -1 --format=%an|%ae|%cn|%s main");
    assert_eq!(
        log,
        "platform|platform@acme.example.com|streamfleet|Set kafka_units of cluster acme/ledger to 2"
    );
    let diff = git(&repository, "diff --unified=0 main~1 main");
    let changed: Vec<&str> = diff.lines().filter(|line| line.starts_with(['+', '-'])).collect();
    assert_eq!(
        changed,
        [
            "--- a/acme/clusters/ledger.yaml",
            "+++ b/acme/clusters/ledger.yaml",
            "-kafka_units: 1       # see the runbook",
            "+kafka_units: 2       # see the runbook",
        ]
    );
    api.serve.until("it is applied", || {
        let pool = tree.beside("output/acme/eu/kafka-acme--ledger/kafkanodepool-broker.yaml");
        std::fs::read_to_string(pool).ok()?.contains("replicas: 6\n").then_some(())
    });
    let events = api.get("/v1/events?organization=acme&page_size=200").expect(200).body;
    let commit = git(&repository, "rev-parse main");
    let is_it =
        |event: &&Value| event["commit"]["id"] == commit && event["resource"] == "Cluster/acme/ledger";
    let event = events["items"].as_array().unwrap().iter().find(is_it).expect("the events name the commit");
    assert_eq!(event["commit"]["author"], "platform <platform@acme.example.com>", "{event:#}");

    // A concurrent push to the same file: both edits stay.
    git(&tree.path(), "pull --quiet ../specs.git main");
    tree.edit("acme/clusters/ledger.yaml", "# the end", "# THE END");
    push(&tree, "theirs");
    api.call_as(&ada, "PATCH /v1/clusters/ledger", &[], json!({"kafka_units": 3})).expect(200);
    let file = git(&repository, "show main:acme/clusters/ledger.yaml");
    let both = WRITTEN.replace("# the end", "# THE END").replace("kafka_units: 1  ", "kafka_units: 3  ");
    assert_eq!(file + "\n", both);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_was_read_can_be_changed_and_put_back_and_a_stale_one_cannot() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let file = tree.read("acme/clusters/orders.yaml");
    let read = api.get(ORDERS).expect(200);
    let tag = read.header("etag").unwrap();
    // Sending back the document as read changes nothing.
    let put = format!("PUT {ORDERS}");
    let same = api.call_as(&api.token, &put, &[("If-Match", &tag)], read.body.clone()).expect(200);
    assert_eq!(
        (tree.read("acme/clusters/orders.yaml"), same.header("etag").unwrap()),
        (file.clone(), tag.clone())
    );

    let mut wanted = read.body.clone();
    wanted["kafka_units"] = json!(2);
    let changed = api.call_as(&api.token, &put, &[("If-Match", &tag)], wanted.clone()).expect(200);
    assert_eq!(tree.read("acme/clusters/orders.yaml"), file.replace("kafka_units: 1", "kafka_units: 2"));
    assert_ne!(changed.header("etag").unwrap(), tag);
    let stale = api.call_as(&api.token, &put, &[("If-Match", &tag)], wanted);
    stale.refused(412, "stale", "it changed since the version in `If-Match`");
    api.call_as(&api.token, &put, &[("If-Match", "W/5")], json!({})).refused(
        400,
        "malformed",
        "`If-Match` is neither `*` nor a list of tags from `ETag`",
    );
    // A list of tags matches if one of them does, in one header or in several; a weak tag never matches.
    let put_as = |headers: &[(&str, &str)]| api.call_as(&api.token, &put, headers, changed.body.clone());
    let now = changed.header("etag").unwrap();
    put_as(&[("If-Match", &format!("{tag}, {now}"))]).expect(200);
    put_as(&[("If-Match", &tag), ("If-Match", &now)]).expect(200);
    put_as(&[("If-Match", "*")]).expect(200);
    for none in [format!("{tag}, \"other\""), format!("W/{now}")] {
        let stale = put_as(&[("If-Match", &none)]);
        stale.refused(412, "stale", "it changed since the version in `If-Match`");
    }
    let again = api.get(ORDERS).expect(200);
    assert_eq!(again.header("etag"), changed.header("etag"));

    // Read-only fields can't be set.
    let answer = api.call(&format!("PATCH {ORDERS}"), json!({"status": "Failed", "kafka_unit": 3}));
    assert_eq!((answer.status, &answer.body["code"]), (422, &json!("invalid")), "{:#}", answer.body);
    assert_eq!(answer.body["errors"][0]["pointer"], "/status");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn whatever_is_put_back_as_it_was_read_stays_to_the_byte() {
    let mut kinds = BTreeSet::new();
    for example in std::fs::read_dir("examples").unwrap() {
        let tree = Tree::example(example.unwrap().file_name().to_str().unwrap());
        // An example may need settings.
        let own = std::fs::read_to_string(tree.path().join("streamfleet.toml")).unwrap_or_default();
        let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", &own);
        let before = crate::support::files(&tree.path());
        let items = |path: &str| {
            let answer = api.get(&format!("{path}?page_size=200")).expect(200).body;
            answer["items"].as_array().unwrap().clone()
        };
        let mut all: Vec<(String, Value)> = Vec::new();
        let mut take = |path: &str, name: &str| {
            all.extend(
                items(path)
                    .into_iter()
                    .map(|item| (format!("{path}/{}", item[name].as_str().unwrap()), item)),
            );
        };
        take("/v1/clusters", "id");
        take("/organizations", "identifier");
        for organization in items("/organizations") {
            for kind in
                ["infrastructure", "base-domains", "identity-providers", "cloud-accounts", "topics", "users"]
            {
                take(
                    &format!("/organizations/{}/{kind}", organization["identifier"].as_str().unwrap()),
                    "id",
                );
            }
        }
        for (path, item) in all.into_iter().filter(|(path, _)| path != "/organizations/root") {
            kinds.insert(path.rsplit('/').nth(1).unwrap().to_owned());
            api.call(&format!("PUT {path}"), item).expect(200);
            assert_eq!(crate::support::files(&tree.path()), before, "{path}");
        }
        assert_eq!(api.serve.stop(), Some(0));
    }
    assert_eq!(kinds.len(), 8, "{kinds:?}");
}

#[test]
fn an_organization_may_be_named_by_its_id_in_a_body_too() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let id = api.get("/organizations/acme").expect(200).body["id"].clone();
    let mut body = cluster();
    body["organization"] = id.clone();
    let made = api.call("POST /v1/clusters", body.clone()).expect(201).body;
    assert_eq!(made["organization"], "acme");
    api.call("PUT /v1/clusters/payments", body).expect(200);
    api.call("PATCH /v1/clusters/payments", json!({"organization": id.clone(), "kafka_units": 2}))
        .expect(200);
    let file = tree.read("acme/clusters/payments.yaml");
    assert!(file.contains("\norganization: acme\n") && file.contains("\nkafka_units: 2\n"), "{file}");
    let mut second = fleet();
    second["organization"] = id;
    second["infra_type"] = json!("directory");
    second["advanced_config"] = json!({});
    api.call("POST /organizations/acme/infrastructure", second).expect(201);
    let file = tree.read("acme/fleets/us.yaml");
    assert!(file.contains("\norganization: acme\n") && !file.contains("{}"), "{file}");
    let mut wrong = cluster();
    wrong["organization"] = json!(4);
    api.call("POST /v1/clusters", wrong).refused(422, "invalid", "`organization` is not a string");
    api.call("POST /v1/clusters", Value::Null).refused(400, "malformed", "cannot read the body: it is empty");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_dry_run_answers_with_the_plan_and_leaves_nothing() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let before = crate::support::files(&tree.path());
    let patch = api.call("PATCH /v1/clusters/orders?dry_run=true", json!({"kafka_units": 2})).expect(200);
    assert_eq!(patch.body["summary"]["change"], 1, "{:#}", patch.body);
    assert_eq!(patch.body["fleets"][0]["changes"][0]["resource"], "Cluster/acme/orders");
    let create = api.call("POST /v1/clusters?dry_run=true", cluster()).expect(200);
    assert_eq!(create.body["summary"]["create"], 1, "{:#}", create.body);
    let edit = api.call("PATCH /v1/clusters/orders?dry_run=file", json!({"kafka_units": 2})).expect(200).body;
    assert_eq!(
        (&edit["path"], &edit["message"]),
        (&json!("acme/clusters/orders.yaml"), &json!("Set kafka_units of cluster acme/orders to 2"))
    );
    let [then, now] = ["before", "after"].map(|text| edit[text].as_str().unwrap());
    assert_eq!(then.replace("kafka_units: 1", "kafka_units: 2"), now);
    let gone = api.call("DELETE /v1/clusters/sandbox?dry_run=file", Value::Null).expect(200).body;
    assert!(gone["before"].is_string() && gone["after"].is_null(), "{gone:#}");
    let secret = api.call("POST /organizations/acme/infrastructure?dry_run=file", super::exchanges::fleet());
    let text = secret.expect(200).body.to_string();
    assert!(text.contains("sealed") && !text.contains("kubeconfig-token"), "{text}");
    api.call("POST /v1/clusters?dry_run=maybe", cluster()).refused(
        400,
        "malformed",
        "the query parameter `dry_run` is `maybe`, and must be `true`, `file` or `false`",
    );
    assert_eq!(crate::support::files(&tree.path()), before);
    api.get("/v1/clusters/payments").refused(
        404,
        "not_found",
        "there is no cluster `payments`, or the caller may not see it",
    );
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_dry_run_opens_what_is_sealed_in_the_tree_as_the_real_plan_does() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let (cert, key) = certificate("streams.acme.example.com");
    let domain = json!({"domain": "streams.acme.example.com", "tls_cert": cert, "tls_key": key});
    api.call("POST /organizations/acme/base-domains", domain).expect(201);
    let mut second = fleet();
    second["infra_type"] = json!("directory");
    second["domain"] = json!("streams.acme.example.com");
    second["advanced_config"] = json!({});
    api.call("POST /organizations/acme/infrastructure", second).expect(201);
    let us = "/organizations/acme/infrastructure/us";
    api.serve.until("it is made", || (api.get(us).body["status"] == "Healthy").then_some(()));
    let mut on_it = cluster();
    on_it["infrastructure"] = json!("us");
    let plan = api.call("POST /v1/clusters?dry_run=true", on_it).expect(200).body;
    let fleets = plan["fleets"].as_array().unwrap().iter();
    let changes = fleets.flat_map(|fleet| fleet["changes"].as_array().unwrap());
    let change = changes.into_iter().find(|change| change["resource"] == "Cluster/acme/payments").unwrap();
    assert_eq!((&change["verb"], &change["waiting"]), (&json!("create"), &json!([])), "{plan:#}");
    assert!(!plan.to_string().contains("PRIVATE KEY"));
    // A posted tree may come from anyone.
    let file = tree.read("acme/base-domains/streams.acme.example.com.yaml");
    assert!(file.contains("encrypted: |"), "{file}");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_call_that_is_refused_leaves_no_trace() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let before = crate::support::files(&tree.path());
    let with = |body: Value, field: &str, value: Value| {
        let mut body = body;
        body[field] = value;
        body
    };
    for (what, body, status, code) in [
        ("POST /v1/clusters", with(cluster(), "identifier", json!("orders")), 409, "duplicate"),
        ("POST /v1/clusters", with(cluster(), "kafka_units", json!(200)), 409, "capacity"),
        ("POST /v1/clusters", with(cluster(), "infrastructure", json!("nowhere")), 422, "invalid"),
        ("POST /v1/clusters", with(cluster(), "identifier", json!("../../etc")), 422, "invalid"),
        ("POST /v1/clusters", with(cluster(), "kafka_unit", json!(2)), 422, "invalid"),
        ("POST /v1/clusters", with(cluster(), "kafka_units", json!("two")), 422, "invalid"),
        ("POST /v1/clusters", with(cluster(), "organization", json!("nobody")), 404, "not_found"),
        ("POST /v1/clusters", json!([1]), 400, "malformed"),
        ("POST /v1/clusters", with(cluster(), "organization", Value::Null), 422, "invalid"),
        (
            "POST /organizations/acme/infrastructure",
            with(fleet(), "organization", json!("other")),
            422,
            "invalid",
        ),
        (
            "POST /organizations/acme/infrastructure",
            with(fleet(), "advanced_config", json!({"kubeconfig": {"from_file": "x"}})),
            422,
            "invalid",
        ),
        ("PATCH /organizations/acme/infrastructure/eu", json!({"max_kafka_units": 1}), 409, "capacity"),
        ("PATCH /v1/clusters/orders", json!({"infrastructure": "us"}), 422, "invalid"),
        ("DELETE /v1/clusters/orders", Value::Null, 409, "protected"),
        ("DELETE /organizations/acme/base-domains/kafka.acme.example.com", Value::Null, 409, "not_empty"),
        ("DELETE /organizations/root", Value::Null, 409, "not_editable"),
    ] {
        let answer = api.call(what, body);
        assert_eq!(
            (answer.status, &answer.body["code"]),
            (status, &json!(code)),
            "{what}: {:#}",
            answer.body
        );
        assert_eq!(crate::support::files(&tree.path()), before, "{what}");
    }
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_cluster_goes_once_it_is_not_protected_any_more() {
    let tree = Tree::example("quickstart");
    let api = Api::start_git(&tree);
    api.settle();
    // The example's sandbox is not protected.
    let going = api.call("DELETE /v1/clusters/sandbox", Value::Null).expect(202);
    assert_eq!(going.body["status"], "Deleting");
    api.serve.until("it is gone", || {
        let cluster = api.get("/v1/clusters/sandbox");
        assert!(cluster.status == 404 || cluster.body["status"] == "Deleting", "{cluster:?}");
        (cluster.status == 404).then_some(())
    });
    assert!(!tree.beside("output/acme/eu/kafka-acme--sandbox/kafkanodepool-broker.yaml").exists());
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_lives_on_no_fleet_is_gone_once_it_is_deleted_and_root_can_not_be_made() {
    let tree = Tree::example("quickstart");
    let api = Api::start_git(&tree);
    api.settle();
    let provider = json!({
        "organization": "acme", "identifier": "login", "issuer": "https://login.acme.example.com",
        "jwks_uri": "https://login.acme.example.com/keys", "audience": "kafka",
    });
    api.call("POST /organizations", json!({"identifier": "other"})).expect(201);
    api.call("POST /organizations/acme/identity-providers", provider).expect(201);
    let paths = [
        ("/organizations/acme/identity-providers/login", "identity provider acme/login"),
        ("/organizations/other", "organization other"),
    ];
    for (path, name) in paths {
        let made = || {
            let log = api.serve.log();
            log.lines().any(|line| line.contains("execute: done") && line.contains(name)).then_some(())
        };
        api.serve.until("it is planned", || (api.get(path).status == 200).then_some(()));
        api.serve.until("it is made", made);
        let going = api.call(&format!("DELETE {path}"), Value::Null).expect(202);
        assert_eq!(going.body["identifier"], path.rsplit('/').next().unwrap());
        // Until the deletion is done, the request can be repeated.
        let again = api.call(&format!("DELETE {path}"), Value::Null);
        assert!([202, 404].contains(&again.status), "{again:?}");
        api.serve.until("it is gone", || (api.get(path).status == 404).then_some(()));
    }
    let root = api.call("POST /organizations", json!({"identifier": "root"}));
    root.refused(409, "duplicate", "organization `root` always exists, and has no members");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_deletion_that_waits_can_be_taken_back_and_is_told_as_going() {
    let tree = Tree::example("quickstart");
    let policy = "[policy]\ncluster_deletions_per_hour = 0\n";
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", policy);
    api.settle();
    let sandbox = api.get("/v1/clusters/sandbox").expect(200).body;
    let file = tree.read("acme/clusters/sandbox.yaml");
    api.call("DELETE /v1/clusters/sandbox", Value::Null).expect(202);
    let waits = || {
        let now = api.get("/v1/clusters/sandbox").expect(200).body;
        assert_eq!(now["status"], "Deleting");
        now["status_reason"].as_str()?.contains("approval").then_some(())
    };
    api.serve.until("it is planned", waits);
    let patch = api.call("PATCH /v1/clusters/sandbox", json!({"kafka_units": 1}));
    patch.refused(409, "going", "cluster acme/sandbox is being deleted");
    let mut body = sandbox.clone();
    for told in [
        "id",
        "created_at",
        "updated_at",
        "status",
        "status_reason",
        "conditions",
        "destroyer_name",
        "version_updater_name",
        "console_url",
        "metrics_endpoint",
        "null_reasons",
        "client_properties",
        "new_version",
        "storage_manifests_file_path",
    ] {
        body.as_object_mut().unwrap().remove(told);
    }
    let again = api.call("POST /v1/clusters", body).expect(201).body;
    assert_eq!((&again["id"], &again["created_at"]), (&sandbox["id"], &sandbox["created_at"]));
    assert_ne!(tree.read("acme/clusters/sandbox.yaml"), file, "comments went with the file");
    api.serve.until("it is as it was", || {
        (api.get("/v1/clusters/sandbox").expect(200).body["status"] == "Written").then_some(())
    });
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_deletion_that_waits_for_approval_is_told_as_going_with_what_it_waits_for() {
    let tree = Tree::example("quickstart");
    tree.edit(
        "acme/clusters/orders.yaml",
        "kafka_units: 1\n",
        "kafka_units: 1\ndeletion_protection: false\n",
    );
    let policy = "[policy]\ncluster_deletions_per_hour = 0\n";
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", policy);
    api.settle();
    let names = ["orders", "sandbox"];
    for name in names {
        let going = api.call(&format!("DELETE /v1/clusters/{name}"), Value::Null).expect(202).body;
        assert_eq!(going["status"], "Deleting");
    }
    for name in names {
        let path = format!("/v1/clusters/{name}");
        let now = api.serve.until("it is planned", || {
            let now = api.get(&path).expect(200).body;
            assert_eq!(now["status"], "Deleting", "{now:#}");
            now["status_reason"].as_str()?.starts_with("spec file missing: ").then_some(now)
        });
        let reason = now["status_reason"].as_str().unwrap();
        assert!(reason.ends_with(": limit of 0 cluster deletions per fleet and hour"), "{now:#}");
        let conditions = now["conditions"].as_array().unwrap();
        assert!(
            conditions.iter().any(|it| it["kind"] == "DeletionWaits" && it["message"] == reason),
            "{now:#}"
        );
        let told = format!("cluster acme/{name} is being deleted");
        api.call(&format!("PATCH {path}"), json!({"kafka_units": 1})).refused(409, "going", &told);
        api.call(&format!("PUT {path}"), cluster()).refused(409, "going", &told);
        assert_eq!(api.call(&format!("DELETE {path}"), Value::Null).expect(202).body["status"], "Deleting");
        let plan = api.call(&format!("DELETE {path}?dry_run=true"), Value::Null).expect(200).body;
        assert_eq!(plan["summary"]["waiting"], 2, "{plan:#}");
    }
    let going = api.get("/v1/clusters?status=Deleting").expect(200).body;
    assert_eq!(going["total"], 2, "{going:#}");
    assert_eq!(api.get("/v1/clusters?status=Written").expect(200).body["total"], 0);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_file_that_a_person_broke_is_left_and_named() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let broken = tree.read("acme/clusters/orders.yaml") + "bad: [unclosed\n";
    tree.write("acme/clusters/orders.yaml", &broken);
    api.serve.until("it is read", || api.serve.log().contains("`[` is not closed").then_some(()));
    for what in ["PATCH /v1/clusters/orders", "PUT /v1/clusters/orders"] {
        let answer = api.call(what, json!({"kafka_units": 2}));
        assert_eq!((answer.status, &answer.body["code"]), (409, &json!("not_editable")), "{:#}", answer.body);
        assert_eq!(answer.body["errors"][0]["file"], "acme/clusters/orders.yaml");
    }
    assert_eq!(api.get("/v1/clusters?status=Deleting").expect(200).body["total"], 0);
    let mut orders = cluster();
    orders["identifier"] = json!("orders");
    let answer = api.call("POST /v1/clusters", orders);
    assert_eq!((answer.status, &answer.body["code"]), (409, &json!("not_editable")), "{:#}", answer.body);
    assert_eq!(tree.read("acme/clusters/orders.yaml"), broken);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_was_just_made_can_be_referred_to_at_once() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let mut second = fleet();
    second["infra_type"] = json!("directory");
    second["advanced_config"] = json!({});
    api.call("POST /organizations/acme/infrastructure", second).expect(201);
    let mut on_it = cluster();
    on_it["infrastructure"] = json!("us");
    api.call("POST /v1/clusters", on_it).expect(201);
    api.call("PATCH /v1/clusters/payments", json!({"kafka_units": 2})).expect(200);
    let all = api.get("/v1/clusters?infrastructure=us").expect(200).body;
    assert_eq!((&all["total"], &all["items"][0]["kafka_units"]), (&json!(1), &json!(2)));
    assert_eq!(api.serve.stop(), Some(0));
}
