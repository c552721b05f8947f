use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::catalog::Hold;
use crate::names::{Kind, ObjectKey, ResourceKey};
use crate::plan::{Cause, Change, Contest, FieldChange, ForeignRecord, UNREACHED, Verb, Waiting};

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

pub(super) fn action(change: &Change) -> &'static str {
    match (change.verb, change.waiting.is_empty()) {
        (Verb::Create, true) => "create",
        (Verb::Update, true) => "change",
        (Verb::Delete, true) => "delete",
        (Verb::Recreate, true) => "delete and recreate",
        (Verb::Adopt, true) => "adopt",
        (Verb::Create, false) => "waiting to create",
        (Verb::Update, false) => "waiting to change",
        (Verb::Delete, false) => "waiting to delete",
        (Verb::Recreate, false) => "waiting to delete and recreate",
        (Verb::Adopt, false) => "waiting to adopt",
        (Verb::Keep, _) => "unchanged:",
    }
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
        Cause::Upgrade { version, .. } => format!("because the upgrade to Kafka {version} continues"),
        Cause::Drift { by: Some(by) } => format!("because {by} changed the target"),
        Cause::Drift { by: None } => "because the target differs from what was applied".to_owned(),
        Cause::Certificate => "because its certificate is due".to_owned(),
        Cause::Clusters => "because its clusters changed".to_owned(),
        Cause::Addresses => "because its load balancers have other addresses".to_owned(),
        Cause::Software { version } => format!("because streamfleet {version} renders it differently"),
    }
}

pub(super) fn last_known(last_seen: Option<Timestamp>, now: Timestamp) -> String {
    let seen = match last_seen {
        Some(at) => format!("last seen {} ago, at {at:.0}", age(now.duration_since(at))),
        None => "last seen: unknown".to_owned(),
    };
    format!("{seen}; the plan below uses the state recorded then")
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

impl Waiting {
    /// Returns whether the change needs an approval, needs another change first, or continues by itself.
    pub fn label(&self) -> &'static str {
        match self {
            Waiting::Approval { .. } => "on hold",
            Waiting::Held(Hold::Dependency { .. } | Hold::Certificate { .. })
            | Waiting::OneDisruption { .. }
            | Waiting::Renewal { .. }
            | Waiting::Maintenance { .. }
            | Waiting::Unsettled
            | Waiting::Unconfirmed { .. }
            | Waiting::Unseen { .. }
            | Waiting::Unreachable { refused: false, .. }
            | Waiting::UnderWay { .. }
            | Waiting::Repeated { .. }
            | Waiting::Children { .. }
            | Waiting::InUse { .. }
            | Waiting::Upgrade { .. }
            | Waiting::Absence { .. }
            | Waiting::Flapping { .. }
            | Waiting::Retry { .. } => "waiting",
            _ => "blocked",
        }
    }

    /// Returns the label and the reason: `blocked: deletion protection is on`.
    pub fn labelled(&self) -> String {
        match self {
            Waiting::Approval { why, .. } => format!("{} for approval: {why}", self.label()),
            Waiting::Refused { .. } => self.to_string(),
            _ => format!("{}: {self}", self.label()),
        }
    }
}

/// The reason as a clause.
impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&waiting(self))
    }
}

/// The reason as a clause.
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
            Verb::Adopt => "adopt",
        })
    }
}

