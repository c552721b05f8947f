//! `serve` reports the health of clusters as soon as it changes, without polling and without comparing
//! unchanged objects.
//!
//! Nothing on the control plane creates pods, so a cluster's recorded objects are written there.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;
use streamfleet::state::State;
use tokio::runtime::Runtime;

use super::{SERVE, Serve, no_round_asks_anything};
use crate::kubernetes::{SANDBOX, on};
use crate::support::Tree;
use crate::support::control_plane::{ControlPlane, Writer};

const RECORDED: &str = "dev";

/// Plays the part of an operator and a cluster.
pub struct SimulatedOperator {
    writer: Writer,
    runtime: Runtime,
}

impl SimulatedOperator {
    pub fn on(plane: &ControlPlane) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let writer = runtime.block_on(Writer::to(plane));
        Self { writer, runtime }
    }

    pub fn play(&self, recording: &str, cluster: &str) {
        self.play_otherwise(recording, cluster, |_| {});
    }

    /// Writes the first objects of a recording, after an edit.
    fn play_otherwise(&self, recording: &str, cluster: &str, edit: impl Fn(&mut Value)) {
        for mut object in first(recording, cluster) {
            edit(&mut object);
            match object["kind"].as_str().unwrap() {
                "Kafka" | "KafkaNodePool" => self.runtime.block_on(self.writer.put_status(&object)),
                _ => self.runtime.block_on(self.writer.put(&object, None)),
            }
        }
    }

    pub fn remove(&self, object: &Value) {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        let place = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        self.runtime.block_on(self.writer.remove(&place));
    }

    pub fn make(&self, object: &Value) {
        self.runtime.block_on(self.writer.put(object, None));
    }

    fn tell(&self, object: &Value) {
        self.runtime.block_on(self.writer.put_status(object));
    }

    /// Sets the certificate of a cluster's external listener in its status.
    pub fn show(&self, cluster: &str, certificate: &str) {
        self.listens(cluster, serde_json::json!([{"name": "external", "certificates": [certificate]}]));
    }

    /// Sets the listeners in a cluster's status.
    fn listens(&self, cluster: &str, listeners: Value) {
        self.tell(&listening(cluster, listeners));
    }

    /// Tells that the operator has done what a cluster's Kafka says, as it does at the end of each reconciliation.
    pub fn reconciles(&self, plane: &ControlPlane, cluster: &str, listeners: Value) {
        let words = format!(
            "get kafka {cluster} --namespace=kafka-acme--{cluster} --output=jsonpath={{.metadata.generation}}"
        );
        let generation: u64 = plane.kubectl(&words, "").expect(0).out.parse().unwrap();
        let mut kafka = listening(cluster, listeners);
        kafka["status"]["observedGeneration"] = generation.into();
        for condition in kafka["status"]["conditions"].as_array_mut().unwrap() {
            condition["lastTransitionTime"] = Timestamp::now().to_string().into();
        }
        self.tell(&kafka);
    }
}

/// The Kafka with these listeners in its status.
fn listening(cluster: &str, listeners: Value) -> Value {
    let mut kafka = first("broker-pod-killed", cluster).into_iter().find(|it| it["kind"] == "Kafka").unwrap();
    kafka["status"]["listeners"] = listeners;
    kafka
}

fn first(recording: &str, cluster: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recordings/{recording}.jsonl"));
    let text = fs::read_to_string(file).unwrap();
    let renamed = |line: &str| {
        let [label, space] = ["\"{}\"", "kafka-acme--{}"].map(|it| it.replace("{}", RECORDED));
        let [to_label, to_space] = ["\"{}\"", "kafka-acme--{}"].map(|it| it.replace("{}", cluster));
        let line = line.replace(&label, &to_label).replace(&space, &to_space);
        line.replace(&format!("\"{RECORDED}-"), &format!("\"{cluster}-"))
    };
    let changes = text.lines().map(|line| serde_json::from_str::<Value>(&renamed(line)).unwrap());
    let first = changes.take_while(|change| change["t"] == 0.0);
    first
        .map(|mut change| {
            let kind = change["kind"].take();
            let mut object = change["object"].take();
            object["kind"] = kind;
            object
        })
        .collect()
}

pub fn operator() -> Value {
    let mut objects = first("operator-down-then-up", RECORDED).into_iter();
    objects.find(|it| it["kind"] == "Deployment").unwrap()
}

/// The pod of a cluster's only broker.
pub fn broker(cluster: &str) -> Value {
    let mut objects = first("broker-pod-killed", cluster).into_iter();
    objects.find(|it| it["metadata"]["name"] == format!("{cluster}-dual-0")).unwrap()
}

/// A tree with two clusters as small as the recorded one.
pub fn two_clusters(plane: &ControlPlane) -> Tree {
    let tree = on(plane);
    let spec = tree.read(SANDBOX);
    tree.remove(SANDBOX);
    tree.remove("acme/clusters/orders.yaml");
    for cluster in ["dev", "web"] {
        let spec = spec.replace("identifier: sandbox", &format!("identifier: {cluster}"));
        tree.write(&format!("acme/clusters/{cluster}.yaml"), spec);
    }
    tree
}

/// Waits until both clusters are created and found not to run: a cluster that runs when first seen isn't
/// reported.
pub fn nothing_runs_yet(serve: &Serve<'_>) {
    for cluster in ["dev", "web"] {
        serve.says(&[" is ", &format!("cluster acme/{cluster}"), "to=Pending"]);
    }
}

