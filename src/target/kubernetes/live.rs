//! What of an object on the cluster says whether it is as we applied it.

use serde_json::Value;

use super::api::uid;
use super::fields;
use crate::names::Digest;

/// What of an object on the cluster says whether it is as we applied it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Live {
    /// The server's name for the very object.
    pub(super) uid: String,
    /// Its version, in the server's words.
    pub(super) version: String,
    /// The digest of the set of our fields; none where we have none.
    pub(super) fields: Option<Digest>,
    /// The digest of the manifest that was applied last, by the object's own word.
    pub(super) applied: Option<Digest>,
    /// Whether nobody had made it before we applied it.
    pub(super) is_made_by_us: bool,
    /// The digest of which fields everybody else manages.
    pub(super) others: Digest,
    /// Who changed it last beside us.
    pub(super) changed_by: Option<String>,
    /// It is being deleted.
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

    /// Whether nothing of it has changed that is ours, or that somebody else manages beside its status.
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
