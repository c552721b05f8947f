//! From the catalog to Kubernetes manifests, the same to the byte for the same catalog.
//!
//! One file a Kubernetes concern; what is particular to a kind of cluster lies in `cluster_type/<type>.rs`. No body
//! has a null, a status, or a secret's value.

mod cluster_type;
mod gateway;
mod hosts;
mod labels;
mod manifest;
mod namespace;
mod network_policy;
mod of_fleet;
mod operator;
mod quota;
mod resources;
pub mod sizing;
mod tls_secret;
pub mod yaml;

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalog::{Catalog, ResolvedCluster, ResolvedFleet, ResolvedSecret};
use crate::config::{Config, SecretsConfig};
use crate::names::{Digest, FleetKey, Json, ObjectKey, ResourceKey, SecretRef};
use crate::spec::InfraType;
pub use cluster_type::{Clients, Endpoint, Login, ServerTrust};
pub use gateway::{NAMESPACE as GATEWAY_NAMESPACE, is_private, is_routed};
pub use labels::DEDICATED;
pub use operator::NAMESPACE as OPERATOR_NAMESPACE;
pub use resources::Resources;
use sizing::Sizing;

/// Renders every cluster of the catalog. Each fleet is a key of the result, also one without clusters.
///
/// Rendering can't fail: what can't be rendered faithfully is refused when the catalog is made.
pub fn render(catalog: &Catalog) -> Desired {
    let renderer = Renderer::new(catalog);
    let fleets = renderer.clusters.keys().filter_map(|key| Some(((*key).clone(), renderer.fleet(key)?)));
    Desired { fleets: fleets.collect() }
}

/// Renders fleet by fleet.
pub struct Renderer<'a> {
    config: &'a Config,
    fleets: &'a BTreeMap<FleetKey, ResolvedFleet>,
    /// The clusters of each fleet.
    clusters: BTreeMap<&'a FleetKey, Vec<&'a ResolvedCluster>>,
}

impl<'a> Renderer<'a> {
    /// Finds the clusters of each fleet.
    pub fn new(catalog: &'a Catalog) -> Self {
        let mut clusters: BTreeMap<&FleetKey, Vec<_>> =
            catalog.fleets.keys().map(|key| (key, Vec::new())).collect();
        for cluster in catalog.clusters.values() {
            clusters.entry(&cluster.fleet).or_default().push(cluster);
        }
        Self { config: &catalog.config, fleets: &catalog.fleets, clusters }
    }

    /// The digest of everything that [`Renderer::fleet`] looks at for a fleet: as long as it is the same in one process, so
    /// are the objects. It says nothing to another build of this software.
    pub fn inputs(&self, fleet: &FleetKey) -> Digest {
        // What is written for debugging is all there is but for the values of secrets, which no object has.
        let own = self.fleets.get(fleet).map(|fleet| {
            let config = &fleet.spec.advanced_config;
            (&config.components, config.exposure, &config.gateway, &fleet.domain)
        });
        Digest::of(format!("{:?}", (self.config, own, self.clusters.get(fleet))))
    }

    /// Every object that a fleet should hold; none for a fleet that should not exist.
    pub fn fleet(&self, fleet: &FleetKey) -> Option<Objects> {
        let clusters = self.clusters.get(fleet)?.iter();
        let own = self.fleets.get(fleet).map(|fleet| {
            let operator = operator::operator(fleet, &self.config.operators);
            operator.into_iter().chain(gateway::gateway(fleet))
        });
        let objects = clusters.flat_map(|cluster| objects(cluster, self.config));
        let objects = own.into_iter().flatten().chain(objects);
        Some(objects.map(|manifest| (manifest.key.clone(), manifest)).collect())
    }
}

/// Every object of one cluster; none for one that should not exist.
pub fn cluster(catalog: &Catalog, key: &ResourceKey) -> Option<Objects> {
    let cluster = catalog.clusters.get(key)?;
    let objects = objects(cluster, &catalog.config);
    Some(objects.map(|manifest| (manifest.key.clone(), manifest)).collect())
}

fn objects<'a>(cluster: &'a ResolvedCluster, config: &'a Config) -> impl Iterator<Item = Manifest> + 'a {
    let objects = render_cluster(cluster, config).into_iter();
    objects.filter(|manifest| is_written(manifest, cluster, &config.secrets))
}

