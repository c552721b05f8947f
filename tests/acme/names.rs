//! Every name that a fleet promises is found in DNS, leads through the Gateway, and is answered with the certificate of the
//! domain. The authority, the DNS server, the brokers, the registry and Prometheus are real; the test plays the operator and
//! the Gateway.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::roll::names;
use super::{APPLY, FLEET, KEY, PLAN, QUARTER, kept, manage};
use crate::gateway::{route, with_gateways};
use crate::kafka::grant;
use crate::kafka::identity_provider::IdentityProvider;
use crate::kubernetes::{SANDBOX, reached_with};
use crate::monitoring::own::{HOST as METRICS, IMAGE, OWN, Prometheus};
use crate::rights::tenant;
use crate::support::Tree;
use crate::support::control_plane::{ControlPlane, Lease, until};
use crate::support::gateway::Gateway;
use crate::support::kafka::{Broker, Client};
use crate::support::knot::Knot;
use crate::support::openssl::presented;
use crate::support::pebble::Pebble;
use crate::support::registry::{IMAGE as REGISTRY_IMAGE, Registry};

const BILLING: &str = "acme/clusters/billing.yaml";
const CLUSTERS: [&str; 2] = ["billing", "sandbox"];
const REGISTRY: &str = "registry--billing.acme.kafka.example.test";
const REGISTRY_SERVICE: &str = "kafka-acme--billing/billing-registry:443";
const METRICS_SERVICE: &str = "kafka-monitoring/prometheus:443";
const USER: (&str, &str) = ("billing-registry", "keep-out");
const PASSWORD: &str = "open-sesame";
/// The Gateway's.
const ADDRESS: &str = "127.0.0.40";

/// Two clusters, one with a schema registry, on a fleet with a Gateway and a Prometheus.
fn described(kubeconfig: &str, knot: &Knot, pebble: &Pebble, provider: &IdentityProvider) -> Tree {
    let tree = manage(reached_with(kubeconfig), knot, pebble);
    let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
    let images = format!("[images]\nprometheus = \"{IMAGE}\"\nschema_registry = \"{REGISTRY_IMAGE}\"\n");
    fs::write(tree.beside("config.toml"), settings + &images).unwrap();
    route(&tree);
    tree.write(FLEET, tree.read(FLEET) + OWN);
    tree.remove("acme/clusters/orders.yaml");
    tree.edit(SANDBOX, "cluster_access: Internal\n", "cluster_access: External\n");
    tree.edit(SANDBOX, "advanced_config:\n", "advanced_config:\n  operations: {metrics: true}\n");
    let more =
        "advanced_config:\n  oauth: own\n  schema_registry: {enabled: true, developer_group: developers}\n";
    let billing = tree.read(SANDBOX).replace("sandbox", "billing").replace("advanced_config:\n", more);
    tree.write(BILLING, billing);
    let url = &provider.url;
    let spec = json!({
        "apiVersion": "streamfleet/v1", "kind": "IdentityProvider", "organization": "acme", "identifier": "own",
        "issuer": url, "jwks_uri": format!("{url}/keys"), "token_endpoint": format!("{url}/token"),
        "audience": "kafka", "ca_cert": provider.authority,
    });
    tree.write("acme/own.yaml", spec.to_string());
    tree
}

fn namespace(cluster: &str) -> String {
    format!("kafka-acme--{cluster}")
}

fn object(plane: &ControlPlane, of: &str, cluster: &str) -> Value {
    let words = format!("get {of} --namespace={} --output=json", namespace(cluster));
    serde_json::from_str(&plane.kubectl(&words, "").expect(0).out).unwrap()
}

/// Plays the operator, which gives the only node of a cluster its number, and each name of a listener a TLSRoute.
fn operate(plane: &ControlPlane, cluster: &str) {
    let pool = format!("kafkanodepool dual --namespace={}", namespace(cluster));
    plane.set_status(&pool, &json!({"nodeIds": [0], "observedGeneration": 1}));
    let kafka = object(plane, &format!("kafka {cluster}"), cluster);
    let listeners = kafka["spec"]["kafka"]["listeners"].as_array().unwrap();
    let listener = listeners.iter().find(|listener| listener["type"] == "tlsroute").unwrap();
    let configuration = &listener["configuration"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let [bootstrap, broker] = services(cluster);
    for (name, host) in [
        (bootstrap, text(&configuration["bootstrap"]["host"])),
        (broker, text(&configuration["hostTemplate"]).replace("{nodeId}", "0")),
    ] {
        let route = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "TLSRoute",
            "metadata": {"name": name, "namespace": namespace(cluster)},
            "spec": {"hostnames": [host], "parentRefs": configuration["parentRefs"],
                "rules": [{"backendRefs": [{"name": name, "port": listener["port"]}]}]}});
        plane.kubectl("create -f -", &route.to_string()).expect(0);
    }
}

/// The Services that the operator makes for the names of a cluster.
fn services(cluster: &str) -> [String; 2] {
    ["kafka-external-bootstrap", "dual-external-0"].map(|service| format!("{cluster}-{service}"))
}

/// Every name of the fleet, with the Service that it leads to. All have the same certificate.
fn promised() -> BTreeMap<String, String> {
    let of_cluster = |cluster: &str| {
        let services = services(cluster).map(|service| format!("{}/{service}:9094", namespace(cluster)));
        names(cluster).into_iter().zip(services).collect::<Vec<_>>()
    };
    let others = [(REGISTRY, REGISTRY_SERVICE), (METRICS, METRICS_SERVICE)];
    let others = others.map(|(host, service)| (host.to_owned(), service.to_owned()));
    CLUSTERS.into_iter().flat_map(of_cluster).chain(others).collect()
}

