//! What is offered, and where a cluster fits.

use serde_json::{Value, json};

use super::exchanges::fleet;
use super::{Api, new_token};
use crate::support::Tree;

fn named<'v>(offers: &'v Value, name: &str) -> &'v Value {
    let found = offers.as_array().unwrap().iter().find(|offer| offer["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {offers:#}"))
}

fn values(offers: &Value) -> Vec<&str> {
    let offered = offers.as_array().unwrap().iter().filter(|offer| offer["is_offered"] == true);
    offered.map(|offer| offer["value"].as_str().unwrap()).collect()
}

#[test]
fn what_is_offered_is_told_and_why_the_rest_is_not() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let offers = api.get("/v1/offers?organization=acme").expect(200).body;
    assert_eq!(values(&offers["infra_types"]), ["byok", "directory"]);
    for cloud in ["AWS", "Azure", "Google Cloud", "Oracle Cloud"] {
        let offer = named(&offers["infra_types"], cloud);
        assert_eq!((&offer["is_offered"], &offer["value"]), (&json!(false), &Value::Null));
        assert!(offer["reason"].as_str().unwrap().contains("`byok`"), "{offer:#}");
    }
    assert_eq!(values(&offers["cluster_types"]), ["kafka"]);
    for other in ["Redpanda", "Apache Pulsar", "NATS"] {
        assert!(named(&offers["cluster_types"], other)["reason"].as_str().unwrap().contains("no driver"));
    }
    assert_eq!(values(&offers["tenancy_modes"]), ["Shared", "Isolated", "Dedicated"]);
    assert_eq!(values(&offers["dns_providers"]), ["None", "external-dns", "rfc2136", "route53"]);
    assert_eq!(values(&offers["storage_on_delete"]), ["Retain", "Delete"]);
    assert_eq!(named(&offers["storage_on_delete"], "Retain")["is_default"], true);
    let fleet = &offers["fleets"][0];
    assert_eq!((&fleet["fleet"], &offers["fleets"][1]), (&json!("acme/eu"), &Value::Null));
    assert_eq!(values(&fleet["kafka_versions"])[0], fleet["default_kafka_version"].as_str().unwrap());
    assert_eq!(values(&fleet["kafka_versions"]), values(&offers["kafka_versions"]));
    assert_eq!(fleet["is_operator_known"], false);
    assert_eq!(fleet["auto_upgrade"]["is_offered"], false);
    let why = fleet["auto_upgrade"]["reason"].as_str().unwrap();
    assert!(why.contains("not supported on fleet `eu`"), "{why}");
    assert_eq!(values(&fleet["cluster_access"]), ["Internal", "External", "Internal & External"]);

    // A fleet that was just written is there, with what it lacks.
    let mut inner = self::fleet();
    inner.as_object_mut().unwrap().remove("domain");
    api.call("POST /organizations/acme/infrastructure", inner).expect(201);
    let offers = api.get("/v1/offers").expect(200).body;
    let us = &offers["fleets"][1];
    assert_eq!(us["fleet"], "acme/us");
    assert_eq!(values(&us["cluster_access"]), ["Internal"]);
    let why = named(&us["cluster_access"], "External")["reason"].as_str().unwrap();
    assert_eq!(why, "external access needs a base domain, and fleet `us` has none");
    assert_eq!(us["auto_upgrade"]["is_offered"], true);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn where_a_cluster_fits_is_told_with_what_is_missing_elsewhere() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let viewer = new_token(&tree, "platform@acme.example.com", "acme", "read");
    let fit = |more: Value| {
        let mut body = json!({"organization": "acme", "kafka_units": 1, "tenancy_mode": "Shared"});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        api.call_as(&viewer, "POST /v1/fit", &[], body)
    };
    let eu = |more: Value| fit(more).expect(200).body["items"][0].clone();
    let fits = eu(json!({}));
    assert_eq!((&fits["fits"], &fits["reasons"]), (&json!(true), &json!([])), "{fits:#}");
    assert_eq!((&fits["fleet"], &fits["infra_type"]), (&json!("acme/eu"), &json!("directory")));
    assert_eq!(fits["kafka_units"], json!({"limit": 10, "used": 2, "free": 8, "needed": 1, "missing": 0}));
    assert_eq!(fits["clusters"], json!({"limit": 5, "used": 2, "free": 3, "needed": 1, "missing": 0}));

    let large = eu(json!({"kafka_units": 20, "identifier": "large"}));
    assert_eq!((&large["fits"], &large["kafka_units"]["missing"]), (&json!(false), &json!(12)));
    assert_eq!(large["organization_kafka_units"]["missing"], 2);
    // It is refused in the same words.
    let mut cluster = super::exchanges::cluster();
    (cluster["kafka_units"], cluster["identifier"]) = (json!(20), json!("large"));
    let refused = api.call("POST /v1/clusters", cluster).body;
    let reason = &large["reasons"][0];
    assert_eq!((&reason["code"], &reason["detail"]), (&refused["code"], &refused["detail"]));

    let codes = |more: Value| -> Vec<String> {
        let reasons = eu(more)["reasons"].clone();
        reasons.as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(codes(json!({"tenancy_mode": "Isolated"})), ["tenancy-mismatch"]);
    assert_eq!(codes(json!({"tenancy_mode": "shared"})), [""; 0], "spelled as specs may spell it");
    assert_eq!(codes(json!({"cloud_provider": "byok"})), ["provider-mismatch"]);
    assert_eq!(codes(json!({"advanced_config": {"auto_upgrade": true}})), ["not-supported"]);
    assert_eq!(codes(json!({"advanced_config": {"version": "1.0.0"}})), ["unknown-version"]);
    assert_eq!(fit(json!({"infrastructure": "eu"})).expect(200).body["items"].as_array().unwrap().len(), 1);
    fit(json!({"infrastructure": "none"})).refused(
        404,
        "not_found",
        "there is no fleet `none`, or the caller may not see it",
    );
    fit(json!({"organization": "none"})).refused(
        404,
        "not_found",
        "there is no organization `none`, or the caller may not see it",
    );
    // Mistakes are those of the cluster's own document.
    for (more, pointer) in [
        (json!({"kafka_units": "many"}), "/kafka_units"),
        (json!({"kafka_units": null}), "/kafka_units"),
        (json!({"tenancy_mode": "none"}), "/tenancy_mode"),
        (json!({"cluster_type": "redpanda"}), "/cluster_type"),
        (json!({"advanced_config": 1}), "/advanced_config"),
        (json!({"units": 1}), "/units"),
        (json!({"organization": null}), "/organization"),
    ] {
        let refused = fit(more.clone()).expect(422).body;
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{more}: {refused:#}");
    }

    tree.edit("acme/fleets/eu.yaml", "infra_type", "suspend: true\ninfra_type");
    api.serve.until("the fleet is suspended", || (codes(json!({})) == ["suspended"]).then_some(()));
    assert_eq!(api.get("/v1/clusters?q=new").expect(200).body["total"], 0, "nothing was made");
    assert_eq!(api.serve.stop(), Some(0));
}
