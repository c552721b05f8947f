//! Remarks about a plan's steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::component;
use crate::names::ObjectKey;
use crate::plan::{Contest, ForeignRecord};

/// A remark about a step, or about an object that stays.
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
    /// Another controller manages a field. The field stays as it is, and the rest of the object changes.
    Leaves {
        /// The object.
        object: ObjectKey,
        /// The field, and the controller that owns it.
        contest: Contest,
    },
    /// A DNS record isn't made, since somebody else has one of its name.
    ForeignRecord(ForeignRecord),
    /// The existing object can't be read and is overwritten.
    Unreadable {
        /// The object.
        object: ObjectKey,
        /// Whether what was applied last is still known. The change is then judged by that.
        known: bool,
    },
    /// A cluster is created over the kept disks of an earlier one of its name.
    KeptDisks {
        /// How many disks there are.
        disks: u32,
        /// One of them.
        example: String,
    },
    /// A cluster may be created over disks that an earlier one left, which can't be observed.
    UnseenDisks,
    /// The Kafka object is recreated while its node pools exist. The cluster keeps its id and its data, and
    /// gets new certificate authorities.
    NewAuthorities {
        /// Whether the object itself is missing on the target, and not only the file that it is applied from.
        is_seen: bool,
    },
    /// The step could not be checked by a dry run.
    Unverified {
        /// The number of objects concerned.
        objects: u32,
        /// Why, as the end of a sentence: `until Namespace a exists`.
        why: String,
    },
}

impl Remark {
    /// Returns the object that the remark is about; `None` if it is about several.
    pub fn object(&self) -> Option<&ObjectKey> {
        match self {
            Remark::Overwrites { object, .. }
            | Remark::Leaves { object, .. }
            | Remark::ForeignRecord(ForeignRecord { object, .. })
            | Remark::Unreadable { object, .. } => Some(object),
            Remark::Unverified { .. }
            | Remark::KeptDisks { .. }
            | Remark::UnseenDisks
            | Remark::NewAuthorities { .. } => None,
        }
    }

    /// Returns the object if it holds a cluster's data and its previous contents are entirely unknown.
    pub(in crate::plan) fn unknown(&self) -> Option<&ObjectKey> {
        match self {
            Remark::Unreadable { object, known: false } if component::facts(&object.kind).is_custom() => {
                Some(object)
            }
            _ => None,
        }
    }

    /// Returns the field that is left to another controller.
    pub fn left(&self) -> Option<&Contest> {
        match self {
            Remark::Leaves { contest, .. } => Some(contest),
            Remark::Overwrites { .. }
            | Remark::ForeignRecord(_)
            | Remark::Unreadable { .. }
            | Remark::Unverified { .. }
            | Remark::KeptDisks { .. }
            | Remark::UnseenDisks
            | Remark::NewAuthorities { .. } => None,
        }
    }
}
