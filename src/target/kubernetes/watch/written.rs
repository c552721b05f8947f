//! Our own writes, which the watches must deliver before their cache is trusted.

use serde_json::Value;

use super::object_cache::version;
use super::topic::is_labelled;
use crate::names::ObjectKey;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::target::kubernetes) struct OwnWrite {
    pub(super) key: ObjectKey,
    pub(super) effect: AwaitedEffect,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AwaitedEffect {
    /// This version of the object, or a later one.
    At(u64),
    /// That the object with this UID is gone or being deleted.
    Gone(String),
}

impl OwnWrite {
    /// A created or changed object, from the response. None for objects without our label, which no watch
    /// delivers.
    pub(in crate::target::kubernetes) fn of(key: &ObjectKey, answer: &Value) -> Option<OwnWrite> {
        let version = version(answer).filter(|_| is_labelled(answer))?;
        Some(OwnWrite { key: key.clone(), effect: AwaitedEffect::At(version) })
    }

    pub(in crate::target::kubernetes) fn deleted(key: &ObjectKey, uid: &str) -> OwnWrite {
        OwnWrite { key: key.clone(), effect: AwaitedEffect::Gone(uid.to_owned()) }
    }
}
