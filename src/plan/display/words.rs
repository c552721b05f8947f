//! What waits for what, and why something is done, in words.

use std::fmt;

use serde_json::Value;

use crate::catalog::Hold;
use crate::names::Kind;
use crate::plan::{Cause, Change, FieldChange, Verb, Waiting};

/// The longest value that is printed in a line.
const LONGEST_VALUE: usize = 48;

/// `kafka_units 1 → 2`.
pub(super) fn field(change: &FieldChange) -> String {
    match (value(&change.before), value(&change.after)) {
        (Some(before), Some(after)) => format!("{} {before} → {after}", change.field),
        _ => format!("{} changed", change.field),
    }
}

/// A value in a line; none when it is too long to be compared by eye.
fn value(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    (text.chars().count() <= LONGEST_VALUE && !text.contains('\n')).then_some(text)
}

/// Where a change was made; for a deletion, where the spec stood.
pub(super) fn place(change: &Change) -> String {
    match (&change.origin, change.verb) {
        (Some(origin), Verb::Delete) => format!("was {origin}"),
        (Some(origin), _) => origin.to_string(),
        (None, _) => String::new(),
    }
}

/// Why something is done that no edit of its own spec asked for.
pub(super) fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Spec => String::new(),
        Cause::Reference { to } => format!("because {to} changed"),
        Cause::Settings => "because the settings of the installation changed".to_owned(),
        Cause::Drift { by: Some(by) } => format!("because {by} changed the target"),
        Cause::Drift { by: None } => "because the target is no longer as it was applied".to_owned(),
        Cause::Software { version } => format!("because streamfleet {version} renders it differently"),
    }
}

/// What a change waits for, as the rest of a sentence.
impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&waiting(self))
    }
}

/// Why a resource is left as it is, as the rest of a sentence.
impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&held(self))
    }
}

/// What is done, as a verb.
impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Delete => "delete",
            Verb::Keep => "keep",
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
        Waiting::Unreachable { reason } => format!("the target can't be reached: {reason}"),
        Waiting::SecretUnavailable { secret, reason } => format!("{secret} can't be opened here: {reason}"),
        Waiting::ForeignObject { object } => format!("{object} is there and isn't ours"),
        Waiting::Children { count: 1, example } => format!("{example} has to go first"),
        Waiting::Children { count, example } => {
            format!("{example} and {} more have to go first", count.saturating_sub(1))
        }
        Waiting::Leftovers { count: 1, example } => format!("{example} is kept for its data"),
        Waiting::Leftovers { count, example } => {
            format!("{example} and {} more objects are kept for their data", count.saturating_sub(1))
        }
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

