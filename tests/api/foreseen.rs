//! A request that no plan could ever carry out is refused right away, with the plan's wording.

use serde_json::{Value, json};

use super::exchanges::certificate;
use super::{Api, Reply};
use crate::support::{Tree, files};

const ORDERS: &str = "/v1/clusters/orders";
const FLEET: &str = "/organizations/acme/infrastructure/eu";

/// Each error of an answer: pointer, place, detail and hint.
fn said(answer: &Reply) -> String {
    let errors = answer.body["errors"].as_array().into_iter().flatten();
    let said = errors.map(|error| {
        let text = |name: &str| error[name].as_str().unwrap_or("-").to_owned();
        let (pointer, file) = (text("pointer"), text("file"));
        format!("{pointer} in {file}: {}\n  = {}\n", text("detail"), text("hint"))
    });
    let (status, code) = (answer.status, answer.body["code"].as_str().unwrap_or("-"));
    format!("{status} {code}\n{}", said.collect::<String>())
}

#[test]
fn what_no_plan_would_do_is_refused_with_the_words_of_the_plan() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    let (cert, key) = certificate("streams.acme.example.com");
    let domain = json!({"domain": "streams.acme.example.com", "tls_cert": cert, "tls_key": key});
    api.call("POST /organizations/acme/base-domains", domain).expect(201);
    api.settle();
    let before = files(&tree.path());
    let in_cluster = |name: &str, value: Value| json!({"advanced_config": {name: value}});
    let mut all = Vec::new();
    for (path, body) in [
        (ORDERS, in_cluster("version", json!("4.2.1"))),
        (ORDERS, in_cluster("storage", json!({"size_gib": 10}))),
        (ORDERS, in_cluster("storage", json!({"class": "fast"}))),
        (FLEET, in_cluster("storage_class", json!("fast"))),
        (FLEET, json!({"domain": "streams.acme.example.com"})),
    ] {
        let real = api.call(&format!("PATCH {path}"), body.clone());
        let tried = api.call(&format!("PATCH {path}?dry_run=true"), body.clone());
        assert_eq!(said(&real), said(&tried));
        assert_eq!(files(&tree.path()), before, "{body}");
        all.push(format!("{body}\n{}", said(&real)));
    }
    insta::assert_snapshot!(all.join("\n"));

    // The plan has the same wording once the edit is made by hand in the file.
    tree.edit("acme/clusters/orders.yaml", "version: 4.3.1", "version: 4.2.1");
    let plan = api.serve.until("it is planned", || {
        let plan = api.get("/v1/plan").expect(200).body;
        plan["problems"].as_array()?.iter().find(|it| it["severity"] == "error").cloned()
    });
    assert!(all[0].contains(plan["message"].as_str().unwrap()), "{plan:#}");
    assert!(all[0].contains(plan["hint"].as_str().unwrap()), "{plan:#}");
    // Another version that is too old has the same words, and isn't known before.
    let older = api.call(&format!("PATCH {ORDERS}"), in_cluster("version", json!("4.2.0")));
    assert_eq!(older.status, 422, "{:#}", older.body);
    // Other edits aren't blocked.
    let tags = json!({"tags": [{"key": "team", "value": "shop"}]});
    api.call(&format!("PATCH {ORDERS}"), tags).expect(200);
    api.call(&format!("PATCH {FLEET}"), json!({"max_tenants": 6})).expect(200);
    let worse = api.call(&format!("PATCH {ORDERS}"), in_cluster("storage", json!({"class": "fast"})));
    assert_eq!(worse.status, 422, "{:#}", worse.body);
    api.call(&format!("PATCH {ORDERS}"), in_cluster("version", json!("4.3.1"))).expect(200);
    assert_eq!(api.serve.stop(), Some(0));
}

/// The record has an edit only after it was carried out, and a call may come before that.
#[test]
fn an_edit_counts_from_the_one_before_it_at_any_moment() {
    let tree = Tree::example("topics");
    let api = Api::start(&tree);
    api.settle();
    let topic = "/organizations/acme/topics/orders%2Frefunds";
    let new = json!({"organization": "acme", "cluster": "orders", "name": "refunds", "partitions": 3});
    api.call("POST /organizations/acme/topics", new).expect(201);
    api.settle();
    for more in 1..6 {
        let size = |gib: u64| json!({"advanced_config": {"storage": {"size_gib": gib}}});
        api.call(&format!("PATCH {ORDERS}"), size(1000 * more)).expect(200);
        let fewer = api.call(&format!("PATCH {ORDERS}"), size(1000 * more - 10));
        // The words are those of the specs or of the objects, whichever are further by then.
        let words = said(&fewer);
        let is_refused = words.starts_with("422 invalid\n/advanced_config/storage/size_gib in -: ");
        assert!(is_refused && words.contains("shrink"), "{words}");
        // A topic waits for its cluster's change, and until then its own can be taken back.
        api.settle();
        let partitions = |count: u64| json!({"partitions": count});
        api.call(&format!("PATCH {topic}"), partitions(3 + 2 * more)).expect(200);
        let fewer = api.call(&format!("PATCH {topic}"), partitions(2 + 2 * more));
        assert!(said(&fewer).starts_with("422 invalid\n/partitions in -: "), "{}", said(&fewer));
        assert!(said(&fewer).contains("would shrink"), "{}", said(&fewer));
    }
    api.settle();
    assert_eq!(api.get("/v1/plan").expect(200).body["summary"]["errors"], 0);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_version_whose_metadata_was_not_raised_can_be_taken_back() {
    let tree = Tree::example("quickstart");
    tree.edit("acme/clusters/orders.yaml", "version: 4.3.1", "version: 4.2.1");
    let api = Api::start(&tree);
    api.settle();
    let version = |version: &str| json!({"advanced_config": {"version": version}});
    let kafka = tree.beside("output/acme/eu/kafka-acme--orders/kafka-orders.yaml");
    let runs = |version: &str| {
        let text = std::fs::read_to_string(&kafka).ok()?;
        text.contains(&format!("version: \"{version}\"\n")).then_some(())
    };
    api.call(&format!("PATCH {ORDERS}"), version("4.3.1")).expect(200);
    api.serve.until("brokers are told", || runs("4.3.1"));
    api.call(&format!("PATCH {ORDERS}"), version("4.2.1")).expect(200);
    api.serve.until("they are told to go back", || runs("4.2.1"));
    assert_eq!(api.get("/v1/plan").expect(200).body["summary"]["errors"], 0);
    assert_eq!(api.serve.stop(), Some(0));
}
