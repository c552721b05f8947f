use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::catalog::Hold;
use crate::names::{Kind, ObjectKey, ResourceKey};
use crate::plan::{Cause, Change, Contest, FieldChange, UNREACHED, Verb, Waiting};

/// The longest value printed within a line, in characters.
const LONGEST_VALUE: usize = 48;

/// `kafka_units 1 → 2`.
impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, before, after } = self;
        match (value(before), value(after)) {
            (Some(before), Some(after)) => write!(f, "{field} {before} → {after}"),
            _ => write!(f, "{field} changed"),
        }
    }
}

/// Formats a value for a line; `None` if it is too long to compare by eye.
fn value(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    (text.chars().count() <= LONGEST_VALUE && !text.contains('\n')).then_some(text)
}

pub(super) fn place(change: &Change) -> String {
    match (&change.origin, change.verb) {
        (Some(origin), Verb::Delete) => format!("was {origin}"),
        (Some(origin), _) => origin.to_string(),
        (None, _) => String::new(),
    }
}

pub(super) fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Spec => String::new(),
        Cause::Reference { to } => format!("because {to} changed"),
        Cause::Settings => "because the settings of the installation changed".to_owned(),
        Cause::Upgrade { version, .. } => format!("because its upgrade to Kafka {version} goes on"),
        Cause::Drift { by: Some(by) } => format!("because {by} changed the target"),
        Cause::Drift { by: None } => "because the target is no longer as it was applied".to_owned(),
        Cause::Software { version } => format!("because streamfleet {version} renders it differently"),
    }
}

pub(super) fn last_known(last_seen: Option<Timestamp>, now: Timestamp) -> String {
    let seen = match last_seen {
        Some(at) => format!("last seen {} ago, at {at:.0}", age(now.duration_since(at))),
        None => "when it was last seen is not known".to_owned(),
    };
    format!("{seen}; what follows is planned against what was recorded then")
}

/// `3 h`: the largest unit with at least two of it.
fn age(age: SignedDuration) -> String {
    let minutes = age.as_mins().max(0);
    match minutes {
        0 => "less than a minute".to_owned(),
        1..120 => format!("{minutes} min"),
        120..2880 => format!("{} h", minutes / 60),
        _ => format!("{} days", minutes / 1440),
    }
}

/// The wait as the rest of a sentence.
impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&waiting(self))
    }
}

/// The hold as the rest of a sentence.
impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&held(self))
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Delete => "delete",
            Verb::Keep => "keep",
            Verb::Recreate => "recreate",
        })
    }
}

