use serde_json::Value;

use super::{APPLY, CHALLENGE, KEPT, PLAN, QUARTER, chain, issued, kept, managed};
use crate::support::Tree;
use crate::support::knot::Knot;
use crate::support::names::{DOMAIN, MANAGED, certificate, fields};
use crate::support::pebble::Pebble;

const LONG_AGO: &str = "2026-01-01T00:00:00Z";

fn change(tree: &Tree, change: impl Fn(&mut Value)) {
    let mut all = kept(tree);
    all["certificates"].as_object_mut().unwrap().values_mut().for_each(change);
    tree.write(KEPT, all.to_string());
}

/// As if the time had come to ask the authority how long it should be used.
pub fn ask_again(tree: &Tree) {
    change(tree, |certificate| certificate["issued"]["look_at"] = LONG_AGO.into());
}

/// As if the time of the next attempt had come.
pub fn forget_pauses(tree: &Tree) {
    change(tree, |certificate| certificate["failure"]["until"] = LONG_AGO.into());
}

#[test]
fn it_is_renewed_when_the_authority_says_and_its_clusters_follow() {
    let knot = Knot::start();
    let pebble = Pebble::start(knot.address, QUARTER);
    let tree = issued(&knot, &pebble);
    let first = chain(&tree, "orders");
    let renew_at = kept(&tree)["certificates"].to_string();
    assert!(renew_at.contains("\"renew_at\":\"20"), "{renew_at}");

    // Revoked: the authority says that it should have been renewed yesterday.
    pebble.renews_now(&first);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    ask_again(&tree);
    tree.run(PLAN).expect(2).says(&[
        "~ base domain acme.kafka.example.test",
        "because its certificate is due",
        &format!(
            "renews the certificate for *.acme.kafka.example.test at {}, since it ends on ",
            pebble.address
        ),
        "brokers restart for it with the plans that follow",
    ]);
    assert_eq!(pebble.orders(), 1);
    tree.run(APPLY).expect(0);
    assert_eq!(pebble.orders(), 2);
    // Pebble doesn't find one certificate in 256, and then gets an order that replaces nothing.
    let is_told = |what: &str| pebble.log().contains(what);
    assert!(is_told("is a replacement of") || is_told("could not find order"), "{}", pebble.log());
    assert_eq!(chain(&tree, "orders"), first, "getting one and using it are two plans");
    tree.run(PLAN).expect(2).says(&[
        "~ base domain acme.kafka.example.test",
        "~ cluster orders",
        "because base domain acme/acme.kafka.example.test changed",
    ]);
    tree.run(APPLY).expect(0);
    assert_ne!(chain(&tree, "orders"), first);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    assert!(knot.answers(CHALLENGE, "TXT").is_empty());
}

/// The authority was set up anew, or the key of the certificate is lost.
#[test]
fn what_is_gone_at_the_authority_or_here_is_made_anew() {
    let knot = Knot::start();
    let mut pebble = Pebble::start(knot.address, QUARTER);
    let tree = issued(&knot, &pebble);
    let first = chain(&tree, "orders");
    pebble.start_anew();
    change(&tree, |certificate| certificate["issued"]["renew_at"] = LONG_AGO.into());
    let account = kept(&tree)["accounts"].clone();
    tree.run(APPLY).expect(1).says(&[
        "the authority doesn't know the account any more",
        "nothing is to be done: the next attempt makes another account",
    ]);
    forget_pauses(&tree);
    tree.run(APPLY).expect(0);
    tree.run(APPLY).expect(0);
    assert_ne!(kept(&tree)["accounts"], account);
    let second = chain(&tree, "orders");
    assert_ne!(second, first);

    change(&tree, |certificate| certificate["issued"]["key"]["sealed"] = "gone".into());
    tree.run(APPLY).expect(0).says(&["gets a certificate for *.acme.kafka.example.test"]);
    tree.run(APPLY).expect(0);
    assert_ne!(chain(&tree, "orders"), second);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
}

/// A domain of somebody else's certificate can become managed, and one that is managed can get its own.
#[test]
fn an_uploaded_certificate_stays_in_use_until_the_first_managed_one() {
    let knot = Knot::start();
    let pebble = Pebble::start(knot.address, QUARTER);
    let tree = managed(&knot, &pebble);
    let certificate = certificate(&["*.acme.kafka.example.test"]);
    let (own, uploaded) = (&certificate.0, format!("{MANAGED}{}", fields(&certificate)));
    tree.write(DOMAIN, &uploaded);
    tree.run(APPLY).expect(0);
    assert_eq!(chain(&tree, "orders"), *own);
    assert_eq!(pebble.orders(), 0);

    tree.write(DOMAIN, MANAGED);
    tree.edit("acme/clusters/orders.yaml", "value: checkout", "value: payments");
    tree.run(APPLY).expect(0).says(&["~ cluster orders", "gets a certificate for *.acme.kafka.example.test"]);
    assert_eq!((chain(&tree, "orders"), pebble.orders()), (own.clone(), 1));
    tree.run(APPLY).expect(0);
    assert_ne!(chain(&tree, "orders"), *own);

    tree.write(DOMAIN, &uploaded);
    tree.run(APPLY).expect(0);
    assert_eq!(chain(&tree, "orders"), *own);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    assert_eq!(pebble.orders(), 1);
}
