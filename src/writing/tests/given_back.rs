//! Bodies that send back what was read, and bodies with fields that they must not have.

use super::*;

#[test]
fn what_is_given_back_or_taken_again_leaves_no_empty_object_behind() {
    let world = World::new();
    for (key, file, text) in [
        ("Organization/globex/globex", "organizations.yaml", ORGANIZATIONS),
        ("Fleet/acme/eu", "acme/fleets/eu.yaml", FLEET),
        ("Cluster/acme/orders", "acme/clusters/orders.yaml", ORDERS),
    ] {
        let record = world.record(key);
        let request = request(key, WriteAction::Replace(record.clone()));
        let written = world.write(&WriteRequest { record: Some(record), ..request }).unwrap();
        assert!(!written.is_new, "{key}");
        assert_eq!(world.file(file), text);
    }
    let config = |value: Value| {
        WriteAction::Patch(json!({"advanced_config": {"config": {"log.retention.ms": value}}}))
    };
    world.call("Cluster/acme/orders", config(json!(604_800_000))).unwrap();
    assert!(world.file("acme/clusters/orders.yaml").contains("log.retention.ms: "));
    world.call("Cluster/acme/orders", config(Value::Null)).unwrap();
    assert_eq!(world.file("acme/clusters/orders.yaml"), ORDERS);
}

#[test]
fn what_is_nested_deeper_than_any_document_is_wrong_with_the_body() {
    let world = World::new();
    let deep = (0..120).fold(json!("x"), |inner, _| json!([inner]));
    assert_eq!(
        world.refuses("Cluster/acme/orders", WriteAction::Patch(json!({"tags": deep}))),
        "422 invalid: `tags` is nested deeper than 32 levels\n  /tags `tags` is nested deeper than 32 levels\n    = see \
         `/openapi.json` for its format\n"
    );
}

#[test]
fn what_a_caller_may_not_say_is_refused_with_what_they_may_do_instead() {
    let world = World::new();
    let quotas = request("Organization/acme/acme", WriteAction::Patch(json!({"quotas": {"clusters": 4}})));
    let refused = world.write(&WriteRequest { may_limit: false, ..quotas }).unwrap_err();
    assert_eq!(ProblemDocument::from(refused).hint.unwrap(), "send them unchanged, or ask a super user");
    let mut copy = cluster("clicks", 1);
    copy["id"] = json!("7d6f3a52-0000-4000-8000-000000000000");
    assert_eq!(
        world.refuses("Cluster/acme/clicks", WriteAction::Create(copy)),
        "422 invalid: `id` is set by Streamfleet and can't be changed\n  /id `id` is set by Streamfleet and can't be \
         changed\n    = leave it out\n"
    );
}
