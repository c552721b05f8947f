//! A real Kafka broker accepts the rendered configuration, and real clients connect with the files that
//! `client-properties` prints.

pub mod identity_provider;
mod registry;
mod rights;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::generated::table::OPTIONS;
use crate::kubernetes::{SANDBOX, on};
use crate::support::Tree;
use crate::support::control_plane::{ControlPlane, Writer};
use crate::support::kafka::{Broker, Client};
use identity_provider::{FORGER, IdentityProvider};

const NAMESPACE: &str = "kafka-acme--sandbox";
/// The names of the cluster and of its only node for clients outside of Kubernetes.
const OUTSIDE: [&str; 2] = ["sandbox.kafka.acme.example.com", "broker-0--sandbox.kafka.acme.example.com"];
const ADMIN: (&str, &str) = ("sandbox-admin", "open-sesame");
const STRANGER: (&str, &str) = ("stranger", "let-me-in");

/// Options of specs that would break the test's own clients: small batches, no time for transactions, and
/// keys in all records.
const HARMFUL: [&str; 6] = [
    "auto.create.topics.enable",
    "log.cleanup.policy",
    "message.max.bytes",
    "producer.id.expiration.ms",
    "transaction.max.timeout.ms",
    "transactional.id.expiration.ms",
];

const TOPICS: &str = "org.apache.kafka.tools.TopicCommand";
const RIGHTS: &str = "org.apache.kafka.tools.AclCommand";
const CONFIGS: &str = "kafka.admin.ConfigCommand";
const PRODUCE: &str = "org.apache.kafka.tools.ProducerPerformance";
const CONSUME: &str = "org.apache.kafka.tools.consumer.ConsoleConsumer";

/// The broker of the example's small cluster, with these options of its Java.
pub fn broker_with(options: &[String]) -> Broker {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    tree.remove("acme/clusters/orders.yaml");
    tree.run("apply tree --yes --config config.toml").expect(0);
    Broker::start_with(&plane, NAMESPACE, &[ADMIN], &OUTSIDE, options)
}

struct Stage {
    broker: Broker,
    told: BTreeMap<&'static str, String>,
    /// The properties for the user `billing`, if the tree has it.
    told_to_user: BTreeMap<&'static str, String>,
    /// The KafkaUsers and Deployments of the cluster.
    objects: Vec<Value>,
}

impl Stage {
    /// The example's small cluster, reached from inside and outside.
    fn set(more: impl FnOnce(&Tree)) -> Stage {
        Stage::with_users(&[ADMIN, STRANGER], more)
    }