/// What clients of a cluster have to know: where they find it, and what they log in with.
pub fn clients(cluster: &ResolvedCluster) -> Clients {
    (cluster_type::driver(cluster.spec.cluster_type).clients)(cluster)
}

/// All objects of one cluster.
fn render_cluster(cluster: &ResolvedCluster, config: &Config) -> Vec<Manifest> {
    let sizing = Sizing::of(cluster, &config.units);
    let driver = cluster_type::driver(cluster.spec.cluster_type);
    let mut objects = vec![
        namespace::namespace(cluster),
        quota::resource_quota(cluster, &sizing),
        quota::limit_range(cluster),
    ];
    objects.extend(network_policy::network_policies(cluster, &(driver.traffic)(cluster)));
    objects.extend(tls_secret::tls_secret(cluster));
    objects.extend((driver.objects)(cluster, &sizing));
    objects
}

/// Whether an object goes to the cluster's target at all: the installation may keep secrets out of folders.
fn is_written(manifest: &Manifest, cluster: &ResolvedCluster, secrets: &SecretsConfig) -> bool {
    let into_folder = cluster.fleet_spec.infra_type == InfraType::Directory;
    !(into_folder && !secrets.write_to_output && SecretSlot::all_in(&manifest.body).next().is_some())
}

/// The objects of one fleet.
pub type Objects = BTreeMap<ObjectKey, Manifest>;

/// Every object that should exist, by fleet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Desired {
    /// The objects of each fleet. A fleet without objects is there too.
    pub fleets: BTreeMap<FleetKey, Objects>,
}

/// One object as it should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// What it is.
    pub key: ObjectKey,
    /// The resource that it is made for.
    pub owner: ResourceKey,
    /// When it is applied, relative to the others.
    pub stage: Stage,
    /// The object. A secret in it is a [`SecretSlot`], never a value.
    pub body: Json,
}

/// The order in which objects are applied. Deletion goes the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Namespaces, which everything else is in, and definitions of what else there can be.
    Namespace,
    /// Configuration, secrets, quotas and policies.
    Configuration,
    /// Operators.
    Operator,
    /// What operators act on.
    Custom,
}

/// Stands in a manifest where a secret's bytes will be. The executor puts them there, base64 as Kubernetes has it, and
/// refuses when the fingerprint is no longer that of the value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretSlot {
    /// Which secret.
    pub reference: SecretRef,
    /// How its value becomes the bytes.
    pub encoding: SecretEncoding,
    /// The trace of the value that was planned.
    pub fingerprint: String,
}

/// How a secret's value becomes the bytes of a Kubernetes Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SecretEncoding {
    /// As it is.
    Raw,
    /// A private key, converted to unencrypted PKCS#8 in PEM, the only form that Strimzi reads.
    Pkcs8,
}

impl SecretSlot {
    /// The slot of a secret as the catalog resolved it. One that could not be opened has an empty fingerprint, which
    /// fits no value, so that it can't be applied by mistake.
    pub fn of(secret: &ResolvedSecret, encoding: SecretEncoding) -> Self {
        let ResolvedSecret { reference, mark, unavailable: _ } = secret;
        let fingerprint = mark.fingerprint.clone().unwrap_or_default();
        Self { reference: reference.clone(), encoding, fingerprint }
    }

    /// The key of the object that stands for a slot in a manifest.
    pub const KEY: &'static str = "$secret";

    /// The slot as it stands in a manifest: `{"$secret": {…}}`.
    pub fn to_value(&self) -> Value {
        // A slot holds strings and an enum, so there is no error to pass on.
        serde_json::json!({Self::KEY: serde_json::to_value(self).unwrap_or_default()})
    }

    /// Reads a slot back, where there is one.
    pub fn from_value(value: &Value) -> Option<SecretSlot> {
        let object = value.as_object().filter(|object| object.len() == 1)?;
        SecretSlot::deserialize(object.get(Self::KEY)?).ok()
    }

    /// Every slot in an object.
    pub fn all_in(object: &Json) -> impl Iterator<Item = SecretSlot> {
        let mut found = Vec::new();
        // Hardly any object has one, and taking its text apart costs much more than looking for the key.
        if object.may_have(Self::KEY) {
            Self::collect(&object.value(), &mut found);
        }
        found.into_iter()
    }

    fn collect(value: &Value, found: &mut Vec<SecretSlot>) {
        if let Some(slot) = Self::from_value(value) {
            return found.push(slot);
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| Self::collect(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| Self::collect(field, found)),
            _ => {}
        }
    }
}
