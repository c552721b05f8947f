//! The limit on concurrent proposals of an organization's members.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Api, new_token};
use crate::support::Tree;

#[test]
fn a_proposal_is_bounded_by_what_the_organization_may_have() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let member = new_token(&tree, "platform@acme.example.com", "acme", "write");
    let propose = |token: &str, text: String| {
        let files = json!({"files": {"acme/more.yaml": STANDARD.encode(text)}});
        api.call_as(token, "POST /v1/plans", &[], files)
    };
    let documents = |number: usize| "---\na: 1\n".repeat(number);
    propose(&member, documents(103)).expect(200);
    let why = "the files that differ from the current tree have 104 documents, and a member of organization `acme` may \
               plan 103 at a time";
    let told = propose(&member, documents(104));
    assert_eq!((told.status, &told.body["detail"]), (422, &Value::from(why)));
    assert_eq!(
        told.body["hint"],
        "propose less at a time, or ask a super user for higher quotas, which set this limit"
    );
    let why = "the files that differ from the current tree have 1687553 bytes, and a member of organization `acme` may \
               plan 1687552 at a time";
    let told = propose(&member, "#".repeat((103 << 14) + 1));
    // The body itself may be too large before it is parsed.
    if told.status != 413 {
        assert_eq!((told.status, &told.body["detail"]), (422, &Value::from(why)));
    }
    // Super users may change quotas and aren't bound by them.
    api.call("POST /v1/plans", json!({"files": {"acme/more.yaml": STANDARD.encode(documents(200))}}))
        .expect(200);
}
