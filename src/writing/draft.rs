//! Decides on the edit of one file, within a given tree.

use secrecy::ExposeSecret as _;
use serde_json::Value;

use super::body::{self, CurrentDocument, NewSecret};
use super::message::message;
use super::refused::{Guard, WriteRefusal, exists, guarded, invalid, limited, needed, stale, still_going};
use super::write_request::{WriteAction, WriteRequest};
use crate::catalog::{self, FolderOwners, OpenedSecret, Recorded, RecordedResource, Secrets};
use crate::http::problem::FieldError;
use crate::names::{Digest, Domain, Identifier, Kind, ResourceKey, SecretRef, SpecPath};
use crate::problem::{Location, Problem};
use crate::record::Record;
use crate::secret::{self, Keyring};
use crate::spec::edit::{self, EditRefusal, RefusalReason};
use crate::spec::{Document, Documents, Safeguards, Spec};

/// Fields that limit an organization. Only super users may change them.
const LIMITS: [&str; 2] = ["quotas", "domains"];

/// Whether any member is left who may change the members without being a super user.
fn has_admin(organization: &Value) -> bool {
    let members = organization.get("members").and_then(Value::as_array);
    members.is_some_and(|members| members.iter().any(|member| member["role"] == "admin"))
}

#[derive(Debug)]
pub struct DraftEdit {
    /// The file's new text; `None` if the file is removed.
    pub text: Option<String>,
    pub message: String,
}

pub struct EditBasis<'a> {
    pub documents: &'a Documents,
    pub recorded: &'a Recorded,
    pub secrets: &'a Secrets,
    pub keyring: &'a Keyring,
    /// Whether secrets may be in plain text where the tree is kept.
    pub may_be_plain: bool,
}

/// The tag of a document. A secret enters it only by its keyed fingerprint, or in its sealed form if it can't
/// be opened here.
pub fn etag(document: &Document, secrets: &Secrets) -> Digest {
    let trace = |(field, _): (&'static str, &_)| {
        let reference = SecretRef { resource: document.key.clone(), field: field.to_owned() };
        let mark = match secrets.opened.get(&reference) {
            Some(OpenedSecret::Value { mark, .. } | OpenedSecret::Unavailable { mark, .. }) => Some(mark),
            Some(OpenedSecret::Refused(_)) | None => None,
        };
        let trace = mark.and_then(|mark| {
            mark.fingerprint.clone().or_else(|| mark.sealed.as_ref().map(ToString::to_string))
        });
        (field, trace)
    };
    let secrets: Vec<_> = document.spec.secrets().into_iter().map(trace).collect();
    Digest::of_json(&serde_json::json!([document.key, document.spec.redacted(), secrets]))
}

/// The document of a resource; `None` if there is none, or more than one.
pub fn find<'a>(documents: &'a Documents, recorded: &Recorded, key: &ResourceKey) -> Option<&'a Document> {
    let files = files(documents, recorded, key);
    let [path] = files.as_slice() else { return None };
    documents.files.get(*path)?.documents.iter().find(|document| document.key == *key)
}

/// The files that describe a resource and are allowed to.
fn files<'a>(documents: &'a Documents, recorded: &Recorded, key: &ResourceKey) -> Vec<&'a SpecPath> {
    let described = documents.files.iter().filter(|(_, file)| {
        file.documents.iter().any(|document| document.key == *key)
            || file.invalid.iter().any(|document| document.key == *key)
    });
    let mut described = described.map(|(path, _)| path).peekable();
    if described.peek().is_none() {
        return Vec::new();
    }
    let owners = FolderOwners::of(documents, recorded);
    described.filter(|path| owners.may_hold(path, key)).collect()
}

/// An unreadable file that may describe a recorded resource; `None` if there is none, or if the resource is
/// already being deleted.
fn unreadable<'a>(documents: &'a Documents, recorded: &Recorded, key: &ResourceKey) -> Option<&'a SpecPath> {
    let record = recorded.resources.get(key).filter(|record| !record.durable.deleting)?;
    let owners = FolderOwners::of(documents, recorded);
    let broken = documents.files.iter().filter(|(_, file)| !file.unreadable.is_empty()).map(|(path, _)| path);
    let mut broken: Vec<&SpecPath> = broken.filter(|path| owners.may_hold(path, key)).collect();
    // The file that described it last comes first.
    broken.sort_by_key(|path| record.durable.path.as_ref() != Some(*path));
    broken.first().copied()
}

