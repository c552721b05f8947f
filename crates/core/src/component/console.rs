//! A web console beside a cluster: StreamsHub Console, which shows the cluster to whoever logs in as one of its users, with
//! that user's rights.
//!
//! It has no login of its own at Kafka and no right on the Kubernetes cluster. It runs in the cluster's namespace, since
//! only there can it read the CA of the brokers' certificates, and so shows nobody the names of other clusters.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use crate::catalog::{HostNames, ResolvedCluster};
use crate::component::Verdict::InPlace;
use crate::component::consequence::*;
use crate::component::http_workload::health::{self, WorkloadWords};
use crate::component::http_workload::quarkus::{self, KAFKA_CA_FILE};
use crate::component::http_workload::{self, HttpWorkload};
use crate::component::kafka::endpoints;
use crate::component::mount::Mount;
use crate::component::{
    ClusterPart, Component, Manifest, Resources, SecretEncoding, SecretSlot, Stage, clients, manifest,
};
use crate::config::Config;

pub static COMPONENT: Component = Component {
    in_cluster,
    hosts: &[HOSTS],
    services: Some("labelSelector=streamfleet.io%2Fcomponent%3Dconsole"),
    troubles: |wanted, read| health::troubles(&WORDS, &name(&wanted.cluster), wanted, read),
    consequences: Consequences { rows: ROWS, ..Consequences::NONE },
    ..Component::NONE
};

const NAME: &str = "console";

const WORDS: WorkloadWords =
    WorkloadWords { name: NAME, noun: "console", condition: "Console", degrades: false };

const HOSTS: HostNames = HostNames {
    owner: "console",
    prefix: "console--",
    last: 0,
    is_used: |cluster| cluster.advanced_config.operations.console,
};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    of_ours("Deployment", "", CREATED, "a console starts beside the brokers: whoever reaches it sees the cluster's name, and \
        has to log in as one of its users for more"),
    of_ours("Deployment", "/spec/template/**", CHANGES, "the console's pod is replaced; its users log in again"),
    of_ours("Deployment", "", DELETED, "the console is removed"),
    of_ours("Secret", "/data/**", CHANGES, "the console's sessions get another key at its next start; its users log in again \
        then"),
    of_ours("Service", "/spec/type", CHANGES, "users of the console find it at another address"),
];

const CREATED: DirectionFilter = DirectionFilter::Is(Direction::Created);

const fn of_ours(kind: &'static str, path: &'static str, when: DirectionFilter, words: &'static str) -> Row {
    let outcome = RowVerdict::Does(InPlace, Cow::Borrowed(words));
    Row { kind, of: ObjectFilter::Body(is_ours), path, when, outcome }
}

fn is_ours(body: &Value) -> bool {
    http_workload::is_of(NAME, body)
}

const POD: Resources = Resources { cpu_millis: 200, memory_mib: 768 };
const HEAP_MIB: u64 = 384;

const FOLDER: &str = "/mnt/console";
const FILE: &str = "console-config.yaml";
const SESSION_KEY: &str = "session-key";

/// The name of all its objects.
fn name(cluster: &str) -> String {
    format!("{cluster}-console")
}

/// The address of a cluster's console, if it has one.
pub fn url(cluster: &ResolvedCluster) -> Option<String> {
    http_workload::host(cluster, &HOSTS).map(|host| format!("https://{host}"))
}

/// `None` for a cluster without a console, or with one that was refused earlier.
fn in_cluster(cluster: &ResolvedCluster, config: &Config) -> Option<ClusterPart> {
    let configuration = configuration(cluster)?;
    let object = name(cluster.spec.identifier.as_str());
    let files = Mount::config_map("config", object.clone(), FOLDER);
    let workload = HttpWorkload {
        cluster,
        name: NAME,
        environment: environment(&object),
        object,
        image: config.images.console.as_deref()?,
        host: http_workload::host(cluster, &HOSTS)?,
        // It keeps nothing that a second one would have to know, and few use it.
        replicas: 1,
        resources: POD,
        mounts: quarkus::mounts(cluster).into_iter().chain([files]).collect(),
        read_at_start: Some(&configuration),
        management_port: None,
        client_policy: "allow-console",
        outbound_urls: Vec::new(),
    };
    let files = objects(&workload, &configuration)?;
    Some(workload.part(files))
}

/// The settings, and the key of its sessions. Without one it would make one, and log it.
fn objects(workload: &HttpWorkload, configuration: &str) -> Option<[Manifest; 2]> {
    let cluster = workload.cluster;
    let map = ConfigMap {
        metadata: workload.metadata(),
        data: Some([(FILE.to_owned(), configuration.to_owned())].into()),
        ..ConfigMap::default()
    };
    let secret = Secret { metadata: workload.metadata(), ..Secret::default() };
    let key = SecretSlot::of(&cluster.domain.as_ref()?.tls_key, SecretEncoding::SessionKey).to_value();
    Some([
        manifest::typed(cluster, Stage::Configuration, &map),
        manifest::with_data(cluster, Stage::Configuration, &secret, [(SESSION_KEY, key)]),
    ])
}

fn environment(object: &str) -> Vec<Value> {
    let own = [
        ("CONSOLE_CONFIG_PATH", format!("{FOLDER}/{FILE}")),
        ("JAVA_TOOL_OPTIONS", format!("-Xmx{HEAP_MIB}m -XX:+ExitOnOutOfMemoryError")),
    ];
    let plain = quarkus::https().into_iter().chain(own).collect();
    let key = json!({
        "name": "QUARKUS_HTTP_AUTH_SESSION_ENCRYPTION_KEY",
        "valueFrom": {"secretKeyRef": {"name": object, "key": SESSION_KEY}},
    });
    quarkus::environment(plain).chain([key]).collect()
}

/// The settings of StreamsHub Console. Without a login in them, it asks each user for one.
fn configuration(cluster: &ResolvedCluster) -> Option<String> {
    let internal = clients(cluster)?.endpoints.into_iter().find(|it| it.listener == endpoints::INTERNAL)?;
    let settings = json!({
        "kubernetes": {"enabled": false},
        "kafka": {"clusters": [{
            "name": cluster.spec.identifier,
            "id": cluster.spec.identifier,
            "properties": {
                "bootstrap.servers": internal.address,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": KAFKA_CA_FILE,
            },
        }]},
    });
    // YAML contains JSON.
    Some(settings.to_string())
}

#[cfg(test)]
mod tests;
