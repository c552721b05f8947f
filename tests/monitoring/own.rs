//! A fleet's own Prometheus: its objects on a real API server with exactly the rights that are printed for them, and Prometheus
//! itself started from these objects, beside a real broker.

use std::fs;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::gateway::{route, with_gateways};
use crate::kafka::broker_with;
use crate::kubernetes::{FLEET, SANDBOX, reached_with};
use crate::rights::tenant;
use crate::support::control_plane::process::{Folder, Process};
use crate::support::control_plane::{ControlPlane, until};
use crate::support::curl::Server;
use crate::support::knot::Knot;
use crate::support::kubelet::{Kubelet, pod};
use crate::support::names::{DOMAIN, MANAGED, certificate, fields, keep};
use crate::support::openssl::presented;
use crate::support::prometheus::{command, metrics_option};
use crate::support::{Tree, free_port};

const PLAN: &str = "plan tree --config config.toml";
const APPLY: &str = "apply tree --yes --config config.toml";
pub const HOST: &str = "metrics--eu.acme.kafka.example.test";
const NAMES: [&str; 2] = ["acme.kafka.example.test", "*.acme.kafka.example.test"];
pub const OWN: &str =
    "  monitoring:\n    prometheus: own\n    own: {password: the first of two, disk_gib: 20}\n";
/// What is in every namespace.
const OF_KUBERNETES: [&str; 2] = ["serviceaccount/default", "configmap/kube-root-ca.crt"];
pub const IMAGE: &str =
    "quay.io/prometheus/prometheus@sha256:0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b";

/// A fleet behind a Gateway, with a Prometheus of its own.
fn with_prometheus(kubeconfig: &str, knot: &Knot, own: &(String, String)) -> Tree {
    let tree = reached_with(kubeconfig);
    keep(&tree, knot, &fields(own));
    route(&tree);
    tree.write(FLEET, tree.read(FLEET) + OWN);
    let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
    fs::write(tree.beside("config.toml"), format!("{settings}[images]\nprometheus = \"{IMAGE}\"\n")).unwrap();
    let orders = "acme/clusters/orders.yaml";
    let text =
        tree.read(orders).replace("cluster_access: Internal\n", "cluster_access: Internal & External\n");
    tree.write(orders, text + "  operations: {metrics: true}\n");
    tree
}

fn object(plane: &ControlPlane, of: &str) -> Value {
    let words = format!("get {of} --namespace=kafka-monitoring --output=json");
    serde_json::from_str(&plane.kubectl(&words, "").expect(0).out).unwrap()
}

/// A pod of the rendered StatefulSet.
pub struct Prometheus {
    process: Process,
    /// Below it is what is mounted at the container's root.
    root: Folder,
    pub port: u16,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.process.tell_of_failure("Prometheus");
    }
}

