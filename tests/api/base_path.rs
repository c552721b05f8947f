//! Behind a reverse proxy: the API is below a base path, and its own links have that path.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use serde_json::json;

use super::exchanges::fleet;
use super::{Api, Reply};
use crate::service::http::{announce, ask, send};
use crate::support::Tree;

const SERVE: &str = "serve --specs tree --config settings.toml";

#[test]
fn the_api_is_below_the_path_that_the_settings_name() {
    let tree = Tree::example("quickstart");
    let base = "base_url = \"https://kafka.example.com/streamfleet/\"\n";
    let api = Api::start_with(&tree, SERVE, base);
    assert_eq!(api.get("/streamfleet/v1/clusters").expect(200).body["total"], 2);

    // The Location header has the base path.
    let made = api.call("POST /streamfleet/organizations/acme/infrastructure/", fleet()).expect(201);
    let place = made.header("location").unwrap();
    assert_eq!(place, "/streamfleet/organizations/acme/infrastructure/us");
    assert_eq!(api.get(&place).expect(200).body["id"], made.body["id"]);
    let document = api.get("/streamfleet/openapi.json").expect(200).body;
    assert_eq!(document["servers"], json!([{"url": "https://kafka.example.com/streamfleet"}]));

    // Nothing is served outside of the base path, and the errors name it.
    for path in
        ["/v1/clusters", "/openapi.json", "/streamfleet", "/streamfleet/healthz", "/streamfleetv1/clusters"]
    {
        let none = api.get(path);
        none.refused(404, "not_found", "there is nothing at this path");
        assert_eq!(none.body["type"], "/streamfleet/v1/errors#not_found");
        assert_eq!(none.body["hint"], "`/streamfleet/openapi.json` lists all paths");
    }
    assert_eq!(ask(&api.address, "GET /healthz").body, "ok\n");
    assert_eq!(ask(&api.address, "GET /metrics").status, 200);

    // The socket has no base path.
    tree.run("status tree --config settings.toml").expect(0);
    let mut socket = UnixStream::connect(tree.beside("state/socket")).unwrap();
    write!(socket, "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"servers\":[{\"url\":\"/\"}]"),
        "{answer}"
    );
    assert_eq!(api.serve.stop(), Some(0));
}

fn proposed(api: &Api<'_>, length: usize) -> Reply {
    let body = json!({"files": {"a.yaml": ""}}).to_string();
    let authorization = format!("Bearer {}", api.token);
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    Reply::of(send(
        &api.address,
        "POST /v1/plans",
        &headers,
        &(body.clone() + &" ".repeat(length - body.len())),
    ))
}

/// The answer to a body of which only the length is sent.
fn announced(api: &Api<'_>, what: &str, length: usize) -> Reply {
    let authorization = format!("Bearer {}", api.token);
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    Reply::of(announce(&api.address, what, &headers, length))
}

#[test]
fn a_tree_that_is_proposed_may_be_larger_than_other_bodies_up_to_a_limit() {
    const MIB: usize = 1 << 20;
    let tree = Tree::example("quickstart");
    let api = Api::start_with(&tree, SERVE, "max_proposal_mib = 2\n");
    proposed(&api, 2 * MIB).expect(200);
    let large = "the body is larger than the limit of 2097152 bytes";
    announced(&api, "POST /v1/plans/", 2 * MIB + 1).refused(413, "too_large", large);
    let large = "the body is larger than the limit of 1048576 bytes";
    announced(&api, "POST /v1/clusters", MIB + 1).refused(413, "too_large", large);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_is_wrong_with_a_proposal_is_told_field_by_field() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    let wrong = api
        .call("POST /v1/plans", json!({"files": {"/etc/a.yaml": "", "b.yaml": "kind: Cluster"}, "file": 1}));
    wrong.refused(422, "invalid", "the request has 3 errors");
    assert_eq!(
        wrong.body["errors"],
        json!([
            {
                "pointer": "/files/~1etc~1a.yaml",
                "detail": "`/etc/a.yaml` is not a relative path inside a tree",
                "hint": "use a path such as `acme/clusters/orders.yaml`",
                "file": null,
                "line": null,
            },
            {
                "pointer": "/files/b.yaml",
                "detail": "`b.yaml` is not base64",
                "hint": "send the file's bytes as `base64 --wrap=0 FILE` prints them",
                "file": null,
                "line": null,
            },
            {
                "pointer": "/file",
                "detail": "`file` is not a field of a proposal",
                "hint": "its fields are `files`, `revision`, `commit`, `skipped` and `unreadable`",
                "file": null,
                "line": null,
            },
        ])
    );
    let wrong = api.call("POST /v1/plans", json!({"files": {"b.yaml": "kind: Cluster"}}));
    wrong.refused(422, "invalid", "`b.yaml` is not base64");
    assert_eq!(wrong.body["errors"][0]["pointer"], "/files/b.yaml");
    api.call("POST /v1/plans", json!({})).refused(422, "invalid", "`files` is missing");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_a_body_is_sent_as_is_told_where_it_is_not_taken() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    let authorization = format!("Bearer {}", api.token);
    let refused = |what: &str, headers: &[(&str, &str)], detail: &str, hint: &str| {
        let all = [&[("Authorization", authorization.as_str())], headers].concat();
        let reply = Reply::of(send(&api.address, what, &all, "{}"));
        reply.refused(415, "unsupported", detail);
        assert_eq!(reply.body["hint"], hint);
    };
    let json = "send it with a header `Content-Type: application/json`";
    refused("POST /v1/clusters", &[], "the body has no `Content-Type`", json);
    let sent =
        "the body has the content type `application/x-www-form-urlencoded`, which isn't supported here";
    let form = [("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")];
    refused("POST /v1/clusters", &form, sent, json);
    let patch = "send it with a header `Content-Type: application/merge-patch+json`";
    refused("PATCH /v1/clusters/orders", &form, sent, patch);
    let sent = "the body has the content type `application/merge-patch+json`, which isn't supported here";
    refused("PUT /v1/clusters/orders", &[("Content-Type", "application/merge-patch+json")], sent, json);
    assert_eq!(api.serve.stop(), Some(0));
}
