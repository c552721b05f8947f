//! Looking up and reading resources. The lookup of a resource that the caller may not see does the
//! same work as any other and answers "not found".

use std::collections::BTreeSet;

use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use camino::Utf8Path;
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::{Answered, Call, missing, written};
use crate::catalog::{Absence, Resource};
use crate::http::problem::ProblemDocument;
use crate::names::{Digest, Identifier, Kind, ResourceKey};
use crate::problem::quote_untrusted;
use crate::record::{Audience, KindOutputs, Record, Standing, UnplannedWrite};
use crate::views::records;
use crate::writing::{self, WriteResult};

pub(super) struct TaggedRecord {
    pub key: ResourceKey,
    pub record: Value,
    pub tag: Option<Digest>,
}

pub(super) fn read(call: &Call) -> Answered {
    let TaggedRecord { record: found, tag, .. } = call.found()?;
    Ok(call.with_current_plan(record(StatusCode::OK, &found, tag.as_ref(), None)))
}

impl Call {
    pub(super) fn kind(&self) -> Kind {
        // Routes without a kind that name a resource are below a cluster.
        self.route.kind().unwrap_or(Kind::Cluster)
    }

    /// The sorted keys of a kind, including writes since the last plan.
    pub(super) fn keys(&self, kind: Kind) -> Vec<&ResourceKey> {
        let mut keys = records::all(&self.made.round, kind);
        let known = keys.len();
        let written = self.pending.iter().filter(|(_, written)| written.resource.is_some());
        let is_new = |key: &&ResourceKey| key.kind == kind && !records::is_known(&self.made.round, key);
        keys.extend(written.map(|(key, _)| key).filter(is_new));
        if keys.len() > known {
            keys.sort_unstable();
        }
        keys
    }

    pub(super) fn organization(&self, named: &str) -> Result<Identifier, ProblemDocument> {
        let found = self.key_of(Kind::Organization, named, None).next();
        let found = found.map(|key| key.organization).filter(|organization| self.caller.sees(organization));
        found.ok_or_else(|| missing("organization", named))
    }

    pub(super) fn queried_organization(&self) -> Result<Option<Identifier>, ProblemDocument> {
        self.query.get("organization").map(|named| self.organization(named)).transpose()
    }

    /// The organization whose resources are meant; `None` for all.
    pub(super) fn within(&self, kind: Kind) -> Result<Option<Identifier>, ProblemDocument> {
        match kind {
            Kind::Organization => Ok(None),
            Kind::Cluster => self.queried_organization(),
            _ => self.organization(self.parameter("organization")).map(Some),
        }
    }

    pub(super) fn organization_with(&self, id: Uuid) -> Option<Identifier> {
        let key = self.key_with(id).filter(|key| key.kind == Kind::Organization)?;
        Some(key.organization).filter(|organization| self.caller.sees(organization))
    }

    pub(super) fn found(&self) -> Result<TaggedRecord, ProblemDocument> {
        let (key, named) = self.found_key()?;
        self.shown(&key).ok_or_else(|| missing(key.kind.noun(), named))
    }

