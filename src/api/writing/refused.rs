//! Reasons to refuse a write, in words for the caller.

use std::fmt;
use std::time::Duration;

use crate::api::problem::code::{self, Code};
use crate::catalog::Hold;
use crate::names::{Digest, ResourceKey, SpecPath};
use crate::problem::Problem;
use crate::state::StateError;

/// Why a write is refused or failed. Unless it is `Unsure`, it has left no trace.
#[derive(Debug, Clone)]
pub enum WriteRefusal {
    Malformed(String),
    /// The result would be invalid, or make something else invalid.
    Invalid(Vec<WriteFault>),
    NotThere(ResourceKey),
    Exists {
        key: ResourceKey,
        /// Whether the existing resource is being deleted.
        is_going: bool,
    },
    Capacity(Box<Shortage>),
    /// A resource that it refers to isn't usable yet.
    Dependency {
        key: ResourceKey,
        on: ResourceKey,
    },
    Protected {
        key: ResourceKey,
        by: Guard,
    },
    NotEmpty {
        key: ResourceKey,
        by: Vec<ResourceKey>,
    },
    /// The file can't be edited safely, and is left for people to change.
    Edit(Box<Problem>),
    /// The name of a limit of an organization, which only super users may change.
    Limits(&'static str),
    /// `If-Match` doesn't match.
    Stale {
        /// The current tag, if any.
        now: Option<Digest>,
    },
    ReadOnly {
        why: String,
        hint: String,
    },
    /// The source of the specs is unavailable. A retry may succeed.
    Away {
        why: String,
        hint: String,
        retry_after: Duration,
    },
    /// The push was sent, and it is unknown whether it arrived.
    Unsure {
        why: String,
        hint: String,
    },
    /// The disk fails, or the state can't be read.
    Disk {
        why: String,
        hint: String,
        is_full: bool,
    },
}

/// Without the record it is unknown what may be written.
pub(super) fn unreadable_state(error: StateError) -> WriteRefusal {
    let why = "cannot read the records of the resources".to_owned();
    WriteRefusal::Disk { why, hint: error.hint(), is_full: false }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteFault {
    /// A JSON pointer into the body; `None` for the whole body and for mistakes elsewhere.
    pub pointer: Option<String>,
    /// One sentence without a full stop.
    pub detail: String,
    pub hint: Option<String>,
    /// The file of a mistake outside of the resource's document.
    pub file: Option<SpecPath>,
    pub line: Option<u32>,
}

impl WriteFault {
    pub fn at(pointer: impl Into<String>, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        let pointer = Some(pointer.into()).filter(|pointer| !pointer.is_empty());
        Self { pointer, detail: detail.into(), hint: Some(hint.into()), file: None, line: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// The resource that doesn't fit, or whose limit can't be lowered.
    pub key: ResourceKey,
    /// The fleet or organization that has the limit.
    pub limited_by: ResourceKey,
    /// The limit's field: `max_tenants`, `quotas.kafka_units`.
    pub what: String,
    pub used: u32,
    /// How much more is requested; 0 when the limit itself is lowered below what is in use.
    pub wanted: u32,
    pub limit: u32,
}

impl Shortage {
    pub(super) fn of(key: &ResourceKey, hold: &Hold) -> Option<Self> {
        let Hold::OverCapacity { limited_by, what, used, wanted, limit } = hold else { return None };
        let (key, limited_by, what) = (key.clone(), limited_by.clone(), what.clone());
        Some(Self { key, limited_by, what, used: *used, wanted: *wanted, limit: *limit })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    Protection,
    /// It is false in the spec, and was true when it was last applied.
    AppliedProtection,
    Suspension,
    /// It is false in the spec, and was true when it was last applied.
    AppliedSuspension,
}

impl WriteRefusal {
    pub(in crate::api) fn kind(&self) -> &'static Code {
        match self {
            WriteRefusal::Malformed(_) => &code::MALFORMED,
            WriteRefusal::Invalid(_) => &code::INVALID,
            WriteRefusal::Limits(_) => &code::FORBIDDEN,
            WriteRefusal::NotThere(_) => &code::NOT_FOUND,
            WriteRefusal::Exists { .. } => &code::DUPLICATE,
            WriteRefusal::Capacity(_) => &code::CAPACITY,
            WriteRefusal::Dependency { .. } => &code::DEPENDENCY,
            WriteRefusal::Protected { .. } => &code::PROTECTED,
            WriteRefusal::NotEmpty { .. } => &code::NOT_EMPTY,
            WriteRefusal::Edit(_) => &code::NOT_EDITABLE,
            WriteRefusal::Stale { .. } => &code::STALE,
            WriteRefusal::ReadOnly { .. } => &code::READ_ONLY,
            WriteRefusal::Away { .. } => &code::UNAVAILABLE,
            WriteRefusal::Unsure { .. } => &code::UNSURE,
            WriteRefusal::Disk { is_full: true, .. } => &code::DISK_FULL,
            WriteRefusal::Disk { is_full: false, .. } => &code::INTERNAL,
        }
    }

    pub fn status(&self) -> u16 {
        self.kind().status
    }

    /// The stable error code for programs.
    pub fn code(&self) -> &'static str {
        self.kind().word
    }

    /// `None` when each fault has a hint of its own.
    pub fn hint(&self) -> Option<String> {
        let said = match self {
            WriteRefusal::Invalid(_) => return None,
            WriteRefusal::Malformed(_) => "send the fields as a JSON object",
            WriteRefusal::Limits(_) => "send them unchanged, or ask a super user",
            WriteRefusal::NotThere(_) => "see the list of existing resources",
            WriteRefusal::Exists { is_going: true, .. } => "wait until it is deleted, and try again",
            WriteRefusal::Exists { .. } => "change it with PUT or PATCH, or choose another name",
            WriteRefusal::Capacity(shortage) if shortage.wanted == 0 => {
                "set the limit to at least what is in use, or free capacity first"
            }
            WriteRefusal::Capacity(_) => "raise the limit, or free capacity first",
            WriteRefusal::Dependency { .. } => "fix that first, or wait until it exists",
            WriteRefusal::Protected { by: Guard::Protection, .. } => {
                "send PATCH {\"deletion_protection\": false} first, and try again when that is applied"
            }
            WriteRefusal::Protected { by: Guard::Suspension, .. } => {
                "send PATCH {\"suspend\": false} first, and try again when that is applied"
            }
            WriteRefusal::Protected { .. } => "wait until its current spec is applied, and try again",
            WriteRefusal::NotEmpty { .. } => "delete these first, and wait until they are deleted",
            WriteRefusal::Edit(problem) => return problem.hint.clone(),
            WriteRefusal::Stale { .. } => "read it again, and change its current version",
            WriteRefusal::ReadOnly { hint, .. }
            | WriteRefusal::Away { hint, .. }
            | WriteRefusal::Unsure { hint, .. }
            | WriteRefusal::Disk { hint, .. } => hint,
        };
        Some(said.to_owned())
    }
}

/// A sentence without a full stop.
impl fmt::Display for WriteRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteRefusal::Malformed(why)
            | WriteRefusal::ReadOnly { why, .. }
            | WriteRefusal::Away { why, .. }
            | WriteRefusal::Unsure { why, .. }
            | WriteRefusal::Disk { why, .. } => f.write_str(why),
            WriteRefusal::Invalid(faults) => match faults.as_slice() {
                [fault] => f.write_str(&fault.detail),
                faults => write!(f, "the request has {} errors", faults.len()),
            },
            WriteRefusal::Limits(field) => {
                write!(f, "only super users may change the `{field}` of an organization")
            }
            WriteRefusal::NotThere(key) => write!(f, "there is no {key}"),
            WriteRefusal::Exists { key, is_going: true } => {
                write!(f, "{key} is being deleted")
            }
            WriteRefusal::Exists { key, .. } => write!(f, "{key} exists already"),
            WriteRefusal::Capacity(shortage) => write!(f, "{shortage}"),
            WriteRefusal::Dependency { key, on } => write!(f, "{key} needs {on}, which can't be used yet"),
            WriteRefusal::Protected { key, by } => match by {
                Guard::Protection => write!(f, "{key} is protected against deletion"),
                Guard::AppliedProtection => {
                    write!(f, "{key} is protected against deletion until its current spec is applied")
                }
                Guard::Suspension => write!(f, "{key} is suspended, so it can't be changed"),
                Guard::AppliedSuspension => {
                    write!(f, "{key} is suspended until its current spec is applied")
                }
            },
            WriteRefusal::NotEmpty { key, by } => write!(f, "{key} can't be deleted: {} it", needed(by)),
            WriteRefusal::Edit(problem) => f.write_str(&problem.message),
            WriteRefusal::Stale { .. } => f.write_str("it changed since the version in `If-Match`"),
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shortage { key, limited_by, what, used, wanted, limit } = self;
        match wanted {
            0 => write!(f, "`{what}` of {limited_by} can't be {limit}: {used} are in use"),
            _ => write!(
                f,
                "not enough capacity for {key}: {used} of {limit} `{what}` of {limited_by} are in use, and it needs \
                 {wanted} more"
            ),
        }
    }
}

/// The resources that need something, as subject and verb of a sentence.
fn needed(by: &[ResourceKey]) -> String {
    const NAMED: usize = 5;
    let named: Vec<String> = by.iter().take(NAMED).map(ToString::to_string).collect();
    let more = by.len().saturating_sub(NAMED);
    match (named.as_slice(), more) {
        ([], _) => "something needs".to_owned(),
        ([one], 0) => format!("{one} needs"),
        ([first @ .., last], 0) => format!("{} and {last} need", first.join(", ")),
        (named, more) => format!("{} and {more} more need", named.join(", ")),
    }
}