fn waiting(waiting: &Waiting) -> String {
    match waiting {
        Waiting::Held(hold) => held(hold),
        Waiting::UnreadableFile { origin } => format!("its spec may be in {origin}, which can't be read"),
        Waiting::Protected => "deletion protection is on".to_owned(),
        Waiting::Approval { why, .. } => format!("needs approval: {why}"),
        Waiting::OneDisruption { after } => format!("one disruption at a time; {after} is first"),
        Waiting::Renewal { after, domain } => {
            format!("{after} has the new certificate of {domain} and isn't Healthy yet")
        }
        Waiting::Maintenance { windows, until, is_urgent: false } => {
            format!("may begin from {until:.0}, in the maintenance window ({windows})")
        }
        Waiting::Maintenance { windows, until, is_urgent: true } => format!(
            "may begin from {until:.0}, 14 days before the old certificate ends; the maintenance window ({windows}) is later"
        ),
        Waiting::Unsettled => "starts when the cluster is Healthy".to_owned(),
        Waiting::Unconfirmed { cluster } => {
            format!("the reachability probe hasn't reached {cluster} since its last change")
        }
        Waiting::Unseen { cluster, reason } => {
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            format!("no disruption while the health of {cluster} is unknown{why}")
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
            format!("an earlier plan has been running there since {since:.0}")
        }
        Waiting::Repeated { times, until } => {
            let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            format!("the change was applied {times} without lasting effect; next attempt at {until:.0}")
        }
        Waiting::PlanOnly => "the settings allow no changes: `policy.mode` is `plan-only`".to_owned(),
        Waiting::SecretUnavailable { secret, reason } => format!("{secret} can't be opened here: {reason}"),
        Waiting::ForeignObject { object } => format!("{object} exists and isn't managed by streamfleet"),
        Waiting::ForeignRecord(record) => record.to_string(),
        Waiting::NotAFile { object, path } => {
            format!(
                "{object} can't be written: `{path}` in the fleet's folder is a link or of the wrong type"
            )
        }
        Waiting::RefusedByTarget { object, reason, .. } => {
            format!("the target would refuse {object}: {reason}")
        }
        Waiting::Contested { object, contest: Contest { manager, field } } => {
            format!("{manager} manages `{field}` of {object}, so streamfleet leaves it unchanged")
        }
        Waiting::Children { count: 1, example } => format!("{example} must be deleted first"),
        Waiting::Children { count, example } => {
            format!("{example} and {} more must be deleted first", count.saturating_sub(1))
        }
        Waiting::Leftovers { count: 1, example } => format!("{example} is kept for its data"),
        Waiting::Leftovers { count, example } => {
            format!("{example} and {} more objects are kept for their data", count.saturating_sub(1))
        }
        Waiting::InUse { object, count: 1, example } => {
            format!("{object} is kept while clients reach {example} through it")
        }
        Waiting::InUse { object, count, example } => {
            format!(
                "{object} is kept while clients reach {example} and {} more through it",
                count.saturating_sub(1)
            )
        }
        Waiting::Preflight { condition, why } => format!("{why} ({condition})"),
        Waiting::Upgrade { version, from, to } => {
            format!(
                "all brokers must run Kafka {version} and be healthy first; then metadata {from} → {to}, which can't be \
                 undone"
            )
        }
        Waiting::MetadataUnknown { to } => format!(
            "the current metadata version is unknown, because the Kafka object no longer contains it; it would become \
             {to}, which can't be undone"
        ),
        Waiting::Absence { until } => {
            format!("spec file missing; counts as removed at {until:.0} unless it returns")
        }
        Waiting::Flapping { object, by, field, until } => {
            let by = by.as_deref().unwrap_or("an unknown program");
            match field {
                Some(field) => format!(
                    "{by} keeps changing {field} of {object} back; the object is left unchanged until {until:.0}"
                ),
                None => format!("{by} keeps deleting {object}; it isn't created again before {until:.0}"),
            }
        }
        Waiting::Retry { failed, until, .. } => format!("{failed}; next attempt at {until:.0}"),
        Waiting::Refused { why } => format!("refused: {why}"),
    }
}

fn held(hold: &Hold) -> String {
    match hold {
        Hold::Invalid { problems: 1 } => "its spec has 1 problem; it stays as it was last applied".to_owned(),
        Hold::Invalid { problems } => {
            format!("its spec has {problems} problems; it stays as it was last applied")
        }
        Hold::Absent => "spec file missing, probably by mistake; it stays as it was last applied".to_owned(),
        Hold::Unreadable { origin } => format!("{origin} can't be read; it stays as it was last applied"),
        Hold::OverCapacity { limited_by, what, used, wanted, limit } => {
            format!("{limited_by} has {what} {limit}: {used} are in use and this adds {wanted}")
        }
        Hold::Suspended { by } => format!("suspend is true on {by}"),
        Hold::Dependency { on } => format!("{on} can't be used yet"),
        Hold::Certificate { of, why: None } => format!("{of} has no certificate yet"),
        Hold::Certificate { of, why: Some(why) } => format!("{of} has no certificate yet: {why}"),
    }
}

/// Describes what to do about a foreign object. Never suggests removing a definition, a namespace or a part
/// of a running operator: that would delete what others have there.
fn foreign(resource: &ResourceKey, object: &ObjectKey) -> String {
    let ours = "if streamfleet created it, restore the target's inventory";
    let existing = "set `strimzi: existing` in `advanced_config.components` of the fleet";
    match (object.kind.as_str(), resource.kind) {
        ("CustomResourceDefinition", _) => format!(
            "don't remove it: every Kafka of the Kubernetes cluster depends on it. Somebody else installed an operator: \
             {existing}, or have its owner upgrade it; {ours}"
        ),
        (_, Kind::Topic | Kind::User) => {
            "to keep it as it is, remove the spec; to have streamfleet take it over, add \
             `adopt: true` to the spec: the plan then shows what that changes"
                .to_owned()
        }
        (_, Kind::Fleet) => {
            format!("don't remove it: somebody else installed an operator: {existing}; {ours}")
        }
        ("Namespace", _) => format!(
            "don't remove it, because everything in it would be deleted too: give {resource} another name; {ours}"
        ),
        _ => format!(
            "to continue: if streamfleet created {object}, restore the target's inventory; otherwise move it away"
        ),
    }
}

