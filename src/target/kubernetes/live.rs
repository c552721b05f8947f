//! The part of an object on the cluster that shows whether it is as we applied it.

use serde_json::Value;

use super::api::uid;
use super::fields;
use crate::names::Digest;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) uid: String,
    /// The `resourceVersion`.
    pub(super) version: String,
    pub(super) fields: Option<Digest>,
    /// The digest of the manifest that was applied last, from the object's annotation.
    pub(super) applied: Option<Digest>,
    /// Whether the object didn't exist before we applied it.
    pub(super) is_made_by_us: bool,
    pub(super) others: Digest,
    pub(super) changed_by: Option<String>,
    pub(super) is_leaving: bool,
}

impl Live {
    pub(super) fn of(object: &Value) -> Live {
        let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        Live {
            uid: uid(object).unwrap_or_default().to_owned(),
            version: version.unwrap_or_default().to_owned(),
            fields: fields::digest(object),
            applied: fields::applied(object),
            others: fields::others(object),
            is_made_by_us: fields::is_made_by_us(object),
            changed_by: fields::changed_by(object),
            is_leaving: object.pointer("/metadata/deletionTimestamp").is_some(),
        }
    }

    /// Whether neither our fields nor those of others have changed, except for the status.
    pub(super) fn is_same(&self, other: &Live) -> bool {
        let Live { uid, version: _, fields, applied, is_made_by_us: _, others, changed_by: _, is_leaving } =
            self;
        *uid == other.uid
            && *fields == other.fields
            && *applied == other.applied
            && *others == other.others
            && *is_leaving == other.is_leaving
    }
}
