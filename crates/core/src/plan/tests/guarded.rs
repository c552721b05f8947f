//! The identity of an approval, and the changes that need one.

use serde_json::json;

use super::*;
use crate::names::Digest;
use crate::plan::guard::approval::moves_tiered_storage;
use crate::plan::{Cause, Step};

/// Who approves what is made approves the secrets that were shown with it.
#[test]
fn the_sealed_secrets_of_what_is_made_are_a_part_of_what_is_approved() {
    let approved = |sealed: &str| {
        let mut lab = Lab { infra_type: "byok", ..Lab::new() };
        lab.domain("hmac:0000000000000001");
        lab.settle();
        lab.policy.mode = Mode::Approve;
        lab.fleet("us", &[]);
        let us = lab.resources.get_mut(&key("Fleet/acme/us")).unwrap();
        let secrets = us.secrets.values_mut();
        assert_eq!(secrets.map(|secret| secret.mark.sealed = Some(Digest::of(sealed))).count(), 1);
        lab.observed.fleets.insert(fleet_of("us"), ObservedFleet::unknown(Reach::Reached));
        let plan = lab.plan();
        assert_eq!(change(&plan, "Fleet/acme/us").verb, Verb::Create);
        let us = plan.fleets.iter().find(|plan| plan.fleet == fleet_of("us")).unwrap();
        us.guard.as_ref().unwrap().id.clone()
    };
    assert_eq!(approved("one"), approved("one"));
    assert_ne!(approved("one"), approved("another"));
}

#[test]
fn only_what_names_the_bucket_moves_the_log() {
    let kafka = |config: Value| json!({"spec": {"kafka": {"tieredStorage": {"remoteStorageManager": {"config": config}}}}});
    let step = |kind: &str, before: Value, after: Value| {
        let object = object(kind, "orders", "orders");
        let owner = key("Cluster/acme/orders");
        let after = Manifest { key: object.clone(), owner, stage: Stage::Custom, body: after.into() };
        let (uid, before) = (Some("uid".to_owned()), Some(before.into()));
        Step { verb: Verb::Update, object, stage: Stage::Custom, uid, before, after: Some(after) }
    };
    let tiered = || json!({"storage.s3.bucket.name": "logs", "key.prefix": "orders/", "chunk.size": "1"});
    let with = |option: &str, value: &str| {
        let mut config = tiered();
        config[option] = value.into();
        kafka(config)
    };
    let drift = Cause::Drift { by: None };
    for (kind, cause, after, moves) in [
        ("Kafka", Cause::Spec, with("storage.s3.bucket.name", "other"), true),
        ("Kafka", Cause::Spec, with("key.prefix", "other/"), true),
        ("Kafka", Cause::Spec, with("chunk.size", "2"), false),
        ("Kafka", Cause::Spec, json!({"spec": {"kafka": {}}}), false),
        ("Kafka", drift, with("key.prefix", "other/"), false),
        ("KafkaNodePool", Cause::Spec, with("key.prefix", "other/"), false),
    ] {
        let steps = [step(kind, kafka(tiered()), after.clone())];
        assert_eq!(moves_tiered_storage(&cause, &steps), moves, "{kind} {cause:?} {after}");
    }
}
