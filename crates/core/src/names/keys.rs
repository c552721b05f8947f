//! Keys of resources, fleets, files, objects and secrets.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use smol_str::SmolStr;

use super::{Identifier, InvalidName, Kind, checked_string};

/// The key of a resource on one installation: its kind, its organization and its name.
///
/// The key of an organization contains its identifier twice. A base domain is named by its derived domain, a
/// topic or user by its cluster and its name (`orders/payments`), everything else by its identifier.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct ResourceKey {
    pub organization: Identifier,
    pub kind: Kind,
    /// Its identifier, its derived domain, or `<cluster>/<name>`.
    pub name: SmolStr,
}

impl ResourceKey {
    pub fn new(kind: Kind, organization: &Identifier, name: impl Into<SmolStr>) -> Self {
        Self { organization: organization.clone(), kind, name: name.into() }
    }

    pub fn organization(identifier: &Identifier) -> Self {
        Self::new(Kind::Organization, identifier, identifier.as_str())
    }

    /// The key without its kind: `acme/orders`, or `acme` for an organization.
    pub fn path(&self) -> String {
        match self.kind {
            Kind::Organization => self.name.to_string(),
            _ => format!("{}/{}", self.organization, self.name),
        }
    }

    /// Parses a [`path`](ResourceKey::path) of this kind; `None` if no resource can have it.
    pub fn at(kind: Kind, path: &str) -> Option<Self> {
        match kind {
            Kind::Organization => Some(Self::organization(&path.parse().ok()?)),
            _ => {
                let (organization, name) = path.split_once('/')?;
                Some(Self::new(kind, &organization.parse().ok()?, name))
            }
        }
    }

    /// The key of a resource of a cluster: its name has the cluster's in front.
    pub fn on_cluster(kind: Kind, organization: &Identifier, cluster: &Identifier, name: &str) -> Self {
        Self::new(kind, organization, format!("{cluster}/{name}"))
    }

    /// The cluster of a topic or user, and its name there; `None` for other kinds.
    pub fn within_cluster(&self) -> Option<(ResourceKey, &str)> {
        let (cluster, name) = self.name.split_once('/').filter(|_| self.kind.is_on_cluster())?;
        Some((Self::new(Kind::Cluster, &self.organization, cluster), name))
    }

    /// The key as that of a fleet, if it is one.
    pub fn as_fleet(&self) -> Option<FleetKey> {
        let name = (self.kind == Kind::Fleet).then_some(&self.name)?;
        Some(FleetKey { organization: self.organization.clone(), fleet: name.parse().ok()? })
    }
}

/// For people: `cluster acme/orders`.
impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.noun(), self.path())
    }
}

/// For records: `Cluster/acme/orders`.
impl From<ResourceKey> for String {
    fn from(key: ResourceKey) -> String {
        key.record().to_string()
    }
}

impl ResourceKey {
    fn record(&self) -> impl fmt::Display {
        fmt::from_fn(|f| write!(f, "{}/{}/{}", self.kind, self.organization, self.name))
    }
}

/// For records, without an intermediate copy: plans hash hundreds of thousands of keys.
impl Serialize for ResourceKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.record())
    }
}

impl TryFrom<String> for ResourceKey {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        let mut parts = text.splitn(3, '/');
        let (Some(kind), Some(organization), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(InvalidName { text, expected: "a resource: KIND/ORGANIZATION/NAME" });
        };
        Ok(Self { kind: kind.parse()?, organization: organization.parse()?, name: name.into() })
    }
}

/// The key of a fleet: a target that is planned, applied and guarded on its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub struct FleetKey {
    pub organization: Identifier,
    pub fleet: Identifier,
}

impl FleetKey {
    pub fn resource(&self) -> ResourceKey {
        ResourceKey::new(Kind::Fleet, &self.organization, self.fleet.as_str())
    }
}

/// `acme/eu`.
impl fmt::Display for FleetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.organization, self.fleet)
    }
}

impl From<FleetKey> for String {
    fn from(key: FleetKey) -> String {
        key.to_string()
    }
}

impl TryFrom<String> for FleetKey {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        let Some((organization, fleet)) = text.split_once('/') else {
            return Err(InvalidName { text, expected: "a fleet: ORGANIZATION/FLEET" });
        };
        Ok(Self { organization: organization.parse()?, fleet: fleet.parse()? })
    }
}

/// The path of a file inside a spec tree: relative, with forward slashes, never leading out of the tree.
/// Clones share the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct SpecPath(Arc<str>);

checked_string!(SpecPath);

impl SpecPath {
    /// The first folder of the path, if the file is in one.
    pub fn top_folder(&self) -> Option<&str> {
        self.0.split_once('/').map(|(top, _)| top)
    }
}

impl TryFrom<String> for SpecPath {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        let fits = !text.is_empty() && text.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if fits {
            Ok(Self(text.into()))
        } else {
            Err(InvalidName { text, expected: "a relative path inside the spec tree" })
        }
    }
}

/// The key of an object on a target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct ObjectKey {
    /// The namespace; none for a cluster-scoped object.
    pub namespace: Option<String>,
    /// The object's kind: `KafkaNodePool`.
    pub kind: String,
    pub name: String,
    /// Its group and version as in manifests: `v1`, `kafka.strimzi.io/v1`.
    pub api_version: String,
}

impl ObjectKey {
    /// The API group; empty for the core group. Two versions of one group are the same object.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// For people: `KafkaNodePool kafka-acme--orders/broker`.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// For records: `kafka.strimzi.io/v1|KafkaNodePool|kafka-acme--orders|broker`.
impl From<ObjectKey> for String {
    fn from(key: ObjectKey) -> String {
        key.record().to_string()
    }
}

impl ObjectKey {
    fn record(&self) -> impl fmt::Display {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        fmt::from_fn(move |f| write!(f, "{}|{}|{namespace}|{}", self.api_version, self.kind, self.name))
    }
}

/// For records, without an intermediate copy, like a [`ResourceKey`].
impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.record())
    }
}

impl TryFrom<String> for ObjectKey {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        let parts: Vec<&str> = text.split('|').collect();
        let [api_version, kind, namespace, name] = parts[..] else {
            return Err(InvalidName { text, expected: "an object: API-VERSION|KIND|NAMESPACE|NAME" });
        };
        Ok(Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name: name.to_owned(),
        })
    }
}

/// The key of a secret: one field of one resource. A sealed value contains this key and can't be opened under
/// another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub struct SecretRef {
    pub resource: ResourceKey,
    /// The name of the field, without the objects around it: `tls_key`, `kubeconfig`, `credentials`.
    pub field: String,
}

/// `BaseDomain/acme/k.example.com#tls_key`.
impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", String::from(self.resource.clone()), self.field)
    }
}

impl From<SecretRef> for String {
    fn from(reference: SecretRef) -> String {
        reference.to_string()
    }
}

impl TryFrom<String> for SecretRef {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        let Some((resource, field)) = text.rsplit_once('#') else {
            return Err(InvalidName { text, expected: "a secret: KIND/ORGANIZATION/NAME#FIELD" });
        };
        Ok(Self { resource: resource.to_owned().try_into()?, field: field.to_owned() })
    }
}
