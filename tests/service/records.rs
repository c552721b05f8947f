//! Metrics of DNS records, from a real DNS server.

use std::fs;

use serde_json::json;

use super::http::{address, ask, samples};
use crate::dns::serve_in;
use crate::kubernetes::{SANDBOX, on};
use crate::support::control_plane::ControlPlane;
use crate::support::knot::Knot;
use crate::support::names::{certificate, fields, keep};
use crate::support::serve::Serve;

const NAMES: [&str; 2] = ["sandbox.acme.kafka.example.test", "broker-0--sandbox.acme.kafka.example.test"];

#[test]
fn dns_records_are_counted_by_how_they_stand() {
    let plane = ControlPlane::lease();
    let mut knot = Knot::start();
    let tree = on(&plane);
    keep(&tree, &knot, &fields(&certificate(&["acme.kafka.example.test", "*.acme.kafka.example.test"])));
    tree.remove("acme/clusters/orders.yaml");
    tree.edit(SANDBOX, "cluster_access: Internal", "cluster_access: External");
    let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
    fs::write(tree.beside("config.toml"), settings + "\n[api]\nlisten = \"127.0.0.1:0\"\n").unwrap();
    let serve = Serve::start(&tree, "serve --specs tree --config config.toml");
    let address = address(&serve);
    let stand = |counts: [f64; 4]| {
        let found = || {
            let samples = samples(&ask(&address, "GET /metrics").body);
            ["kept", "waiting", "foreign", "unknown"]
                .map(|state| samples[&format!("streamfleet_dns_records{{state=\"{state}\"}}")])
        };
        serve.until(&format!("records stand so: {counts:?}"), || (found() == counts).then_some(()));
    };
    stand([0.0, 1.0, 0.0, 0.0]);

    let theirs = NAMES[1];
    knot.update(&format!("add {theirs}. 60 A 192.0.2.66"));
    for (name, address) in NAMES.iter().zip(["192.0.2.1", "192.0.2.2"]) {
        serve_in(&plane, "kafka-acme--sandbox", name, json!([{"ip": address}]));
    }
    stand([1.0, 0.0, 1.0, 0.0]);
    // The files are read anew, and the server is asked.
    let look = |from: &str, to: &str| {
        tree.edit(SANDBOX, &format!("kafka_units: 1{from}"), &format!("kafka_units: 1{to}"))
    };
    knot.update(&format!("del {theirs}."));
    look("", "\ntags: [{key: a, value: b}]");
    stand([2.0, 0.0, 0.0, 0.0]);
    knot.stop();
    look("\ntags: [{key: a, value: b}]", "");
    stand([0.0, 0.0, 0.0, 2.0]);
    assert_eq!(serve.stop(), Some(0));
}
