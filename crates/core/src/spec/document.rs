//! The content of a spec tree, document by document, valid and invalid ones together.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use crate::names::{Digest, Identifier, Json, Kind, ResourceKey, SpecPath, side_by_side};
use crate::problem::{Location, Origin, Problem};
use crate::spec::remnants::Remnants;
use crate::spec::text::{DocumentPlace, DocumentText, MaskedText};
use crate::spec::{
    BaseDomain, CloudAccount, Cluster, Commit, Fields, Fleet, IdentityProvider, Organization, SecretValue,
    SourceId, Topic, User,
};

/// The fields that contain a secret: kind, name, and JSON pointer in the document.
pub const SECRET_FIELDS: [(Kind, &str, &str); 5] = [
    (Kind::Fleet, "kubeconfig", "/advanced_config/kubeconfig"),
    (Kind::Fleet, "monitoring.own.password", "/advanced_config/monitoring/own/password"),
    (Kind::BaseDomain, "tls_key", "/tls_key"),
    (Kind::CloudAccount, "credentials", "/credentials"),
    (Kind::User, "password", "/password"),
];

/// Returns the JSON pointer of a secret field; the empty pointer for other fields.
pub fn secret_pointer(field: &str) -> &'static str {
    let found = SECRET_FIELDS.iter().find(|(_, name, _)| *name == field);
    found.map(|(_, _, pointer)| *pointer).unwrap_or_default()
}

#[derive(Debug, Clone, PartialEq)]
pub enum Spec {
    Organization(Organization),
    BaseDomain(BaseDomain),
    IdentityProvider(IdentityProvider),
    CloudAccount(CloudAccount),
    Fleet(Fleet),
    Cluster(Arc<Cluster>),
    Topic(Arc<Topic>),
    User(Arc<User>),
}

impl Spec {
    pub fn kind(&self) -> Kind {
        match self {
            Spec::Organization(_) => Kind::Organization,
            Spec::BaseDomain(_) => Kind::BaseDomain,
            Spec::IdentityProvider(_) => Kind::IdentityProvider,
            Spec::CloudAccount(_) => Kind::CloudAccount,
            Spec::Fleet(_) => Kind::Fleet,
            Spec::Cluster(_) => Kind::Cluster,
            Spec::Topic(_) => Kind::Topic,
            Spec::User(_) => Kind::User,
        }
    }

    pub fn secrets(&self) -> Vec<(&'static str, &SecretValue)> {
        match self {
            Spec::BaseDomain(domain) => domain.tls_key.iter().map(|secret| ("tls_key", secret)).collect(),
            Spec::CloudAccount(account) => vec![("credentials", &account.credentials)],
            Spec::Fleet(fleet) => {
                let config = &fleet.advanced_config;
                let own = config.monitoring.iter().filter_map(|monitoring| monitoring.own.as_ref());
                let own = own.map(|own| ("monitoring.own.password", &own.password));
                config.kubeconfig.iter().map(|secret| ("kubeconfig", secret)).chain(own).collect()
            }
            Spec::User(user) => user.password.iter().map(|secret| ("password", secret)).collect(),
            Spec::Organization(_) | Spec::IdentityProvider(_) | Spec::Cluster(_) | Spec::Topic(_) => {
                Vec::new()
            }
        }
    }

    /// Whether an object that Streamfleet didn't make is taken over.
    pub fn adopts(&self) -> bool {
        match self {
            Spec::Topic(topic) => topic.adopt,
            Spec::User(user) => user.adopt,
            _ => false,
        }
    }

