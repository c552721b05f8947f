//! A real schema registry keeps its schemas in a real broker.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::{Value, json};

use super::identity_provider::IdentityProvider;
use super::{ADMIN, PRODUCE, Stage, TOPICS, grant};
use crate::kubernetes::SANDBOX;
use crate::support::Tree;
use crate::support::control_plane::until;
use crate::support::registry::{IMAGE, Registry};

const REGISTRY: (&str, &str) = ("sandbox-registry", "keep-out");
const HOST: &str = "registry--sandbox.kafka.acme.example.com";
/// Each character is special to one of the readers on the way to the registry.
const AUDIENCE: &str = r#"kafka's, "own" \ ${quarkus.http.ssl-port} $(HOME)"#;

/// An Avro schema of a record with these fields, as it is registered.
fn schema(fields: &Value) -> Value {
    json!({"schema": json!({"type": "record", "name": "Payment", "fields": fields}).to_string()})
}

/// The schema in an answer or a request. The registry writes it in another order.
fn parsed(of: &Value) -> Value {
    serde_json::from_str(of["schema"].as_str().unwrap()).unwrap()
}

/// The serial number of the certificate that a server presents for the host.
fn presented(port: u16) -> String {
    let connect = format!(
        "openssl s_client -connect 127.0.0.1:{port} -servername {HOST} -verify_hostname {HOST} \
                           </dev/null 2>/dev/null | openssl x509 -noout -serial"
    );
    let said = Command::new("sh").args(["-c", &connect]).output().unwrap();
    String::from_utf8(said.stdout).unwrap()
}

