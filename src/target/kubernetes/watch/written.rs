//! What we wrote ourselves: a view is not believed before it has seen it.

use serde_json::Value;

use super::shelf::version;
use super::topic::is_labelled;
use crate::names::ObjectKey;

/// Something that we wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::target::kubernetes) struct Written {
    pub(super) key: ObjectKey,
    pub(super) effect: Effect,
}

/// What has to be seen of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// This version of the object, or a later one.
    At(u64),
    /// That the object with this uid is gone, or going.
    Gone(String),
}

impl Written {
    /// An object that was made or changed, by the server's answer; none where no view would show it.
    pub(in crate::target::kubernetes) fn of(key: &ObjectKey, answer: &Value) -> Option<Written> {
        let version = version(answer).filter(|_| is_labelled(answer))?;
        Some(Written { key: key.clone(), effect: Effect::At(version) })
    }

    /// An object whose deletion was asked for.
    pub(in crate::target::kubernetes) fn deleted(key: &ObjectKey, uid: &str) -> Written {
        Written { key: key.clone(), effect: Effect::Gone(uid.to_owned()) }
    }
}
