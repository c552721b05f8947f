//! The documents of resources and who changed them.

use serde_json::{Value, json};

use super::exchanges::{KUBECONFIG, fleet};
use super::{Api, git, new_token, push};
use crate::support::Tree;

const ADMIN: &str = "platform@acme.example.com";
const VIEWER: &str = "v@x.example";

fn with_viewer() -> Tree {
    let tree = Tree::example("quickstart");
    tree.edit("organizations.yaml", "members:", &format!("members:\n  - {{email: {VIEWER}, role: viewer}}"));
    tree
}

fn text(answer: &Value) -> &str {
    answer["text"].as_str().unwrap_or_else(|| panic!("{answer:#}"))
}

#[test]
fn a_document_is_shown_as_its_file_has_it_and_secrets_are_not() {
    let tree = with_viewer();
    let old = "# aws_secret_access_key = old-secret-3f9a2c\n";
    let account = "apiVersion: streamfleet/v1\nkind: CloudAccount\norganization: acme\nidentifier: aws\nprovider: aws\nregion: eu-central-1\n\
                   credentials: |\n  [default]\n  aws_access_key_id = AKIAEXAMPLE\n  aws_secret_access_key = plain-secret-3f9a2c\n";
    tree.write("acme/aws.yaml", format!("{old}{account}---\n{}", tree.read("acme/clusters/sandbox.yaml")));
    tree.remove("acme/clusters/sandbox.yaml");
    let api = Api::start(&tree);
    api.settle();
    let viewer = new_token(&tree, VIEWER, "acme", "read");
    let file = |path: &str| {
        let answer = api.call_as(&viewer, &format!("GET {path}/file"), &[], Value::Null).expect(200).body;
        let shown = answer.to_string();
        for secret in ["3f9a2c", "AKIAEXAMPLE", "PRIVATE KEY", "AGE ENCRYPTED"] {
            assert!(!shown.contains(secret), "{secret}: {answer:#}");
        }
        answer
    };
    let orders = file("/v1/clusters/orders");
    assert_eq!(text(&orders), tree.read("acme/clusters/orders.yaml"));
    let lines = text(&orders).lines().count();
    assert_eq!(
        (&orders["path"], &orders["first_line"], &orders["last_line"], &orders["reason"]),
        (&json!("acme/clusters/orders.yaml"), &json!(1), &json!(lines), &Value::Null)
    );
    assert!(orders["revision"].is_string());
    let account = file("/organizations/acme/cloud-accounts/aws");
    assert!(text(&account).contains("credentials: |\n  ‹hidden›\n"), "{account:#}");
    assert!(text(&account).starts_with("# aws_secret_access_key = ‹hidden›\n"), "{account:#}");
    let sandbox = file("/v1/clusters/sandbox");
    assert!(text(&sandbox).starts_with("# A small cluster"), "{sandbox:#}");
    assert_eq!(sandbox["first_line"].as_u64(), account["last_line"].as_u64().map(|last| last + 2));
    let domain = file("/organizations/acme/base-domains/kafka.acme.example.com");
    assert!(text(&domain).contains("tls_key: |\n  ‹hidden›\n"), "{domain:#}");
    // What was just written is shown at once, and what was sent in plain text is sealed.
    api.call("POST /organizations/acme/infrastructure", fleet()).expect(201);
    let us = file("/organizations/acme/infrastructure/us");
    assert!(text(&us).contains("encrypted: |\n      ‹sealed›\n"), "{us:#}");
    assert!(KUBECONFIG.contains("3f9a2c"));
    api.call("PATCH /v1/clusters/orders", json!({"region": "there"})).expect(200);
    assert!(text(&file("/v1/clusters/orders")).contains("region: there"));
    // A mistake doesn't keep the document from being read.
    tree.edit("acme/clusters/orders.yaml", "kafka_units: 1", "kafka_units: many");
    // In the middle of the edit, the file is empty.
    let known = || file("/v1/clusters/orders")["text"].as_str()?.contains("kafka_units: many").then_some(());
    api.serve.until("the mistake is shown", known);
    let root = api.get("/organizations/root/file").expect(200).body;
    let reason = "organization `root` always exists, and no file describes it";
    assert_eq!(
        root,
        json!({"path": null, "first_line": null, "last_line": null, "text": null, "revision": null, "reason": reason})
    );
    let history = api.get("/v1/clusters/orders/history").expect(200).body;
    let reason = "the specs are in a folder and not in a git repository";
    assert_eq!(history, json!({"items": [], "next_page_token": null, "reason": reason}));
    for what in ["file", "history"] {
        api.get(&format!("/v1/clusters/none/{what}")).refused(
            404,
            "not_found",
            "there is no cluster `none`, or the caller may not see it",
        );
    }
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_a_shared_file_says_of_others_is_not_shown() {
    let tree = with_viewer();
    let organizations = tree.read("organizations.yaml");
    let other = "---\n# hotel is acme's worst rival\napiVersion: streamfleet/v1\nkind: Organization\nidentifier: hotel\nquotas: {fleets: 1}\n";
    tree.write("organizations.yaml", format!("# acme and hotel\n{organizations}# and now hotel\n{other}"));
    let api = Api::start_git(&tree);
    api.settle();
    let viewer = new_token(&tree, VIEWER, "acme", "read");
    let get = |path: &str| api.call_as(&viewer, &format!("GET {path}"), &[], Value::Null).expect(200).body;
    let file = get("/organizations/acme/file");
    assert!(text(&file).starts_with("apiVersion:") && !text(&file).contains("hotel"), "{file:#}");
    let history = get("/organizations/acme/history");
    let reason = "the file of the resource may also describe resources of other organizations";
    assert_eq!(history, json!({"items": [], "next_page_token": null, "reason": reason}));
    assert_eq!(api.get("/organizations/acme/history").expect(200).body["items"][0]["subject"], "first");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn who_changed_a_file_is_told_as_far_as_the_caller_knows_them() {
    let tree = with_viewer();
    let api = Api::start_git(&tree);
    api.settle();
    let [viewer, admin] =
        [(VIEWER, "read"), (ADMIN, "admin")].map(|(owner, access)| new_token(&tree, owner, "acme", access));
    let history = |token: &str| {
        let answer = api.call_as(token, "GET /v1/clusters/orders/history", &[], Value::Null).expect(200).body;
        assert_eq!((&answer["next_page_token"], &answer["reason"]), (&Value::Null, &Value::Null));
        answer["items"].as_array().unwrap().clone()
    };
    let region = |token: &str, region: &str| {
        let region = json!({"region": region});
        api.call_as(token, "PATCH /v1/clusters/orders", &[], region).expect(200);
    };
    region(&admin, "there");
    region(&api.token, "here");
    let seen = history(&viewer);
    let head = git(&tree.beside("specs.git"), "rev-parse main");
    assert_eq!(
        (seen.len(), &seen[0]["id"], &seen[0]["path"]),
        (3, &json!(head), &json!("acme/clusters/orders.yaml"))
    );
    let file = api.get("/v1/clusters/orders/file").expect(200).body;
    assert_eq!(file["revision"], json!(head));
    let authors = |items: &[Value]| -> Vec<Value> {
        items.iter().map(|item| item["author"]["email"].clone()).collect()
    };
    let subjects =
        |items: &[Value]| -> Vec<bool> { items.iter().map(|item| item["subject"].is_string()).collect() };
    // A super user and Bob are no members, and the first commit is not only about acme.
    assert_eq!(authors(&seen), [Value::Null, json!(ADMIN), Value::Null]);
    assert_eq!(subjects(&seen), [true, true, false]);
    let all = history(&api.token);
    assert_eq!(authors(&all), [json!(super::ROOT), json!(ADMIN), json!("bob@example.com")]);
    assert_eq!((&all[2]["subject"], &all[2]["author"]["name"]), (&json!("first"), &json!("Bob")));
    for token in ["!", "bm9uZQ", ""] {
        let path = format!("/v1/clusters/orders/history?page_token={token}");
        assert_eq!(api.get(&path).status, 400, "{token}");
    }
    // A removed file has a history, too.
    git(&tree.path(), "pull --quiet ../specs.git main");
    tree.remove("acme/clusters/orders.yaml");
    push(&tree, "gone");
    // A write fetches.
    api.call("PATCH /v1/clusters/sandbox", json!({"region": "there"})).expect(200);
    api.serve.until("the removal is known", || {
        (api.get("/v1/clusters/orders/file").expect(200).body["text"] == Value::Null).then_some(())
    });
    assert_eq!(history(&api.token)[0]["subject"], "gone");
    assert_eq!(api.serve.stop(), Some(0));
}
