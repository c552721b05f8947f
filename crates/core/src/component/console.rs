//! A web console beside a cluster: StreamsHub Console, which shows the cluster to whoever logs in as one of its users, with
//! that user's rights.
//!
//! It has no login of its own at Kafka and no right on the Kubernetes cluster. It runs in the cluster's namespace, since
//! only there can it read the CA of the brokers' certificates, and so shows nobody the names of other clusters.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use crate::catalog::{HostNames, ResolvedCluster};
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
    is_installed: |extras| extras.workloads,
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

const OURS: ObjectFilter = ObjectFilter::Body(|body| http_workload::is_of(NAME, body));
const PUBLIC: ObjectFilter = ObjectFilter::Body(|body| http_workload::is_public(NAME, body));

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row::in_place("Deployment", OURS, "", CREATED, "a console starts beside the brokers: whoever reaches it sees the cluster's name and \
        the console's own metrics, and has to log in as one of the cluster's users for more"),
    Row::in_place("Deployment", OURS, "/spec/template/**", CHANGES, "the console's pod is replaced; its users may have to try again"),
    Row::in_place("Deployment", OURS, "", DELETED, "the console is removed"),
    Row::in_place("Secret", OURS, "/data/**", CHANGES, "the console's sessions get another key at its next start; its users log in again \
        then"),
    Row::in_place("Service", PUBLIC, "", CREATED, "the console gets a \
        public load balancer: anyone who can reach it can try to log in"),
    Row::in_place("Service", OURS, "/spec/type", CHANGES, "the console's name leads to another address: until its DNS record does, \
        nobody reaches it"),
];

const POD: Resources = Resources { cpu_millis: 200, memory_mib: 768 };
const HEAP_MIB: u64 = 384;

const FOLDER: &str = "/mnt/console";
const FILE: &str = "console-config.yaml";
const SESSION_KEY: &str = "session-key";

/// The name of its objects.
fn name(cluster: &str) -> String {
    format!("{cluster}-console")
}

/// The address of a cluster's console, if it has one.
pub fn url(cluster: &ResolvedCluster) -> Option<String> {
    http_workload::host(cluster, &HOSTS).map(|host| format!("https://{host}"))
}

/// `None` for a cluster without a console, or with one that was refused earlier.
fn in_cluster(cluster: &ResolvedCluster, config: &Config) -> Option<ClusterPart> {
    let host = http_workload::host(cluster, &HOSTS)?;
    let image = config.images.console.as_deref()?;
    let (configuration, name) = (configuration(cluster)?, name(cluster.spec.identifier.as_str()));
    let settings = Mount::config_map("config", name.clone(), FOLDER);
    let workload = HttpWorkload {
        cluster,
        component: NAME,
        environment: environment(&name),
        name,
        image,
        host,
        // It keeps nothing that a second one would have to know, and few use it.
        replicas: 1,
        resources: POD,
        mounts: quarkus::mounts(cluster).into_iter().chain([settings]).collect(),
        read_at_start: Some(&configuration),
        management_port: None,
        client_policy: "allow-console",
        outbound_urls: Vec::new(),
    };
    let files = files(&workload, &configuration)?;
    Some(workload.part(files))
}

/// The settings, and the key of its sessions. Without one it would make one, and log it.
fn files(workload: &HttpWorkload, configuration: &str) -> Option<[Manifest; 2]> {
    let cluster = workload.cluster;
    let map = ConfigMap {
        metadata: workload.metadata(),
        data: Some([(FILE.to_owned(), configuration.to_owned())].into()),
        ..ConfigMap::default()
    };
    let mut metadata = workload.metadata();
    metadata.name = Some(session_secret(&workload.name));
    let secret = Secret { metadata, ..Secret::default() };
    let key = SecretSlot::of(&cluster.domain.as_ref()?.tls_key, SecretEncoding::SessionKey).to_value();
    Some([
        manifest::typed(cluster, Stage::Configuration, &map),
        manifest::with_data(cluster, Stage::Configuration, &secret, [(SESSION_KEY, key)]),
    ])
}

/// The name of the Secret with that key. No user has its name, and so its Secret, since identifiers have no dots.
fn session_secret(name: &str) -> String {
    format!("{name}.session")
}

fn environment(name: &str) -> Vec<Value> {
    let own = [
        ("CONSOLE_CONFIG_PATH", format!("{FOLDER}/{FILE}")),
        ("JAVA_TOOL_OPTIONS", format!("-Xmx{HEAP_MIB}m -XX:+ExitOnOutOfMemoryError")),
    ];
    let plain = quarkus::https().into_iter().chain(own).collect();
    let key = json!({
        "name": "QUARKUS_HTTP_AUTH_SESSION_ENCRYPTION_KEY",
        "valueFrom": {"secretKeyRef": {"name": session_secret(name), "key": SESSION_KEY}},
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
