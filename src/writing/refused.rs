//! Refusals of writes, in words for the caller.

use std::fmt;

use crate::catalog::Hold;
use crate::http::problem::{FieldError, ProblemDocument, code};
use crate::names::{Kind, ResourceKey};
use crate::problem::Problem;
use crate::state::StateError;

/// Why a write is refused or failed. Unless the code is `unsure`, it has left no trace.
#[derive(Debug, Clone)]
pub enum WriteRefusal {
    /// The tree may have changed since it was read.
    NotThere(ResourceKey),
    /// A resource that it refers to isn't usable yet.
    Dependency { key: ResourceKey, on: ResourceKey },
    /// The file can't be edited safely, and is left for people to change.
    Edit(Box<Problem>),
    /// Nothing but another request helps.
    Final(Box<ProblemDocument>),
}

impl From<ProblemDocument> for WriteRefusal {
    fn from(problem: ProblemDocument) -> WriteRefusal {
        WriteRefusal::Final(Box::new(problem))
    }
}

impl From<WriteRefusal> for ProblemDocument {
    fn from(refusal: WriteRefusal) -> ProblemDocument {
        match refusal {
            WriteRefusal::NotThere(key) => ProblemDocument::not_found(format!("there is no {key}"))
                .hint("see the list of existing resources"),
            WriteRefusal::Dependency { key, on } => {
                ProblemDocument::new(&code::DEPENDENCY, format!("{key} needs {on}, which can't be used yet"))
                    .hint("fix the named resource first, or wait until it exists")
            }
            WriteRefusal::Edit(problem) => ProblemDocument {
                hint: problem.hint.clone(),
                errors: vec![FieldError::from(&*problem)],
                ..ProblemDocument::new(&code::NOT_EDITABLE, problem.message.clone())
            },
            WriteRefusal::Final(problem) => *problem,
        }
    }
}

impl WriteRefusal {
    pub fn status(&self) -> u16 {
        ProblemDocument::from(self.clone()).kind.status
    }

    /// The stable error code for programs.
    pub fn code(&self) -> &'static str {
        ProblemDocument::from(self.clone()).kind.word
    }

    pub fn hint(&self) -> Option<String> {
        ProblemDocument::from(self.clone()).hint
    }
}

/// A sentence without a full stop.
impl fmt::Display for WriteRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ProblemDocument::from(self.clone()).detail)
    }
}

/// Without the record it is unknown what may be written.
pub(super) fn unreadable_state(error: StateError) -> WriteRefusal {
    ProblemDocument::new(&code::INTERNAL, "cannot read the records of the resources")
        .hint(error.hint())
        .into()
}

/// The edited resource would be invalid, or make another one invalid.
pub(super) fn invalid(errors: Vec<FieldError>) -> WriteRefusal {
    ProblemDocument::mistakes(errors).into()
}

pub(super) fn exists(key: &ResourceKey) -> WriteRefusal {
    duplicate(key, "exists already", "change it with PUT or PATCH, or choose another name")
}

pub(super) fn still_going(key: &ResourceKey) -> WriteRefusal {
    duplicate(key, "is being deleted", "wait until it is deleted, and try again")
}

/// The name of a new resource can't be had.
fn duplicate(key: &ResourceKey, why: &str, hint: &str) -> WriteRefusal {
    let pointer = if key.kind == Kind::BaseDomain { "/domain" } else { "/identifier" };
    let detail = format!("{key} {why}");
    let errors = vec![FieldError::at(pointer, detail.clone(), hint)];
    ProblemDocument { errors, ..ProblemDocument::new(&code::DUPLICATE, detail).hint(hint) }.into()
}

/// A caller who isn't a super user changes a limit of an organization.
pub(super) fn limited(field: &str) -> WriteRefusal {
    ProblemDocument::forbidden(format!("only super users may change the `{field}` of an organization"))
        .hint("send them unchanged, or ask a super user")
        .into()
}

/// `If-Match` doesn't match.
pub(super) fn stale() -> WriteRefusal {
    ProblemDocument::stale("it changed since the version in `If-Match`").into()
}

/// The reasons against deleting a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    Protection,
    /// The field is false in the spec, and was true when it was last applied.
    AppliedProtection,
    Suspension,
    /// The field is false in the spec, and was true when it was last applied.
    AppliedSuspension,
}

pub(super) fn guarded(key: &ResourceKey, by: Guard) -> WriteRefusal {
    let until_applied = "wait until its current spec is applied, and try again";
    let (why, hint) = match by {
        Guard::Protection => (
            "protected against deletion",
            "send PATCH {\"deletion_protection\": false} first, and try again when that is applied",
        ),
        Guard::AppliedProtection => {
            ("protected against deletion until its current spec is applied", until_applied)
        }
        Guard::Suspension => (
            "suspended, so it can't be changed",
            "send PATCH {\"suspend\": false} first, and try again when that is applied",
        ),
        Guard::AppliedSuspension => ("suspended until its current spec is applied", until_applied),
    };
    ProblemDocument::new(&code::PROTECTED, format!("{key} is {why}")).hint(hint).into()
}

/// Others need a resource that is to be deleted.
pub(super) fn needed(key: &ResourceKey, by: &[ResourceKey]) -> WriteRefusal {
    ProblemDocument::new(&code::NOT_EMPTY, format!("{key} can't be deleted: {} it", needing(by)))
        .hint("delete these first, and wait until they are deleted")
        .into()
}

/// The dependent resources, as subject and verb of a sentence.
fn needing(by: &[ResourceKey]) -> String {
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shortage {
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
    pub fn of(key: &ResourceKey, hold: &Hold) -> Option<Self> {
        let Hold::OverCapacity { limited_by, what, used, wanted, limit } = hold else { return None };
        let (key, limited_by, what) = (key.clone(), limited_by.clone(), what.clone());
        Some(Self { key, limited_by, what, used: *used, wanted: *wanted, limit: *limit })
    }

    /// The field of the request that asks for too much; none if it is the resource itself that is one too many.
    fn field(&self) -> Option<&str> {
        match self.key.kind {
            // A cluster has no limits among its fields, only a size.
            Kind::Cluster if self.what.ends_with("kafka_units") => Some("kafka_units"),
            Kind::Cluster => None,
            _ if self.key == self.limited_by => Some(&self.what),
            Kind::Topic if self.what == "partitions" => Some("partitions"),
            _ => None,
        }
    }
}

impl From<Shortage> for WriteRefusal {
    fn from(shortage: Shortage) -> WriteRefusal {
        let hint = match shortage.wanted {
            0 => "set the limit to at least what is in use, or free capacity first",
            _ => "raise the limit, or free capacity first",
        };
        let detail = shortage.to_string();
        let field = shortage.field().map(|field| format!("/{}", field.replace('.', "/")));
        let errors = field.map(|field| FieldError::at(field, detail.clone(), hint)).into_iter().collect();
        ProblemDocument { errors, ..ProblemDocument::new(&code::CAPACITY, detail).hint(hint) }.into()
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
