//! Why nothing was written, in words for who called.

use std::fmt;
use std::time::Duration;

use crate::api::problem::code::{self, Code};
use crate::catalog::Hold;
use crate::names::{Digest, ResourceKey, SpecPath};
use crate::problem::Problem;
use crate::state::StateError;

/// Why nothing was written. No trace is left of what was asked for.
#[derive(Debug, Clone)]
pub enum Refused {
    /// The body is no JSON object.
    Malformed(String),
    /// What it would say is wrong, or would make something else wrong.
    Invalid(Vec<Fault>),
    /// There is no such resource.
    NotThere(ResourceKey),
    /// There is one already.
    Exists {
        /// Which.
        key: ResourceKey,
        /// Whether it is being deleted, and not gone yet.
        is_going: bool,
    },
    /// There is no room for it.
    Capacity(Box<Shortage>),
    /// What it refers to can't be used yet.
    Dependency {
        /// What.
        key: ResourceKey,
        /// What it would wait for.
        on: ResourceKey,
    },
    /// It is kept from being deleted.
    Protected {
        /// What.
        key: ResourceKey,
        /// By what.
        by: Guard,
    },
    /// Others refer to it.
    NotEmpty {
        /// What.
        key: ResourceKey,
        /// The others.
        by: Vec<ResourceKey>,
    },
    /// The file can't be changed without a doubt, so it was left to people.
    Edit(Box<Problem>),
    /// This field of an organization, which limits it, is for super users to change.
    Limits(&'static str),
    /// It says something else than the caller believes.
    Stale {
        /// The tag of what it says; none where that has none.
        now: Option<Digest>,
    },
    /// The specs are somewhere where nothing may be written.
    ReadOnly {
        /// Why.
        why: String,
        /// What to do next.
        hint: String,
    },
    /// What has the specs is away. The same may go well in a moment.
    Away {
        /// Why.
        why: String,
        /// What to do next.
        hint: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// It was sent, and nobody knows whether it arrived.
    Unsure {
        /// Why.
        why: String,
        /// What to do next.
        hint: String,
    },
    /// The disk refuses it, or the state can't be read.
    Disk {
        /// Why.
        why: String,
        /// What to do next.
        hint: String,
        /// Whether there is no room.
        is_full: bool,
    },
}

/// What is recorded can't be read, so that nobody knows what may be written.
pub(super) fn unreadable_state(error: StateError) -> Refused {
    let why = "what is recorded of the resources can't be read".to_owned();
    Refused::Disk { why, hint: error.hint(), is_full: false }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The field of the body, as a JSON pointer; none for the body as a whole and what stands elsewhere.
    pub pointer: Option<String>,
    /// What is wrong, in one sentence without a full stop.
    pub detail: String,
    /// What to do next.
    pub hint: Option<String>,
    /// The file that it is in, where that isn't the resource's own document.
    pub file: Option<SpecPath>,
    /// The line there.
    pub line: Option<u32>,
}

impl Fault {
    /// Something wrong with a field of the body.
    pub fn at(pointer: impl Into<String>, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        let pointer = Some(pointer.into()).filter(|pointer| !pointer.is_empty());
        Self { pointer, detail: detail.into(), hint: Some(hint.into()), file: None, line: None }
    }
}

/// A limit that is in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// What there is no room for, or whose limit can't be lowered.
    pub key: ResourceKey,
    /// Whose limit: a fleet or an organization.
    pub limited_by: ResourceKey,
    /// What is limited, as the field that says so: `max_tenants`, `quotas.kafka_units`.
    pub what: String,
    /// How much is in use.
    pub used: u32,
    /// How much more is wanted; 0 where the limit is to be lowered below what is in use.
    pub wanted: u32,
    /// The limit.
    pub limit: u32,
}

impl Shortage {
    /// Of a resource that would wait for room.
    pub(super) fn of(key: &ResourceKey, hold: &Hold) -> Option<Self> {
        let Hold::OverCapacity { limited_by, what, used, wanted, limit } = hold else { return None };
        let (key, limited_by, what) = (key.clone(), limited_by.clone(), what.clone());
        Some(Self { key, limited_by, what, used: *used, wanted: *wanted, limit: *limit })
    }
}

/// What keeps a resource from being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// `deletion_protection` is true.
    Protection,
    /// It is false by now, and was true when it was last applied.
    AppliedProtection,
    /// `suspend` is true.
    Suspension,
    /// It is false by now, and was true when it was last applied.
    AppliedSuspension,
}

impl Refused {
    /// The word for it, with the status of the answer.
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

    /// The status of the answer.
    pub fn status(&self) -> u16 {
        self.kind().status
    }

    /// The answer's stable name for programs.
    pub fn code(&self) -> &'static str {
        self.kind().word
    }

    /// What to do next; none where each fault says so itself.
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

/// What a caller reads first, as a sentence without a full stop.
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

/// Who needs something, as the subject and verb of a sentence.
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