    /// The key of the resource that the path names, and how it names it.
    pub(super) fn found_key(&self) -> Result<(ResourceKey, &str), ProblemDocument> {
        let kind = self.kind();
        let within = self.within(kind)?;
        let named = self.parameter(if kind == Kind::Organization { "organization" } else { "id" });
        let mut found =
            self.key_of(kind, named, within.as_ref()).filter(|key| self.caller.sees(&key.organization));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(ProblemDocument::malformed(format!(
                "clusters of several organizations have the identifier `{}`",
                quote_untrusted(named)
            ))
            .hint("add `?organization=`, or use the cluster's id")),
            (Some(key), None) => Ok((key, named)),
            (None, _) => Err(missing(kind.noun(), named)),
        }
    }

    /// Keys by id or name, in one organization or in any.
    fn key_of<'c>(
        &'c self,
        kind: Kind,
        named: &'c str,
        within: Option<&'c Identifier>,
    ) -> impl Iterator<Item = ResourceKey> + 'c {
        let by_id = named.parse().ok().and_then(|id| self.key_with(id));
        let by_id = by_id
            .filter(move |key| key.kind == kind && within.is_none_or(|within| key.organization == *within));
        let organizations: BTreeSet<Identifier> = match (within, kind) {
            (Some(within), _) => BTreeSet::from([within.clone()]),
            (None, Kind::Organization) => named.parse().into_iter().collect(),
            (None, _) => {
                self.keys(Kind::Organization).into_iter().map(|key| key.organization.clone()).collect()
            }
        };
        let by_name = organizations.into_iter().map(move |it| ResourceKey::new(kind, &it, named));
        by_id.into_iter().chain(by_name.filter(|key| self.is_there(key)))
    }

    fn is_there(&self, key: &ResourceKey) -> bool {
        records::is_known(&self.made.round, key) || self.pending.contains_key(key)
    }

    fn key_with(&self, id: Uuid) -> Option<ResourceKey> {
        let pending = self.pending.values().find(|written| written.id == id).map(|written| &written.key);
        pending.or_else(|| self.made.key_with(id)).cloned()
    }

    pub(super) fn shown(&self, key: &ResourceKey) -> Option<TaggedRecord> {
        let (resource, written) = (records::find(&self.made.round, key), self.pending.get(key));
        let record = match written.filter(|written| written.resource.is_some()) {
            Some(written) => self.as_written(written),
            None => self.record(resource.as_ref()?, &self.standing(key)).to_json(),
        };
        let tag = match written {
            Some(written) => written.etag.clone(),
            None => self.tag(resource.as_ref()?),
        };
        Some(TaggedRecord { key: key.clone(), record, tag })
    }

    /// A complete record. The full path of the manifests is for super users; others get the path relative to
    /// the output folder.
    fn record(&self, resource: &Resource, standing: &Standing) -> Record {
        let mut record = records::record(&self.made.round, resource, standing);
        if !self.caller.is_super()
            && let KindOutputs::Cluster(cluster) = &mut record.of_kind
        {
            let below = |path: String| {
                let below = Utf8Path::new(&path).strip_prefix(&self.made.installation.output_dir).ok();
                below.map(|below| below.to_string())
            };
            cluster.storage_manifests_file_path = cluster.storage_manifests_file_path.take().and_then(below);
        }
        record
    }

    /// The tag of a resource's document; `None` if no readable document names the resource.
    fn tag(&self, resource: &Resource) -> Option<Digest> {
        let file = self.made.documents.files.get(resource.current_file.as_ref()?)?;
        let document = file.documents.iter().find(|document| document.key == resource.key)?;
        Some(writing::etag(document, &self.made.round.checked.secrets))
    }

    /// The record of a write that isn't planned yet.
    pub(super) fn as_written(&self, written: &WriteResult) -> Value {
        let Some(resource) = &written.resource else { return Value::Null };
        let standing = self.standing_with(&written.key, Some(written));
        let mut record = self.record(resource, &standing);
        let outputs = &mut record.outputs;
        outputs.id = Some(written.id);
        outputs.created_at = self.created_at(&written.key, Some(written));
        outputs.updated_at = self.updated_at(&written.key, Some(written));
        record.to_json()
    }

    /// Whether a resource that still exists is no longer named by any document, even if its deletion is
    /// blocked. A resource that may be in an unreadable file, and a renamed one, may still have one.
    pub(super) fn has_no_spec(&self, key: &ResourceKey) -> bool {
        if let Some(written) = self.pending.get(key) {
            return written.resource.is_none();
        }
        let catalog = &self.made.round.checked.catalog;
        match catalog.absent.get(key) {
            Some(Absence::Removed | Absence::Suspicious { .. }) => true,
            Some(Absence::Unknown { .. } | Absence::Renamed { .. }) => false,
            None => !catalog.resources.contains_key(key) && !records::is_root(key),
        }
    }

    pub(super) fn standing(&self, key: &ResourceKey) -> Standing {
        self.made.round.standing_for(key, self.unplanned(key), self.audience())
    }

    fn standing_with(&self, key: &ResourceKey, written: Option<&WriteResult>) -> Standing {
        self.made.round.standing_for(key, written.and_then(unplanned), self.audience())
    }

    /// The effect on a resource of a write that the plan doesn't include yet.
    pub(super) fn unplanned(&self, key: &ResourceKey) -> Option<UnplannedWrite> {
        unplanned(self.pending.get(key)?)
    }

    /// A resource as written, if the plan doesn't include that and it wasn't deleted.
    pub(super) fn resource_written(&self, key: &ResourceKey) -> Option<&Resource> {
        self.pending.get(key)?.resource.as_deref()
    }

    pub(super) fn audience(&self) -> Audience {
        if self.caller.is_super() { Audience::Host } else { Audience::Tenants }
    }

    /// When a resource was created; `written` is the write that isn't planned yet.
    pub(super) fn created_at(&self, key: &ResourceKey, written: Option<&WriteResult>) -> Option<Timestamp> {
        records::created_at(&self.made.round, key).or_else(|| written.map(|written| written.at))
    }

    pub(super) fn updated_at(&self, key: &ResourceKey, written: Option<&WriteResult>) -> Option<Timestamp> {
        let changed = written.filter(|written| written.is_new).map(|written| written.at);
        let planned = || records::updated_at(&self.made.round, key);
        changed.or_else(planned).or_else(|| written.map(|written| written.at))
    }
}

fn unplanned(written: &WriteResult) -> Option<UnplannedWrite> {
    match written.resource {
        None => Some(UnplannedWrite::Removed),
        Some(_) => written.is_new.then_some(UnplannedWrite::Changed),
    }
}

/// A record, with its `ETag` and `Location`.
pub(super) fn record(
    status: StatusCode,
    record: &Value,
    tag: Option<&Digest>,
    place: Option<&str>,
) -> Response {
    let mut response = written(status, record);
    let tag = tag.map(|tag| (ETAG, format!("\"{tag}\"")));
    let texts = tag.into_iter().chain(place.map(|place| (LOCATION, place.to_owned())));
    let headers = texts.filter_map(|(name, text)| Some((name, HeaderValue::from_str(&text).ok()?)));
    response.headers_mut().extend(headers);
    response
}
