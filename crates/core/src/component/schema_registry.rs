//! A schema registry beside a cluster: Apicurio Registry, which keeps schemas in topics of the cluster.
//!
//! It reaches Kafka by the administrator's listener, the only one that takes a password whatever the cluster's clients
//! log in with, as a user of its own with rights to its own topics alone.

mod environment;
mod user;

use crate::catalog::{HostNames, ResolvedCluster};
use crate::component::consequence::*;
use crate::component::http_workload::health::{self, WorkloadWords};
use crate::component::http_workload::{self, HttpWorkload};
use crate::component::mount::Mount;
use crate::component::{ClusterPart, Component, Resources, kafka};
use crate::config::Config;
use crate::spec::{IdentityProvider, Profile, SchemaRegistry};
pub use user::name as user_name;

pub static COMPONENT: Component = Component {
    is_installed: |extras| extras.workloads,
    in_cluster,
    hosts: &[HOSTS],
    services: Some("labelSelector=streamfleet.io%2Fcomponent%3Dschema-registry"),
    troubles: |wanted, read| health::troubles(&WORDS, &user::of(&wanted.cluster), wanted, read),
    consequences: Consequences { rows: ROWS, ..Consequences::NONE },
    ..Component::NONE
};

const NAME: &str = "schema-registry";

const WORDS: WorkloadWords =
    WorkloadWords { name: NAME, noun: "schema registry", condition: "Registry", degrades: true };

const HOSTS: HostNames = HostNames {
    owner: "schema registry",
    prefix: "registry--",
    last: 0,
    is_used: |cluster| cluster.advanced_config.schema_registry.enabled,
};

const OURS: ObjectFilter = ObjectFilter::Body(|body| http_workload::is_of(NAME, body));
const PUBLIC: ObjectFilter = ObjectFilter::Body(|body| http_workload::is_public(NAME, body));

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row::in_place("Deployment", OURS, "", CREATED, "a schema registry starts beside the brokers"),
    Row::in_place("Deployment", OURS, "/spec/template/spec/containers/*/env/**", CHANGES, "the schema registry's pods are replaced one \
        at a time, and follow the new settings: what its clients may do, and which tokens it takes, may change"),
    Row::in_place("Deployment", OURS, "/spec/template/**", CHANGES, "the schema registry's pods are replaced one at a time; its clients \
        notice nothing, or try again once"),
    Row::in_place("Deployment", OURS, "/spec/replicas", CHANGES, "the schema registry gets another number of replicas; clients notice nothing"),
    Row::in_place("Deployment", OURS, "", DELETED, "the schema registry is removed: clients can't read or register schemas any more. \
        The schemas stay in the cluster, in topics whose names begin with `__schema-registry-`"),
    Row::in_place("Service", PUBLIC, "", CREATED, "the schema registry \
        gets a public load balancer: anyone who can reach it can try to log in"),
    Row::in_place("Service", OURS, "/spec/type", CHANGES, "the schema registry's name leads to another address: until its DNS record does, \
        nobody reaches it"),
];

/// The size of a pod. In a trial with this heap and some dozens of schemas, the process took 330 to 400 MB.
const POD: Resources = Resources { cpu_millis: 200, memory_mib: 640 };
const HEAP_MIB: u64 = 256;

/// The port for the probes of the kubelet, without TLS and login. It tells whether the registry works, and its metrics.
const MANAGEMENT_PORT: u16 = 9000;

struct RegistryContext<'a> {
    cluster: &'a ResolvedCluster,
    spec: &'a SchemaRegistry,
    provider: &'a IdentityProvider,
    /// How many copies have a schema before it counts as registered.
    in_sync: u32,
}

/// The address of a cluster's registry for clients of Confluent's API.
pub fn url(cluster: &ResolvedCluster) -> Option<String> {
    http_workload::host(cluster, &HOSTS).map(|host| format!("https://{host}/apis/ccompat/v7"))
}

/// `None` for a cluster without a registry, or with one that was refused earlier.
fn in_cluster(cluster: &ResolvedCluster, config: &Config) -> Option<ClusterPart> {
    let context = RegistryContext {
        cluster,
        spec: Some(&cluster.spec.advanced_config.schema_registry).filter(|spec| spec.enabled)?,
        provider: cluster.identity_provider.as_ref()?,
        in_sync: kafka::in_sync(cluster, config),
    };
    let authority = context.provider.ca_cert.as_deref();
    let issuer = authority
        .map(|_| Mount::config_map("oauth-ca", kafka::oauth_ca_name(cluster), environment::OAUTH_CA_FOLDER));
    let workload = HttpWorkload {
        cluster,
        component: NAME,
        name: user::name(cluster),
        image: config.images.schema_registry.as_deref()?,
        host: http_workload::host(cluster, &HOSTS)?,
        // New schemas are in the topic at once, so that any replica may be replaced by another at any time.
        replicas: match cluster.spec.advanced_config.profile {
            Profile::Dev => 1,
            Profile::Standard => 2,
        },
        resources: POD,
        environment: environment::environment(&context),
        mounts: http_workload::quarkus::mounts(cluster).into_iter().chain(issuer).collect(),
        read_at_start: authority,
        management_port: Some(MANAGEMENT_PORT),
        client_policy: "allow-schema-registry",
        outbound_urls: vec![context.provider.jwks_uri.clone()],
    };
    Some(workload.part([user::user(&context)]))
}

#[cfg(test)]
mod tests;
