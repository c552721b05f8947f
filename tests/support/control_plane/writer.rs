//! Writes recorded objects with their statuses and generations to a server without controllers.

use std::collections::BTreeSet;
use std::sync::Mutex;

use http::{Method, Request};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Map, Value, json};

use super::ControlPlane;

/// A finalizer that keeps a deleted object until the recording ends it.
const HELD: &str = "example.com/held";

/// The storage classes of the recorded claims that grow.
const GROW: [&str; 2] = ["local", "local-exp"];

const KINDS: [(&str, &str); 10] = [
    ("Kafka", "apis/kafka.strimzi.io/v1/namespaces/{}/kafkas"),
    ("KafkaNodePool", "apis/kafka.strimzi.io/v1/namespaces/{}/kafkanodepools"),
    ("KafkaUser", "apis/kafka.strimzi.io/v1/namespaces/{}/kafkausers"),
    ("KafkaTopic", "apis/kafka.strimzi.io/v1/namespaces/{}/kafkatopics"),
    ("StrimziPodSet", "apis/core.strimzi.io/v1/namespaces/{}/strimzipodsets"),
    ("Pod", "api/v1/namespaces/{}/pods"),
    ("PersistentVolumeClaim", "api/v1/namespaces/{}/persistentvolumeclaims"),
    ("Service", "api/v1/namespaces/{}/services"),
    ("Deployment", "apis/apps/v1/namespaces/{}/deployments"),
    ("ReplicaSet", "apis/apps/v1/namespaces/{}/replicasets"),
];

pub struct Writer {
    client: Client,
    /// The namespaces that are ready for pods.
    namespaces: Mutex<BTreeSet<String>>,
}

impl Writer {
    pub async fn to(plane: &ControlPlane) -> Writer {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let kubeconfig = Kubeconfig::from_yaml(&plane.kubeconfig()).unwrap();
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let writer = Writer { client: Client::try_from(config).unwrap(), namespaces: Mutex::default() };
        for name in GROW {
            let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
                "provisioner": "example.com/none", "allowVolumeExpansion": true});
            writer.create("/apis/storage.k8s.io/v1/storageclasses", &class).await;
        }
        writer
    }

    /// Creates or changes an object, and then its status. `before` is its last written version.
    pub async fn put(&self, object: &Value, before: Option<&Value>) {
        let path = self.path(object).await;
        if before.is_none() {
            let collection = path.rsplit_once('/').unwrap().0.to_owned();
            self.call(Method::POST, &collection, "application/json", &body(object)).await.unwrap();
        } else if before.is_some_and(|before| body(before) != body(object)) {
            self.patch(&path, &changes(object)).await;
        }
        if object.pointer("/metadata/deletionTimestamp").is_some() {
            self.call(Method::DELETE, &path, "application/json", &json!({})).await.unwrap();
        }
        self.raise(&path, object).await;
        self.put_status(object).await;
    }

    pub async fn put_status(&self, object: &Value) {
        let Some(status) = object.get("status").filter(|status| !status.is_null()) else { return };
        let mut status = status.clone();
        // The server computes it itself.
        status.as_object_mut().unwrap().remove("qosClass");
        let path = format!("{}/status", self.path(object).await);
        let patch = json!([{"op": "add", "path": "/status", "value": status}]);
        self.call(Method::PATCH, &path, "application/json-patch+json", &patch).await.unwrap();
    }

    pub async fn create(&self, collection: &str, object: &Value) {
        self.call(Method::POST, collection, "application/json", object).await.unwrap();
    }

    /// Deletes an object for good.
    pub async fn remove(&self, (kind, namespace, name): &(String, String, String)) {
        let Some(place) = place(kind) else { return };
        let path = format!("/{}/{name}", place.replace("{}", namespace));
        self.patch(&path, &json!({"metadata": {"finalizers": null}})).await;
        let now = json!({"gracePeriodSeconds": 0});
        // An object already being deleted is gone by now.
        let _ = self.call(Method::DELETE, &path, "application/json", &now).await;
    }

    /// Changes an irrelevant field until an object has the recorded generation.
    async fn raise(&self, path: &str, object: &Value) {
        let Some(wanted) = object["metadata"]["generation"].as_u64() else { return };
        let Some(first) = filler(object, 0).map(|_| self.generation(path)) else { return };
        let first = first.await;
        for generation in first..wanted {
            self.patch(path, &filler(object, generation + 1).unwrap()).await;
        }
        assert_eq!(first.max(wanted), wanted, "generation of {path}");
    }

    async fn generation(&self, path: &str) -> u64 {
        let object = self.call(Method::GET, path, "application/json", &Value::Null).await.unwrap();
        object["metadata"]["generation"].as_u64().unwrap()
    }

    async fn path(&self, object: &Value) -> String {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        let (kind, namespace, name) = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        if self.namespaces.lock().unwrap().insert(namespace.clone()) {
            self.prepare(&namespace).await;
        }
        format!("/{}/{name}", place(&kind).unwrap().replace("{}", &namespace))
    }

    /// Creates a namespace, and what a controller would create in it so that it can have pods.
    async fn prepare(&self, namespace: &str) {
        let named =
            |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        for (path, object) in [
            ("/api/v1/namespaces", named("Namespace", namespace)),
            (accounts.as_str(), named("ServiceAccount", "default")),
        ] {
            // It may exist.
            let _ = self.call(Method::POST, path, "application/json", &object).await;
        }
    }

    async fn patch(&self, path: &str, patch: &Value) {
        self.call(Method::PATCH, path, "application/merge-patch+json", patch).await.unwrap();
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request =
            Request::builder().method(method).uri(path).header("content-type", content).body(body).unwrap();
        self.client.request(request).await
    }
}

