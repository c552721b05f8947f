//! The effect of a change of an object on a cluster's clients and data, by rows: the first match decides.

use std::borrow::Cow;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Difference, Manifest};
use crate::names::{Json, ObjectKey};

/// The consequences that a component knows for changes of its objects.
pub struct Consequences {
    pub rows: &'static [Row],
    /// An outcome that no row can express. It takes precedence over all rows. A change of a whole object has
    /// no difference.
    pub special: fn(&ObjectChange, Option<&Difference>) -> Option<RowVerdict>,
    /// Further effects of a changed field, beside its outcome.
    pub side_effect: fn(&ObjectChange, &Difference) -> Option<SideEffect>,
    /// The records that a change of an object's body deletes, one sentence each.
    pub deleted_records: fn(&ObjectChange, &Value, &Value) -> Vec<String>,
    /// Whether a change of a Secret leaves the certificate in it as it is, so that nothing restarts.
    pub keeps_certificate: fn(&ObjectChange) -> bool,
    /// When the certificate ends that a change of a Secret replaces, if it does and that is known.
    pub replaced_certificate_ends: fn(&ObjectChange) -> Option<Timestamp>,
    /// A sentence about objects that are created.
    pub created: fn(&[&Manifest]) -> Option<String>,
    /// Further placeholders of rows, beside `{object}`, `{before}` and `{after}`.
    pub placeholders: &'static [(&'static str, Placeholder)],
    /// General sentences, dropped where the plan names the clients that are cut off.
    pub general: &'static [&'static str],
}

pub type Placeholder = fn(&ObjectChange, Option<&Difference>) -> String;

impl Consequences {
    pub const NONE: Consequences = Consequences {
        rows: &[],
        special: |_, _| None,
        side_effect: |_, _| None,
        deleted_records: |_, _, _| Vec::new(),
        keeps_certificate: |_| false,
        replaced_certificate_ends: |_| None,
        created: |_| None,
        placeholders: &[],
        general: &[],
    };
}

/// A change of one object.
#[derive(Clone, Copy)]
pub struct ObjectChange<'a> {
    pub object: &'a ObjectKey,
    /// `None` if it doesn't exist or can't be read.
    pub before: Option<&'a Json>,
    /// `None` if it is deleted.
    pub after: Option<&'a Manifest>,
}

pub struct SideEffect {
    pub verdict: Verdict,
    pub words: String,
    /// Whether brokers reject clients that they accepted before, so that some clients can't continue.
    pub turns_away: bool,
}

/// A stable code for programs, the reason, and a hint.
pub type Refusal = [&'static str; 3];

/// The effect of a change on a cluster's clients and data, from harmless to never done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing noticeable.
    NoOp,
    /// It changes without a restart.
    InPlace,
    /// Disks grow; brokers may restart one by one.
    StorageGrowth,
    /// Brokers restart one by one; clients reconnect and continue.
    RollingRestart,
    /// Brokers are emptied and then removed; clients continue with the others.
    BrokerRemoval,
    /// Brokers restart one by one, and some clients need another address, port or login to connect.
    ClientsReconnect,
    /// The cluster is deleted; its data stays.
    ServiceLoss,
    /// Data is deleted.
    DataLoss,
    /// The change is never made.
    Refused,
}

/// The effect of a change of one field, or of a whole object.
pub struct Row {
    /// The kind of the object; `*` is any.
    pub kind: &'static str,
    pub of: ObjectFilter,
    /// The JSON pointer; `*` is one part and a final `**` any number of parts. Empty for a whole object.
    pub path: &'static str,
    pub when: DirectionFilter,
    pub outcome: RowVerdict,
}

impl Row {
    /// A change that is made and described by this sentence, and disrupts nobody.
    pub const fn in_place(
        kind: &'static str,
        of: ObjectFilter,
        path: &'static str,
        when: DirectionFilter,
        words: &'static str,
    ) -> Row {
        Row { kind, of, path, when, outcome: RowVerdict::Does(Verdict::InPlace, Cow::Borrowed(words)) }
    }
}

