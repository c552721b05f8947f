//! Write requests and their results.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;
use zeroize::Zeroize as _;

use crate::catalog::Resource;
use crate::http::tags::Tags;
use crate::names::{Digest, ResourceKey, SpecPath};
use crate::problem::{Origin, Problem};

#[derive(Debug, Clone)]
pub struct WriteRequest {
    pub key: ResourceKey,
    pub what: WriteAction,
    /// The condition on the present document; `None` for none, and when the resource doesn't exist.
    pub if_match: Option<Tags>,
    /// Whether the caller may change the limits of organizations, which only super users may.
    pub may_limit: bool,
    /// The resource's last record. Output fields in a body are no mistake if they equal it.
    pub record: Option<Value>,
}

/// The change. A body is a JSON object without `apiVersion` and `kind`.
#[derive(Clone)]
pub enum WriteAction {
    Create(Value),
    Replace(Value),
    Patch(Value),
    Delete,
}

/// A body may contain a secret.
impl Drop for WriteAction {
    fn drop(&mut self) {
        match self {
            WriteAction::Create(body) | WriteAction::Replace(body) | WriteAction::Patch(body) => wipe(body),
            WriteAction::Delete => {}
        }
    }
}

/// Overwrites every string in a value with zeros.
pub fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(fields) => fields.values_mut().for_each(wipe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Leaves out the body, which may contain a secret.
impl std::fmt::Debug for WriteAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            WriteAction::Create(_) => "Create(…)",
            WriteAction::Replace(_) => "Replace(…)",
            WriteAction::Patch(_) => "Patch(…)",
            WriteAction::Delete => "Delete",
        })
    }
}

#[derive(Debug, Clone)]
pub struct WriteResult {
    pub key: ResourceKey,
    pub id: Uuid,
    /// The new resource; `None` after a deletion.
    pub resource: Option<Arc<Resource>>,
    /// The new tag; `None` after a deletion.
    pub etag: Option<Digest>,
    /// The file, and the line where the document begins, or began.
    pub origin: Origin,
    pub path: SpecPath,
    /// `None` for a spec folder, and for a proposal.
    pub commit: Option<String>,
    pub warnings: Vec<Problem>,
    pub is_new: bool,
    pub is_created: bool,
    /// The time of the write: the record of a created resource has it as `created_at`.
    pub at: Timestamp,
    pub message: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_text_of_a_body_is_wiped() {
        let mut body = json!({"tls_key": "s3cr3t", "advanced_config": {"kubeconfig": "s3cr3t", "units": 2}, "tags": [["s3cr3t"]]});
        wipe(&mut body);
        let wiped = json!({"tls_key": "", "advanced_config": {"kubeconfig": "", "units": 2}, "tags": [[""]]});
        assert_eq!(body, wiped);
    }
}
