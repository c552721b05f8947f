//! What a person should know of a plan's steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::ObjectKey;
use crate::plan::Contest;

/// What a person should know of a step, or of an object that stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Remark {
    /// A person changed a field by hand, and it is changed back.
    Overwrites {
        /// The object.
        object: ObjectKey,
        /// The field, and the tool that set it.
        contest: Contest,
    },
    /// Another controller manages a field: it stays as it is, and the rest of the object changes.
    Leaves {
        /// The object.
        object: ObjectKey,
        /// The field, and the controller that has it.
        contest: Contest,
    },
    /// What is there can't be read, and is written anew.
    Unreadable {
        /// The object.
        object: ObjectKey,
        /// Whether what was applied last is still known, by which it is judged then.
        known: bool,
    },
    /// A cluster is made over the disks of an earlier one of its name, which were kept.
    KeptDisks {
        /// How many there are.
        disks: u32,
        /// One of them.
        example: String,
    },
    /// A cluster is made where one of its name was, whose disks may have been kept. Nobody sees from here whether they are.
    UnseenDisks,
    /// The object of a cluster is made anew while its node pools are there: it keeps its id and its data, and gets other certificate
    /// authorities.
    NewAuthorities {
        /// Whether the target was seen to lack the object, and not only the file that it is applied from.
        is_seen: bool,
    },
    /// The target could not be asked beforehand.
    Unverified {
        /// How many objects this is about.
        objects: u32,
        /// Why, as the end of a sentence: `until Namespace a exists`.
        why: String,
    },
}

impl Remark {
    /// The object that it is about; none where it is about several.
    pub fn object(&self) -> Option<&ObjectKey> {
        match self {
            Remark::Overwrites { object, .. }
            | Remark::Leaves { object, .. }
            | Remark::Unreadable { object, .. } => Some(object),
            Remark::Unverified { .. }
            | Remark::KeptDisks { .. }
            | Remark::UnseenDisks
            | Remark::NewAuthorities { .. } => None,
        }
    }

    /// The object that holds a cluster's data and is written over something that nobody knows.
    pub(super) fn unknown(&self) -> Option<&ObjectKey> {
        match self {
            Remark::Unreadable { object, known: false } if object.kind.starts_with("Kafka") => Some(object),
            _ => None,
        }
    }

    /// The field that is left as another controller has it.
    pub fn left(&self) -> Option<&Contest> {
        match self {
            Remark::Leaves { contest, .. } => Some(contest),
            Remark::Overwrites { .. }
            | Remark::Unreadable { .. }
            | Remark::Unverified { .. }
            | Remark::KeptDisks { .. }
            | Remark::UnseenDisks
            | Remark::NewAuthorities { .. } => None,
        }
    }
}
