//! A cluster that a body describes, read as the file would be that a write makes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::body::{self, CurrentDocument};
use super::draft::unwritable;
use super::judge::fault;
use super::refused::{Shortage, WriteRefusal, invalid};
use super::write_request::{WriteAction, WriteRequest};
use crate::catalog::{Hold, versions};
use crate::http::problem::ProblemDocument;
use crate::names::{Digest, Identifier, Kind, ResourceKey, SpecPath};
use crate::spec::{self, Cluster, Snapshot, SnapshotEntry, SourceId, Spec, edit};

/// The name of a cluster that has none yet.
const NEW: &str = "new";

/// Returns the cluster that a body describes. Fields that say neither how large it is nor how it is isolated may
/// be left out.
///
/// # Errors
/// With the mistakes that the file would have.
pub fn described_cluster(organization: &Identifier, mut body: Value) -> Result<Arc<Cluster>, WriteRefusal> {
    if body.is_object() {
        body["organization"] = organization.as_str().into();
        let version = versions::newest(|_| true);
        let usual = json!({"identifier": NEW, "infrastructure": NEW, "cluster_type": "kafka"});
        fill(&mut body, &usual);
        fill(&mut body, &json!({"advanced_config": {}}));
        fill(&mut body["advanced_config"], &json!({"version": version}));
    }
    let key = body::key_of(Kind::Cluster, None, &body)?;
    let what = WriteAction::Create(body);
    let request = WriteRequest { key, what, if_match: None, may_limit: false, record: None };
    let document = body::wanted(&request, CurrentDocument::default())?.document;
    let text = edit::write(&document).map_err(|refusal| unwritable(&refusal))?;
    let path: SpecPath = format!("{NEW}.yaml").parse().map_err(|_| ProblemDocument::internal())?;
    let (bytes, digest) = (Arc::from(text.as_bytes()), Digest::of(text.as_bytes()));
    let snapshot = Snapshot {
        source: SourceId(String::new()),
        revision: String::new(),
        commit: None,
        skipped: BTreeMap::new(),
        entries: BTreeMap::from([(path, SnapshotEntry::File { bytes, digest })]),
    };
    let documents = spec::read(&snapshot, None);
    let found = documents.documents().find_map(|document| match &document.spec {
        Spec::Cluster(cluster) => Some(Arc::clone(cluster)),
        _ => None,
    });
    found.ok_or_else(|| {
        let errors = documents.problems().filter(|problem| problem.is_error());
        invalid(errors.map(|problem| fault(Some(&text), &request.what, problem)).collect())
    })
}

/// Sets fields that have no value.
fn fill(body: &mut Value, usual: &Value) {
    let (Some(fields), Some(usual)) = (body.as_object_mut(), usual.as_object()) else { return };
    for (name, value) in usual {
        let field = fields.entry(name).or_insert(Value::Null);
        if field.is_null() || field == "" {
            *field = value.clone();
        }
    }
}

/// The refusal of a write whose resource would be held; `None` if it would be accepted, and wait.
pub fn refusal_of(key: &ResourceKey, hold: &Hold) -> Option<WriteRefusal> {
    match hold {
        Hold::Dependency { on } => Some(WriteRefusal::Dependency { key: key.clone(), on: on.clone() }),
        hold => Shortage::of(key, hold).map(WriteRefusal::from),
    }
}