    /// Whether two specs are known to be equal. Always false for kinds that may contain secrets.
    pub fn is_same(&self, other: &Spec) -> bool {
        match (self, other) {
            (Spec::Cluster(one), Spec::Cluster(other)) => Arc::ptr_eq(one, other) || one == other,
            (Spec::Topic(one), Spec::Topic(other)) => Arc::ptr_eq(one, other) || one == other,
            (Spec::User(one), Spec::User(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Returns the document as it is stored in a record: secrets are replaced by a placeholder.
    pub fn redacted(&self) -> serde_json::Value {
        let value = match self {
            Spec::Organization(spec) => serde_json::to_value(spec),
            Spec::BaseDomain(spec) => serde_json::to_value(spec),
            Spec::IdentityProvider(spec) => serde_json::to_value(spec),
            Spec::CloudAccount(spec) => serde_json::to_value(spec),
            Spec::Fleet(spec) => serde_json::to_value(spec),
            Spec::Cluster(spec) => serde_json::to_value(&**spec),
            Spec::Topic(spec) => serde_json::to_value(&**spec),
            Spec::User(spec) => serde_json::to_value(&**spec),
        };
        // Every key of a spec is a string and every value can be serialized, so there is no error to return.
        value.unwrap_or_default()
    }

    /// Reads the output of [`Spec::redacted`].
    ///
    /// # Errors
    /// If the record was written by a version whose specs this one can't read.
    pub fn from_record(kind: Kind, record: &Json) -> Result<Spec, serde_json::Error> {
        Self::read(kind, &mut serde_json::Deserializer::from_str(record.as_str()))
    }

    /// Reads the fields of a document of a kind.
    ///
    /// # Errors
    /// If they don't fit the kind.
    pub fn read<'de, D: Deserializer<'de>>(kind: Kind, fields: D) -> Result<Spec, D::Error> {
        Ok(match kind {
            Kind::Organization => Spec::Organization(Organization::deserialize(fields)?),
            Kind::BaseDomain => Spec::BaseDomain(BaseDomain::deserialize(fields)?),
            Kind::IdentityProvider => Spec::IdentityProvider(IdentityProvider::deserialize(fields)?),
            Kind::CloudAccount => Spec::CloudAccount(CloudAccount::deserialize(fields)?),
            Kind::Fleet => Spec::Fleet(Fleet::deserialize(fields)?),
            Kind::Cluster => Spec::Cluster(Arc::new(Cluster::deserialize(fields)?)),
            Kind::Topic => Spec::Topic(Arc::new(Topic::deserialize(fields)?)),
            Kind::User => Spec::User(Arc::new(User::deserialize(fields)?)),
        })
    }
}

/// A valid document, with the locations of its fields.
#[derive(Debug, Clone)]
pub struct Document {
    pub key: ResourceKey,
    pub spec: Spec,
    pub origin: Origin,
    pub fields: Fields,
}

impl Document {
    /// Returns the location of a field by JSON pointer (`/advanced_config/version`), or of its nearest
    /// ancestor that the document contains. The empty pointer is the document. Values of secret fields are
    /// masked in the text.
    pub fn locate(&self, pointer: &str) -> Location {
        self.fields.locate(pointer, &self.origin.path)
    }
}

/// A document whose identity is readable but which has errors. Its resource is held.
#[derive(Debug, Clone)]
pub struct InvalidDocument {
    pub key: ResourceKey,
    pub origin: Origin,
    /// The protection against deletion, which applies despite any errors in the document.
    pub safeguards: Safeguards,
}

/// The protection of a resource against deletion. Only fleets, clusters and topics have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Safeguards {
    pub protected: bool,
    pub suspended: bool,
}

impl Safeguards {
    pub fn of(spec: &Spec) -> Self {
        let (protected, suspended) = match spec {
            Spec::Fleet(fleet) => (fleet.deletion_protection, fleet.suspend),
            Spec::Cluster(cluster) => (cluster.deletion_protection, cluster.suspend),
            Spec::Topic(topic) => (topic.deletion_protection, false),
            _ => (false, false),
        };
        Self { protected, suspended }
    }

    /// Reads the safeguards of an invalid document. It is protected unless `deletion_protection` is false.
    pub fn of_invalid(kind: Kind, fields: &serde_json::Value) -> Self {
        let is =
            |field: &str, value: bool| fields.get(field).and_then(serde_json::Value::as_bool) == Some(value);
        match kind {
            Kind::Fleet | Kind::Cluster => {
                Self { protected: !is("deletion_protection", false), suspended: is("suspend", true) }
            }
            Kind::Topic => Self { protected: !is("deletion_protection", false), suspended: false },
            _ => Self::default(),
        }
    }
}

/// A file, folder or document whose resource can't be identified.
#[derive(Debug, Clone)]
pub struct Unreadable {
    pub origin: Origin,
    /// The top folder of the file: the deletions of the organization that it belongs to have to wait. This is
    /// only the folder's name; `resolve` decides whether it is an organization that a readable document or a
    /// record knows.
    pub top_folder: Option<String>,
}

/// One parsed file. It depends on nothing but the file's bytes and path, so it can be cached by their digest.
#[derive(Debug, Default)]
pub struct ParsedFile {
    /// The digest of the bytes; `None` if they could not be read.
    pub digest: Option<Digest>,
    pub documents: Vec<Document>,
    /// The documents with a readable identity and a problem.
    pub invalid: Vec<InvalidDocument>,
    pub unreadable: Vec<Unreadable>,
    pub remnants: Remnants,
    pub problems: Vec<Problem>,
    /// Its text with secrets masked; `None` if it can't be decoded.
    pub text: Option<Arc<MaskedText>>,
}

impl ParsedFile {
    /// The text of the document of a resource, valid or not; `None` if the file has none.
    pub fn text_of(&self, key: &ResourceKey) -> Option<DocumentText> {
        let valid = self.documents.iter().map(|document| (&document.key, &document.origin, true));
        let invalid = self.invalid.iter().map(|document| (&document.key, &document.origin, false));
        let (_, origin, is_valid) = valid.chain(invalid).find(|(other, ..)| *other == key)?;
        let is_of_one = self.is_of_one(&key.organization);
        Some(self.text.as_ref()?.document(DocumentPlace { line: origin.line, is_valid, is_of_one }))
    }

    /// Whether all of its documents are known to belong to an organization.
    pub fn is_of_one(&self, organization: &Identifier) -> bool {
        let valid = self.documents.iter().map(|document| &document.key);
        let mut known = valid.chain(self.invalid.iter().map(|document| &document.key));
        self.unreadable.is_empty() && known.all(|key| key.organization == *organization)
    }

    fn is(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || (self.digest.is_some() && self.digest == other.digest)
    }
}

#[derive(Debug, Clone)]
pub struct Documents {
    pub source: SourceId,
    /// The identity of the content: the hash of all of it, or the commit.
    pub revision: String,
    /// The commit, if the tree comes from a git repository.
    pub commit: Option<Commit>,
    /// The resources in files that are not read as specs: `orders.yaml.bak`.
    pub skipped: BTreeMap<SpecPath, BTreeSet<ResourceKey>>,
    pub files: BTreeMap<SpecPath, Arc<ParsedFile>>,
}

impl Documents {
    pub fn documents(&self) -> impl Iterator<Item = &Document> {
        self.files.values().flat_map(|file| &file.documents)
    }

    /// Returns the files that differ from those of another tree or are missing in it.
    pub fn changed_since<'a>(&'a self, other: &'a Documents) -> impl Iterator<Item = &'a ParsedFile> {
        self.differing(other).filter_map(|path| self.files.get(path)).map(|file| &**file)
    }

    /// The files that only one of two trees has, and those that differ.
    pub fn differing<'a>(&'a self, other: &'a Documents) -> impl Iterator<Item = &'a SpecPath> {
        let both = side_by_side(&self.files, &other.files);
        both.filter(|(_, own, other)| !own.zip(*other).is_some_and(|(own, other)| own.is(other)))
            .map(|(path, ..)| path)
    }

    /// The files in a top folder.
    pub fn below(&self, folder: &str) -> impl Iterator<Item = (&SpecPath, &Arc<ParsedFile>)> {
        let first = format!("{folder}/");
        let files = self.files.range::<str, _>((Bound::Included(first.as_str()), Bound::Unbounded));
        files.take_while(move |(path, _)| path.as_str().starts_with(&first))
    }

    pub fn has_file(&self, path: &SpecPath, digest: &Digest) -> bool {
        self.files.get(path).is_some_and(|file| file.digest.as_ref() == Some(digest))
    }

    pub fn has_files_of(&self, other: &Documents) -> bool {
        let mut files = self.files.iter().zip(&other.files);
        self.files.len() == other.files.len()
            && files.all(|((path, file), (its, other))| path == its && file.is(other))
    }

    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.files.values().flat_map(|file| &file.problems)
    }
}
