//! Reads: one resource, a page, and missing ones.

use serde_json::{Value, json};

use super::exchanges::cluster;
use super::{Api, new_token};
use crate::support::Tree;

#[test]
fn lists_come_in_pages_and_by_what_is_asked_for() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    for number in 1..=3 {
        let mut one = cluster();
        one["identifier"] = json!(format!("c{number}"));
        api.call("POST /v1/clusters", one).expect(201);
    }
    let names = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["identifier"].as_str().unwrap().to_owned()).collect()
    };
    let first = api.get("/v1/clusters?page_size=2").expect(200).body;
    assert_eq!((names(&first), &first["total"]), (vec!["c1".to_owned(), "c2".to_owned()], &json!(5)));
    let token = first["next_page_token"].as_str().unwrap();
    let rest = api.get(&format!("/v1/clusters?page_size=3&page_token={token}")).expect(200).body;
    assert_eq!(names(&rest), ["c3", "orders", "sandbox"]);
    assert_eq!(rest["next_page_token"], Value::Null);
    let none = api.get("/v1/clusters?infrastructure=us").expect(200).body;
    assert_eq!(none, json!({"items": [], "next_page_token": null, "total": 0}));
    assert_eq!(api.get("/organizations/acme/infrastructure/?status=Failed").expect(200).body["total"], 0);
    assert_eq!(names(&api.get("/organizations").expect(200).body), ["acme", "root"]);
    for (path, detail) in [
        (
            "/v1/clusters?page_size=0",
            "the query parameter `page_size` is `0`, and must be a number from 1 to 200",
        ),
        (
            "/v1/clusters?size=2",
            "unknown query parameter `size`; known: `organization`, `infrastructure`, `status`, `q`, `tag`, `sort`, \
             `page_size`, `page_token`",
        ),
        (
            "/v1/clusters?status=Well",
            "the query parameter `status` is `Well`, and must be one of Pending, Provisioning, Written, Healthy, Updating, \
             Upgrading, Degraded, Unreachable, Suspended, Failed, Deleting",
        ),
        ("/v1/clusters?infrastructure=", "the query parameter `infrastructure` has no value"),
        ("/v1/clusters?page_token=!", "`page_token` is not a value of `next_page_token`"),
    ] {
        api.get(path).refused(400, "malformed", detail);
    }
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn which_cluster_is_meant_has_to_be_said_where_several_have_the_identifier() {
    let tree = Tree::example("two-organizations");
    let api = Api::start(&tree);
    api.settle();
    let unclear = api.get("/v1/clusters/events");
    unclear.refused(400, "malformed", "clusters of several organizations have the identifier `events`");
    assert_eq!(unclear.body["hint"], "add `?organization=`, or use the cluster's id");
    let one = api.get("/v1/clusters/events?organization=globex").expect(200).body;
    assert_eq!(one["organization"], "globex");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_list_is_searched_and_sorted_on_the_server() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    for (name, stage) in [("zulu", "prod"), ("mike", "test")] {
        let mut one = cluster();
        one["identifier"] = json!(name);
        one["tags"] = json!([{"key": "stage", "value": stage}]);
        api.call("POST /v1/clusters", one).expect(201);
    }
    let found = |path: &str, field: &str| -> String {
        let page = api.get(path).expect(200).body;
        let items = page["items"].as_array().unwrap();
        let names: Vec<&str> = items.iter().map(|item| item[field].as_str().unwrap()).collect();
        names.join(" ")
    };
    let clusters = |words: &str| found(&format!("/v1/clusters?{words}"), "identifier");
    // Those that were just written are found and sorted like those that are planned.
    for _ in ["before the next plan", "and after it"] {
        for (words, expected) in [
            ("q=ORD", "orders"),
            ("q=eu", "mike orders sandbox zulu"),
            ("q=none", ""),
            ("tag=stage", "mike zulu"),
            ("tag=stage=prod", "zulu"),
            ("tag=stage&q=mi", "mike"),
            ("sort=-identifier", "zulu sandbox orders mike"),
            ("sort=-created_at&tag=stage", "mike zulu"),
            ("sort=created_at&tag=stage", "zulu mike"),
            ("sort=-updated_at&page_size=1", "mike"),
        ] {
            assert_eq!(clusters(words), expected, "{words}");
        }
        let first = api.get("/v1/clusters?sort=-identifier&page_size=3").expect(200).body;
        assert_eq!(first["total"], 4);
        let token = first["next_page_token"].as_str().unwrap();
        assert_eq!(clusters(&format!("sort=-identifier&page_token={token}")), "mike");
        api.get(&format!("/v1/clusters?page_token={token}")).refused(
            400,
            "malformed",
            "`page_token` is not a value of `next_page_token`",
        );
        api.settle();
    }
    assert_eq!(found("/organizations?q=corporation", "identifier"), "acme");
    assert_eq!(found("/organizations?sort=-identifier", "identifier"), "root acme");
    assert_eq!(found("/organizations/acme/base-domains?q=KAFKA.acme", "domain"), "kafka.acme.example.com");
    assert_eq!(found("/organizations/acme/infrastructure?sort=-status&q=e", "identifier"), "eu");
    for (path, detail) in [
        (
            "/organizations?sort=status",
            "the query parameter `sort` is `status`, and must be `identifier`, `created_at` or `updated_at`, with or \
             without a `-` in front",
        ),
        (
            "/v1/clusters?sort=kafka_units",
            "the query parameter `sort` is `kafka_units`, and must be `identifier`, `created_at`, `updated_at` or \
             `status`, with or without a `-` in front",
        ),
    ] {
        api.get(path).refused(400, "malformed", detail);
    }
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn root_is_there_without_a_document() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let root = api.get("/organizations/root").expect(200).body;
    assert_eq!((&root["identifier"], &root["members"]), (&json!("root"), &json!([])));
    assert_eq!(api.get("/organizations/root").expect(200).body["id"], root["id"]);
    let id = root["id"].as_str().unwrap();
    assert_eq!(api.get(&format!("/organizations/{id}")).expect(200).body["identifier"], "root");
    assert_eq!(api.get("/organizations/root/base-domains").expect(200).body["total"], 0);
    for what in ["PATCH", "DELETE"] {
        api.call(&format!("{what} /organizations/root"), json!({"display_name": "Us"})).refused(
            409,
            "not_editable",
            "organization `root` always exists, and no file describes it",
        );
    }
    // Callers without a role there can't learn that it exists.
    let admin = new_token(&tree, "platform@acme.example.com", "acme", "admin");
    api.call_as(&admin, "GET /organizations/root", &[], Value::Null).expect(404);
    let seen = api.call_as(&admin, "GET /organizations", &[], Value::Null).expect(200).body;
    assert_eq!((&seen["total"], &seen["items"][0]["identifier"]), (&json!(1), &json!("acme")));
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn when_something_was_changed_is_told_once_and_stays_so() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let told = api.call("PATCH /v1/clusters/orders", json!({"region": "there"})).expect(200).body;
    let read = || api.get("/v1/clusters/orders").expect(200).body;
    assert_eq!(read()["updated_at"], told["updated_at"]);
    api.settle();
    assert_eq!((&read()["updated_at"], &read()["region"]), (&told["updated_at"], &json!("there")));
    assert_ne!(read()["created_at"], told["updated_at"]);
    // A later process reports the same.
    assert_eq!(api.serve.stop(), Some(0));
    let run = tree.run("get cluster/acme/orders tree --config settings.toml --format json").expect(0);
    assert!(run.out.contains(told["updated_at"].as_str().unwrap()), "{}", run.out);
}