/// The file that a write changes: the one that describes the resource, or a new one.
///
/// # Errors
/// When no file describes the resource, or several do.
pub fn file(
    request: &WriteRequest,
    documents: &Documents,
    recorded: &Recorded,
) -> Result<SpecPath, WriteRefusal> {
    let WriteRequest { key, what, .. } = request;
    let described = files(documents, recorded, key);
    if let Some(path) = described.is_empty().then(|| unreadable(documents, recorded, key)).flatten() {
        let problem =
            Problem::error("edit-unreadable", format!("{key} may be described in a file that can't be read"));
        let problem = problem.at(Location::file(path.clone()), "");
        return Err(WriteRefusal::Edit(Box::new(problem.hint("fix the file first, by hand"))));
    }
    match (what, described.as_slice()) {
        // A deletion can be taken back until it has begun.
        (WriteAction::Create(_), [])
            if recorded.resources.get(key).is_some_and(|record| record.durable.deleting) =>
        {
            Err(still_going(key))
        }
        (WriteAction::Create(_), []) => new_file(key),
        (WriteAction::Create(_), _) => Err(exists(key)),
        (_, []) => Err(WriteRefusal::NotThere(key.clone())),
        (_, [path]) => Ok((*path).clone()),
        (_, [first, second, ..]) => {
            let problem =
                Problem::error("edit-twice", format!("{key} is described twice, in {first} and {second}"));
            let problem = problem.at(Location::file((*first).clone()), "");
            Err(WriteRefusal::Edit(Box::new(problem.hint("remove one of the two"))))
        }
    }
}

/// The file for a new resource. Organizations go to the top level of the tree, which belongs to the
/// administrators.
fn new_file(key: &ResourceKey) -> Result<SpecPath, WriteRefusal> {
    let misnamed = |field: &str, expected: &str| {
        let why = format!("`{}` is not {expected}", crate::problem::quote_untrusted(&key.name));
        invalid(vec![FieldError::at(format!("/{field}"), why, "choose another name")])
    };
    match key.kind {
        Kind::BaseDomain if key.name.parse::<Domain>().is_err() => {
            return Err(misnamed("domain", Domain::EXPECTED));
        }
        // Their cluster and name were checked with the body.
        Kind::BaseDomain | Kind::Topic | Kind::User => {}
        _ if key.name.parse::<Identifier>().is_err() => {
            return Err(misnamed("identifier", Identifier::EXPECTED));
        }
        _ => {}
    }
    let path = match key.kind {
        Kind::Organization => format!("{}.yaml", key.name),
        kind => format!("{}/{}/{}.yaml", key.organization, kind.plural(), key.name),
    };
    path.parse().map_err(|_| misnamed("identifier", Identifier::EXPECTED))
}

/// The refusal of a new document that no file can have.
pub(super) fn unwritable(refusal: &EditRefusal) -> WriteRefusal {
    let (why, hint) = match refusal.reason {
        RefusalReason::TooLong => ("the file would become larger than 1 MiB", "shorten it"),
        _ => (
            "this can't be written as an equivalent YAML file",
            "remove numbers and characters that other programs can't read",
        ),
    };
    invalid(vec![FieldError::at("", why, hint)])
}

