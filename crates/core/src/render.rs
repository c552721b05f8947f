//! Turns the catalog into Kubernetes manifests. The same catalog gives the same bytes.
//!
//! One file per Kubernetes concern; whatever is specific to a cluster type is in `cluster_type/<type>.rs`. No
//! body contains a null, a status, or the value of a secret.

mod cluster_type;
mod fleet_manifest;
mod gateway;
mod hosts;
mod labels;
mod manifest;
mod namespace;
mod network_policy;
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
pub use cluster_type::{ClientAccess, Endpoint, Login, ServerTrust};
pub use gateway::{NAMESPACE as GATEWAY_NAMESPACE, is_private, is_routed};
pub use labels::DEDICATED;
pub use operator::NAMESPACE as OPERATOR_NAMESPACE;
pub use resources::Resources;
use sizing::Sizing;

/// Renders every cluster of the catalog. Every fleet is a key of the result, even without clusters.
///
/// Rendering can't fail: resolving the catalog refuses everything that can't be rendered faithfully.
pub fn render(catalog: &Catalog) -> Desired {
    let renderer = Renderer::new(catalog);
    let fleets = renderer.clusters.keys().filter_map(|key| Some(((*key).clone(), renderer.fleet(key)?)));
    Desired { fleets: fleets.collect() }
}

pub struct Renderer<'a> {
    config: &'a Config,
    fleets: &'a BTreeMap<FleetKey, ResolvedFleet>,
    clusters: BTreeMap<&'a FleetKey, Vec<&'a ResolvedCluster>>,
}

impl<'a> Renderer<'a> {
    pub fn new(catalog: &'a Catalog) -> Self {
        let mut clusters: BTreeMap<&FleetKey, Vec<_>> =
            catalog.fleets.keys().map(|key| (key, Vec::new())).collect();
        for cluster in catalog.clusters.values() {
            clusters.entry(&cluster.fleet).or_default().push(cluster);
        }
        Self { config: &catalog.config, fleets: &catalog.fleets, clusters }
    }

    /// The digest of everything that [`Renderer::fleet`] reads for a fleet. Within one process, the same
    /// digest means the same objects. It isn't comparable between builds.
    pub fn inputs(&self, fleet: &FleetKey) -> Digest {
        // The debug output contains everything except for the values of secrets, which no object contains.
        let own = self.fleets.get(fleet).map(|fleet| {
            let config = &fleet.spec.advanced_config;
            (&config.components, config.exposure, &config.gateway, &fleet.domain)
        });
        Digest::of(format!("{:?}", (self.config, own, self.clusters.get(fleet))))
    }

    /// Every object of a fleet; `None` for a fleet that should not exist.
    pub fn fleet(&self, fleet: &FleetKey) -> Option<FleetManifests> {
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

/// Every object of one cluster; `None` for a cluster that should not exist.
pub fn cluster(catalog: &Catalog, key: &ResourceKey) -> Option<FleetManifests> {
    let cluster = catalog.clusters.get(key)?;
    let objects = objects(cluster, &catalog.config);
    Some(objects.map(|manifest| (manifest.key.clone(), manifest)).collect())
}

fn objects<'a>(cluster: &'a ResolvedCluster, config: &'a Config) -> impl Iterator<Item = Manifest> + 'a {
    let objects = render_cluster(cluster, config).into_iter();
    objects.filter(|manifest| is_written(manifest, cluster, &config.secrets))
}

pub fn clients(cluster: &ResolvedCluster) -> ClientAccess {
    (cluster_type::driver(cluster.spec.cluster_type).clients)(cluster)
}

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

/// Whether an object is written to the cluster's target. The settings may keep secrets out of folders.
fn is_written(manifest: &Manifest, cluster: &ResolvedCluster, secrets: &SecretsConfig) -> bool {
    let into_folder = cluster.fleet_spec.infra_type == InfraType::Directory;
    !(into_folder && !secrets.write_to_output && SecretSlot::all_in(&manifest.body).next().is_some())
}

pub type FleetManifests = BTreeMap<ObjectKey, Manifest>;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Desired {
    /// Fleets without objects are included.
    pub fleets: BTreeMap<FleetKey, FleetManifests>,
}

/// One object as it should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// The key of the object.
    pub key: ObjectKey,
    /// The resource that the object belongs to.
    pub owner: ResourceKey,
    /// When it is applied, relative to the others.
    pub stage: Stage,
    /// The object. A secret in it is a [`SecretSlot`], never a value.
    pub body: Json,
}

/// The order in which objects are applied. Deletion runs in reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Namespaces, which contain everything else, and custom resource definitions.
    Namespace,
    /// Configuration, secrets, quotas and policies.
    Configuration,
    /// Operators.
    Operator,
    /// Custom resources that operators act on.
    Custom,
}

/// A placeholder for a secret in a manifest. The executor replaces it with the secret's bytes, in base64 as
/// Kubernetes expects, and refuses to if the value no longer has this fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretSlot {
    pub reference: SecretRef,
    pub encoding: SecretEncoding,
    /// The keyed fingerprint of the value that was planned.
    pub fingerprint: String,
}

/// How a secret's value becomes the bytes of a Kubernetes Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SecretEncoding {
    Raw,
    /// A private key, converted to unencrypted PKCS#8 in PEM, the only form that Strimzi reads.
    Pkcs8,
}

impl SecretSlot {
    /// The slot of a resolved secret. A secret that could not be opened gets an empty fingerprint. It matches
    /// no value, so the secret can't be applied by mistake.
    pub fn of(secret: &ResolvedSecret, encoding: SecretEncoding) -> Self {
        let ResolvedSecret { reference, mark, unavailable: _ } = secret;
        let fingerprint = mark.fingerprint.clone().unwrap_or_default();
        Self { reference: reference.clone(), encoding, fingerprint }
    }

    /// The JSON key that marks a slot.
    pub const KEY: &'static str = "$secret";

    /// The slot as a manifest contains it: `{"$secret": {…}}`.
    pub fn to_value(&self) -> Value {
        // A slot consists of strings and an enum, so there is no error to pass on.
        serde_json::json!({Self::KEY: serde_json::to_value(self).unwrap_or_default()})
    }

    pub fn from_value(value: &Value) -> Option<SecretSlot> {
        let object = value.as_object().filter(|object| object.len() == 1)?;
        SecretSlot::deserialize(object.get(Self::KEY)?).ok()
    }

    pub fn all_in(object: &Json) -> impl Iterator<Item = SecretSlot> {
        let mut found = Vec::new();
        // Hardly any object has a slot, and parsing the text costs much more than searching it for the key.
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
