//! The schema registry of a cluster on a real control plane. That it works beside a real broker is in `tests/kafka`.

use std::fs;

use serde_json::{Value, json};

use crate::console::add_console;
use crate::gateway::{route, with_gateways};
use crate::interrupted;
use crate::kubernetes::{FLEET, SANDBOX, reached_with};
use crate::rights::{give, tenant};
use crate::support::control_plane::{ControlPlane, until};
use crate::support::knot::Knot;
use crate::support::names::{certificate, fields, keep};
use crate::support::registry::IMAGE;
use crate::support::serve::Serve;
use crate::support::{Tree, without_own};
use crate::watch::SERVE;
use crate::watch::health::{SimulatedOperator, nothing_runs_yet, operator, two_clusters};

const PLAN: &str = "plan tree --config config.toml";
const APPLY: &str = "apply tree --yes --config config.toml";
const ORDERS: &str = "acme/clusters/orders.yaml";
const NAMESPACE: &str = "--namespace=kafka-acme--orders";
const HOST: &str = "registry--orders.acme.kafka.example.test";
const REGISTRY: &str = "  schema_registry: {enabled: true, developer_group: developers}\n";

/// Gives a cluster of the tree an identity provider and a registry, and the settings an image.
pub fn add_registry(tree: &Tree, cluster: &str) {
    let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
    fs::write(tree.beside("config.toml"), format!("{settings}[images]\nschema_registry = \"{IMAGE}\"\n"))
        .unwrap();
    let provider = json!({
        "apiVersion": "streamfleet/v1", "kind": "IdentityProvider", "organization": "acme", "identifier": "own",
        "issuer": "https://id.example.com", "jwks_uri": "https://id.example.com/keys", "audience": "kafka",
        "token_endpoint": "https://id.example.com/token",
    });
    tree.write("acme/own.yaml", provider.to_string());
    let text =
        tree.read(cluster).replace("cluster_access: Internal\n", "cluster_access: Internal & External\n");
    tree.write(
        cluster,
        text.replacen("advanced_config:\n", &format!("advanced_config:\n  oauth: own\n{REGISTRY}"), 1),
    );
}

fn object(plane: &ControlPlane, of: &str) -> Option<Value> {
    let found =
        plane.kubectl(&format!("get {of} {NAMESPACE} --ignore-not-found --output=json"), "").expect(0).out;
    serde_json::from_str(&found).ok()
}

