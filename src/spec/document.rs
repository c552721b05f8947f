//! What a spec tree says, document by document, the good and the bad together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use crate::names::{Digest, Json, Kind, ResourceKey, SpecPath};
use crate::problem::{Location, Origin, Problem};
use crate::spec::remnants::Remnants;
use crate::spec::{
    BaseDomain, CloudAccount, Cluster, Commit, Fields, Fleet, IdentityProvider, Organization, SecretValue,
    SourceId,
};

/// The fields that hold a secret: of which kind, the name, and the place in the document as a JSON pointer.
pub const SECRET_FIELDS: [(Kind, &str, &str); 3] = [
    (Kind::Fleet, "kubeconfig", "/advanced_config/kubeconfig"),
    (Kind::BaseDomain, "tls_key", "/tls_key"),
    (Kind::CloudAccount, "credentials", "/credentials"),
];

/// Where a secret field stands in its document; the whole document for what is none.
pub fn secret_pointer(field: &str) -> &'static str {
    let found = SECRET_FIELDS.iter().find(|(_, name, _)| *name == field);
    found.map(|(_, _, pointer)| *pointer).unwrap_or_default()
}

/// The content of one document.
#[derive(Debug, Clone)]
pub enum Spec {
    /// A tenant.
    Organization(Organization),
    /// A base domain.
    BaseDomain(BaseDomain),
    /// An identity provider.
    IdentityProvider(IdentityProvider),
    /// A cloud account.
    CloudAccount(CloudAccount),
    /// A fleet.
    Fleet(Fleet),
    /// A cluster.
    Cluster(Arc<Cluster>),
}

impl Spec {
    /// The kind of the document.
    pub fn kind(&self) -> Kind {
        match self {
            Spec::Organization(_) => Kind::Organization,
            Spec::BaseDomain(_) => Kind::BaseDomain,
            Spec::IdentityProvider(_) => Kind::IdentityProvider,
            Spec::CloudAccount(_) => Kind::CloudAccount,
            Spec::Fleet(_) => Kind::Fleet,
            Spec::Cluster(_) => Kind::Cluster,
        }
    }

    /// The secrets of the document, with the field that holds each.
    pub fn secrets(&self) -> Vec<(&'static str, &SecretValue)> {
        match self {
            Spec::BaseDomain(domain) => vec![("tls_key", &domain.tls_key)],
            Spec::CloudAccount(account) => vec![("credentials", &account.credentials)],
            Spec::Fleet(fleet) => {
                fleet.advanced_config.kubeconfig.iter().map(|secret| ("kubeconfig", secret)).collect()
            }
            Spec::Organization(_) | Spec::IdentityProvider(_) | Spec::Cluster(_) => Vec::new(),
        }
    }

    /// Whether another spec is known to say the same. Of what may hold secrets it never is.
    pub fn is_same(&self, other: &Spec) -> bool {
        match (self, other) {
            (Spec::Cluster(one), Spec::Cluster(other)) => Arc::ptr_eq(one, other) || one == other,
            _ => false,
        }
    }

    /// The document as a record keeps it: secrets are reduced to a trace.
    pub fn redacted(&self) -> serde_json::Value {
        let value = match self {
            Spec::Organization(spec) => serde_json::to_value(spec),
            Spec::BaseDomain(spec) => serde_json::to_value(spec),
            Spec::IdentityProvider(spec) => serde_json::to_value(spec),
            Spec::CloudAccount(spec) => serde_json::to_value(spec),
            Spec::Fleet(spec) => serde_json::to_value(spec),
            Spec::Cluster(spec) => serde_json::to_value(&**spec),
        };
        // Every key of a spec is a string and no value can fail to be written, so there is no error to pass on.
        value.unwrap_or_default()
    }

    /// Reads back what [`Spec::redacted`] gave.
    ///
    /// # Errors
    /// When the record was written by a version whose specs this one can't read.
    pub fn from_record(kind: Kind, record: &Json) -> Result<Spec, serde_json::Error> {
        Self::read(kind, &mut serde_json::Deserializer::from_str(record.as_str()))
    }

    /// Reads the fields of a document of a kind.
    ///
    /// # Errors
    /// When they are not those of the kind.
    pub fn read<'de, D: Deserializer<'de>>(kind: Kind, fields: D) -> Result<Spec, D::Error> {
        Ok(match kind {
            Kind::Organization => Spec::Organization(Organization::deserialize(fields)?),
            Kind::BaseDomain => Spec::BaseDomain(BaseDomain::deserialize(fields)?),
            Kind::IdentityProvider => Spec::IdentityProvider(IdentityProvider::deserialize(fields)?),
            Kind::CloudAccount => Spec::CloudAccount(CloudAccount::deserialize(fields)?),
            Kind::Fleet => Spec::Fleet(Fleet::deserialize(fields)?),
            Kind::Cluster => Spec::Cluster(Arc::new(Cluster::deserialize(fields)?)),
        })
    }
}