struct Stage {
    plane: Lease,
    knot: Knot,
    tree: Tree,
    gateway: Gateway,
    /// The file with the authority's root.
    root: PathBuf,
    chain: String,
    _provider: IdentityProvider,
}

impl Stage {
    /// A fleet of which everything is applied, and nothing runs yet.
    fn set() -> Stage {
        let plane = with_gateways();
        let knot = Knot::start();
        let pebble = Pebble::start(knot.address, QUARTER);
        let provider = IdentityProvider::start(BTreeMap::new());
        let kubeconfig = tenant(&plane, "--gateway --workloads --prometheus");
        let tree = described(&kubeconfig, &knot, &pebble, &provider);
        tree.run(APPLY).expect(3);
        tree.run(APPLY).expect(0).says(&["+ cluster billing", "+ cluster sandbox"]);
        let address = json!({"addresses": [{"type": "IPAddress", "value": ADDRESS}]});
        plane.set_status("gateway kafka --namespace=streamfleet-gateway", &address);
        CLUSTERS.iter().for_each(|cluster| operate(&plane, cluster));
        tree.run(APPLY).expect(0);
        tree.run(PLAN).expect(0).says(&["Nothing to do"]);
        assert_eq!(pebble.orders(), 1);
        let root = tree.beside("root.pem");
        fs::write(&root, pebble.root()).unwrap();
        let chain = kept(&tree)["certificates"][KEY]["issued"]["chain"].as_str().unwrap().to_owned();
        let gateway = Gateway::start(&plane);
        Stage { plane, knot, tree, gateway, root, chain, _provider: provider }
    }

    fn presented(&self, host: &str) -> Result<String, String> {
        presented(host, self.gateway.address, &self.root)
    }

    /// Asserts that clients find a name, and that a server behind it proves to have it.
    #[track_caller]
    fn answers(&self, host: &str) {
        assert_eq!(self.knot.answers(host, "A"), [ADDRESS], "{host}");
        assert_eq!(self.presented(host).as_ref(), Ok(&self.chain), "{host}");
    }

    /// Asserts that a command tells this.
    #[track_caller]
    fn tells(&self, words: &str, what: &str) {
        self.tree.run(&format!("{words} tree --config config.toml")).expect(0).says(&[what]);
    }

    /// Starts the broker of a cluster, which both names of the cluster lead to.
    fn broker(&self, cluster: &str, users: &[(&str, &str)]) -> Broker {
        let broker = Broker::start(&self.plane, &namespace(cluster), users, &[]);
        let kafka = format!("kafka {cluster} --namespace={}", namespace(cluster));
        self.plane.set_status(&kafka, &broker.with_status()["status"]);
        for service in services(cluster) {
            let service = format!("{}/{service}:9094", namespace(cluster));
            self.gateway.leads(&service, broker.address(9094).parse().unwrap());
        }
        broker
    }

    /// Starts the registry beside the broker.
    fn registry(&self, broker: &Broker, admin: &str) -> Registry {
        let words = "client-properties billing tree --config config.toml --listener admin";
        let admin = Client::new(&self.tree.run(words).expect(0).out).user((admin, PASSWORD));
        grant(broker, &admin, USER.0, &object(&self.plane, "kafkauser billing-registry", "billing"));
        let deployment = object(&self.plane, "deployment billing-registry", "billing");
        let mut registry = Registry::start(broker, &deployment, USER, REGISTRY);
        registry.is_ready(&deployment);
        self.gateway.leads(REGISTRY_SERVICE, ([127, 0, 0, 1], registry.port).into());
        registry
    }
}

#[test]
fn every_name_of_two_clusters_and_their_fleet_leads_to_a_server_with_the_certificate() {
    let stage = Stage::set();
    assert_eq!(stage.gateway.routes, promised());

    let prometheus = Prometheus::start(&stage.plane);
    let address = ([127, 0, 0, 1], prometheus.port).into();
    until("Prometheus listens", || TcpStream::connect(address).ok());
    stage.gateway.leads(METRICS_SERVICE, address);
    stage.tells("get fleet/acme/eu --format json", &format!("\"https://{METRICS}\""));
    stage.answers(METRICS);

    for cluster in CLUSTERS {
        let admin = format!("{cluster}-admin");
        let broker = stage.broker(cluster, &[(&admin, PASSWORD), USER]);
        let [bootstrap, node] = names(cluster);
        let words = format!("client-properties {cluster} --listener external");
        stage.tells(&words, &format!("bootstrap.servers={bootstrap}:443\n"));
        stage.answers(&bootstrap);
        stage.answers(&node);
        if cluster == "billing" {
            let _registry = stage.registry(&broker, &admin);
            let url = format!("schema.registry.url=https://{REGISTRY}/apis/ccompat/v7\n");
            stage.tells("client-properties billing --registry", &url);
            stage.answers(REGISTRY);
        }
    }
    stage.tree.run(PLAN).expect(0).says(&["Nothing to do"]);

    // The certificate covers this name, too, but nobody was promised it.
    let other = REGISTRY.replace("billing", "sandbox");
    assert_eq!(stage.knot.answers(&other, "A"), [""; 0]);
    assert!(stage.presented(&other).is_err());
    stage.answers(METRICS);
}
