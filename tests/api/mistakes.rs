//! All mistakes of a body are in one answer: of fields by themselves, of fields that don't go together, and of what they
//! refer to.

use serde_json::{Value, json};

use super::Api;
use super::exchanges::{certificate, cluster};
use crate::support::Tree;

/// The pointers and messages of a refusal.
fn told(refusal: &Value) -> Vec<(&str, &str)> {
    let errors = refusal["errors"].as_array().unwrap_or_else(|| panic!("{refusal:#}"));
    let told = errors
        .iter()
        .map(|error| (error["pointer"].as_str().unwrap_or_default(), error["detail"].as_str().unwrap()));
    told.collect()
}

#[test]
fn what_is_compared_is_told_with_what_is_wrong_by_itself() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let mut wrong = cluster();
    wrong["kafka_units"] = json!("many");
    wrong["infrastructure"] = json!("nowhere");
    wrong["advanced_config"]["private_access"] = json!(true);
    wrong["advanced_config"]["cluster_access"] = json!("Internal");
    wrong["advanced_config"]["oauth"] = json!("nobody");
    for query in ["", "?dry_run=file", "?dry_run=true"] {
        let refused = api.call(&format!("POST /v1/clusters{query}"), wrong.clone());
        assert_eq!(
            told(&refused.body),
            [
                ("/kafka_units", "`kafka_units`: expected an integer from 1 to 256, found the string `many`"),
                (
                    "/advanced_config/private_access",
                    "`private_access: true` has no effect with `cluster_access: Internal`"
                ),
                ("/infrastructure", "organization `acme` has no fleet `nowhere`"),
                ("/advanced_config/oauth", "organization `acme` has no identity provider `nobody`"),
            ],
            "{:#}",
            refused.body
        );
        assert_eq!((refused.status, &refused.body["detail"]), (422, &json!("the request has 4 errors")));
    }
    // What was put in the place of a wrong field is no mistake.
    let mut wrong = cluster();
    wrong["tenancy_mode"] = json!("alone");
    wrong["kafka_units"] = json!(0);
    let refused = api.call("POST /v1/clusters", wrong);
    assert_eq!(
        told(&refused.body).iter().map(|(at, _)| *at).collect::<Vec<_>>(),
        ["/tenancy_mode", "/kafka_units"]
    );
    // A change leaves out a wrong field, and its record keeps the value.
    let wrong = json!({"kafka_units": "many", "advanced_config": {"oauth": "nobody"}});
    let refused = api.call("PATCH /v1/clusters/orders", wrong);
    assert_eq!(
        told(&refused.body),
        [
            ("/kafka_units", "`kafka_units`: expected an integer from 1 to 256, found the string `many`"),
            ("/advanced_config/oauth", "organization `acme` has no identity provider `nobody`"),
        ]
    );
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_taken_name_is_told_at_its_field_with_the_other_mistakes() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let mut taken = cluster();
    taken["identifier"] = json!("orders");
    taken["infrastructure"] = json!("nowhere");
    let refused = api.call("POST /v1/clusters", taken);
    refused.refused(409, "duplicate", "cluster acme/orders exists already");
    let expected = [
        ("/identifier", "cluster acme/orders exists already"),
        ("/infrastructure", "organization `acme` has no fleet `nowhere`"),
    ];
    assert_eq!(told(&refused.body), expected);
    let domain = json!({"domain": "kafka.acme.example.com", "tls_cert": "a", "tls_key": "b"});
    let refused = api.call("POST /organizations/acme/base-domains", domain);
    assert_eq!(refused.body["errors"][0]["pointer"], "/domain", "{:#}", refused.body);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_is_wrong_with_a_pair_is_told_at_the_certificate_or_else_at_the_key() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let [(own, key), (_, another)] =
        [certificate("kafka.acme.example.com"), certificate("kafka.acme.example.com")];
    let (elsewhere, its_key) = certificate("streams.acme.example.com");
    for (cert, key, expected) in [
        (
            "a",
            &key,
            ("/tls_cert", "the certificate is not PEM: it has no `-----BEGIN CERTIFICATE-----` line"),
        ),
        (
            &elsewhere,
            &its_key,
            (
                "/tls_cert",
                "the certificate of `kafka.acme.example.com` doesn't cover `orders.kafka.acme.example.com`",
            ),
        ),
        (&own, &another, ("/tls_key", "the private key does not belong to the certificate")),
    ] {
        let pair = json!({"tls_cert": cert, "tls_key": key});
        let refused = api.call("PATCH /organizations/acme/base-domains/kafka.acme.example.com", pair);
        assert_eq!((refused.status, told(&refused.body)), (422, vec![expected]), "{:#}", refused.body);
    }
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_would_break_another_resource_is_told_with_its_file_and_line() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let before = tree.read("organizations.yaml");
    let refused = api.call("PATCH /organizations/acme", json!({"domains": ["other.example.com"]}));
    assert_eq!(
        (refused.status, &refused.body["errors"]),
        (
            422,
            &json!([{
                "pointer": null,
                "detail": "organization `acme` may not use `kafka.acme.example.com`: its `domains` don't contain it",
                "hint": "add `kafka.acme.example.com` to the `domains` of organization `acme`; only super users can do that",
                "file": "acme/base-domains/kafka.acme.example.com.yaml",
                "line": 6
            }])
        ),
        "{:#}",
        refused.body
    );
    assert_eq!(tree.read("organizations.yaml"), before);
    assert_eq!(api.serve.stop(), Some(0));
}
