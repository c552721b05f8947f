//! Objects as they should be, and the placeholders for secrets in them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalog::ResolvedSecret;
use crate::names::{Digest, Json, ObjectKey, ResourceKey, SecretRef};

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

impl Manifest {
    /// The digest that identifies it: that of its body, with secrets as slots.
    pub fn digest(&self) -> Digest {
        self.body.digest()
    }
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
    /// DNS records, which lead clients to everything before.
    Name,
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
    /// A password, converted to the web configuration of Prometheus with its bcrypt hash.
    PrometheusLogin,
    /// A private key, converted to a key for the sessions of one object's users.
    SessionKey,
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