fn waiting(waiting: &Waiting) -> String {
    match waiting {
        Waiting::Held(hold) => held(hold),
        Waiting::UnreadableFile { origin } => format!("it may be in {origin}, which can't be read"),
        Waiting::Protected => "deletion_protection is on".to_owned(),
        Waiting::Approval { why, .. } => format!("approval, since {why}"),
        Waiting::OneDisruption { after } => format!("one disruption at a time, {after} comes first"),
        Waiting::Renewal { after, domain } => {
            format!("{after} has the new certificate of {domain} and isn't Healthy with it yet")
        }
        Waiting::Unsettled => "it begins only when the cluster is Healthy".to_owned(),
        Waiting::Unseen { cluster, reason } => {
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            format!("nothing is disrupted while nobody sees how {cluster} is{why}")
        }
        Waiting::Unreachable { reason, hint, refused, .. } => {
            let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
            match *refused {
                _ if reason == UNREACHED => format!("{reason}{hint}"),
                true => format!("the target can't be used: {reason}{hint}"),
                false => format!("the target can't be reached: {reason}{hint}"),
            }
        }
        Waiting::UnderWay { since } => {
            format!("what was planned before is still being done there, since {since:.0}")
        }
        Waiting::Repeated { times, until } => {
            let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            format!("the same was done {times} and it is not as it should be; it is done again at {until:.0}")
        }
        Waiting::PlanOnly => {
            "the settings want nothing to be changed: `policy.mode` is `plan-only`".to_owned()
        }
        Waiting::SecretUnavailable { secret, reason } => format!("{secret} can't be opened here: {reason}"),
        Waiting::ForeignObject { object } => format!("{object} is there and isn't ours"),
        Waiting::NotAFile { object, path } => {
            format!("{object} can't be written, since `{path}` in the fleet's folder is no file")
        }
        Waiting::RefusedByTarget { object, reason, .. } => {
            format!("the target would refuse {object}: {reason}")
        }
        Waiting::Contested { object, contest: Contest { manager, field } } => {
            format!("{manager} manages `{field}` of {object}, which is left as it is")
        }
        Waiting::Children { count: 1, example } => format!("{example} has to go first"),
        Waiting::Children { count, example } => {
            format!("{example} and {} more have to go first", count.saturating_sub(1))
        }
        Waiting::Leftovers { count: 1, example } => format!("{example} is kept for its data"),
        Waiting::Leftovers { count, example } => {
            format!("{example} and {} more objects are kept for their data", count.saturating_sub(1))
        }
        Waiting::InUse { object, count: 1, example } => {
            format!("{object} stays until {example} is no longer reached through it")
        }
        Waiting::InUse { object, count, example } => {
            format!(
                "{object} stays until {example} and {} more are no longer reached through it",
                count.saturating_sub(1)
            )
        }
        Waiting::Preflight { condition, why } => format!("{why} ({condition})"),
        Waiting::Upgrade { version, from, to } => {
            format!(
                "until all brokers run Kafka {version} and are well; then metadata {from} → {to}, which can't be undone"
            )
        }
        Waiting::MetadataUnknown { to } => format!(
            "which metadata its brokers have isn't known, since its Kafka object doesn't say so any more; it would get {to}, \
             which can't be undone"
        ),
        Waiting::Absence { until } => {
            format!("no file names it any more, which counts from {until:.0} on, should it last")
        }
        Waiting::Flapping { object, by, field, until } => {
            let by = by.as_deref().unwrap_or("somebody else");
            format!("{by} keeps changing {field} of {object} back; it is left as it is until {until:.0}")
        }
        Waiting::Retry { failed, until } => format!("{failed}; it is tried again at {until:.0}"),
        Waiting::Refused { why } => format!("refused, {why}"),
    }
}

fn held(hold: &Hold) -> String {
    match hold {
        Hold::Invalid { problems: 1 } => "its spec has a problem; it is left as it is".to_owned(),
        Hold::Invalid { problems } => format!("its spec has {problems} problems; it is left as it is"),
        Hold::Absent => {
            "no file names it any more, and that looks like a mistake; it is left as it is".to_owned()
        }
        Hold::Unreadable { origin } => format!("{origin} can't be read; it is left as it is"),
        Hold::OverCapacity { limited_by, what, used, wanted, limit } => {
            format!("{limited_by} has {what} {limit}: {used} are in use and this adds {wanted}")
        }
        Hold::Suspended { by } => format!("suspend is true on {by}"),
        Hold::Dependency { on } => format!("{on} is not usable yet"),
    }
}

/// Describes what to do about a foreign object. Never suggests removing a definition, a namespace or a part
/// of a running operator: that would delete what others have there.
fn foreign(resource: &ResourceKey, object: &ObjectKey) -> String {
    let ours = "where streamfleet made it, restore the target's inventory";
    let existing = "set `strimzi: existing` in `advanced_config.components` of the fleet";
    match (object.kind.as_str(), resource.kind) {
        ("CustomResourceDefinition", _) => format!(
            "leave it there: every Kafka of the Kubernetes cluster depends on it; an operator was installed by someone else, \
             so {existing}, or let whoever installed it upgrade it; {ours}"
        ),
        (_, Kind::Fleet) => {
            format!("leave it there: an operator was installed by someone else, so {existing}; {ours}")
        }
        ("Namespace", _) => format!(
            "leave it there, since with it would go everything in it: give {resource} another name; {ours}"
        ),
        _ => format!(
            "to go on: where streamfleet made {object}, restore the target's inventory; otherwise move it away"
        ),
    }
}

