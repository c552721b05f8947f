//! `serve` connects to clusters by their public names, and what it finds is a part of their health.

use std::fs;

use serde_json::json;

use super::SERVE;
use super::health::{SimulatedOperator, nothing_runs_yet, operator, two_clusters};
use crate::interrupted::certificate;
use crate::kubernetes::FLEET;
use crate::probe::stage::{BOOTSTRAP, PASSWORD, Stage, USER, address, broker_host};
use crate::support::control_plane::ControlPlane;
use crate::support::serve::Serve;

#[test]
fn a_cluster_whose_public_name_leads_nowhere_is_degraded_and_the_next_restart_waits_for_it() {
    let plane = ControlPlane::lease();
    let tree = two_clusters(&plane);
    let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
    fs::write(tree.beside("config.toml"), settings + "\n[daemon]\nprobe_seconds = 1\n").unwrap();
    tree.edit("acme/clusters/dev.yaml", "cluster_access: Internal", "cluster_access: External");
    let (serve, cast) = (Serve::start(&tree, SERVE), SimulatedOperator::on(&plane));
    nothing_runs_yet(&serve);
    cast.make(&operator());
    for cluster in ["dev", "web"] {
        cast.play("broker-pod-killed", cluster);
        cast.show(cluster, &certificate(&tree));
        serve.says(&[" is ", &format!("cluster acme/{cluster}"), "to=Healthy"]);
    }

    serve.says(&["WARN", "clients may not reach cluster acme/dev: bootstrap: the name dev."]);
    serve.says(&[" is ", "cluster acme/dev", "from=Healthy", "to=Degraded"]);
    let status = "status tree --config config.toml";
    // The name of its only broker leads nowhere, either.
    let why = "clients outside of Kubernetes can't reach 2 of its names; the first: bootstrap: the name dev.";
    tree.run(status).says(&[why]);
    tree.run("why Cluster/acme/dev tree --config config.toml").says(&[why]);

    let metrics = "advanced_config:\n  operations: {metrics: true}\n";
    tree.edit("acme/clusters/web.yaml", "advanced_config:\n", metrics);
    serve.says(&["cluster acme/web", "waiting: ", "one disruption at a time; cluster acme/dev is first"]);

    // With nobody connecting, nothing is known, and the pods decide.
    tree.edit(FLEET, "advanced_config:\n", "advanced_config:\n  reachability: none\n");
    serve.says(&[" is ", "cluster acme/dev", "from=Degraded", "to=Healthy"]);
    serve.says(&["decided", "cluster acme/web", "restart"]);
    assert_eq!(serve.stop(), Some(0));
}

/// A name of a cluster leads to the broker of another one, and then a broker dies. The brokers are real; the operator
/// is simulated, and tells that all pods are fine.
#[test]
fn a_name_that_leads_to_the_wrong_broker_degrades_its_cluster_until_it_is_put_right() {
    let mut stage = Stage::set(&[0, 1], None);
    let plane = ControlPlane::lease();
    let tree = two_clusters(&plane);
    let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
    fs::write(tree.beside("config.toml"), settings + "\n[daemon]\nprobe_seconds = 1\n").unwrap();
    // The cluster that the brokers are of.
    let spec = tree.read("acme/clusters/dev.yaml").replace("identifier: dev", "identifier: orders");
    tree.remove("acme/clusters/dev.yaml");
    tree.write(
        "acme/clusters/orders.yaml",
        spec.replace("cluster_access: Internal", "cluster_access: External"),
    );
    tree.edit(FLEET, "kafka.acme.example.com", "k.example.com");
    tree.edit("organizations.yaml", "  - acme.example.com", "  - acme.example.com\n  - k.example.com");
    let chain = stage.certificate.chain(&stage.authority);
    let indented = |pem: &str| pem.lines().map(|line| format!("  {line}\n")).collect::<String>();
    let domain = format!(
        "apiVersion: streamfleet/v1\nkind: BaseDomain\norganization: acme\ndomain: k.example.com\ntls_cert: |\n{}tls_key: \
         |\n{}",
        indented(&chain),
        indented(&stage.certificate.key)
    );
    tree.write("acme/base-domains/k.example.com.yaml", domain);

    let hosts = |broker: u32| {
        let names = [(BOOTSTRAP.to_owned(), 0), (broker_host(0), broker)];
        let lines = names.map(|(name, broker)| format!("{} {name}\n", address(broker)));
        fs::write(tree.beside("hosts"), format!("127.0.0.1 localhost\n{}", lines.concat())).unwrap();
    };
    hosts(1);
    let Some(serve) = Serve::start_with_hosts(&tree, SERVE) else { return };
    let cast = SimulatedOperator::on(&plane);
    for cluster in ["orders", "web"] {
        serve.says(&[" is ", &format!("cluster acme/{cluster}"), "to=Pending"]);
    }
    cast.make(&operator());
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": USER, "namespace": "kafka-acme--orders"}, "stringData": {"password": PASSWORD},
    });
    plane.kubectl("create -f -", &secret.to_string()).expect(0);
    let ready =
        json!({"status": {"conditions": [{"type": "Ready", "status": "True"}], "observedGeneration": 1}});
    let user =
        format!("patch kafkauser {USER} --namespace=kafka-acme--orders --subresource=status --type=merge");
    plane.kubectl(&format!("{user} -p {ready}"), "").expect(0);
    for cluster in ["orders", "web"] {
        cast.play("broker-pod-killed", cluster);
        cast.show(cluster, &chain);
    }

    serve.says(&[" is ", "cluster acme/orders", "to=Degraded"]);
    let why = "why Cluster/acme/orders tree --config config.toml";
    let said = tree.run(why);
    let host = broker_host(0);
    said.says(&[
        &format!("broker 0: the name {host} leads to "),
        &format!("(from {}), at the level identity", address(1)),
    ]);
    let metrics = "advanced_config:\n  operations: {metrics: true}\n";
    tree.edit("acme/clusters/web.yaml", "advanced_config:\n", metrics);
    serve.says(&["cluster acme/web", "waiting: ", "one disruption at a time; cluster acme/orders is first"]);

    // One probe that succeeds is enough.
    hosts(0);
    serve.says(&[" is ", "cluster acme/orders", "from=Degraded", "to=Healthy"]);
    serve.says(&["decided", "cluster acme/web", "restart"]);

    let times = |words: &[&str]| {
        serve.log().lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
    };
    let degraded = [" is ", "cluster acme/orders", "from=Healthy", "to=Degraded"];
    let before = times(&degraded);
    stage.kill(0);
    serve.until("it is Degraded without its broker", || (times(&degraded) > before).then_some(()));
    tree.run(why).says(&["bootstrap"]);
    stage.start(&[0]);
    let healthy = [" is ", "cluster acme/orders", "from=Degraded", "to=Healthy"];
    serve.until("it is Healthy with it", || (times(&healthy) > 1).then_some(()));
    assert_eq!(serve.stop(), Some(0));
}