    fn with_users(users: &[(&str, &str)], more: impl FnOnce(&Tree)) -> Stage {
        let plane = ControlPlane::lease();
        let tree = on(&plane);
        tree.edit(SANDBOX, "cluster_access: Internal", "cluster_access: Internal & External");
        tree.remove("acme/clusters/orders.yaml");
        more(&tree);
        tree.run("apply tree --yes --config config.toml").expect(0);
        let broker = Broker::start(&plane, NAMESPACE, users, &OUTSIDE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { Writer::to(&plane).await.put_status(&broker.with_status()).await });
        let told = |listener: &'static str, more: &str| {
            let words =
                format!("client-properties sandbox tree --config config.toml --listener {listener}{more}");
            (listener, tree.run(&words).expect(0).out)
        };
        let has_user = tree.path().join("acme/users/sandbox/billing.yaml").exists();
        let of_user = |listener| has_user.then(|| told(listener, " --user billing"));
        let words = format!("get kafkausers,deployments --namespace {NAMESPACE} --output json");
        let mut list: Value = serde_json::from_str(&plane.kubectl(&words, "").expect(0).out).unwrap();
        let Value::Array(objects) = list["items"].take() else { panic!("{list}") };
        Stage {
            told: ["tls", "external", "admin"].map(|listener| told(listener, "")).into(),
            told_to_user: ["tls", "external"].into_iter().filter_map(of_user).collect(),
            objects,
            broker,
        }
    }

    #[track_caller]
    fn object(&self, kind: &str, name: &str) -> &Value {
        let is_it = |it: &&Value| it["kind"] == kind && it["metadata"]["name"] == name;
        self.objects.iter().find(is_it).unwrap_or_else(|| panic!("there is no {kind} {name}"))
    }

    /// A client of the identity provider.
    fn with_token(&self, listener: &str, id: &str, provider: &IdentityProvider) -> Client {
        let IdentityProvider { url, authority, .. } = provider;
        self.broker.write("authority.pem", authority);
        let module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule";
        let trust = r#"ssl.truststore.type="PEM" ssl.truststore.location="authority.pem""#;
        self.client(listener)
            .with(
                "sasl.jaas.config",
                &format!(r#"{module} required clientId="{id}" clientSecret="x" {trust};"#),
            )
            .option(&format!("-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}/token"))
    }

    fn client(&self, listener: &str) -> Client {
        Client::new(&self.told[listener])
    }

    fn admin(&self) -> Client {
        self.client("admin").user(ADMIN)
    }

    /// The output of a tool, which must succeed.
    #[track_caller]
    fn run(&self, client: &Client, class: &str, words: &str) -> String {
        self.broker.tool(client, class, words).succeeds()
    }

    /// Creates a topic with the broker's default replication factor.
    #[track_caller]
    fn make(&self, topic: &str) {
        self.run(&self.admin(), TOPICS, &format!("--create --topic {topic}"));
    }

    #[track_caller]
    fn send(&self, client: &Client, topic: &str, more: &str) {
        let words = format!("--topic {topic} --num-records 3 --payload-monotonic --throughput -1 {more}");
        let said = self.run(client, PRODUCE, &words);
        assert!(said.contains("3 records sent"), "{said}");
    }

    #[track_caller]
    fn take(&self, client: &Client, topic: &str) {
        let words =
            format!("--topic {topic} --group {topic} --from-beginning --isolation-level read_committed");
        let said = self.run(client, CONSUME, &format!("{words} --max-messages 3 --timeout-ms 60000"));
        assert!(said.contains("0\n1\n2\n"), "{said}");
    }

    /// Asserts that the broker or the client ends the connection for this reason.
    #[track_caller]
    fn is_refused(&self, client: &Client, why: &str) {
        let outcome = self.broker.tool(client, TOPICS, "--list").says(why);
        assert!(!outcome.succeeded, "{}", outcome.said);
    }
}

