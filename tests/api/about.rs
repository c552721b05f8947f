//! What the API says of the installation, of members and of certificates.

use serde_json::{Value, json};

use super::exchanges::certificate;
use super::{Api, git, new_token};
use crate::support::Tree;

const MEMBER: &str = "platform@acme.example.com";

#[test]
fn members_are_listed_with_the_line_that_makes_them_one() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let all = api.get("/organizations/acme/members").expect(200).body;
    let source = json!({"path": "organizations.yaml", "line": 14});
    let own = json!({"email": MEMBER, "role": "admin", "source": source});
    assert_eq!(all, json!({"items": [own.clone()], "next_page_token": null, "total": 1}));
    let members = json!({"members": [
        {"email": "Zoe@acme.example.com", "role": "viewer"}, {"email": "bo@acme.example.com", "role": "editor"},
        {"email": MEMBER, "role": "admin"},
    ]});
    api.call("PATCH /organizations/acme", members).expect(200);
    let emails = |path: &str| -> (Vec<String>, Value) {
        let page = api.get(path).expect(200).body;
        let items = page["items"].as_array().unwrap().iter();
        let emails = items.map(|item| item["email"].as_str().unwrap().to_owned()).collect();
        (emails, page["next_page_token"].clone())
    };
    // Those that were just written, too.
    let (first, next) = emails("/organizations/acme/members?page_size=2");
    assert_eq!(first, ["bo@acme.example.com", MEMBER]);
    let (rest, none) = emails(&format!("/organizations/acme/members?page_token={}", next.as_str().unwrap()));
    assert_eq!((rest, none), (vec!["Zoe@acme.example.com".to_owned()], Value::Null));
    assert_eq!(emails("/organizations/root/members").0, [""; 0]);
    api.get("/organizations/none/members").refused(
        404,
        "not_found",
        "there is no organization `none`, or the caller may not see it",
    );
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn certificates_are_listed_by_their_end() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let (tls_cert, tls_key) = certificate("more.acme.example.com");
    let domain = json!({"domain": "more.acme.example.com", "tls_cert": tls_cert, "tls_key": tls_key});
    let made = api.call("POST /organizations/acme/base-domains", domain).expect(201).body;
    let known = api.get("/organizations/acme/base-domains/kafka.acme.example.com").expect(200).body;
    let mut ends = [&made, &known].map(|record| {
        (record["not_after"].as_str().unwrap().to_owned(), record["domain"].as_str().unwrap().to_owned())
    });
    ends.sort();
    let expected = ends.map(
        |(not_after, name)| json!({"base_domain": format!("BaseDomain/acme/{name}"), "not_after": not_after}),
    );
    let all = api.get("/v1/certificates?organization=acme").expect(200).body;
    assert_eq!(all, json!({"items": expected, "next_page_token": null, "total": 2}));
    let first = api.get("/v1/certificates?page_size=1").expect(200).body;
    let token = first["next_page_token"].as_str().unwrap();
    let rest = api.get(&format!("/v1/certificates?page_token={token}")).expect(200).body;
    assert_eq!((&first["items"][0], &rest["items"]), (&expected[0], &json!([expected[1]])));
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn who_wrote_the_specs_in_force_is_for_super_users() {
    let tree = Tree::example("quickstart");
    let api = Api::start_git(&tree);
    api.settle();
    let about = api.get("/v1/about").expect(200).body;
    let plan = api.get("/v1/plan").expect(200).body;
    assert_eq!((&about["plan"], &about["planned_at"]), (&plan["id"], &plan["created_at"]));
    assert_eq!((&about["mode"], &about["version"]), (&json!("auto"), &json!(env!("CARGO_PKG_VERSION"))));
    let head = git(&tree.beside("specs.git"), "rev-parse main");
    assert_eq!(about["commit"]["id"], head.trim());
    let author = git(&tree.beside("specs.git"), "log -1 --format=%an%x20<%ae> main");
    assert_eq!(about["commit"]["author"], author.trim());
    let member = new_token(&tree, MEMBER, "acme", "read");
    let told = api.call_as(&member, "GET /v1/about", &[], Value::Null).expect(200).body;
    assert_eq!((&told["commit"], &told["installation"]), (&Value::Null, &about["installation"]));
    assert_eq!(api.serve.stop(), Some(0));
}
