//! Certificates that Streamfleet gets and renews, from a real authority that asks a real DNS server.

mod broker;
mod killed;
mod mistakes;
mod names;
mod renewal;
mod roll;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::api::Api;
use crate::support::knot::{Knot, SECRET};
use crate::support::names::{ACCOUNT, DOMAIN, MANAGED, certificate, fields, keep};
use crate::support::pebble::Pebble;
use crate::support::serve::Serve;
use crate::support::{MANAGED as EXAMPLE, Tree, files};

const PLAN: &str = "plan tree --config config.toml";
const APPLY: &str = "apply tree --yes --config config.toml";
const FLEET: &str = "acme/fleets/eu.yaml";
const CHALLENGE: &str = "_acme-challenge.acme.kafka.example.test";
/// The base domain in what is kept.
const KEY: &str = "BaseDomain/acme/acme.kafka.example.test";
const KEPT: &str = ".streamfleet/state/certificates.json";

/// In seconds.
const QUARTER: u64 = 90 * 24 * 3600;

/// The quickstart with the base domain `acme.kafka.example.test`, whose certificate is managed.
fn managed(knot: &Knot, pebble: &Pebble) -> Tree {
    manage(Tree::example("quickstart"), knot, pebble)
}

fn manage(tree: Tree, knot: &Knot, pebble: &Pebble) -> Tree {
    keep(&tree, knot, "");
    set(&tree, &pebble.settings(pebble.address.port()));
    tree
}

/// As [`managed`], with the certificate in use.
fn issued(knot: &Knot, pebble: &Pebble) -> Tree {
    let tree = managed(knot, pebble);
    tree.run(APPLY).expect(3);
    tree.run(APPLY).expect(0);
    tree
}

fn set(tree: &Tree, settings: &str) {
    let targets = "[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n";
    fs::write(tree.beside("config.toml"), format!("{settings}{targets}")).unwrap();
}

fn kept(tree: &Tree) -> Value {
    serde_json::from_str(&tree.read(KEPT)).unwrap()
}

/// The chain in PEM that a cluster's Secret has.
fn chain(tree: &Tree, cluster: &str) -> String {
    let text =
        tree.output().into_iter().find(|(path, _)| path.contains(&format!("{cluster}-tls"))).unwrap().1;
    let text = String::from_utf8(text).unwrap();
    let data = text.lines().find_map(|line| line.trim().strip_prefix("tls.crt: ")).unwrap();
    String::from_utf8(STANDARD.decode(data.trim_matches('"')).unwrap()).unwrap()
}

