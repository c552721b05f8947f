//! What tenants learn about the unreachable address of their kubeconfig.

use std::fs;
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};

use super::{Api, ROOT, new_token};
use crate::support::Tree;

const FLEET: &str = "acme/fleets/eu.yaml";
const MEMBER: &str = "platform@acme.example.com";

pub fn kubeconfig(port: u16) -> String {
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": {"server": format!("https://127.0.0.1:{port}")}}],
        "users": [{"name": "a", "user": {"token": "none"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    });
    kubeconfig.to_string()
}

/// A port without a listener, and one with a listener that speaks no TLS.
fn ports() -> [u16; 2] {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let open = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = open.local_addr().unwrap().port();
    thread::spawn(move || open.incoming().for_each(drop));
    [closed, port]
}

/// Kubeconfigs can't be used to scan the network.
#[test]
fn a_tenant_hears_the_same_of_every_address_that_is_not_reached() {
    let told: Vec<Value> = ports().map(told_of).into();
    assert_eq!(told[0], told[1]);
}

/// A member's view of the fleet while the port has no API server.
fn told_of(port: u16) -> Value {
    let tree = Tree::example("quickstart");
    tree.edit(
        "acme/clusters/orders.yaml",
        "cluster_type: kafka",
        "cluster_type: kafka\ncloud_provider: byok",
    );
    tree.remove("acme/clusters/sandbox.yaml");
    tree.edit(FLEET, "infra_type: directory", "infra_type: byok");
    let text = tree.read(FLEET);
    fs::write(
        tree.path().join(FLEET),
        format!("{text}advanced_config:\n  kubeconfig: '{}'\n", kubeconfig(port)),
    )
    .unwrap();
    let words = "serve --specs tree --config settings.toml";
    let api = Api::start_with(&tree, words, "[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n");
    let member = new_token(&tree, MEMBER, "acme", "read");
    let own = new_token(&tree, ROOT, "*", "admin");
    let get = |token: &str, path: &str| api.call_as(token, &format!("GET {path}"), &[], Value::Null).body;

    let sentence = "the cluster's API server can't be reached; check the `kubeconfig`, the API server and the network to \
                    it; nothing is deleted while it is unreachable";
    let reason = api.serve.until("it is known that it can't be reached", || {
        let reason =
            get(&member, "/organizations/acme/infrastructure/eu")["status_reason"].as_str()?.to_owned();
        reason.contains("reached").then_some(reason)
    });
    assert_eq!(reason, sentence);
    let events = api.serve.until("it is among the events", || {
        let events = get(&member, "/v1/events")["items"].as_array()?.clone();
        let waits: Vec<Value> = events.into_iter().filter(|event| event["outcome"] == "waits").collect();
        (!waits.is_empty()).then_some(waits)
    });
    let whys: Vec<Value> = events.iter().map(|event| event["why"].clone()).collect();
    assert_eq!(whys[0], format!("waiting: {sentence}"), "{events:#?}");
    let plan = get(&member, "/v1/plan");
    let fleet = &plan["fleets"][0];
    let mut status = get(&member, "/v1/status");
    assert_eq!(status["items"][0]["reason"], sentence, "{status:#}");
    let why = get(&member, "/v1/clusters/orders/why");
    assert!(why["plan"].to_string().contains(sentence), "{why:#}");
    let order = json!({"organization": "acme", "kafka_units": 1, "tenancy_mode": "Shared"});
    let fit = api.call_as(&member, "POST /v1/fit", &[], order).expect(200).body;
    let unfit = &fit["items"][0]["reasons"][0];
    assert_eq!((&unfit["code"], &unfit["detail"]), (&json!("unreachable"), &json!(sentence)), "{fit:#}");
    let offers = get(&member, "/v1/offers");
    assert_eq!(offers["fleets"][0]["is_operator_known"], false, "{offers:#}");
    // The time since which it is so.
    status["items"].as_array_mut().unwrap().iter_mut().for_each(|line| line["since"] = Value::Null);
    let told = json!([reason, whys[0], fleet["reach"], fleet["changes"][0]["waiting"], status, why, fit]);
    for word in ["127.0.0.1", "os error", "TLS", "tls", "connection", "handshake", "kube-system"] {
        assert!(!told.to_string().contains(word), "{word}: {told:#}");
    }

    // The operator of the host sees the detail.
    let all =
        get(&own, "/organizations/acme/infrastructure/eu")["status_reason"].as_str().unwrap().to_owned();
    assert!(all.starts_with("the target can't be reached: cannot read the namespace kube-system: "), "{all}");
    let all = get(&own, "/v1/status");
    assert!(all.to_string().contains("cannot read the namespace kube-system: "), "{all:#}");
    let all = get(&own, "/v1/clusters/orders/why");
    assert!(all.to_string().contains("cannot read the namespace kube-system: "), "{all:#}");
    tree.run("status tree --config settings.toml").says(&["cannot read the namespace kube-system: "]);
    api.serve.says(&["unreachable", "cannot read the namespace kube-system: "]);
    assert_eq!(api.serve.stop(), Some(0));
    told
}