#[test]
fn answers_are_kept_by_nobody_and_taken_for_nothing_else() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    for (path, kept) in [
        ("/v1/clusters", Some("no-store")),
        ("/v1/clusters/none", Some("no-store")),
        ("/openapi.json", None),
        ("/none", None),
    ] {
        let answer = api.get(path);
        assert_eq!(answer.header("cache-control").as_deref(), kept, "{path}");
        assert_eq!(answer.header("x-content-type-options").as_deref(), Some("nosniff"), "{path}");
    }
    let token = json!({"name": "ci", "organization": "*", "access": "read"});
    let made = api.call("POST /v1/tokens", token).expect(201);
    assert_eq!(made.header("cache-control").as_deref(), Some("no-store"));
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_is_not_there_is_told_in_one_way() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    for (path, detail) in [
        ("/v1/clusters/none", "there is no cluster `none`, or the caller may not see it"),
        (
            "/v1/clusters/0190b5a4-0000-8000-8000-000000000000",
            "there is no cluster `0190b5a4-0000-8000-8000-000000000000`, or the caller may not see it",
        ),
        (
            "/v1/clusters/..%2F..%2Fetc%2Fpasswd",
            "there is no cluster `../../etc/passwd`, or the caller may not see it",
        ),
        (
            "/organizations/none/infrastructure",
            "there is no organization `none`, or the caller may not see it",
        ),
        ("/organizations/acme/infrastructure/none", "there is no fleet `none`, or the caller may not see it"),
        ("/none", "there is nothing at this path"),
    ] {
        api.get(path).refused(404, "not_found", detail);
    }
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn plans_errors_and_the_description_are_given() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let plan = api.get("/v1/plan").expect(200).body;
    assert_eq!(plan["summary"]["errors"], 0, "{plan:#}");
    let errors = api.get("/v1/errors").expect(200).body;
    assert!(errors["items"].as_array().unwrap().iter().any(|error| error["code"] == "capacity"));
    let document = api.get("/openapi.json").expect(200).body;
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/v1/clusters/{id}"]["patch"].is_object());
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_plan_is_read_again_and_again_without_another_being_made() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let made = || api.get("/v1/plan").expect(200).body["created_at"].as_str().unwrap().to_owned();
    // Another plan may be made at any time for other reasons.
    api.serve.until("the same plan is repeated", || (made() == made()).then_some(()));
    // The next plan contains the write.
    let written = api.call("POST /v1/clusters", cluster()).expect(201).body;
    let time = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
    assert!(time(&made()) >= time(written["created_at"].as_str().unwrap()));
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn events_come_in_either_order_page_by_page_while_others_happen() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let page = |words: &str| {
        let page = api.get(&format!("/v1/events?{words}")).expect(200).body;
        let items = page["items"].as_array().unwrap();
        // Event numbers would reveal how much other organizations do.
        assert!(items.iter().all(|event| event["number"].is_null()));
        let ids = items.iter().map(|event| event["id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<String>>(), page["next_page_token"].as_str().map(str::to_owned))
    };
    let (oldest_first, _) = page("page_size=200&order=asc");
    assert_eq!(page("page_size=200").0[..oldest_first.len()], oldest_first);
    assert!(oldest_first.len() > 4);
    let (mut newest_first, mut next) = page("order=desc&page_size=2");
    let mut others = 0;
    while let Some(token) = next {
        let mut another = cluster();
        another["identifier"] = json!(format!("another-{others}"));
        if others < 2 {
            api.call("POST /v1/clusters", another).expect(201);
        }
        others += 1;
        let (ids, following) = page(&format!("order=desc&page_size=2&page_token={token}"));
        newest_first.extend(ids);
        next = following;
    }
    newest_first.reverse();
    assert_eq!(page("page_size=200&order=asc").0[..newest_first.len()], newest_first);
    let found = |words: &str| api.get(&format!("/v1/events?page_size=200&{words}")).expect(200).body;
    let of_orders = found("resource=Cluster/acme/orders");
    assert!(of_orders["total"].as_u64().unwrap() > 0);
    let all_of = |events: &Value, field: &str, is: &Value| {
        events["items"].as_array().unwrap().iter().all(|event| event[field] == *is)
    };
    assert!(all_of(&of_orders, "resource", &json!("Cluster/acme/orders")), "{of_orders:#}");
    let created = found("verb=create");
    assert!(created["total"].as_u64().unwrap() > 1 && all_of(&created, "verb", &json!("create")));
    let (of_resources, others) = (found("about=resources"), found("about=installation"));
    assert!(all_of(&others, "resource", &Value::Null) && others.to_string().contains("created token"));
    assert!(!of_resources.to_string().contains("created token"), "{of_resources:#}");
    api.get("/v1/events?resource=orders").refused(
        400,
        "malformed",
        "the query parameter `resource` is `orders`, and must be a resource such as `Cluster/acme/orders`",
    );
    api.get("/v1/events?verb=up").refused(
        400,
        "malformed",
        "the query parameter `verb` is `up`, and must be `create`, `update`, `delete`, `keep`, `recreate` or `adopt`",
    );
    api.get("/v1/events?order=up").refused(
        400,
        "malformed",
        "the query parameter `order` is `up`, and must be `asc` or `desc`",
    );
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn where_things_are_on_the_host_is_for_those_who_run_it() {
    let tree = Tree::example("quickstart");
    let members = tree
        .read("organizations.yaml")
        .replace("members:", "members:\n  - {email: v@x.example, role: viewer}");
    tree.write("organizations.yaml", members);
    let api = Api::start(&tree);
    api.settle();
    let viewer = new_token(&tree, "v@x.example", "acme", "read");
    let path = |token: &str| {
        let read = api.call_as(token, "GET /v1/clusters/orders", &[], Value::Null).expect(200);
        read.body["storage_manifests_file_path"].as_str().unwrap().to_owned()
    };
    let below = "acme/eu/kafka-acme--orders";
    assert_eq!(path(&viewer), below);
    assert_eq!(path(&api.token), tree.beside("output").join(below).to_str().unwrap());
    assert_eq!(api.serve.stop(), Some(0));
}