#[test]
fn a_base_domain_without_a_certificate_gets_one_and_its_clusters_follow() {
    let knot = Knot::start();
    let pebble = Pebble::start(knot.address, QUARTER);
    let tree = managed(&knot, &pebble);
    let authority = pebble.address;
    tree.run(PLAN).expect(3).says(&[
        "+ base domain acme.kafka.example.test",
        &format!(
            "gets a certificate for *.acme.kafka.example.test from {authority}; clusters of the domain use it with the \
             next plan"
        ),
        "! cluster orders     waiting: base domain acme/acme.kafka.example.test has no certificate yet",
    ]);
    assert_eq!(pebble.orders(), 0, "a plan orders nothing");
    tree.run(APPLY).expect(3).says(&["Applied 5 resources"]);
    assert_eq!(pebble.orders(), 1);
    tree.run(PLAN).expect(2).says(&[
        "~ base domain acme.kafka.example.test",
        &format!("uses the certificate that {authority} issued, until "),
        "+ cluster orders",
        "+ Secret kafka-acme--orders/orders-tls",
    ]);
    tree.run(APPLY).expect(0);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    let issued = chain(&tree, "orders");
    assert!(issued.ends_with(&pebble.root()), "{issued}");
    assert!(knot.answers(CHALLENGE, "TXT").is_empty(), "what proved the domain is gone");

    // Another cluster takes the same certificate, and so does a lost cache.
    let text = tree.read("acme/clusters/orders.yaml").replace("identifier: orders", "identifier: returns");
    tree.write("acme/clusters/returns.yaml", text);
    tree.run(APPLY).expect(0);
    assert_eq!(chain(&tree, "returns"), issued);
    fs::remove_dir_all(tree.path().join(".streamfleet/state/cache-v1")).unwrap();
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    assert_eq!(pebble.orders(), 1);

    // The record has the chain, and nothing has a key.
    let record = tree
        .run("get base-domain/acme/acme.kafka.example.test tree --config config.toml --format json")
        .expect(0);
    let record: Value = serde_json::from_str(&record.out).unwrap();
    assert!(
        record.to_string().contains("BEGIN CERTIFICATE") && !record.to_string().contains("PRIVATE KEY"),
        "{record}"
    );
    for (path, bytes) in files(&tree.path().join(".streamfleet")) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains("PRIVATE KEY") && !text.contains("key_pkcs8"), "{path}");
    }
    let mode = fs::metadata(tree.path().join(KEPT)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_example_gets_a_certificate_for_both_clusters() {
    let knot = Knot::start();
    let pebble = Pebble::start(knot.address, QUARTER);
    let tree = Tree::example(EXAMPLE);
    let domain = "acme/base-domains/kafka.example.com.yaml";
    for file in ["organizations.yaml", domain, FLEET] {
        tree.write(file, tree.read(file).replace("example.com", "example.test"));
    }
    tree.edit(ACCOUNT, "ns1.example.com", &format!("127.0.0.1:{}", knot.address.port()));
    tree.edit(ACCOUNT, "RXhhbXBsZU9ubHlSZmMyMTM2S2V5MDAwMDAwMDAwMDA=", SECRET);
    let settings = tree.read("streamfleet.toml");
    let (_, policy) = settings.split_once("[policy]").unwrap();
    set(&tree, &format!("{}[policy]{policy}", pebble.settings(pebble.address.port())));
    tree.run(APPLY).expect(3);
    tree.run(APPLY).expect(0).says(&["+ cluster billing", "+ cluster orders"]);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    let issued = chain(&tree, "orders");
    assert!(issued.ends_with(&pebble.root()), "{issued}");
    assert_eq!((chain(&tree, "billing"), pebble.orders()), (issued, 1));
}

#[test]
fn a_backup_has_the_account_and_the_certificate() {
    let knot = Knot::start();
    let pebble = Pebble::start(knot.address, QUARTER);
    let tree = issued(&knot, &pebble);
    let (before, issued) = (kept(&tree), chain(&tree, "orders"));
    tree.run("backup saved.tar tree --config config.toml").expect(0);
    fs::remove_dir_all(tree.path().join(".streamfleet/state")).unwrap();
    tree.run("restore saved.tar tree --config config.toml").expect(0);
    assert_eq!(kept(&tree), before);
    tree.run(APPLY);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    assert_eq!((chain(&tree, "orders"), pebble.orders()), (issued, 1));
}

#[test]
fn without_a_key_of_the_zone_one_record_that_stays_is_enough() {
    let knot = Knot::start();
    let pebble = Pebble::start(knot.address, QUARTER);
    let tree = managed(&knot, &pebble);
    tree.remove(ACCOUNT);
    let by_hand =
        "apiVersion: streamfleet/v1\nkind: BaseDomain\norganization: acme\ndomain: acme.kafka.example.test\n";
    tree.write(DOMAIN, by_hand);
    tree.edit(FLEET, "domain: kafka.example.test", "domain: acme.kafka.example.test");
    tree.run(PLAN).expect(1).says(&[
        "streamfleet can't prove to the authority that the domain is yours",
        "set `challenge = \"dns-persist-01\"`",
    ]);
    set(&tree, &format!("{}challenge = \"dns-persist-01\"\n", pebble.settings(pebble.address.port())));
    let first = tree.run(APPLY).expect(1);
    let account = kept(&tree)["accounts"].as_object().unwrap().values().next().unwrap()["url"].clone();
    let record = format!(
        "_validation-persist.acme.kafka.example.test TXT \"pebble.letsencrypt.org; accounturi={}; policy=wildcard\"",
        account.as_str().unwrap()
    );
    first.says(&[&record]);
    let waiting = tree.run(PLAN).expect(3).says(&[&record, "next attempt at"]);
    assert!(waiting.err.is_empty(), "{}", waiting.err);
    assert_eq!(pebble.orders(), 0);
    let (name, text) = record.split_once(" TXT ").unwrap();
    knot.update(&format!("add {name}. 60 TXT {text}"));
    renewal::forget_pauses(&tree);
    tree.run(APPLY).expect(3);
    tree.run(APPLY).expect(0);
    assert!(chain(&tree, "orders").ends_with(&pebble.root()));
    assert_eq!(knot.answers(name, "TXT").len(), 1, "it stays for the renewal");
}

#[test]
fn a_daemon_gets_and_renews_it_by_itself() {
    let knot = Knot::start();
    let pebble = Pebble::start(knot.address, QUARTER);
    let tree = managed(&knot, &pebble);
    let serve = Serve::start(&tree, "serve --specs tree --config config.toml");
    serve.has_made(&["cluster acme/orders"]);
    let first = chain(&tree, "orders");
    assert_eq!(pebble.orders(), 1);
    serve.stop();
    pebble.renews_now(&first);
    renewal::ask_again(&tree);
    let serve = Serve::start(&tree, "serve --specs tree --config config.toml");
    serve.until("the cluster has the next certificate", || (chain(&tree, "orders") != first).then_some(()));
    assert_eq!(pebble.orders(), 2);
    assert!(!serve.log().contains("PRIVATE KEY"));
    serve.stop();
}

/// What a caller of the API gets can be sent back, and changes nothing.
#[test]
fn a_record_with_an_issued_certificate_can_be_sent_back() {
    let knot = Knot::start();
    let pebble = Pebble::start(knot.address, QUARTER);
    let tree = managed(&knot, &pebble);
    let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", &settings);
    api.settle();
    let path = "/organizations/acme/base-domains/acme.kafka.example.test";
    let record = api.get(path).expect(200).body;
    assert!(record["tls_cert"].as_str().unwrap().ends_with(&pebble.root()), "{record}");
    assert!(!record.to_string().contains("PRIVATE KEY"), "{record}");
    api.call(&format!("PUT {path}"), record).expect(200);
    assert_eq!(tree.read(DOMAIN), MANAGED);
    let (own, key) = certificate(&["*.acme.kafka.example.test"]);
    let body = json!({"tls_cert": own, "tls_key": key});
    api.call(&format!("PATCH {path}"), body).expect(200);
    api.serve.until("the record has its own", || (api.get(path).body["tls_cert"] == own).then_some(()));
    api.call(&format!("PATCH {path}"), json!({"tls_cert": null, "tls_key": null})).expect(200);
    assert!(!tree.read(DOMAIN).contains("tls_"), "{}", tree.read(DOMAIN));
}

/// It is shown while it is in use, and is the document's no more.
#[test]
fn a_certificate_that_waits_for_a_managed_one_is_not_written_back() {
    let (knot, pebble) = (Knot::start(), Pebble::start(Knot::start().address, QUARTER));
    let tree = managed(&knot, &pebble);
    let own = certificate(&["*.acme.kafka.example.test"]);
    tree.write(DOMAIN, format!("{MANAGED}{}", fields(&own)));
    let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", &settings);
    api.settle();
    tree.write(DOMAIN, MANAGED);
    api.serve.until("the authority refuses", || {
        api.serve.log().contains("cannot get a certificate").then_some(())
    });
    let path = "/organizations/acme/base-domains/acme.kafka.example.test";
    let record = api.get(path).expect(200).body;
    assert_eq!(record["tls_cert"], own.0);
    api.call(&format!("PUT {path}"), record).expect(200);
    assert_eq!(tree.read(DOMAIN), MANAGED);
}
