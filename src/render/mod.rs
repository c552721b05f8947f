//! From the catalog to Kubernetes manifests, the same to the byte for the same catalog.

pub mod yaml;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::names::{FleetKey, ObjectKey, ResourceKey, SecretRef};

/// Every object that should exist, by fleet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Desired {
    /// The objects of each fleet. A fleet without objects is there too.
    pub fleets: BTreeMap<FleetKey, BTreeMap<ObjectKey, Manifest>>,
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
    pub body: Value,
}

/// The order in which objects are applied. Deletion goes the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Namespaces, which everything else is in.
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
}
