//! Tokens over the API: creation, listing and invalid bodies.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::exchanges::cluster;
use super::{Api, ROOT, new_token};
use crate::support::Tree;
use crate::support::control_plane::PATIENCE;

#[test]
fn a_revoked_token_ends_what_is_on_its_way() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let token = new_token(&tree, ROOT, "*", "admin");
    let body = cluster().to_string();
    let mut stream = TcpStream::connect(&api.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /v1/clusters HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
    )
    .unwrap();
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n", "it is let in");
    let tokens = api.get("/v1/tokens").expect(200).body;
    let id = tokens["items"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap();
    api.call(&format!("DELETE /v1/tokens/{id}"), Value::Null).expect(204);
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert!(answer.contains("the token is unknown, expired or revoked"), "{answer}");
    api.get("/v1/clusters/payments").expect(404);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_token_that_has_expired_is_refused_and_the_log_says_why() {
    let tree = Tree::example("quickstart");
    std::fs::write(tree.beside("settings.toml"), "state_dir = \"state\"\noutput_dir = \"output\"\n").unwrap();
    let [over, good] = ["*", "acme"].map(|organization| new_token(&tree, ROOT, organization, "admin"));
    // Backdate the first token by a day instead of waiting.
    let file = tree.beside("state/tokens.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let (first, others) = text.split_once('\n').unwrap();
    let mut first: Value = serde_json::from_str(first).unwrap();
    first["created_at"] = "2026-01-01T00:00:00Z".into();
    first["expires_at"] = "2026-01-02T00:00:00Z".into();
    std::fs::write(&file, format!("{first}\n{others}")).unwrap();
    let api = Api::start(&tree);
    api.settle();
    for what in ["GET /v1/clusters", "DELETE /v1/clusters/orders", "DELETE /v1/tokens/none"] {
        let answer = api.call_as(&over, what, &[], Value::Null);
        answer.refused(401, "unauthenticated", "the token is unknown, expired or revoked");
        assert_eq!(answer.header("www-authenticate").as_deref(), Some("bearer"), "{}", answer.head);
    }
    api.call_as(&good, "GET /v1/clusters", &[], Value::Null).expect(200);
    api.serve.says(&["request refused: ", "expired at 2026-01-02T00:00:00"]);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_token_in_the_address_is_refused_and_stands_in_no_log() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    for what in ["DELETE /v1/tokens/TOKEN", "GET /v1/tokens/TOKEN", "GET /TOKEN", "GET /v1/clusters?x=TOKEN"]
    {
        let answer = api.call(&what.replace("TOKEN", &api.token), Value::Null);
        let expected = if what.contains("GET /v1/tokens/") {
            405
        } else if what == "GET /TOKEN" {
            404
        } else {
            401
        };
        assert_eq!(answer.status, expected, "{what}: {:#}", answer.body);
        assert!(!format!("{answer:?}").contains(&api.token[..20]), "{answer:?}");
    }
    api.get("/v1/tokens").expect(200);
    let log = api.serve.log();
    assert_eq!(api.serve.stop(), Some(0));
    assert!(!log.contains(&api.token[..20]) && log.contains("path=\"/v1/tokens/sf_…\""), "{log}");
}

#[test]
fn who_makes_a_token_is_told_what_it_is_good_for() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let make = |owner: &str, organization: &str, access: &str| {
        let order = json!({"name": "ci", "owner": owner, "organization": organization, "access": access});
        let made = api.call("POST /v1/tokens", order).expect(201).body;
        assert_eq!((&made["owner"], &made["access"]), (&owner.into(), &access.into()));
        made["warnings"].clone()
    };
    assert_eq!(make("platform@acme.example.com", "acme", "admin"), json!([]));
    assert_eq!(make(ROOT, "*", "admin"), json!([]));
    assert_eq!(
        make("bob@example.com", "acme", "read"),
        json!([
            "bob@example.com is neither a member of organization acme in the specs nor a super user; the token is \
                useless until that changes"
        ])
    );
    assert_eq!(
        make("platform@acme.example.com", "acne", "read"),
        json!([
            "platform@acme.example.com is neither a member of organization acne in the specs nor a super user; the \
                token is useless until that changes"
        ])
    );
    let none = "organization acne is not in the specs; the token is useless until it is";
    assert_eq!(make(ROOT, "acne", "read"), json!([none]));
    // A new membership counts at once.
    let members = json!({"members": [{"email": "bob@example.com", "role": "viewer"}]});
    api.call("PATCH /organizations/acme", members).expect(200);
    assert_eq!(make("bob@example.com", "acme", "read"), json!([]));
    assert_eq!(
        make("bob@example.com", "acme", "write"),
        json!([
            "bob@example.com may only read in organization acme; the token can't do more until that changes"
        ])
    );
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_is_wrong_with_a_token_that_is_asked_for_is_told_by_its_fields() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let own = new_token(&tree, "platform@acme.example.com", "acme", "write");
    let order = |field: &str, value: Value| {
        let mut order = json!({"name": "ci", "organization": "acme", "access": "read"});
        match value {
            Value::Null => drop(order.as_object_mut().unwrap().remove(field)),
            value => order[field] = value,
        }
        order
    };
    let ask = |body: Value, status: u16, code: &str, error: Value| {
        let refused = api.call_as(&own, "POST /v1/tokens", &[], body);
        refused.refused(status, code, error["detail"].as_str().unwrap());
        let errors = json!([{
            "pointer": error["pointer"], "detail": error["detail"], "hint": error["hint"], "file": null, "line": null,
        }]);
        assert_eq!(refused.body["errors"], errors, "{:#}", refused.body);
    };
    let error =
        |pointer: &str, detail: &str, hint: &str| json!({"pointer": pointer, "detail": detail, "hint": hint});
    ask(
        order("acess", json!("read")),
        422,
        "invalid",
        error("/acess", "unknown key `acess`", "did you mean `access`?"),
    );
    ask(
        order("name", Value::Null),
        422,
        "invalid",
        error("/name", "missing key `name`", "add `name`: a string of 1 to 64 characters"),
    );
    ask(
        order("access", json!(["read"])),
        422,
        "invalid",
        error(
            "/access",
            "`access`: expected `read`, `write` or `admin`, found a list",
            "send `read`, `write` or `admin`",
        ),
    );
    ask(
        order("days", json!(366)),
        422,
        "invalid",
        error(
            "/days",
            "`days`: expected an integer from 1 to 365, found the number `366`",
            "send an integer from 1 to 365",
        ),
    );
    ask(
        order("name", json!(" ci")),
        422,
        "invalid",
        error(
            "/name",
            "the name of a token must have 1 to 64 characters, without control characters and spaces at its ends",
            "choose another name",
        ),
    );
    let excess = |field: &str, value: Value, detail: &str| {
        let pointer = format!("/{field}");
        let hint = "request no more than this token allows, or have a person with that access create it";
        let error = json!({"pointer": pointer, "detail": detail, "hint": hint});
        ask(order(field, value), 403, "forbidden", error);
    };
    excess("owner", json!("bob@example.com"), "creating tokens for others requires a super user");
    excess(
        "organization",
        json!("*"),
        "a token for organization `acme` can't create one for all organizations",
    );
    excess("access", json!("admin"), "a token for `write` can't create one for `admin`");
    let ends =
        api.call_as(&own, "GET /v1/tokens", &[], Value::Null).expect(200).body["items"][0]["expires_at"]
            .clone();
    let ends = ends.as_str().unwrap();
    excess(
        "days",
        json!(365),
        &format!("a token can't create one that expires later, and this one expires at {ends}"),
    );
    let mut two = order("days", json!(0));
    two["scope"] = json!("all");
    let refused = api.call_as(&own, "POST /v1/tokens", &[], two);
    refused.refused(422, "invalid", "the request has 2 errors");
    // The two above, and that of the link which the log of a first start has.
    assert_eq!(api.get("/v1/tokens").body["total"], 3);
    // Without a lifetime in the request, a token ends no later than the one that creates it.
    let made = api.call_as(&own, "POST /v1/tokens", &[], order("owner", Value::Null)).expect(201).body;
    assert!(made["expires_at"].as_str().unwrap() < ends, "{made:#}");
    assert_eq!(api.serve.stop(), Some(0));
}