/// A certificate for the host, signed by nobody else, and its key.
fn renewed() -> (String, String) {
    let mut params = CertificateParams::new([HOST.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

#[test]
fn a_registry_keeps_schemas_in_the_cluster_and_lets_in_whom_the_identity_provider_names() {
    let claims = |user: &str, groups: &[&str]| json!({"sub": user, "preferred_username": user, "aud": [AUDIENCE], "realm": {"groups": groups}});
    let clients = BTreeMap::from([
        ("ada", claims("ada", &["${developers}", "other"])),
        ("eve", claims("eve", &["other"])),
        ("rita", claims("rita", &["staff"])),
        ("owner", claims("owner", &["$(admins)"])),
        ("neighbour", json!({"sub": "1", "aud": ["another"], "realm": {"groups": ["staff"]}})),
        ("usurper", claims(REGISTRY.0, &["staff"])),
    ]);
    let provider = IdentityProvider::start(clients);
    let mut stage = Stage::with_users(&[ADMIN, REGISTRY], |tree: &Tree| {
        let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
        fs::write(tree.beside("config.toml"), format!("{settings}[images]\nschema_registry = \"{IMAGE}\"\n"))
            .unwrap();
        let registry = r#"{enabled: true, admin_group: $(admins), developer_group: "${developers}", reader_group: staff}"#;
        tree.edit(
            SANDBOX,
            "  profile: dev",
            &format!("  profile: dev\n  oauth: own\n  schema_registry: {registry}"),
        );
        let url = &provider.url;
        let spec = json!({
            "apiVersion": "streamfleet/v1", "kind": "IdentityProvider", "organization": "acme", "identifier": "own",
            "issuer": url, "jwks_uri": format!("{url}/keys"), "token_endpoint": format!("{url}/token"),
            "audience": AUDIENCE, "username_claim": "preferred_username", "groups_claim": "$.realm.groups",
            "ca_cert": provider.authority,
        });
        tree.write("acme/own.yaml", spec.to_string());
    });
    grant(&stage.broker, &stage.admin(), REGISTRY.0, stage.object("KafkaUser", REGISTRY.0));
    let deployment = stage.object("Deployment", REGISTRY.0).clone();
    let mut pod = Registry::start(&stage.broker, &deployment, REGISTRY, HOST);
    pod.is_ready(&deployment);
    let token = |client: &str| provider.token_of(client);
    let (ada, rita, owner) = (token("ada"), token("rita"), token("owner"));
    const SUBJECT: &str = "/apis/ccompat/v7/subjects/payments-value/versions";
    let register = format!("POST {SUBJECT}");
    let first = schema(&json!([{"name": "amount", "type": "long"}]));

    // Without a token, with one of another service, and with one without a group.
    let is_refused = |token: &str, call: &str, status: u16| {
        let (found, answer) = pod.call(token, call, None);
        assert_eq!(found, status, "{call}: {answer}");
    };
    for call in [
        "GET /apis/ccompat/v7/subjects",
        "GET /apis/registry/v3/search/artifacts",
        "GET /apis/registry/v3/admin/rules",
    ] {
        is_refused("", call, 401);
        is_refused(&token("neighbour"), call, 401);
        is_refused(&token("eve"), call, 403);
    }
    assert_eq!(pod.call(&rita, &register, Some(&first)).0, 403);

    // A schema evolves as far as the rule says.
    assert_eq!(pod.call(&rita, "GET /apis/ccompat/v7/config", None).1["compatibilityLevel"], "BACKWARD");
    let (status, answer) = pod.call(&ada, &register, Some(&first));
    assert_eq!(status, 200, "{answer}");
    let id = answer["id"].as_u64().unwrap();
    let wider = schema(
        &json!([{"name": "amount", "type": "long"}, {"name": "note", "type": "string", "default": ""}]),
    );
    assert_eq!(pod.call(&ada, &register, Some(&wider)).0, 200);
    let narrower = schema(&json!([{"name": "currency", "type": "string"}]));
    let (status, answer) = pod.call(&ada, &register, Some(&narrower));
    assert_eq!((status, &answer["error_code"]), (409, &json!(409)), "{answer}");
    let rule = json!({"compatibility": "NONE"});
    assert_eq!(pod.call(&ada, "PUT /apis/ccompat/v7/config", Some(&rule)).0, 403);
    // Nobody can open it to everybody.
    let anonymous = json!({"value": "true"});
    let path = "PUT /apis/registry/v3/admin/config/properties/apicurio.auth.anonymous-read-access.enabled";
    assert_ne!(pod.call(&owner, path, Some(&anonymous)).0 / 100, 2);

    // The first four bytes after the magic one of each record are this id.
    let (_, found) = pod.call(&rita, &format!("GET /apis/ccompat/v7/schemas/ids/{id}"), None);
    assert_eq!(parsed(&found), parsed(&first));

    // Another pod learns what is new, and so does one that starts again after the first was killed.
    let mut second = Registry::start(&stage.broker, &deployment, REGISTRY, HOST);
    second.is_ready(&deployment);
    assert_eq!(second.call(&rita, &format!("GET {SUBJECT}"), None).1, json!([1, 2]));
    let orders = "POST /apis/ccompat/v7/subjects/orders-value/versions";
    assert_eq!(pod.call(&ada, orders, Some(&first)).0, 200);
    until("the other replica has a new schema", || {
        (second.call(&rita, "GET /apis/ccompat/v7/subjects/orders-value/versions/1", None).0 == 200)
            .then_some(())
    });
    pod.process.end();
    let mut pod = Registry::start(&stage.broker, &deployment, REGISTRY, HOST);
    pod.is_ready(&deployment);
    assert_eq!(parsed(&pod.call(&rita, &format!("GET {SUBJECT}/1"), None).1), parsed(&first));
    drop(second);

    // A renewed certificate is presented without a restart.
    let before = presented(pod.port);
    assert!(before.starts_with("serial="), "{before}");
    let (certificate, key) = renewed();
    for (file, content) in [("tls.key", key), ("tls.crt", certificate)] {
        let (new, place) = (pod.root.path().join("new"), pod.root.path().join("mnt/tls").join(file));
        fs::write(&new, content).unwrap();
        fs::rename(new, place).unwrap();
    }
    until("the new certificate is presented", || {
        let now = presented(pod.port);
        (now.starts_with("serial=") && now != before).then_some(())
    });
    // A connection at the moment of the change may be cut. curl trusts the new certificate alone.
    let list = until("it answers with it", || pod.try_call(&rita, &format!("GET {SUBJECT}"), None).ok());
    assert_eq!(list, (200, json!([1, 2])));

    // The user of the registry can do nothing else, nor can a token name it.
    stage.make("numbers");
    let user = stage.client("admin").user(REGISTRY);
    let words = "--topic numbers --num-records 1 --record-size 1 --throughput -1";
    stage.broker.tool(&user, PRODUCE, words).says("Not authorized to access topics: [numbers]");
    let login = stage.with_token("external", "usurper", &provider);
    stage.is_refused(&login, "Custom claim check failed");

    // What stays when the registry goes.
    let topics = stage.run(&stage.admin(), TOPICS, "--describe --exclude-internal");
    for topic in ["__schema-registry-journal", "__schema-registry-events", "__schema-registry-snapshots"] {
        let line = topics.lines().find(|line| line.contains(&format!("Topic: {topic}\t")));
        let line = line.unwrap_or_else(|| panic!("{topic} is missing in\n{topics}"));
        assert!(
            line.contains("PartitionCount: 1\tReplicationFactor: 1") && line.contains("retention.ms=-1"),
            "{line}"
        );
    }

    // Without brokers nothing is registered, and everything is still read: the pod is neither restarted nor left out.
    stage.broker.end();
    for fields in [json!([]), json!([{"name": "id", "type": "int", "default": 0}])] {
        let (status, answer) = pod.call(&ada, orders, Some(&schema(&fields)));
        assert_eq!(status / 100, 5, "{answer}");
    }
    for probe in ["readinessProbe", "livenessProbe"] {
        assert_eq!(pod.probed(&deployment, probe), "200", "{probe}");
    }
    assert_eq!(parsed(&pod.call(&rita, &format!("GET {SUBJECT}/1"), None).1), parsed(&first));
}