#[derive(Clone, Copy)]
pub enum ObjectFilter {
    Any,
    Namespace(&'static str),
    /// Objects with such a body: the new one, or the old one of a deleted object.
    Body(fn(&Value) -> bool),
}

#[derive(Clone)]
pub enum RowVerdict {
    /// The change is made and described by this sentence, with placeholders filled. An empty sentence isn't shown.
    Does(Verdict, Cow<'static, str>),
    /// The change is made and described by this sentence if the spec confirms fewer brokers, and refused otherwise.
    RemovesBrokers(&'static str, Refusal),
    /// The change is never made: a stable code for programs, the reason, and a hint.
    Refuses(Refusal),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Created,
    /// The object is deleted though its resource stays.
    Deleted,
    /// The object is overwritten without knowing its contents.
    Rewritten,
    /// A number, size, version or list grows.
    Up,
    /// A number, size, version or list shrinks.
    Down,
    On,
    Off,
    Other,
}

#[derive(Clone, Copy)]
pub enum DirectionFilter {
    Is(Direction),
    /// Every change of a field.
    Changes,
}

impl DirectionFilter {
    pub fn fits(self, direction: Direction) -> bool {
        match self {
            DirectionFilter::Is(only) => only == direction,
            DirectionFilter::Changes => {
                !matches!(direction, Direction::Created | Direction::Deleted | Direction::Rewritten)
            }
        }
    }
}

pub const fn row(
    kind: &'static str,
    path: &'static str,
    when: DirectionFilter,
    verdict: Verdict,
    words: &'static str,
) -> Row {
    Row { kind, of: ObjectFilter::Any, path, when, outcome: RowVerdict::Does(verdict, Cow::Borrowed(words)) }
}

pub const fn refused(
    kind: &'static str,
    of: ObjectFilter,
    path: &'static str,
    when: DirectionFilter,
    refusal: Refusal,
) -> Row {
    Row { kind, of, path, when, outcome: RowVerdict::Refuses(refusal) }
}

pub const CHANGES: DirectionFilter = DirectionFilter::Changes;
pub const UP: DirectionFilter = DirectionFilter::Is(Direction::Up);
pub const DOWN: DirectionFilter = DirectionFilter::Is(Direction::Down);
pub const CREATED: DirectionFilter = DirectionFilter::Is(Direction::Created);
pub const DELETED: DirectionFilter = DirectionFilter::Is(Direction::Deleted);
pub const REWRITTEN: DirectionFilter = DirectionFilter::Is(Direction::Rewritten);

/// The end of sentences about restarts that clients survive.
pub const GO_ON: &str = "; clients reconnect and continue";

pub const PUT_VERSION_BACK: &str =
    "restore `advanced_config.version`, or create a new cluster and move the topics to it";

impl Row {
    pub fn fits(&self, change: &ObjectChange, direction: Direction, pointer: &str) -> bool {
        let kind = self.kind == "*" || self.kind == change.object.kind;
        kind && self.when.fits(direction) && matches_pattern(self.path, pointer) && self.of.fits(change)
    }
}

impl ObjectFilter {
    fn fits(self, change: &ObjectChange) -> bool {
        match self {
            ObjectFilter::Any => true,
            ObjectFilter::Namespace(name) => change.object.namespace.as_deref() == Some(name),
            ObjectFilter::Body(fits) => {
                let body = change.after.map(|manifest| &manifest.body).or(change.before);
                body.is_some_and(|body| fits(&body.value()))
            }
        }
    }
}

/// Whether a JSON pointer matches a pattern, in which `*` is one part and a final `**` any number of parts.
fn matches_pattern(pattern: &str, pointer: &str) -> bool {
    let mut pointer = pointer.split('/');
    for part in pattern.split('/') {
        match part {
            "**" => return true,
            "*" if pointer.next().is_some() => {}
            part if pointer.next() == Some(part) => {}
            _ => return false,
        }
    }
    pointer.next().is_none()
}
