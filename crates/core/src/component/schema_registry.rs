//! A schema registry beside a cluster: Apicurio Registry, which keeps schemas in topics of the cluster.
//!
//! It reaches Kafka by the administrator's listener, the only one that takes a password whatever the cluster's clients
//! log in with, as a user of its own with rights to its own topics alone.

mod deployment;
mod environment;
mod exposure;
mod health;
pub mod kinds;
mod user;

use std::borrow::Cow;

use crate::catalog::{HostNames, ResolvedCluster};
use crate::component::Verdict::InPlace;
use crate::component::consequence::*;
use crate::component::{
    ClusterPart, Component, ObjectFacts, QuotaShare, Resources, Size, Traffic, kafka, load_balancers,
};
use crate::config::Config;
use crate::names::Json;
use crate::spec::{Exposure, IdentityProvider, Profile, SchemaRegistry};
pub use user::name as user_name;

pub static COMPONENT: Component = Component {
    kinds: &kinds::KINDS,
    is_installed: |extras| extras.schema_registry,
    in_cluster,
    hosts: &[HOSTS],
    services: Some(kinds::SELECTOR),
    troubles: health::troubles,
    objects: &[ObjectFacts { kind: "Service", size: of_service, ..ObjectFacts::NONE }],
    consequences: Consequences { rows: ROWS, ..Consequences::NONE },
    ..Component::NONE
};

const HOSTS: HostNames = HostNames {
    owner: "schema registry",
    prefix: "registry--",
    last: 0,
    is_used: |cluster| cluster.advanced_config.schema_registry.enabled,
};

#[rustfmt::skip]
const ROWS: &[Row] = &[
    of_ours("Deployment", "", CREATED, "a schema registry starts beside the brokers"),
    of_ours("Deployment", "/spec/template/spec/containers/*/env/**", CHANGES, "the schema registry's pods are replaced one \
        at a time, and follow the new settings: what its clients may do, and which tokens it takes, may change"),
    of_ours("Deployment", "/spec/template/**", CHANGES, "the schema registry's pods are replaced one at a time; its clients \
        notice nothing, or try again once"),
    of_ours("Deployment", "/spec/replicas", CHANGES, "the schema registry gets another number of replicas; clients notice nothing"),
    of_ours("Deployment", "", DELETED, "the schema registry is removed: clients can't read or register schemas any more. \
        The schemas stay in the cluster, in topics whose names begin with `__schema-registry-`"),
    of_ours("Service", "/spec/type", CHANGES, "clients of the schema registry find it at another address"),
];

const CREATED: DirectionFilter = DirectionFilter::Is(Direction::Created);

const fn of_ours(kind: &'static str, path: &'static str, when: DirectionFilter, words: &'static str) -> Row {
    let outcome = RowVerdict::Does(InPlace, Cow::Borrowed(words));
    Row { kind, of: ObjectFilter::Body(is_ours), path, when, outcome }
}

fn of_service(service: &Json) -> Size {
    let is_balanced = service.value().pointer("/spec/type").is_some_and(|kind| kind == "LoadBalancer");
    Size { other_load_balancers: is_balanced.into(), ..Size::default() }
}

fn is_ours(body: &serde_json::Value) -> bool {
    let labels = body.pointer("/metadata/labels").and_then(|labels| labels.get(kinds::COMPONENT));
    labels.is_some_and(|name| name == kinds::NAME)
}

/// The size of a pod. In a trial with this heap and some dozens of schemas, the process took 330 to 400 MB.
const POD: Resources = Resources { cpu_millis: 200, memory_mib: 640 };
const HEAP_MIB: u64 = 256;

struct RegistryContext<'a> {
    cluster: &'a ResolvedCluster,
    spec: &'a SchemaRegistry,
    image: &'a str,
    provider: &'a IdentityProvider,
    host: String,
    /// How many copies have a schema before it counts as registered.
    in_sync: u32,
}

impl<'a> RegistryContext<'a> {
    /// `None` for a cluster without a registry, or with one that was refused earlier.
    fn new(cluster: &'a ResolvedCluster, config: &'a Config) -> Option<Self> {
        Some(Self {
            cluster,
            spec: Some(&cluster.spec.advanced_config.schema_registry).filter(|spec| spec.enabled)?,
            image: config.images.schema_registry.as_deref()?,
            provider: cluster.identity_provider.as_ref()?,
            host: host(cluster)?,
            in_sync: kafka::in_sync(cluster, config),
        })
    }

    fn replicas(&self) -> u64 {
        match self.cluster.spec.advanced_config.profile {
            Profile::Dev => 1,
            Profile::Standard => 2,
        }
    }

    /// The name of all its objects.
    fn name(&self) -> String {
        user::name(self.cluster)
    }
}

/// The host name of a cluster's registry, if it has one.
fn host(cluster: &ResolvedCluster) -> Option<String> {
    let domain = load_balancers::external_domain(cluster)?;
    (HOSTS.is_used)(&cluster.spec).then(|| HOSTS.template(&cluster.spec.identifier, &domain.domain))
}

/// The address of a cluster's registry for clients of Confluent's API.
pub fn url(cluster: &ResolvedCluster) -> Option<String> {
    host(cluster).map(|host| format!("https://{host}/apis/ccompat/v7"))
}

fn in_cluster(cluster: &ResolvedCluster, config: &Config) -> Option<ClusterPart> {
    let context = RegistryContext::new(cluster, config)?;
    let replicas = context.replicas();
    let mut objects = vec![deployment::deployment(&context)];
    objects.extend(deployment::disruption_budget(&context));
    objects.extend(exposure::objects(&context));
    objects.push(user::user(&context));
    // An update starts a new pod before it stops an old one.
    let pods = replicas + 1;
    let balanced = cluster.fleet_spec.advanced_config.exposure == Exposure::LoadBalancer;
    Some(ClusterPart {
        objects,
        traffic: Traffic {
            servers: vec![(kinds::COMPONENT, kinds::NAME.to_owned())],
            client_ports: vec![deployment::PORT],
            client_policy: "allow-schema-registry",
            outbound_urls: vec![context.provider.jwks_uri.clone()],
            ..Traffic::default()
        },
        quota: QuotaShare {
            requests: Resources { cpu_millis: pods * POD.cpu_millis, memory_mib: pods * POD.memory_mib },
            pods,
            load_balancers: balanced.into(),
            ..QuotaShare::default()
        },
        is_restricted: true,
    })
}

#[cfg(test)]
mod tests;