#[test]
fn a_registry_has_a_name_behind_the_gateway_and_goes_without_its_schemas() {
    let plane = with_gateways();
    let knot = Knot::start();
    let kubeconfig = tenant(&plane, "--gateway");
    let tree = reached_with(&kubeconfig);
    let own = certificate(&["acme.kafka.example.test", "*.acme.kafka.example.test"]);
    keep(&tree, &knot, &fields(&own));
    route(&tree);
    tree.edit(SANDBOX, "cluster_access: Internal\n", "cluster_access: Internal & External\n");
    add_registry(&tree, ORDERS);

    // A registry needs more rights than a cluster alone.
    tree.run(APPLY).expect(3).says(&[
        "! PermissionsMissing: the user of the fleet's `kubeconfig` may not create services",
        r#"{"apiGroups":["apps"],"resources":["deployments"],"verbs":["create","delete","patch"]}"#,
    ]);
    assert_eq!(object(&plane, "deployment orders-registry"), None);
    give(&plane, "--gateway --workloads");
    // The server learns of a changed policy a moment after it is stored.
    let try_it = "create deployment x --image=x --namespace=kafka-acme--sandbox --dry-run=server";
    until("the policy holds", || (plane.kubectl_with(&kubeconfig, try_it).code == 0).then_some(()));
    tree.run(APPLY).expect(0).says(&[
        "a schema registry starts beside the brokers",
        "nodes pull quay.io/apicurio/apicurio-registry@sha256:0a0a0a0a0a0a",
        "+ Deployment kafka-acme--orders/orders-registry",
        "+ TLSRoute kafka-acme--orders/orders-registry",
    ]);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    let route = object(&plane, "tlsroute orders-registry").unwrap();
    assert_eq!(route["spec"]["hostnames"], json!([HOST]));

    // Its name leads to the Gateway, and the other cluster has none.
    for (cluster, pool) in [("orders", "broker"), ("sandbox", "dual")] {
        let pool = format!("kafkanodepool {pool} --namespace=kafka-acme--{cluster}");
        plane.set_status(&pool, &json!({"nodeIds": [0], "observedGeneration": 1}));
    }
    let address = json!({"addresses": [{"type": "IPAddress", "value": "192.0.2.40"}]});
    plane.set_status("gateway kafka --namespace=streamfleet-gateway", &address);
    tree.run(APPLY).expect(0).says(&[&format!("+ DnsRecord kafka-acme--orders/{HOST}")]);
    assert_eq!(knot.answers(HOST, "A"), ["192.0.2.40"]);
    assert_eq!(knot.answers(&HOST.replace("orders", "sandbox"), "A"), [""; 0]);

    let properties = "client-properties orders tree --config config.toml";
    let told = tree.run(&format!("{properties} --registry")).expect(0).out;
    assert!(told.contains(&format!("schema.registry.url=https://{HOST}/apis/ccompat/v7\n")), "{told}");
    assert!(told.contains("bearer.auth.issuer.endpoint.url=https://id.example.com/token\n"), "{told}");
    tree.run("client-properties sandbox tree --config config.toml --registry").expect(1).says(&[
        "cluster acme/sandbox has no schema registry",
        "describe one in its spec: streamfleet explain cluster.advanced_config.schema_registry",
    ]);

    // What is changed by hand is put back.
    let scale = format!("scale deployment orders-registry {NAMESPACE} --replicas=0");
    plane.kubectl(&scale, "").expect(0);
    tree.run(APPLY).expect(0).says(&["~ Deployment kafka-acme--orders/orders-registry"]);

    // Without it, its objects and its name go, and nothing else.
    tree.edit(ORDERS, REGISTRY, "");
    let plan = tree.run(PLAN).expect(2);
    insta::assert_snapshot!(without_own(&crate::support::stable(&plan.out)));
    tree.run(APPLY).expect(0);
    for gone in ["deployment", "service", "tlsroute", "kafkauser", "poddisruptionbudget"] {
        let found = object(&plane, &format!("{gone} orders-registry"));
        assert!(found.is_none_or(|it| it["metadata"]["deletionTimestamp"].is_string()), "{gone}");
    }
    assert!(object(&plane, "kafka orders").is_some());
    assert_eq!(knot.answers(HOST, "A"), [""; 0]);
}

#[test]
fn a_registry_that_does_not_serve_degrades_its_cluster_and_nothing_else_and_a_console_none() {
    let plane = ControlPlane::lease();
    let tree = two_clusters(&plane);
    add_registry(&tree, "acme/clusters/dev.yaml");
    add_console(&tree, "acme/clusters/web.yaml");
    tree.edit(FLEET, "advanced_config:\n", "advanced_config:\n  reachability: none\n");
    let (serve, cast) = (Serve::start(&tree, SERVE), SimulatedOperator::on(&plane));
    nothing_runs_yet(&serve);
    cast.make(&operator());
    let serves = |deployment: &str, pods: u32| {
        let deployment = format!("deployment {deployment}");
        plane.set_status(&deployment, &json!({"replicas": 1, "readyReplicas": pods}));
    };
    let ready = |pods: u32| serves("dev-registry --namespace=kafka-acme--dev", pods);
    let console = |pods: u32| serves("web-console --namespace=kafka-acme--web", pods);
    ready(1);
    console(1);
    for cluster in ["dev", "web"] {
        cast.play("broker-pod-killed", cluster);
        cast.show(cluster, &interrupted::certificate(&tree));
        serve.says(&[" is ", &format!("cluster acme/{cluster}"), "to=Healthy"]);
    }
    let before = serve.log().len();
    ready(0);
    serve.says(&[
        " is ",
        "cluster acme/dev",
        "from=Healthy",
        "to=Degraded",
        "the schema registry doesn't serve: none of its pods is ready",
    ]);
    ready(1);
    serve.says(&[" is ", "cluster acme/dev", "from=Degraded", "to=Healthy"]);
    // One without its console stays Healthy, and says so.
    console(0);
    until("the console is missed", || {
        let record = tree.run("get cluster/acme/web tree --config config.toml").out;
        record.contains("the console doesn't serve: none of its pods is ready").then_some(())
    });
    let log = serve.log().split_off(before);
    assert!(
        !log.lines().any(|line| line.contains("cluster acme/web") && line.contains("to=Degraded")),
        "{log}"
    );
    assert_eq!(serve.stop(), Some(0));
}
