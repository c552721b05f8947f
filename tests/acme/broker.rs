use serde_json::json;

use super::{APPLY, KEY, PLAN, QUARTER, manage, renewal};
use crate::dns::serve_in;
use crate::kubernetes::{SANDBOX, on};
use crate::support::control_plane::{ControlPlane, Writer};
use crate::support::kafka::{Broker, Client};
use crate::support::knot::Knot;
use crate::support::pebble::Pebble;

const NAMESPACE: &str = "kafka-acme--sandbox";
const HOSTS: [&str; 2] = ["sandbox.acme.kafka.example.test", "broker-0--sandbox.acme.kafka.example.test"];
const ADMIN: (&str, &str) = ("sandbox-admin", "open-sesame");
const TOPICS: &str = "org.apache.kafka.tools.TopicCommand";
const PRODUCE: &str = "org.apache.kafka.tools.ProducerPerformance";
const CONSUME: &str = "org.apache.kafka.tools.consumer.ConsoleConsumer";

/// The broker has what is in the cluster's Secret, as Strimzi mounts it, and the client trusts the authority's root alone.
#[test]
fn a_client_that_trusts_the_authority_alone_produces_and_consumes_before_and_after_a_renewal() {
    let plane = ControlPlane::lease();
    let knot = Knot::start();
    let pebble = Pebble::start(knot.address, QUARTER);
    let tree = manage(on(&plane), &knot, &pebble);
    tree.edit(SANDBOX, "cluster_access: Internal", "cluster_access: External");
    tree.remove("acme/clusters/orders.yaml");
    tree.run(APPLY).expect(3);
    tree.run(APPLY).expect(0);
    let secret = || {
        let words =
            format!("get secret sandbox-tls --namespace {NAMESPACE} --output jsonpath={{.data.tls\\.crt}}");
        plane.kubectl(&words, "").expect(0).out
    };
    let first = secret();
    for is_renewed in [false, true] {
        if is_renewed {
            let chain = super::kept(&tree)["certificates"][KEY].clone();
            pebble.renews_now(chain["issued"]["chain"].as_str().unwrap());
            renewal::ask_again(&tree);
            tree.run(APPLY).expect(0);
            tree.run(APPLY).expect(0).says(&["~ Secret kafka-acme--sandbox/sandbox-tls"]);
            assert_ne!(secret(), first);
        }
        let broker = Broker::start(&plane, NAMESPACE, &[ADMIN], &HOSTS);
        if !is_renewed {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { Writer::to(&plane).await.put_status(&broker.with_status()).await });
        }
        let told =
            tree.run("client-properties sandbox tree --config config.toml --listener external").expect(0).out;
        assert!(told.contains("ssl.truststore.certificates"), "{told}");
        let client = Client::new(&told).user(ADMIN);
        produce_and_consume(&broker, &client);
    }
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    assert_eq!(pebble.orders(), 2);
}

fn produce_and_consume(broker: &Broker, client: &Client) {
    broker.tool(client, TOPICS, "--create --topic orders").succeeds();
    let words = "--topic orders --num-records 3 --payload-monotonic --throughput -1";
    let said = broker.tool(client, PRODUCE, words).succeeds();
    assert!(said.contains("3 records sent"), "{said}");
    let words = "--topic orders --from-beginning --max-messages 3 --timeout-ms 60000";
    let said = broker.tool(client, CONSUME, words).succeeds();
    assert!(said.contains("0\n1\n2\n"), "{said}");
}

/// The test plays Strimzi and the load balancers, and puts no hand on DNS or certificates.
#[test]
fn two_clusters_go_from_an_empty_tree_to_clients_that_find_them_in_dns() {
    let plane = ControlPlane::lease();
    let knot = Knot::start();
    let pebble = Pebble::start(knot.address, QUARTER);
    let tree = manage(on(&plane), &knot, &pebble);
    tree.remove("acme/clusters/orders.yaml");
    tree.edit(SANDBOX, "cluster_access: Internal", "cluster_access: External");
    tree.write("acme/clusters/billing.yaml", tree.read(SANDBOX).replace("sandbox", "billing"));
    tree.run(APPLY).expect(3);
    tree.run(APPLY).expect(0).says(&["+ cluster billing", "+ cluster sandbox"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let operator = runtime.block_on(Writer::to(&plane));
    for cluster in ["billing", "sandbox"] {
        let namespace = format!("kafka-acme--{cluster}");
        let admin = format!("{cluster}-admin");
        let broker = Broker::start(&plane, &namespace, &[(&admin, "open-sesame")], &[]);
        let address = broker.address(0).split(':').next().unwrap().to_owned();
        let names = ["", "broker-0--"].map(|node| format!("{node}{cluster}.acme.kafka.example.test"));
        for name in &names {
            serve_in(&plane, &namespace, name, json!([{"ip": address}]));
        }
        tree.run(APPLY).expect(0).says(&["makes 2 DNS records"]);
        for name in &names {
            let [found] = knot.answers(name, "A").try_into().unwrap();
            broker.resolve(name, &found);
        }
        runtime.block_on(operator.put_status(&broker.with_status()));
        let words = format!("client-properties {cluster} tree --config config.toml --listener external");
        let client = Client::new(&tree.run(&words).expect(0).out).user((&admin, "open-sesame"));
        produce_and_consume(&broker, &client);
    }
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    assert_eq!(pebble.orders(), 1);
}