/// Describes what a user can do about a wait, if anything. `tree` is the spec tree as the user named it.
pub fn wait_remedy(change: &Change, waiting: &Waiting, tree: &str) -> Option<String> {
    Some(match waiting {
        Waiting::Protected => {
            "to delete it: put it back with `deletion_protection: false`, apply, then remove it again"
                .to_owned()
        }
        Waiting::Approval { id, .. } if change.verb == Verb::Delete => {
            format!("to keep it, put it back; to delete it: streamfleet approve {id} {tree}")
        }
        Waiting::Approval { id, .. } => format!("to approve: streamfleet approve {id} {tree}"),
        Waiting::ForeignObject { object } => foreign(&change.resource, object),
        Waiting::NotAFile { path, .. } => format!("to go on: move `{path}` away; it is a folder or a link"),
        Waiting::RefusedByTarget { hint, .. } => format!("to go on: {hint}"),
        Waiting::Contested { contest: Contest { manager, .. }, .. } => {
            format!("to have it as the spec says: make {manager} leave it alone")
        }
        Waiting::Held(Hold::OverCapacity { limited_by, what, .. }) => {
            format!("to go on: raise `{what}` of {limited_by}, or use less")
        }
        Waiting::Held(Hold::Suspended { by }) if *by == change.resource && change.verb == Verb::Delete => {
            format!("to delete it: put {by} back with `suspend: false`, apply, then remove it")
        }
        Waiting::Held(Hold::Suspended { by }) => format!("to go on: set `suspend: false` on {by}"),
        Waiting::UnreadableFile { origin } => format!("to go on: mend {}", origin.path),
        Waiting::OneDisruption { after } => {
            format!("to see how far that is: streamfleet why {} {tree}", after.path())
        }
        Waiting::Renewal { after, domain } => format!(
            "to see what ails it: streamfleet why {} {tree}; where it is the certificate, give {domain} another one, \
             otherwise mend the cluster",
            after.path()
        ),
        Waiting::Unreachable { lost: true, .. }
            if change.verb != Verb::Create && change.resource.kind == Kind::Fleet =>
        {
            let fleet = format!("{}/{}", change.resource.organization, change.resource.name);
            format!("if what it held is gone for good: streamfleet forget {fleet} {tree}")
        }
        Waiting::MetadataUnknown { .. } => {
            "to go on: put `spec.kafka.metadataVersion` of the Kafka object back to what its brokers have, or let the operator \
             write it into the object's status"
                .to_owned()
        }
        Waiting::Leftovers { example, .. } => {
            format!(
                "to delete it: remove {example} from the target by hand once its data is no longer needed"
            )
        }
        Waiting::Repeated { .. } => {
            "to end it: see what undoes it in `streamfleet events`, or report it where nothing does".to_owned()
        }
        Waiting::Flapping { .. } => {
            "to end it: make whoever changes it stop, or change the spec to what it should be".to_owned()
        }
        Waiting::Absence { until } if change.verb == Verb::Delete && change.waiting.len() == 1 => {
            format!("to keep it: put its spec file back; otherwise it is deleted from {until:.0} on")
        }
        Waiting::Absence { .. } if change.verb == Verb::Delete => "to keep it: put its spec file back".to_owned(),
        Waiting::Held(
            Hold::Invalid { .. } | Hold::Absent | Hold::Unreadable { .. } | Hold::Dependency { .. },
        )
        | Waiting::Unreachable { .. }
        | Waiting::UnderWay { .. }
        | Waiting::PlanOnly
        | Waiting::SecretUnavailable { .. }
        | Waiting::Children { .. }
        | Waiting::InUse { .. }
        | Waiting::Preflight { .. }
        | Waiting::Upgrade { .. }
        | Waiting::Unsettled
        | Waiting::Unseen { .. }
        | Waiting::Absence { .. }
        | Waiting::Retry { .. }
        | Waiting::Refused { .. } => return None,
    })
}

#[cfg(test)]
mod tests;
