//! What a call wants written, and what comes of it.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;
use zeroize::Zeroize as _;

use crate::api::tags::Tags;
use crate::catalog::Resource;
use crate::names::{Digest, ResourceKey, SpecPath};
use crate::problem::{Origin, Problem};

/// What a call wants.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Of which resource.
    pub key: ResourceKey,
    /// What.
    pub what: What,
    /// What the resource has to say before; none where anything will do, and where it isn't there.
    pub if_match: Option<Tags>,
    /// Whether the limits of an organization may be others afterwards: they are for those to set who run the installation.
    pub may_limit: bool,
    /// The resource's record as it was given last: what a body gives back of it unchanged is no mistake.
    pub record: Option<Value>,
}

/// What is to become of a resource. A body is a JSON object without `apiVersion` and `kind`.
#[derive(Clone)]
pub enum What {
    /// It is to be made.
    Create(Value),
    /// It is to say this and nothing else.
    Replace(Value),
    /// It is to be changed by this merge patch.
    Patch(Value),
    /// It is to go.
    Delete,
}

/// A secret may stand in a body.
impl Drop for What {
    fn drop(&mut self) {
        match self {
            What::Create(body) | What::Replace(body) | What::Patch(body) => wipe(body),
            What::Delete => {}
        }
    }
}

/// Overwrites every text in a value with zeros, and leaves it empty.
pub fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(fields) => fields.values_mut().for_each(wipe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Names what is wanted, and never the body: a secret may stand in it.
impl std::fmt::Debug for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            What::Create(_) => "Create(…)",
            What::Replace(_) => "Replace(…)",
            What::Patch(_) => "Patch(…)",
            What::Delete => "Delete",
        })
    }
}

/// What was written.
#[derive(Debug, Clone)]
pub struct Written {
    /// Of which resource.
    pub key: ResourceKey,
    /// Its id, which it has for life.
    pub id: Uuid,
    /// The resource as it is to be now; none where it is to go.
    pub resource: Option<Arc<Resource>>,
    /// The tag of what it says now; none where it is to go.
    pub etag: Option<Digest>,
    /// The file, and the line where the document begins, or began.
    pub origin: Origin,
    /// The file.
    pub path: SpecPath,
    /// The commit; none where specs are in a folder, and of what was only proposed.
    pub commit: Option<String>,
    /// What a person should know of it.
    pub warnings: Vec<Problem>,
    /// Whether anything had to be written.
    pub is_new: bool,
    /// Whether the resource wasn't there before.
    pub is_created: bool,
    /// When: a resource that was created is recorded with this as its `created_at`.
    pub at: Timestamp,
    /// What was done, as a commit says it.
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