/// What a person can do about it; none where waiting is all. `tree` is how the person names the spec tree.
pub(super) fn way_out(change: &Change, waiting: &Waiting, tree: &str) -> Option<String> {
    Some(match waiting {
        Waiting::Protected => {
            "to delete it: put it back with `deletion_protection: false`, apply, then remove it again"
                .to_owned()
        }
        Waiting::Approval { id, .. } if change.verb == Verb::Delete => {
            format!("to keep it, put it back; to delete it: streamfleet approve {id} {tree}")
        }
        Waiting::Approval { id, .. } => format!("to approve: streamfleet approve {id} {tree}"),
        Waiting::ForeignObject { object } => {
            format!(
                "to go on: where streamfleet made {object}, restore the target's inventory; otherwise move it away"
            )
        }
        Waiting::Held(Hold::OverCapacity { limited_by, what, .. }) => {
            format!("to go on: raise `{what}` of {limited_by}, or use less")
        }
        Waiting::Held(Hold::Suspended { by }) if *by == change.resource && change.verb == Verb::Delete => {
            format!("to delete it: put {by} back with `suspend: false`, apply, then remove it")
        }
        Waiting::Held(Hold::Suspended { by }) => format!("to go on: set `suspend: false` on {by}"),
        Waiting::UnreadableFile { origin } => format!("to go on: mend {}", origin.path),
        Waiting::Unreachable { .. } if change.verb != Verb::Create && change.resource.kind == Kind::Fleet => {
            let fleet = format!("{}/{}", change.resource.organization, change.resource.name);
            format!("if what it held is gone for good: streamfleet forget {fleet} {tree}")
        }
        Waiting::Leftovers { example, .. } => {
            format!(
                "to delete it: remove {example} from the target by hand once its data is no longer needed"
            )
        }
        Waiting::Held(
            Hold::Invalid { .. } | Hold::Absent | Hold::Unreadable { .. } | Hold::Dependency { .. },
        )
        | Waiting::OneDisruption { .. }
        | Waiting::Unreachable { .. }
        | Waiting::SecretUnavailable { .. }
        | Waiting::Children { .. }
        | Waiting::Refused { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{ObjectKey, ResourceKey};
    use crate::plan::change::mention;
    use crate::problem::Origin;

    fn key(text: &str) -> ResourceKey {
        text.to_owned().try_into().unwrap()
    }

    #[test]
    fn every_wait_says_for_what_and_the_way_out() {
        let cluster = || key("Cluster/acme/orders");
        let fleet = || key("Fleet/acme/eu");
        let origin = || Origin { path: "acme/x.yaml".parse().unwrap(), line: 3 };
        let object = ObjectKey::try_from("v1|Secret|ns|tls".to_owned()).unwrap();
        let namespace = || ObjectKey::try_from("v1|Namespace||kafka-acme--orders".to_owned()).unwrap();
        let over = Hold::OverCapacity {
            limited_by: fleet(),
            what: "max_kafka_units".into(),
            used: 39,
            wanted: 2,
            limit: 40,
        };
        let waits = [
            Waiting::Held(Hold::Invalid { problems: 1 }),
            Waiting::Held(Hold::Invalid { problems: 2 }),
            Waiting::Held(Hold::Unreadable { origin: origin() }),
            Waiting::Held(over),
            Waiting::Held(Hold::Suspended { by: fleet() }),
            Waiting::Held(Hold::Dependency { on: fleet() }),
            Waiting::UnreadableFile { origin: origin() },
            Waiting::Protected,
            Waiting::Approval {
                id: "03b369592dea".into(),
                why: "a fleet may lose 1 cluster an hour without it".into(),
            },
            Waiting::OneDisruption { after: cluster() },
            Waiting::Unreachable { reason: "connection refused".into() },
            Waiting::SecretUnavailable {
                secret: "`kubeconfig` of fleet acme/eu".into(),
                reason: "no file".into(),
            },
            Waiting::ForeignObject { object },
            Waiting::Children { count: 1, example: cluster() },
            Waiting::Children { count: 3, example: cluster() },
            Waiting::Leftovers { count: 1, example: namespace() },
            Waiting::Leftovers { count: 3, example: namespace() },
            Waiting::Refused { why: "disks only grow".into() },
        ];
        let change = mention(&cluster(), None);
        let lines = waits.iter().map(|wait| {
            let way_out = way_out(&change, wait, "specs").map(|way_out| format!("\n  {way_out}"));
            waiting(wait) + &way_out.unwrap_or_default()
        });
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
        its spec has a problem; it is left as it is
        its spec has 2 problems; it is left as it is
        acme/x.yaml:3 can't be read; it is left as it is
        fleet acme/eu has max_kafka_units 40: 39 are in use and this adds 2
          to go on: raise `max_kafka_units` of fleet acme/eu, or use less
        suspend is true on fleet acme/eu
          to go on: set `suspend: false` on fleet acme/eu
        fleet acme/eu is not usable yet
        it may be in acme/x.yaml:3, which can't be read
          to go on: mend acme/x.yaml
        deletion_protection is on
          to delete it: put it back with `deletion_protection: false`, apply, then remove it again
        approval, since a fleet may lose 1 cluster an hour without it
          to approve: streamfleet approve 03b369592dea specs
        one disruption at a time, cluster acme/orders comes first
        the target can't be reached: connection refused
        `kubeconfig` of fleet acme/eu can't be opened here: no file
        Secret ns/tls is there and isn't ours
          to go on: where streamfleet made Secret ns/tls, restore the target's inventory; otherwise move it away
        cluster acme/orders has to go first
        cluster acme/orders and 2 more have to go first
        Namespace kafka-acme--orders is kept for its data
          to delete it: remove Namespace kafka-acme--orders from the target by hand once its data is no longer needed
        Namespace kafka-acme--orders and 2 more objects are kept for their data
          to delete it: remove Namespace kafka-acme--orders from the target by hand once its data is no longer needed
        refused, disks only grow
        "#);
    }
}