impl Prometheus {
    pub fn start(plane: &ControlPlane) -> Prometheus {
        let (root, port) = (Folder::new(), free_port());
        let account = root.path().join("account");
        fs::create_dir_all(&account).unwrap();
        let words = "create token prometheus --namespace=kafka-monitoring";
        let token = plane.kubectl(words, "").expect(0).out;
        fs::write(account.join("token"), token.trim()).unwrap();
        let kubeconfig: Value = serde_json::from_str(&plane.kubeconfig_of(token.trim())).unwrap();
        let server = kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"].as_str().unwrap();
        fs::write(account.join("ca.crt"), STANDARD.decode(server).unwrap()).unwrap();
        fs::write(account.join("kubeconfig"), kubeconfig.to_string()).unwrap();
        mount(plane, root.path());
        let set = object(plane, "statefulset prometheus");
        let container = &set["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], IMAGE);
        let arguments = container["args"].as_array().unwrap().iter().map(|argument| {
            let argument = argument.as_str().unwrap();
            let (name, value) = argument.split_once('=').unwrap();
            let value = match name {
                "--storage.tsdb.path" => root.path().join("data").display().to_string(),
                "--web.listen-address" => format!("127.0.0.1{}", value.replace("9090", &port.to_string())),
                _ => below(value, root.path()),
            };
            format!("{name}={value}")
        });
        let mut program = command("prometheus");
        program.args(arguments).arg("--config.auto-reload-interval=1s").current_dir(root.path());
        let process = Process::start(program, root.path().join("log"));
        Prometheus { process, root, port }
    }

    /// The status and the answer to a call as a user; the error is curl's.
    fn call(&self, login: Option<&str>, path: &str) -> Result<(u16, Value), String> {
        let trusted = self.root.path().join("etc/prometheus/tls/chain.pem");
        let words: Vec<&str> = login.iter().flat_map(|login| ["--user", login]).collect();
        Server { host: HOST, port: self.port, trusted: &trusted }.call(path, &words)
    }

    fn status(&self, login: Option<&str>) -> u16 {
        self.call(login, "/api/v1/status/buildinfo").unwrap().0
    }

    /// The series that a query gives.
    fn series(&self, query: &str) -> Option<Vec<Value>> {
        self.series_as("prometheus:the first of two", query)
    }

    fn series_as(&self, login: &str, query: &str) -> Option<Vec<Value>> {
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let path = format!("/api/v1/query?query={query}");
        let (status, answer) = self.call(Some(login), &path).ok()?;
        (status == 200).then(|| answer["data"]["result"].as_array().cloned()).flatten()
    }

    /// Whether a client that trusts this certificate gets it under the name of Prometheus.
    fn presents(&self, certificate: &str) -> bool {
        let file = self.root.path().join("trusted.pem");
        fs::write(&file, certificate).unwrap();
        presented(HOST, ([127, 0, 0, 1], self.port).into(), &file).is_ok()
    }
}

/// A path of the container, or a text with some, below a folder.
fn below(text: &str, root: &Path) -> String {
    text.replace("/etc/prometheus/", &format!("{}/etc/prometheus/", root.display()))
        .replace("/var/run/secrets/kubernetes.io/serviceaccount/", &format!("{}/account/", root.display()))
}

/// Writes what the kubelet mounts into the pod.
fn mount(plane: &ControlPlane, root: &Path) {
    let spec = object(plane, "statefulset prometheus")["spec"]["template"]["spec"].clone();
    let folders = spec["containers"][0]["volumeMounts"].as_array().unwrap();
    for volume in spec["volumes"].as_array().unwrap() {
        let at = folders.iter().find(|mount| mount["name"] == volume["name"]).unwrap();
        let folder = root.join(at["mountPath"].as_str().unwrap().trim_start_matches('/'));
        fs::create_dir_all(&folder).unwrap();
        let (of, is_secret) = match volume.pointer("/secret/secretName") {
            Some(name) => (format!("secret {}", name.as_str().unwrap()), true),
            None => (format!("configmap {}", volume["configMap"]["name"].as_str().unwrap()), false),
        };
        for (file, text) in object(plane, &of)["data"].as_object().unwrap() {
            let text = text.as_str().unwrap();
            let text = match is_secret {
                true => String::from_utf8(STANDARD.decode(text).unwrap()).unwrap(),
                false => text.to_owned(),
            };
            fs::write(folder.join(file), below(&as_elsewhere(file, &text, root), root)).unwrap();
        }
    }
}

/// In a pod, Prometheus finds its account by itself.
fn as_elsewhere(file: &str, text: &str, root: &Path) -> String {
    if file != "prometheus.yml" {
        return text.to_owned();
    }
    let mut configuration: Value = serde_json::from_str(text).unwrap();
    for scrape in configuration["scrape_configs"].as_array_mut().unwrap() {
        let kubeconfig = root.join("account/kubeconfig");
        scrape["kubernetes_sd_configs"][0]["kubeconfig_file"] = kubeconfig.to_str().into();
    }
    configuration["global"]["scrape_interval"] = "1s".into();
    configuration["global"]["scrape_timeout"] = "1s".into();
    configuration["global"]["evaluation_interval"] = "1s".into();
    configuration.to_string()
}

#[test]
fn a_fleet_without_a_prometheus_gets_one_that_reads_its_clusters_and_lets_in_who_has_the_password() {
    let metrics = free_port();
    let _broker = broker_with(&[metrics_option(metrics)]);
    let plane = with_gateways();
    let knot = Knot::start();
    let first = certificate(&NAMES);
    let kubeconfig = tenant(&plane, "--gateway --prometheus");
    let tree = with_prometheus(&kubeconfig, &knot, &first);
    let said = tree.run(APPLY).expect(0).says(&[
        "starts a Prometheus with 0.4 CPUs, 1.5 GiB of memory and a disk of 20 GiB, which reads the fleet's clusters",
        &format!("nodes pull {IMAGE}"),
        "+ StatefulSet kafka-monitoring/prometheus",
        "+ TLSRoute kafka-monitoring/prometheus",
    ]);
    assert!(!said.out.contains("the first of two") && !said.err.contains("the first of two"));
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    // The rights hold in its namespace alone.
    let account = |namespace: &str| {
        let words = format!("create serviceaccount x --namespace={namespace} --dry-run=server");
        plane.kubectl_with(&kubeconfig, &words)
    };
    account("kafka-monitoring").expect(0);
    account("kafka-acme--orders").expect(1).says(&["only kinds of objects that it creates"]);

    // Its name leads to the Gateway.
    let address = json!({"addresses": [{"type": "IPAddress", "value": "192.0.2.40"}]});
    plane.set_status("gateway kafka --namespace=streamfleet-gateway", &address);
    tree.run(APPLY).expect(0).says(&[&format!("+ DnsRecord kafka-monitoring/{HOST}")]);
    assert_eq!(knot.answers(HOST, "A"), ["192.0.2.40"]);
    let fleet = tree.run("get fleet/acme/eu tree --config config.toml --format json").expect(0).out;
    assert!(fleet.contains(&format!("\"metrics_endpoint\": \"https://{HOST}\"")), "{fleet}");

    // A broker's pod, as Strimzi makes it of the Kafka's labels, and a node with disks.
    let kafka = plane.kubectl("get kafka orders --namespace=kafka-acme--orders --output=json", "").expect(0);
    let kafka: Value = serde_json::from_str(&kafka.out).unwrap();
    let mut labels = kafka["metadata"]["labels"].clone();
    labels["strimzi.io/component-type"] = "kafka".into();
    let _kubelet = Kubelet::start(&plane, "node-a");
    let mut broker = pod("kafka-acme--orders", "orders-broker-0", labels, Some("node-a"));
    broker["spec"]["containers"][0]["ports"] = json!([{"name": "tcp-prometheus", "containerPort": metrics}, {"name": "tcp-clients", "containerPort": 9092}]);
    plane.kubectl("create -f -", &broker.to_string()).expect(0);
    let runs = json!({"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]});
    plane.set_status("pod orders-broker-0 --namespace=kafka-acme--orders", &runs);

    let mut prometheus = Prometheus::start(&plane);
    let up = until("the broker is read", || {
        let up = prometheus.series("up{component=\"kafka\"}");
        if let Some(why) = prometheus.process.last_words() {
            panic!("{why}");
        }
        up?.into_iter().find(|series| series["value"][1] == "1")
    });
    let labels = json!({"__name__": "up", "organization": "acme", "fleet": "eu", "cluster": "orders", "component": "kafka",
        "namespace": "kafka-acme--orders", "pod": "orders-broker-0", "job": "kafka",
        "instance": format!("127.0.0.1:{metrics}")});
    assert_eq!(up["metric"], labels);
    let claims = until("the node is read", || {
        let claims = prometheus.series("kubelet_volume_stats_available_bytes")?;
        (!claims.is_empty()).then_some(claims)
    });
    assert_eq!(claims.len(), 1, "{claims:?}");
    assert_eq!(claims[0]["metric"]["persistentvolumeclaim"], "data-0-orders-broker-0");
    assert_eq!(prometheus.series("kubelet_running_pods"), Some(Vec::new()));

    // It judges every alert, and those that have a reason to are on their way.
    let judged = until("every alert was judged", || {
        let (_, answer) =
            prometheus.call(Some("prometheus:the first of two"), "/api/v1/rules?type=alert").ok()?;
        let groups = answer["data"]["groups"].as_array()?.clone();
        let rules: Vec<Value> =
            groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect();
        let is_ok = rules.len() == 12 && rules.iter().all(|rule| rule["health"] == "ok");
        let active: Vec<Value> = rules
            .iter()
            .filter(|rule| rule["state"] != "inactive")
            .map(|rule| rule["name"].clone())
            .collect();
        (is_ok && active.len() >= 2).then_some(active)
    });
    assert_eq!(judged, ["KafkaBrokerLost", "KafkaDiskFillsUp"]);

    // Only with the password, and only over TLS.
    assert_eq!(prometheus.status(None), 401);
    assert_eq!(prometheus.status(Some("prometheus:wrong")), 401);
    assert_eq!(prometheus.status(Some("prometheus:the first of two")), 200);
    let plain = Command::new("curl")
        .args(["--silent", "--max-time", "60", "--output", "/dev/null", "--write-out", "%{http_code}"])
        .arg(format!("http://127.0.0.1:{}/metrics", prometheus.port))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&plain.stdout), "400");
    assert!(prometheus.presents(&first.0));

    // A new certificate and a new password hold without a restart.
    let second = certificate(&NAMES);
    tree.write(DOMAIN, format!("{MANAGED}{}", fields(&second)));
    tree.edit(FLEET, "the first of two", "the second of two");
    let plan = tree.run(PLAN).out;
    let (_, fleet) = plan.split_once("  ~ fleet eu").unwrap();
    let (fleet, _) = fleet.split_once(" cluster orders ").unwrap();
    for said in [
        "Prometheus presents the new certificate within two minutes; its clients notice nothing",
        "whoever reads Prometheus needs the new password, within two minutes",
    ] {
        assert!(fleet.contains(said), "{fleet}");
    }
    for unsaid in ["StatefulSet", "of two", "brokers restart one by one"] {
        assert!(!fleet.contains(unsaid), "{fleet}");
    }
    tree.run(APPLY).expect(0);
    mount(&plane, prometheus.root.path());
    assert!(prometheus.presents(&second.0) && !prometheus.presents(&first.0));
    assert_eq!(prometheus.status(Some("prometheus:the first of two")), 401);
    assert_eq!(prometheus.status(Some("prometheus:the second of two")), 200);
    assert!(prometheus.process.ended().is_none());

    // Its disk stays as it is.
    tree.edit(FLEET, "disk_gib: 20", "disk_gib: 40");
    tree.run(PLAN).expect(1).says(&[
        "the disk of StatefulSet kafka-monitoring/prometheus can't change",
        "restore `disk_gib` and `storage_class`",
    ]);
    tree.edit(FLEET, "disk_gib: 40", "disk_gib: 20");
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);

