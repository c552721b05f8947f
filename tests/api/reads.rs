//! What is read: one, a page, and what isn't there.

use serde_json::{Value, json};

use super::Api;
use super::exchanges::cluster;
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
    assert_eq!(names(&api.get("/organizations").expect(200).body), ["acme"]);
    for (path, detail) in [
        ("/v1/clusters?page_size=0", "`page_size` is `0`, and has to be a number from 1 to 200"),
        (
            "/v1/clusters?size=2",
            "`size` is not asked for here; known behind the `?` are: `organization`, `infrastructure`, `status`, `page_size`, `page_token`",
        ),
        (
            "/v1/clusters?status=Well",
            "`status` is `Well`, and has to be one of Pending, Provisioning, Healthy, Updating, Upgrading, Degraded, Unreachable, Suspended, Failed, Deleting",
        ),
        ("/v1/clusters?page_token=!", "`page_token` is none that was given as `next_page_token`"),
    ] {
        api.get(path).refused(400, "malformed", detail);
    }
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