#[test]
fn a_broker_that_is_lost_in_a_quiet_fleet_is_told_at_once_and_holds_up_others() {
    let plane = ControlPlane::lease();
    let tree = two_clusters(&plane);
    let (serve, cast) = (Serve::start(&tree, SERVE), SimulatedOperator::on(&plane));
    nothing_runs_yet(&serve);
    cast.make(&operator());
    for cluster in ["dev", "web"] {
        cast.play("broker-pod-killed", cluster);
        serve.says(&[" is ", &format!("cluster acme/{cluster}"), "to=Healthy"]);
    }
    no_round_asks_anything(&plane, &serve);

    // The broker's pod disappears, and Strimzi doesn't report it.
    let looks =
        || serve.log().lines().filter(|line| line.contains("looked=") && !line.contains("looked=0")).count();
    let looked = looks();
    cast.remove(&broker("dev"));
    serve.says(&[" is ", "cluster acme/dev", "from=Healthy", "to=Degraded", "dev-dual-0"]);
    let ready = "get kafka dev --namespace=kafka-acme--dev --output=jsonpath={.status.conditions[*].status}";
    assert_eq!(plane.kubectl(ready, "").expect(0).out, "True");
    assert_eq!(looks(), looked, "its objects are as they were\n{}", serve.log());

    // A restart of the other cluster's broker waits for it.
    let spec = "acme/clusters/web.yaml";
    tree.edit(spec, "cluster_access: Internal", "cluster_access: Internal & External");
    serve.says(&["cluster acme/web", "waiting: ", "cluster acme/dev"]);
    let listeners =
        "get kafka web --namespace=kafka-acme--web --output=jsonpath={.spec.kafka.listeners[*].name}";
    let is_changed = || plane.kubectl(listeners, "").expect(0).out.contains("external");
    assert!(!is_changed());
    cast.make(&broker("dev"));
    serve.says(&[" is ", "cluster acme/dev", "from=Degraded", "to=Healthy"]);
    serve.until("it goes on", || is_changed().then_some(()));

    // A container in a crash loop while Strimzi reports its cluster as ready.
    let mut crashing = broker("dev");
    let status = &mut crashing["status"]["containerStatuses"][0];
    status["ready"] = false.into();
    status["restartCount"] = 3.into();
    status["state"] = serde_json::json!({"waiting": {"reason": "CrashLoopBackOff"}});
    for condition in crashing["status"]["conditions"].as_array_mut().unwrap() {
        if condition["type"] == "Ready" || condition["type"] == "ContainersReady" {
            condition["status"] = "False".into();
        }
    }
    serve.says(&[" is ", "cluster acme/web", "to=Updating"]);
    cast.tell(&crashing);
    serve.says(&[" is ", "cluster acme/dev", "to=Degraded", "CrashLoopBackOff"]);
    assert_eq!(serve.stop(), Some(0));

    let folder = camino::Utf8PathBuf::from_path_buf(tree.path().join(".streamfleet/state")).unwrap();
    let key = "Cluster/acme/dev".to_owned().try_into().unwrap();
    let recorded: Option<Value> = State::open(&folder).unwrap().memory(&key).unwrap();
    assert_eq!(recorded.unwrap()["told"]["status"], "Degraded");
}

/// The operator's status of a Kafka with these versions, after so many reconciliations.
fn runs(kafka: &mut Value, looks: u64, version: &str, metadata: &str) {
    if kafka["kind"] == "Kafka" {
        kafka["status"]["observedGeneration"] = looks.into();
        kafka["status"]["kafkaVersion"] = version.into();
        kafka["status"]["kafkaMetadataVersion"] = metadata.into();
    }
}

#[test]
fn metadata_is_raised_by_itself_once_all_brokers_run_the_new_version() {
    let plane = ControlPlane::lease();
    let tree = two_clusters(&plane);
    tree.remove("acme/clusters/web.yaml");
    let spec = "acme/clusters/dev.yaml";
    tree.edit(spec, "version: 4.3.1", "version: 4.2.1");
    let (serve, cast) = (Serve::start(&tree, SERVE), SimulatedOperator::on(&plane));
    serve.says(&["done", "cluster acme/dev"]);
    cast.make(&operator());
    cast.play_otherwise("broker-pod-killed", "dev", |kafka| runs(kafka, 2, "4.2.1", "4.2-IV1"));

    tree.edit(spec, "version: 4.2.1", "version: 4.3.1");
    let told = || {
        let words = "get kafka dev --namespace=kafka-acme--dev --output=jsonpath";
        let [version, metadata] = ["version", "metadataVersion"]
            .map(|field| plane.kubectl(&format!("{words}={{.spec.kafka.{field}}}"), "").expect(0).out);
        (version, metadata)
    };
    let versions = |version: &str, metadata: &str| (version.to_owned(), metadata.to_owned());
    serve.until("brokers are upgraded", || (told() == versions("4.3.1", "4.2-IV1")).then_some(()));
    serve.says(&["cluster acme/dev", "waiting: ", "all brokers must run Kafka 4.3.1"]);

    let mut objects = first("broker-pod-killed", "dev").into_iter();
    let mut kafka = objects.find(|it| it["kind"] == "Kafka").unwrap();
    runs(&mut kafka, 2, "4.3.1", "4.2-IV1");
    cast.tell(&kafka);
    serve.until("metadata follows", || (told() == versions("4.3.1", "4.3-IV0")).then_some(()));
    serve.says(&["decided", "cluster acme/dev", "upgrade"]);
    assert_eq!(serve.stop(), Some(0));
}
