use std::fs;

use super::{APPLY, CHALLENGE, PLAN, QUARTER, chain, issued, kept, managed, renewal, set};
use crate::support::knot::Knot;
use crate::support::names::{ACCOUNT, DOMAIN};
use crate::support::pebble::Pebble;
use crate::support::{Tree, copy, memory_folder};

/// An authority whose DNS server knows nothing of the zone that we keep.
#[test]
fn what_an_authority_says_is_told_and_it_is_left_alone() {
    let (knot, elsewhere) = (Knot::start(), Knot::start());
    let pebble = Pebble::start_with(elsewhere.address, QUARTER, &[("PEBBLE_WFE_NONCEREJECT", "5")]);
    let tree = managed(&knot, &pebble);
    let said = "the authority says: Error retrieving TXT records for DNS challenge";
    tree.run(APPLY).expect(1).says(&["cannot get a certificate for *.acme.kafka.example.test from", said]);
    assert!(knot.answers(CHALLENGE, "TXT").is_empty());
    tree.run(PLAN).expect(3).says(&[said, "; next attempt at", "to continue: do what the authority says"]);
    // Each of these is within the hour.
    for attempt in 1..=3 {
        assert_eq!(pebble.orders(), attempt);
        tree.run(APPLY).expect(3);
        assert_eq!(pebble.orders(), attempt);
        renewal::forget_pauses(&tree);
        tree.run(APPLY).expect(1);
    }
    assert!(knot.answers(CHALLENGE, "TXT").is_empty());
}

#[test]
fn each_mistake_has_its_words() {
    let knot = Knot::start();
    let pebble = Pebble::start(knot.address, QUARTER);
    let tree = managed(&knot, &pebble);
    let settings = pebble.settings(pebble.address.port());
    type Mistake<'m> = (&'m str, String, i32, &'m [&'m str]);
    let mistakes: [Mistake; 6] = [
        (
            "no authority",
            String::new(),
            1,
            &["the base domain has no certificate, and the settings name no authority"],
        ),
        (
            "terms",
            settings.replace("agree_to_terms = true", "agree_to_terms = false"),
            1,
            &[
                "`acme.agree_to_terms` is false: read the terms of the authority, and set it to true if you agree",
            ],
        ),
        ("no https", settings.replace("https://", "http://"), 1, &["`acme.directory` must be an https URL"]),
        (
            "another directory",
            settings.replace("/dir", "/none"),
            1,
            &["the authority can't be reached: it answers with status 404 Not Found"],
        ),
        (
            "nobody there",
            settings.replace(&format!(":{}", pebble.address.port()), ":1"),
            1,
            &["the authority can't be reached"],
        ),
        (
            "another root",
            format!("{}profile = \"none\"\n", settings),
            1,
            &["cannot get a certificate for *.acme.kafka.example.test from"],
        ),
    ];
    for (what, settings, code, said) in mistakes {
        set(&tree, &settings);
        let run = tree.run(APPLY);
        assert_eq!(run.code, code, "{what}\n{}\n{}", run.out, run.err);
        println!("{what}:\n{}", run.err);
        run.says(said);
        assert_eq!(pebble.orders(), 0, "{what}");
    }
    set(&tree, &settings);
    knot.update("add acme.kafka.example.test. 60 CAA 0 issue \"other.example.net\"");
    tree.run(APPLY).expect(1).says(&[
        "the CAA records of the domain allow `other.example.net` to issue it, and not `pebble.letsencrypt.org`",
        "add a CAA record for acme.kafka.example.test: 0 issuewild \"pebble.letsencrypt.org\"",
    ]);
    knot.update("add acme.kafka.example.test. 60 CAA 0 issuewild \"pebble.letsencrypt.org\"");
    let account = tree.read(ACCOUNT);
    tree.edit(ACCOUNT, &knot.address.port().to_string(), "1");
    tree.run(APPLY).expect(1).says(&["its server can't be reached"]);
    knot.update(&format!("add {CHALLENGE}. 60 CNAME elsewhere.example.net."));
    tree.write(ACCOUNT, account);
    tree.run(APPLY).expect(1).says(&[
        "a text that was added to `_acme-challenge.acme.kafka.example.test` isn't there, as where there is a CNAME",
    ]);
    knot.update(&format!("del {CHALLENGE}. CNAME"));
    renewal::forget_pauses(&tree);
    tree.run(APPLY).expect(3);
    assert_eq!(pebble.orders(), 1, "the order that was made goes on");
    tree.run(APPLY).expect(0);
}

#[test]
fn no_mistake_loses_a_certificate() {
    let knot = Knot::start();
    let pebble = Pebble::start(knot.address, QUARTER);
    let tree = issued(&knot, &pebble);
    let (before, certificates) = (chain(&tree, "orders"), kept(&tree));
    let whole = memory_folder();
    copy(&tree.path(), whole.path());
    type Mistake = (&'static str, fn(&Tree));
    let mistakes: [Mistake; 6] = [
        ("an emptied folder", |tree| fs::remove_dir_all(tree.path().join("acme")).unwrap()),
        ("an unreadable base domain", |tree| tree.write(DOMAIN, "{{{")),
        ("a removed base domain", |tree| tree.remove(DOMAIN)),
        ("a removed cloud account", |tree| tree.remove(ACCOUNT)),
        ("a removed organization", |tree| tree.remove("organizations.yaml")),
        ("settings without the authority", |tree| set(tree, "")),
    ];
    for (what, make) in mistakes {
        make(&tree);
        let said = tree.run(APPLY);
        assert_eq!(chain(&tree, "orders"), before, "{what}\n{}\n{}", said.out, said.err);
        assert_eq!(kept(&tree)["certificates"], certificates["certificates"], "{what}");
        set(&tree, &pebble.settings(pebble.address.port()));
        copy(&whole.path().join("acme"), &tree.path().join("acme"));
        tree.write("organizations.yaml", fs::read(whole.path().join("organizations.yaml")).unwrap());
        tree.run(APPLY).expect(0);
        tree.run(PLAN).expect(0).says(&["Nothing to do"]);
        assert_eq!(pebble.orders(), 1, "after {what}");
    }
}