/// Describes what a user can do about a wait, if anything. `tree` is the spec tree as the user named it.
pub fn wait_remedy(change: &Change, waiting: &Waiting, tree: &str) -> Option<String> {
    Some(match waiting {
        Waiting::Protected => {
            "to keep it, restore its spec; to delete it, restore it with `deletion_protection: false`, apply, and remove it \
             again"
                .to_owned()
        }
        Waiting::Approval { id, .. } if change.verb == Verb::Delete => {
            format!("to keep it, restore its spec; to delete it: streamfleet approve {id} {tree}")
        }
        Waiting::Approval { id, .. } => format!("to approve: streamfleet approve {id} {tree}"),
        Waiting::ForeignObject { object } => foreign(&change.resource, object),
        Waiting::ForeignRecord(ForeignRecord { object, .. }) => {
            format!("to continue: remove the record of {} on its DNS server, or give the cluster another name", object.name)
        }
        Waiting::NotAFile { path, .. } => {
            format!("to continue: move `{path}` away; a file or folder of streamfleet's belongs there")
        }
        Waiting::RefusedByTarget { hint, .. } => format!("to continue: {hint}"),
        Waiting::Contested { contest: Contest { manager, .. }, .. } => {
            format!("to apply the spec: make {manager} stop managing the field")
        }
        Waiting::Held(Hold::OverCapacity { limited_by, what, .. }) if limited_by.kind == Kind::Cluster => {
            format!("to continue: give {limited_by} more `kafka_units`, or use fewer {what}")
        }
        Waiting::Held(Hold::OverCapacity { limited_by, what, .. }) => {
            format!("to continue: raise `{what}` of {limited_by}, or use less")
        }
        Waiting::Held(Hold::Suspended { by }) if *by == change.resource && change.verb == Verb::Delete => {
            format!("to delete it: restore the spec of {by} with `suspend: false`, apply, then remove the spec")
        }
        Waiting::Held(Hold::Suspended { by }) => format!("to continue: set `suspend: false` on {by}"),
        Waiting::Maintenance { .. } => match &change.cause {
            Cause::Upgrade { version, .. } => format!("to begin now: set `version: {version}` in its spec"),
            _ => "to begin now: give its fleet a window that is open, in `advanced_config.maintenance`".to_owned(),
        },
        Waiting::UnreadableFile { origin } => format!("to continue: fix {}", origin.path),
        Waiting::OneDisruption { after } | Waiting::Unconfirmed { cluster: after } => {
            format!("to see its progress: streamfleet why {} {tree}", after.path())
        }
        Waiting::Renewal { after, domain } => format!(
            "to see what is wrong: streamfleet why {} {tree}; if the certificate is, give {domain} another one, otherwise \
             repair the cluster",
            after.path()
        ),
        Waiting::Unreachable { lost: true, .. }
            if change.verb != Verb::Create && change.resource.kind == Kind::Fleet =>
        {
            let fleet = format!("{}/{}", change.resource.organization, change.resource.name);
            format!("if everything on it is gone for good: streamfleet forget {fleet} {tree}")
        }
        Waiting::MetadataUnknown { .. } => {
            "to continue: set `spec.kafka.metadataVersion` of the Kafka object to the version that its brokers have, or \
             let the operator write it into the object's status"
                .to_owned()
        }
        Waiting::Leftovers { example, .. } => {
            format!(
                "to delete it: remove {example} from the target by hand once you no longer need its data"
            )
        }
        Waiting::Repeated { .. } => {
            "to resolve it: find out in `streamfleet events` what undoes the change; if nothing does, report \
             it".to_owned()
        }
        Waiting::Flapping { field: None, .. } => {
            "to resolve it: stop the program that deletes it; a change of the spec has it created before".to_owned()
        }
        Waiting::Flapping { .. } => {
            "to resolve it: stop the program that changes it, or set its value in the spec".to_owned()
        }
        Waiting::Absence { until } if change.verb == Verb::Delete && change.waiting.len() == 1 => {
            format!("to keep it: restore its spec file; otherwise it is deleted at {until:.0}")
        }
        Waiting::Absence { .. } if change.verb == Verb::Delete => "to keep it: restore its spec file".to_owned(),
        Waiting::Held(
            Hold::Invalid { .. }
            | Hold::Absent
            | Hold::Unreadable { .. }
            | Hold::Dependency { .. }
            | Hold::Certificate { .. },
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
        | Waiting::Refused { .. } => return None,
        Waiting::Retry { hint, .. } if hint.is_empty() => return None,
        Waiting::Retry { hint, .. } => format!("to continue: {hint}"),
    })
}

#[cfg(test)]
mod tests;
