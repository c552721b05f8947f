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
pub enum Refused {
    Malformed(String),
    /// The result would be invalid, or make something else invalid.
    Invalid(Vec<Fault>),
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
pub(super) fn unreadable_state(error: StateError) -> Refused {
    let why = "what is recorded of the resources can't be read".to_owned();
    Refused::Disk { why, hint: error.hint(), is_full: false }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A JSON pointer into the body; `None` for the whole body and for mistakes elsewhere.
    pub pointer: Option<String>,
    /// One sentence without a full stop.
    pub detail: String,
    pub hint: Option<String>,
    /// The file of a mistake outside of the resource's document.
    pub file: Option<SpecPath>,
    pub line: Option<u32>,
}

impl Fault {
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

impl Refused {
    pub(in crate::api) fn kind(&self) -> &'static Code {
        match self {
            Refused::Malformed(_) => &code::MALFORMED,
            Refused::Invalid(_) => &code::INVALID,
            Refused::Limits(_) => &code::FORBIDDEN,
            Refused::NotThere(_) => &code::NOT_FOUND,
            Refused::Exists { .. } => &code::DUPLICATE,
            Refused::Capacity(_) => &code::CAPACITY,
            Refused::Dependency { .. } => &code::DEPENDENCY,
            Refused::Protected { .. } => &code::PROTECTED,
            Refused::NotEmpty { .. } => &code::NOT_EMPTY,
            Refused::Edit(_) => &code::NOT_EDITABLE,
            Refused::Stale { .. } => &code::STALE,
            Refused::ReadOnly { .. } => &code::READ_ONLY,
            Refused::Away { .. } => &code::UNAVAILABLE,
            Refused::Unsure { .. } => &code::UNSURE,
            Refused::Disk { is_full: true, .. } => &code::DISK_FULL,
            Refused::Disk { is_full: false, .. } => &code::INTERNAL,
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
            Refused::Invalid(_) => return None,
            Refused::Malformed(_) => "send the fields as a JSON object",
            Refused::Limits(_) => "give them back as they were read, or ask a super user",
            Refused::NotThere(_) => "look at the list of what is there",
            Refused::Exists { is_going: true, .. } => "wait until it is gone, and try again",
            Refused::Exists { .. } => "change it with PUT or PATCH, or choose another name",
            Refused::Capacity(shortage) if shortage.wanted == 0 => {
                "leave the limit at what is in use or more, or make room first"
            }
            Refused::Capacity(_) => "raise the limit, or make room first",
            Refused::Dependency { .. } => "mend that first, or wait until it is there",
            Refused::Protected { by: Guard::Protection, .. } => {
                "send PATCH {\"deletion_protection\": false} first, and try again when that is applied"
            }
            Refused::Protected { by: Guard::Suspension, .. } => {
                "send PATCH {\"suspend\": false} first, and try again when that is applied"
            }
            Refused::Protected { .. } => "wait until what it says now is applied, and try again",
            Refused::NotEmpty { .. } => "delete these first, and wait until they are gone",
            Refused::Edit(problem) => return problem.hint.clone(),
            Refused::Stale { .. } => "read it again, and make the change in what it says now",
            Refused::ReadOnly { hint, .. }
            | Refused::Away { hint, .. }
            | Refused::Unsure { hint, .. }
            | Refused::Disk { hint, .. } => hint,
        };
        Some(said.to_owned())
    }
}

/// A sentence without a full stop.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Malformed(why)
            | Refused::ReadOnly { why, .. }
            | Refused::Away { why, .. }
            | Refused::Unsure { why, .. }
            | Refused::Disk { why, .. } => f.write_str(why),
            Refused::Invalid(faults) => match faults.as_slice() {
                [fault] => f.write_str(&fault.detail),
                faults => write!(f, "{} things are wrong with it", faults.len()),
            },
            Refused::Limits(field) => {
                write!(f, "only super users may change the `{field}` of an organization")
            }
            Refused::NotThere(key) => write!(f, "there is no {key}"),
            Refused::Exists { key, is_going: true } => write!(f, "{key} is being deleted, and not gone yet"),
            Refused::Exists { key, .. } => write!(f, "there is {key} already"),
            Refused::Capacity(shortage) => write!(f, "{shortage}"),
            Refused::Dependency { key, on } => write!(f, "{key} needs {on}, which can't be used yet"),
            Refused::Protected { key, by } => match by {
                Guard::Protection => write!(f, "{key} is protected against deletion"),
                Guard::AppliedProtection => {
                    write!(f, "{key} is protected against deletion until what it says now is applied")
                }
                Guard::Suspension => write!(f, "{key} is suspended, and left as it is"),
                Guard::AppliedSuspension => {
                    write!(f, "{key} is suspended until what it says now is applied")
                }
            },
            Refused::NotEmpty { key, by } => write!(f, "{key} can't be deleted: {} it", needed(by)),
            Refused::Edit(problem) => f.write_str(&problem.message),
            Refused::Stale { .. } => f.write_str("it says something else by now than `If-Match` names"),
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
                "there is no room for {key}: {used} of {limit} `{what}` of {limited_by} are in use, and it needs {wanted} more"
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
