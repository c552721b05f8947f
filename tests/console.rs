//! The console of a cluster on a real control plane.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::gateway::{route, with_gateways};
use crate::kubernetes::{SANDBOX, reached_with};
use crate::rights::tenant;
use crate::support::Tree;
use crate::support::knot::Knot;
use crate::support::names::{DOMAIN, MANAGED, certificate, fields, keep};

const PLAN: &str = "plan tree --config config.toml";
const APPLY: &str = "apply tree --yes --config config.toml";
const NAMESPACE: &str = "--namespace=kafka-acme--sandbox";
const HOST: &str = "console--sandbox.acme.kafka.example.test";
const NAMES: [&str; 2] = ["acme.kafka.example.test", "*.acme.kafka.example.test"];
const CONSOLE: &str = "  operations: {console: true}\n";

/// Gives a cluster of the tree a console, and the settings an image.
pub fn add_console(tree: &Tree, cluster: &str) {
    let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
    let key = format!("console = \"quay.io/streamshub/console-api@sha256:{}\"\n", "0c".repeat(32));
    let settings = match settings.contains("[images]\n") {
        true => settings.replace("[images]\n", &format!("[images]\n{key}")),
        false => format!("{settings}[images]\n{key}"),
    };
    fs::write(tree.beside("config.toml"), settings).unwrap();
    let text =
        tree.read(cluster).replace("cluster_access: Internal\n", "cluster_access: Internal & External\n");
    tree.write(cluster, text.replacen("advanced_config:\n", &format!("advanced_config:\n{CONSOLE}"), 1));
}

#[test]
fn a_console_has_a_name_behind_the_gateway_and_a_key_for_its_sessions() {
    let plane = with_gateways();
    let knot = Knot::start();
    let tree = reached_with(&tenant(&plane, "--gateway --workloads"));
    keep(&tree, &knot, &fields(&certificate(&NAMES)));
    route(&tree);
    add_console(&tree, SANDBOX);
    let object = |of: &str| -> Option<Value> {
        let name = if of == "secret" { "sandbox-console.session" } else { "sandbox-console" };
        let words = format!("get {of} {name} {NAMESPACE} --ignore-not-found --output=json");
        serde_json::from_str(&plane.kubectl(&words, "").expect(0).out).ok()
    };
    tree.run(APPLY).expect(0).says(&[
        "a console starts beside the brokers: whoever reaches it sees the cluster's name",
        "+ Deployment kafka-acme--sandbox/sandbox-console",
        "+ TLSRoute kafka-acme--sandbox/sandbox-console",
    ]);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    let key = object("secret").unwrap()["data"]["session-key"].take();
    let key = String::from_utf8(STANDARD.decode(key.as_str().unwrap()).unwrap()).unwrap();
    assert!(key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");

    // Its name leads to the Gateway.
    plane.set_status(
        &format!("kafkanodepool dual {NAMESPACE}"),
        &json!({"nodeIds": [0], "observedGeneration": 1}),
    );
    let address = json!({"addresses": [{"type": "IPAddress", "value": "192.0.2.40"}]});
    plane.set_status("gateway kafka --namespace=streamfleet-gateway", &address);
    tree.run(APPLY).expect(0).says(&[&format!("+ DnsRecord kafka-acme--sandbox/{HOST}")]);
    assert_eq!(knot.answers(HOST, "A"), ["192.0.2.40"]);
    let record = tree.run("get cluster/acme/sandbox tree --config config.toml --format json").expect(0).out;
    assert!(record.contains(&format!("\"console_url\": \"https://{HOST}\"")), "{record}");

    // One that was changed by hand is put back, which is no new certificate of brokers.
    let patch = r#"{"data":{"session-key":"eA=="}}"#;
    let words = format!("patch secret sandbox-console.session {NAMESPACE} --type=merge -p {patch}");
    plane.kubectl(&words, "").expect(0);
    let said = tree.run(APPLY).expect(0).says(&["~ Secret kafka-acme--sandbox/sandbox-console.session"]);
    assert!(!said.out.contains("brokers") && !said.out.contains("certificate"), "{}", said.out);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);

    // Another image is a change of the settings.
    let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
    fs::write(tree.beside("config.toml"), settings.replace(&"0c".repeat(32), &"0d".repeat(32))).unwrap();
    tree.run(PLAN).expect(2).says(&[
        "because the settings of the installation changed",
        "the console's pod is replaced; its users may have to try again",
    ]);
    fs::write(tree.beside("config.toml"), settings).unwrap();

    // The key of another certificate gives another one.
    let before = tree.read(DOMAIN);
    tree.write(DOMAIN, format!("{MANAGED}{}", fields(&certificate(&NAMES))));
    tree.run(PLAN)
        .says(&["the console's sessions get another key at its next start; its users log in again then"]);
    tree.write(DOMAIN, before);

    // Without it, its objects and its name go.
    tree.edit(SANDBOX, CONSOLE, "");
    tree.run(APPLY).expect(0).says(&["the console is removed"]);
    for gone in ["deployment", "service", "tlsroute", "secret", "configmap"] {
        let found = object(gone);
        assert!(found.is_none_or(|it| it["metadata"]["deletionTimestamp"].is_string()), "{gone}");
    }
    assert_eq!(knot.answers(HOST, "A"), [""; 0]);
}