/// One document that could be read, typed and located.
#[derive(Debug, Clone)]
pub struct Document {
    /// What it describes.
    pub key: ResourceKey,
    /// What it says.
    pub spec: Spec,
    /// The file and the line where the document begins.
    pub origin: Origin,
    /// Where each field stands.
    pub fields: Fields,
}

impl Document {
    /// Where a field stands, by JSON pointer (`/advanced_config/version`), or the nearest thing around it that the
    /// document spells out. The empty pointer is the document. Values of secret fields are masked in the text.
    pub fn locate(&self, pointer: &str) -> Location {
        self.fields.locate(pointer, &self.origin.path)
    }
}

/// A document whose identity could be read, but not all of the rest. What it describes is held as it was.
#[derive(Debug, Clone)]
pub struct InvalidDocument {
    /// What it describes.
    pub key: ResourceKey,
    /// Where it begins.
    pub origin: Origin,
    /// What it asks for against being deleted, which is heard whatever else is wrong with it.
    pub safeguards: Safeguards,
}

/// What keeps a resource from being deleted. Only fleets and clusters can ask for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Safeguards {
    /// `deletion_protection` is true.
    pub protected: bool,
    /// `suspend` is true.
    pub suspended: bool,
}

impl Safeguards {
    /// What a spec asks for.
    pub fn of(spec: &Spec) -> Self {
        let (protected, suspended) = match spec {
            Spec::Fleet(fleet) => (fleet.deletion_protection, fleet.suspend),
            Spec::Cluster(cluster) => (cluster.deletion_protection, cluster.suspend),
            _ => (false, false),
        };
        Self { protected, suspended }
    }

    /// What a document of a kind asks for of which only some fields are right. It is protected unless it says no.
    pub fn of_invalid(kind: Kind, fields: &serde_json::Value) -> Self {
        let is =
            |field: &str, value: bool| fields.get(field).and_then(serde_json::Value::as_bool) == Some(value);
        match kind {
            Kind::Fleet | Kind::Cluster => {
                Self { protected: !is("deletion_protection", false), suspended: is("suspend", true) }
            }
            _ => Self::default(),
        }
    }
}

/// A file, folder or document that does not say what it describes.
#[derive(Debug, Clone)]
pub struct Unreadable {
    /// Where it is.
    pub origin: Origin,
    /// Whose deletions wait for it. A top folder is an organization's when it is named as one that some readable
    /// document or record knows; that is for `resolve` to judge, so here it is only the folder's name.
    pub top_folder: Option<String>,
}

/// One file, parsed. It depends on nothing but the file's bytes and path, so it can be kept by their digest.
#[derive(Debug, Default)]
pub struct ParsedFile {
    /// The digest of the bytes; none for what could not be read.
    pub digest: Option<Digest>,
    /// The good documents.
    pub documents: Vec<Document>,
    /// Those with a readable identity and a problem.
    pub invalid: Vec<InvalidDocument>,
    /// What has no readable identity.
    pub unreadable: Vec<Unreadable>,
    /// What is left of documents that say nothing any more.
    pub remnants: Remnants,
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
}

impl ParsedFile {
    /// Whether it was parsed from the same bytes as another one of its path.
    fn is(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || (self.digest.is_some() && self.digest == other.digest)
    }
}

/// A spec tree, parsed file by file.
#[derive(Debug, Clone)]
pub struct Documents {
    /// Which tree it is.
    pub source: SourceId,
    /// What the content is: the hash of all of it, or the commit.
    pub revision: String,
    /// The commit that it is, where it comes from a git repository.
    pub commit: Option<Commit>,
    /// What is described in files that are not read as specs: `orders.yaml.bak`.
    pub skipped: BTreeMap<SpecPath, BTreeSet<ResourceKey>>,
    /// The files, by path.
    pub files: BTreeMap<SpecPath, Arc<ParsedFile>>,
}

impl Documents {
    /// The good documents of all files, in the order of paths.
    pub fn documents(&self) -> impl Iterator<Item = &Document> {
        self.files.values().flat_map(|file| &file.documents)
    }

    /// The files that are others than in another tree, or aren't in it.
    pub fn changed_since<'a>(&'a self, other: &'a Documents) -> impl Iterator<Item = &'a ParsedFile> {
        // Both are in the order of paths.
        let mut others = other.files.iter().peekable();
        let changed = self.files.iter().filter(move |(path, file)| {
            while others.next_if(|(before, _)| before < path).is_some() {}
            !others.peek().is_some_and(|(its, other)| its == path && file.is(other))
        });
        changed.map(|(_, file)| &**file)
    }

    /// Whether there is a file with a path and these bytes.
    pub fn has_file(&self, path: &SpecPath, digest: &Digest) -> bool {
        self.files.get(path).is_some_and(|file| file.digest.as_ref() == Some(digest))
    }

    /// Whether all files are those of another tree.
    pub fn has_files_of(&self, other: &Documents) -> bool {
        let mut files = self.files.iter().zip(&other.files);
        self.files.len() == other.files.len()
            && files.all(|((path, file), (its, other))| path == its && file.is(other))
    }

    /// The problems of all files, in the order of paths.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.files.values().flat_map(|file| &file.problems)
    }
}
