//! Changes that would be repeated without effect wait.

use serde_json::json;

use super::*;
use crate::plan::{Repeated, Waiting};

/// A cloud account, which is on no fleet, with credentials that can't be found.
fn account_without_secret() -> (Lab, ResourceKey, Waiting) {
    let mut lab = Lab::with(&["orders"]);
    let account = key("CloudAccount/acme/s3");
    lab.set(
        "CloudAccount/acme/s3",
        json!({"organization": "acme", "identifier": "s3", "provider": "aws", "credentials": {"from_env": "S3"}}),
    );
    let reason = "the variable is not set here";
    let secret = lab.resources.get_mut(&account).unwrap().secrets.get_mut("credentials").unwrap();
    (secret.mark.fingerprint, secret.unavailable) = (None, Some(reason.to_owned()));
    let waits = Waiting::SecretUnavailable {
        secret: "`credentials` of cloud account acme/s3".into(),
        reason: reason.into(),
    };
    (lab, account, waits)
}

#[test]
fn what_has_a_secret_that_is_nowhere_waits_for_it() {
    let (mut lab, account, waits) = account_without_secret();
    let plan = lab.plan();
    let created = change(&plan, "CloudAccount/acme/s3");
    assert_eq!((created.verb, &created.waiting), (Verb::Create, &vec![waits.clone()]));
    assert_eq!(
        created.waiting[0].to_string(),
        "`credentials` of cloud account acme/s3 can't be opened here: the variable is not set here"
    );
    assert_eq!(running(&plan), Vec::<&str>::new());
    // The same if the secret was available once.
    let secret = |lab: &mut Lab, fingerprint: Option<&str>, unavailable: Option<&str>| {
        let secret = lab.resources.get_mut(&account).unwrap().secrets.get_mut("credentials").unwrap();
        secret.mark.fingerprint = fingerprint.map(str::to_owned);
        secret.unavailable = unavailable.map(str::to_owned);
    };
    secret(&mut lab, Some("hmac:00"), None);
    lab.settle();
    secret(&mut lab, None, Some("the variable is not set here"));
    let plan = lab.plan();
    assert_eq!(change(&plan, "CloudAccount/acme/s3").waiting, [waits]);
    assert_eq!(running(&plan), Vec::<&str>::new());
}

#[test]
fn two_secrets_of_which_nothing_is_known_are_no_difference() {
    let (mut lab, account, waits) = account_without_secret();
    // A record of a version that didn't wait for the secret.
    let secret = lab.resources.get_mut(&account).unwrap().secrets.get_mut("credentials").unwrap();
    let waited = secret.unavailable.take();
    secret.mark.fingerprint = Some("hmac:00".to_owned());
    lab.settle();
    lab.recorded
        .resources
        .get_mut(&account)
        .unwrap()
        .cached
        .secrets
        .get_mut("credentials")
        .unwrap()
        .fingerprint = None;
    let secret = lab.resources.get_mut(&account).unwrap().secrets.get_mut("credentials").unwrap();
    (secret.mark.fingerprint, secret.unavailable) = (None, waited);
    let plan = lab.plan();
    let kept = change(&plan, "CloudAccount/acme/s3");
    assert_eq!((kept.verb, &kept.fields, &kept.waiting), (Verb::Keep, &Vec::new(), &vec![waits]));
}

#[test]
fn what_was_done_just_like_this_waits_and_nothing_else_does() {
    let mut lab = Lab::with(&["orders", "events"]);
    lab.cluster("orders", json!({"kafka_units": 2}));
    lab.cluster("events", json!({"kafka_units": 2}));
    let done = change(&lab.plan(), "Cluster/acme/orders").effect_digest();
    let until = lab.policy.now + SignedDuration::from_secs(8);
    let repeated = Repeated { done, times: 4, until };
    lab.policy.pauses.repeated.insert(key("Cluster/acme/orders"), repeated);
    let plan = lab.plan();
    assert_eq!(change(&plan, "Cluster/acme/orders").waiting, [Waiting::Repeated { times: 4, until }]);
    assert_eq!(running(&plan), ["acme/events"]);
    lab.cluster("orders", json!({"kafka_units": 3}));
    let orders = lab.plan();
    assert!(!change(&orders, "Cluster/acme/orders").waiting.contains(&Waiting::Repeated { times: 4, until }));
    lab.cluster("orders", json!({"kafka_units": 2}));
    lab.policy.now = until;
    assert_eq!(running(&lab.plan()), ["acme/events", "acme/orders"]);
}