impl EditBasis<'_> {
    /// Computes the edit of a file with this text; `None` as text stands for a missing file.
    ///
    /// # Errors
    /// When the edit is refused.
    pub fn draft(
        &self,
        request: &WriteRequest,
        path: &SpecPath,
        text: Option<&str>,
    ) -> Result<DraftEdit, WriteRefusal> {
        let WriteRequest { key, what, if_match, .. } = request;
        let document = self.document(path, key);
        if let Some(expected) = if_match {
            let now = document.map(|document| etag(document, self.secrets));
            if !expected.allow(now.as_ref()) {
                return Err(stale());
            }
        }
        let refused = |refusal: EditRefusal| match text {
            Some(text) => WriteRefusal::Edit(Box::new(refusal.problem(path, text))),
            None => unwritable(&refusal),
        };
        if matches!(what, WriteAction::Delete) {
            let text = text.ok_or_else(|| WriteRefusal::NotThere(key.clone()))?;
            let written = edit::read(text, key).map_err(refused)?;
            self.may_go(key, document, &written)?;
            return Ok(DraftEdit {
                text: edit::remove(text, key).map_err(refused)?,
                message: message(key, what, None, None),
            });
        }
        if matches!(what, WriteAction::Create(_)) {
            let mut wanted = body::wanted(request, CurrentDocument::default())?;
            self.seal(key, &mut wanted.document, wanted.secrets)?;
            let text = match text {
                Some(text) => edit::append(text, &wanted.document),
                None => edit::write(&wanted.document),
            };
            let message = message(key, what, None, Some(&wanted.document));
            return Ok(DraftEdit { text: Some(text.map_err(refused)?), message });
        }
        let text = text.ok_or_else(|| WriteRefusal::NotThere(key.clone()))?;
        let written = edit::read(text, key).map_err(refused)?;
        let shown = document.map(|document| {
            let spec = catalog::with_certificate(document, self.secrets, self.recorded);
            Record::of_spec(&spec).to_json()
        });
        let stands = CurrentDocument { written: Some(&written), shown: shown.as_ref() };
        let mut wanted = body::wanted(request, stands)?;
        if key.kind == Kind::Organization && !request.may_limit {
            let changed = |field: &&str| wanted.document.get(field) != written.get(field);
            if let Some(field) = LIMITS.into_iter().find(|field| changed(field)) {
                return Err(limited(field));
            }
            if has_admin(&written) && !has_admin(&wanted.document) {
                return Err(invalid(vec![FieldError::at(
                    "/members",
                    format!("organization `{}` would have no admin", key.name),
                    "keep a member with the role `admin`, or ask a super user",
                )]));
            }
        }
        let new = self.without_old(key, &written, &mut wanted.document, wanted.secrets);
        self.seal(key, &mut wanted.document, new)?;
        let message = message(key, what, Some(&written), Some(&wanted.document));
        Ok(DraftEdit { text: Some(edit::set(text, key, &wanted.document).map_err(refused)?), message })
    }

    fn document(&self, path: &SpecPath, key: &ResourceKey) -> Option<&Document> {
        self.documents.files.get(path)?.documents.iter().find(|document| document.key == *key)
    }

    /// Keeps the written form of secrets that are sent with their present value, unless plain text has to be
    /// replaced.
    fn without_old(
        &self,
        key: &ResourceKey,
        written: &Value,
        document: &mut Value,
        secrets: Vec<NewSecret>,
    ) -> Vec<NewSecret> {
        let may_stay = |secret: &NewSecret| {
            self.may_be_plain || written.pointer(secret.pointer).is_none_or(|written| !written.is_string())
        };
        let is_old = |secret: &NewSecret| {
            let reference = SecretRef { resource: key.clone(), field: secret.field.to_owned() };
            matches!(self.secrets.opened.get(&reference), Some(OpenedSecret::Value { value, .. })
                if value.expose_secret() == secret.value.expose_secret())
        };
        let (old, new): (Vec<_>, Vec<_>) =
            secrets.into_iter().partition(|secret| may_stay(secret) && is_old(secret));
        for NewSecret { pointer, .. } in old {
            let stands = written.pointer(pointer).cloned().unwrap_or_default();
            body::put(document, pointer, stands);
        }
        new
    }

    /// Seals secrets, each for its field, and inserts them.
    fn seal(
        &self,
        key: &ResourceKey,
        document: &mut Value,
        secrets: Vec<NewSecret>,
    ) -> Result<(), WriteRefusal> {
        for NewSecret { field, pointer, value } in secrets {
            let reference = SecretRef { resource: key.clone(), field: field.to_owned() };
            let sealed = secret::seal(&self.keyring.recipient(), &reference, &value);
            let sealed =
                sealed.map_err(|error| invalid(vec![FieldError::at(pointer, error.message, error.hint)]))?;
            body::put(document, pointer, serde_json::json!({ "encrypted": sealed }));
        }
        Ok(())
    }

    /// Refuses to delete a resource that is protected, suspended or in use.
    fn may_go(
        &self,
        key: &ResourceKey,
        document: Option<&Document>,
        written: &Value,
    ) -> Result<(), WriteRefusal> {
        let asks = match document {
            Some(document) => Safeguards::of(&document.spec),
            None => Safeguards::of_invalid(key.kind, written),
        };
        let record = self
            .recorded
            .resources
            .get(key)
            .filter(|record| !record.durable.creating && !record.durable.deleting);
        let applied = |guard: fn(&RecordedResource) -> bool| record.is_some_and(guard);
        let on_fleet = key.kind.is_on_fleet();
        let guard = match () {
            () if !on_fleet => None,
            () if asks.protected => Some(Guard::Protection),
            () if asks.suspended => Some(Guard::Suspension),
            () if applied(|record| record.durable.protected) => Some(Guard::AppliedProtection),
            () if applied(|record| record.durable.suspended) => Some(Guard::AppliedSuspension),
            () => None,
        };
        if let Some(by) = guard {
            return Err(guarded(key, by));
        }
        let by = self.on_it(key);
        if by.is_empty() { Ok(()) } else { Err(needed(key, &by)) }
    }

    /// The resources on this one, by the files or by the record. If its file disappeared along with theirs,
    /// that would look like an accident.
    fn on_it(&self, key: &ResourceKey) -> Vec<ResourceKey> {
        let recorded = self.recorded.resources.iter().filter(|(other, record)| match key.kind {
            Kind::Organization => other.organization == key.organization && *other != key,
            Kind::Cluster => other.within_cluster().is_some_and(|(cluster, _)| cluster == *key),
            Kind::Fleet => {
                let fleet = record.durable.immutable.get("/infrastructure").and_then(Value::as_str);
                other.kind == Kind::Cluster
                    && other.organization == key.organization
                    && fleet == Some(key.name.as_str())
            }
            _ => false,
        });
        let mut found: Vec<ResourceKey> = recorded.map(|(other, _)| other.clone()).collect();
        let described = self.documents.documents().filter(|document| match (&document.spec, key.kind) {
            (_, Kind::Organization) => document.key.organization == key.organization && document.key != *key,
            (Spec::Cluster(cluster), Kind::Fleet) => {
                document.key.organization == key.organization && cluster.infrastructure.as_str() == key.name
            }
            (Spec::Topic(_) | Spec::User(_), Kind::Cluster) => {
                document.key.within_cluster().is_some_and(|(cluster, _)| cluster == *key)
            }
            _ => false,
        });
        found.extend(described.map(|document| document.key.clone()));
        found.sort();
        found.dedup();
        found
    }
}