fn place(kind: &str) -> Option<&'static str> {
    KINDS.iter().find(|(known, _)| *known == kind).map(|(_, place)| *place)
}

/// An object for its creation: parts left out of the recording are filled with the least that the server
/// accepts.
fn body(object: &Value) -> Value {
    let metadata = |key: &str| object["metadata"].get(key).cloned().unwrap_or_default();
    json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": {"name": metadata("name"), "namespace": metadata("namespace"), "labels": metadata("labels"),
            "annotations": metadata("annotations"), "finalizers": [HELD]},
        "spec": spec(object),
    })
}

fn spec(object: &Value) -> Value {
    let container = json!([{"name": "kafka", "image": "example.com/none"}]);
    let labels = json!({"held": "yes"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": container}});
    let replicas = object.pointer("/spec/replicas").cloned().unwrap_or(json!(1));
    match object["kind"].as_str().unwrap() {
        "Pod" => json!({"containers": container}),
        "StrimziPodSet" => json!({"selector": {"matchLabels": labels},
            "pods": [{"generation": object["metadata"]["generation"]}]}),
        "Deployment" | "ReplicaSet" => {
            json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template})
        }
        "Service" => json!({"type": object["spec"]["type"], "ports": [{"port": 9091}]}),
        _ => object["spec"].clone(),
    }
}

fn changes(object: &Value) -> Value {
    let mut changes = body(object);
    let fields: &mut Map<String, Value> = changes.as_object_mut().unwrap();
    match object["kind"].as_str().unwrap() {
        "Pod" | "Service" => drop(fields.remove("spec")),
        _ => {}
    }
    changes
}

/// A change that only raises the generation; `None` for kinds where health ignores it.
fn filler(object: &Value, generation: u64) -> Option<Value> {
    let annotations = json!({"annotations": {"example.com/generation": generation.to_string()}});
    let template = json!({"pod": {"metadata": annotations}});
    match object["kind"].as_str().unwrap() {
        "Kafka" => Some(json!({"spec": {"kafka": {"template": template}}})),
        "KafkaNodePool" => Some(json!({"spec": {"template": template}})),
        "StrimziPodSet" => Some(json!({"spec": {"pods": [{"generation": generation}]}})),
        _ => None,
    }
}