    // Another cluster changes the sizes that alerts compare with, and Prometheus reads them by itself.
    tree.edit(SANDBOX, "advanced_config:\n", "advanced_config:\n  operations: {metrics: true}\n");
    tree.run(PLAN).expect(2).says(&["because its clusters changed", "Prometheus follows other rules"]);
    tree.run(APPLY).expect(0);
    mount(&plane, prometheus.root.path());
    let expected = "streamfleet_kafka_pods{cluster=\"sandbox\"}";
    let password = "prometheus:the second of two";
    until("the new sizes are read", || prometheus.series_as(password, expected)?.into_iter().next());
    assert!(prometheus.process.ended().is_none());

    // Without it, its objects go, but for what holds its metrics.
    let text = tree.read(FLEET);
    tree.write(FLEET, text.split("  monitoring:\n").next().unwrap());
    // The second of two clusters with metrics restarts after the first.
    tree.run(APPLY)
        .expect(3)
        .says(&["Its metrics stay on the disk `data-prometheus-0` in `kafka-monitoring`"]);
    let kinds = "statefulsets,services,tlsroutes,secrets,serviceaccounts,configmaps,networkpolicies";
    let left = format!("get {kinds} --namespace=kafka-monitoring --output=name");
    let left = plane.kubectl(&left, "").expect(0).out;
    let left: Vec<&str> = left.lines().filter(|name| !OF_KUBERNETES.contains(name)).collect();
    assert_eq!(left, [""; 0]);
    plane.kubectl("get namespace kafka-monitoring", "").expect(0);
    assert_eq!(knot.answers(HOST, "A"), [""; 0]);
}

#[test]
fn a_fleet_goes_only_after_the_namespace_with_the_disk() {
    let tree = Tree::example("prometheus");
    tree.remove("acme/clusters/orders.yaml");
    tree.write(FLEET, tree.read(FLEET) + "deletion_protection: false\n");
    let apply = "apply tree --yes --config tree/streamfleet.toml";
    tree.run(apply).expect(0);
    tree.remove(FLEET);
    let waits = [
        "Namespace kafka-monitoring is kept for its data",
        "remove Namespace kafka-monitoring from the target by hand once you no longer need its data",
    ];
    tree.run(apply).expect(3).says(&waits);
    let files: Vec<String> = tree.output().into_iter().map(|(path, _)| path).collect();
    let of_disk: Vec<&String> = files.iter().filter(|path| path.contains("kafka-monitoring")).collect();
    assert!(of_disk.len() > 5, "{files:?}");
    for file in of_disk {
        fs::remove_file(tree.path().join(".streamfleet/output").join(file)).unwrap();
    }
    tree.run(apply).expect(0);
    assert_eq!(tree.output(), []);
}