/// Does what the user operator does with the entries of a KafkaUser.
pub fn grant(broker: &Broker, admin: &Client, name: &str, user: &Value) {
    let acls = user["spec"]["authorization"]["acls"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for acl in acls {
        let resource = &acl["resource"];
        let option = match text(&resource["type"]).as_str() {
            "transactionalId" => "transactional-id".to_owned(),
            other => other.to_owned(),
        };
        let of_name = |name: &Value| {
            let pattern = if resource["patternType"] == "prefix" { "prefixed" } else { "literal" };
            format!(" {} --resource-pattern-type {pattern}", text(name))
        };
        // There is one cluster.
        let of_name = resource.get("name").map(of_name).unwrap_or_default();
        assert_eq!((text(&acl["type"]), text(&acl["host"])), ("allow".to_owned(), "*".to_owned()));
        let operations: String = acl["operations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| format!(" --operation {}", text(it)))
            .collect();
        let words = format!("--add --allow-principal User:{name}{operations} --{option}{of_name}");
        broker.tool(admin, RIGHTS, &words).succeeds();
    }
}

#[test]
fn a_broker_takes_every_option_and_clients_reach_it_as_they_are_told() {
    let mut options: serde_json::Map<String, Value> = serde_json::from_str(OPTIONS).unwrap();
    HARMFUL.iter().for_each(|option| drop(options.remove(*option).unwrap()));
    assert!(options.len() > 20, "{options:?}");
    let options = serde_json::to_string(&options).unwrap();
    let stage = Stage::set(|tree| {
        tree.edit(SANDBOX, "  profile: dev", &format!("  profile: dev\n  config: {options}"));
    });
    let admin = stage.admin();
    every_option_is_in_force(&stage);

    // From outside and inside, by name, over verified TLS; with transactions, and as a group.
    stage.make("numbers");
    stage.send(&stage.client("external").user(ADMIN), "numbers", "--transactional-id numbers");
    stage.take(&stage.client("tls").user(ADMIN), "numbers");

    // Topics aren't created automatically.
    let missing = stage.broker.tool(&admin, TOPICS, "--describe --topic missing");
    missing.says("Topic 'missing' does not exist");

    // The quota of 1 MiB a second throttles a producer of 14 MB; the first eleven seconds' worth is free.
    let words = "--topic numbers --num-records 1400 --record-size 10000 --throughput -1 --print-metrics \
                 --command-property linger.ms=100 batch.size=500000";
    let metrics = stage.run(&stage.client("tls").user(ADMIN), PRODUCE, words);
    let throttled = metrics.lines().find(|line| line.contains("produce-throttle-time-max"));
    let most = throttled.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    assert!(most.is_some_and(|milliseconds| milliseconds > 0.0), "{metrics}");

    // A user without rights can't do anything, and a wrong password or address fails.
    let words = "--topic numbers --num-records 1 --record-size 1 --throughput -1";
    let stranger = stage.client("external").user(STRANGER);
    stage.broker.tool(&stranger, PRODUCE, words).says("Not authorized to access topics: [numbers]");
    stage.is_refused(&stage.client("external").user((ADMIN.0, "guess")), "invalid credentials");
    let by_address =
        stage.client("external").user(ADMIN).with("bootstrap.servers", &stage.broker.address(9094));
    stage.is_refused(&by_address, "No subject alternative names matching IP address");
}

/// The broker knows each rendered option and has its value. It would keep an unknown option as a secret.
#[track_caller]
fn every_option_is_in_force(stage: &Stage) {
    let words = "--describe --all --entity-type brokers --entity-name 0";
    let said = stage.run(&stage.admin(), CONFIGS, words);
    let config = stage.broker.kafka()["spec"]["kafka"]["config"].as_object().unwrap();
    assert!(config.len() > 5, "{config:?}");
    for (key, value) in config {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let line = format!("\n  {key}={value} sensitive=false ");
        assert!(said.contains(&line), "{line}is missing in\n{said}");
    }
}

#[test]
fn clients_log_in_with_tokens_and_nobody_becomes_the_administrator_by_one() {
    // Each character is special to one of the readers on the way to the broker.
    let audience = r#"kafka's "own" \ ${secrets:/etc:passwd}"#;
    let claims =
        |user: &str, audience: &str| json!({"sub": "1", "preferred_username": user, "aud": [audience]});
    let clients = BTreeMap::from([
        ("app", claims("alice", audience)),
        (FORGER, claims("alice", audience)),
        ("neighbour", claims("alice", "another")),
        ("usurper", claims(ADMIN.0, audience)),
    ]);
    let provider = IdentityProvider::start(clients);
    let IdentityProvider { url, authority, .. } = &provider;
    let stage = Stage::set(|tree| {
        tree.edit(SANDBOX, "  profile: dev", "  profile: dev\n  oauth: own");
        let spec = json!({
            "apiVersion": "streamfleet/v1", "kind": "IdentityProvider", "organization": "acme", "identifier": "own",
            "issuer": url, "jwks_uri": format!("{url}/keys"), "token_endpoint": format!("{url}/token"),
            "audience": audience, "username_claim": "preferred_username", "ca_cert": authority,
        });
        tree.write("acme/own.yaml", spec.to_string());
    });
    let login = |listener: &str, id: &str| stage.with_token(listener, id, &provider);
    every_option_is_in_force(&stage);

    // The administrator needs no token, and grants rights to a user of the identity provider.
    stage.make("numbers");
    let grant = "--add --allow-principal User:alice --operation All --topic numbers --group numbers";
    stage.run(&stage.admin(), RIGHTS, grant);
    stage.send(&login("external", "app"), "numbers", "");
    stage.take(&login("tls", "app"), "numbers");

    // Tokens for another service, with a forged signature, and in the name of a super user.
    for (id, why) in [
        ("neighbour", "Expected audience not available in the token"),
        (FORGER, "Invalid token signature"),
        ("usurper", "Custom claim check failed"),
    ] {
        stage.is_refused(&login("external", id), why);
    }
}

#[test]
fn clients_log_in_with_certificates_of_their_own() {
    let stage =
        Stage::set(|tree| tree.edit(SANDBOX, "  profile: dev", "  profile: dev\n  authentication: mtls"));
    stage.make("numbers");
    let grant = "--add --allow-principal User:CN=stranger --operation All --topic numbers --group numbers";
    stage.run(&stage.admin(), RIGHTS, grant);
    let certified = |listener: &str| stage.broker.certified(stage.client(listener), STRANGER.0);
    stage.send(&certified("external"), "numbers", "");
    stage.take(&certified("tls"), "numbers");
    stage.is_refused(&stage.client("external"), "SslAuthenticationException");
}
