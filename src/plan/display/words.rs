//! What waits for what, and why something is done, in words.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::catalog::Hold;
use crate::names::{Kind, ObjectKey, ResourceKey};
use crate::plan::{Cause, Change, Contest, FieldChange, UNREACHED, Verb, Waiting};

/// The longest value that is printed in a line.
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
        Cause::Upgrade { version, .. } => format!("because its upgrade to Kafka {version} goes on"),
        Cause::Drift { by: Some(by) } => format!("because {by} changed the target"),
        Cause::Drift { by: None } => "because the target is no longer as it was applied".to_owned(),
        Cause::Software { version } => format!("because streamfleet {version} renders it differently"),
    }
}

/// How old what is known of a fleet out of reach is.
pub(super) fn last_known(last_seen: Option<Timestamp>, now: Timestamp) -> String {
    let seen = match last_seen {
        Some(at) => format!("last seen {} ago, at {at:.0}", age(now.duration_since(at))),
        None => "when it was last seen is not known".to_owned(),
    };
    format!("{seen}; what follows is planned against what was recorded then")
}

/// `3 h`, in the largest unit of which there are at least two.
fn age(age: SignedDuration) -> String {
    let minutes = age.as_mins().max(0);
    match minutes {
        0 => "less than a minute".to_owned(),
        1..120 => format!("{minutes} min"),
        120..2880 => format!("{} h", minutes / 60),
        _ => format!("{} days", minutes / 1440),
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

/// What to do about something that isn't ours. To remove a definition or a namespace, or a part of an operator that runs, is
/// never proposed: with them would go what others have there.
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

/// What a person can do about it; none where waiting is all. `tree` is how the person names the spec tree.
pub fn way_out(change: &Change, waiting: &Waiting, tree: &str) -> Option<String> {
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
mod tests {
    use super::*;
    use crate::plan::change::mention;
    use crate::problem::Origin;

    fn key(text: &str) -> ResourceKey {
        text.to_owned().try_into().unwrap()
    }

    #[test]
    fn how_old_the_last_look_is_is_told() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let then = "; what follows is planned against what was recorded then";
        for (seen, expected) in [
            (Some("2026-11-21T11:59:30Z"), "last seen less than a minute ago, at 2026-11-21T11:59:30Z"),
            (Some("2026-11-21T10:01:00Z"), "last seen 119 min ago, at 2026-11-21T10:01:00Z"),
            (Some("2026-11-21T08:59:00Z"), "last seen 3 h ago, at 2026-11-21T08:59:00Z"),
            (Some("2026-11-19T11:00:00Z"), "last seen 2 days ago, at 2026-11-19T11:00:00Z"),
            // A clock was set back.
            (Some("2026-11-22T12:00:00Z"), "last seen less than a minute ago, at 2026-11-22T12:00:00Z"),
            (None, "when it was last seen is not known"),
        ] {
            let seen = seen.map(|seen| seen.parse().unwrap());
            assert_eq!(last_known(seen, now), format!("{expected}{then}"));
        }
    }

    #[test]
    fn to_remove_what_others_depend_on_is_never_proposed() {
        let (cluster, fleet) = (key("Cluster/acme/orders"), key("Fleet/acme/eu"));
        let cases = [
            (&fleet, "apiextensions.k8s.io/v1|CustomResourceDefinition||kafkas.kafka.strimzi.io"),
            (&fleet, "v1|Namespace||strimzi-operator"),
            (&cluster, "v1|Namespace||kafka-acme--orders"),
        ];
        let lines = cases.map(|(resource, object)| {
            let object = ObjectKey::try_from(object.to_owned()).unwrap();
            way_out(&mention(resource, None), &Waiting::ForeignObject { object }, "specs").unwrap()
        });
        assert!(
            lines.iter().all(|line| line.starts_with("leave it there") && !line.contains("move it away"))
        );
        insta::assert_snapshot!(lines.join("\n"), @"
        leave it there: every Kafka of the Kubernetes cluster depends on it; an operator was installed by someone else, so set `strimzi: existing` in `advanced_config.components` of the fleet, or let whoever installed it upgrade it; where streamfleet made it, restore the target's inventory
        leave it there: an operator was installed by someone else, so set `strimzi: existing` in `advanced_config.components` of the fleet; where streamfleet made it, restore the target's inventory
        leave it there, since with it would go everything in it: give cluster acme/orders another name; where streamfleet made it, restore the target's inventory
        ");
    }

    #[test]
    fn to_forget_a_fleet_is_proposed_only_where_its_target_may_be_gone() {
        let fleet = Change { verb: Verb::Keep, ..mention(&key("Fleet/acme/eu"), None) };
        for (lost, expected) in [
            (true, Some("if what it held is gone for good: streamfleet forget acme/eu specs".to_owned())),
            (false, None),
        ] {
            let waiting = Waiting::Unreachable {
                reason: "401".into(),
                hint: String::new(),
                refused: false,
                lost,
                concealed: false,
            };
            assert_eq!(way_out(&fleet, &waiting, "specs"), expected);
        }
    }

    #[test]
    fn every_wait_says_for_what_and_the_way_out() {
        let cluster = || key("Cluster/acme/orders");
        let fleet = || key("Fleet/acme/eu");
        let origin = || Origin { path: "acme/x.yaml".parse().unwrap(), line: 3 };
        let object = ObjectKey::try_from("v1|Secret|ns|tls".to_owned()).unwrap();
        let unreachable = |reason: &str, hint: &str, refused| Waiting::Unreachable {
            reason: reason.into(),
            hint: hint.into(),
            refused,
            lost: false,
            concealed: false,
        };
        let namespace = || ObjectKey::try_from("v1|Namespace||kafka-acme--orders".to_owned()).unwrap();
        let gateway = || {
            let key = "gateway.networking.k8s.io/v1|Gateway|streamfleet-gateway|kafka";
            ObjectKey::try_from(key.to_owned()).unwrap()
        };
        let until = "2026-11-21T12:00:30Z".parse().unwrap();
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
            Waiting::Renewal { after: cluster(), domain: key("BaseDomain/acme/k.example.com") },
            Waiting::Unsettled,
            Waiting::Unseen { cluster: cluster(), reason: "the user may not list Pod objects".into() },
            unreachable("connection refused", "", false),
            unreachable("fleet acme/eu is on it", "give it another one", true),
            Waiting::UnderWay { since: until },
            Waiting::Repeated { times: 1, until },
            Waiting::Repeated { times: 7, until },
            Waiting::PlanOnly,
            Waiting::SecretUnavailable {
                secret: "`kubeconfig` of fleet acme/eu".into(),
                reason: "no file".into(),
            },
            Waiting::ForeignObject { object },
            Waiting::Children { count: 1, example: cluster() },
            Waiting::Children { count: 3, example: cluster() },
            Waiting::Leftovers { count: 1, example: namespace() },
            Waiting::Leftovers { count: 3, example: namespace() },
            Waiting::InUse { object: gateway(), count: 1, example: cluster() },
            Waiting::InUse { object: gateway(), count: 3, example: cluster() },
            Waiting::Preflight {
                condition: "StorageClassMissing".into(),
                why: "there is no StorageClass gp3".into(),
            },
            Waiting::MetadataUnknown { to: "4.3-IV0".into() },
            Waiting::Absence { until },
            Waiting::Flapping {
                object: ObjectKey::try_from("v1|ResourceQuota|ns|quota".to_owned()).unwrap(),
                by: Some("kubectl-edit".into()),
                field: "/spec/hard/pods".into(),
                until,
            },
            Waiting::Retry { failed: "cannot write it".into(), until },
            Waiting::Refused { why: "disks only grow".into() },
            Waiting::RefusedByTarget {
                object: namespace(),
                reason: "403 Forbidden: no".into(),
                hint: "allow it".into(),
            },
            Waiting::Contested {
                object: namespace(),
                contest: Contest { manager: "autoscaler".into(), field: ".spec.x".into() },
            },
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
          to see how far that is: streamfleet why acme/orders specs
        cluster acme/orders has the new certificate of base domain acme/k.example.com and isn't Healthy with it yet
          to see what ails it: streamfleet why acme/orders specs; where it is the certificate, give base domain acme/k.example.com another one, otherwise mend the cluster
        it begins only when the cluster is Healthy
        nothing is disrupted while nobody sees how cluster acme/orders is: the user may not list Pod objects
        the target can't be reached: connection refused
        the target can't be used: fleet acme/eu is on it; give it another one
        what was planned before is still being done there, since 2026-11-21T12:00:30Z
        the same was done once and it is not as it should be; it is done again at 2026-11-21T12:00:30Z
          to end it: see what undoes it in `streamfleet events`, or report it where nothing does
        the same was done 7 times and it is not as it should be; it is done again at 2026-11-21T12:00:30Z
          to end it: see what undoes it in `streamfleet events`, or report it where nothing does
        the settings want nothing to be changed: `policy.mode` is `plan-only`
        `kubeconfig` of fleet acme/eu can't be opened here: no file
        Secret ns/tls is there and isn't ours
          to go on: where streamfleet made Secret ns/tls, restore the target's inventory; otherwise move it away
        cluster acme/orders has to go first
        cluster acme/orders and 2 more have to go first
        Namespace kafka-acme--orders is kept for its data
          to delete it: remove Namespace kafka-acme--orders from the target by hand once its data is no longer needed
        Namespace kafka-acme--orders and 2 more objects are kept for their data
          to delete it: remove Namespace kafka-acme--orders from the target by hand once its data is no longer needed
        Gateway streamfleet-gateway/kafka stays until cluster acme/orders is no longer reached through it
        Gateway streamfleet-gateway/kafka stays until cluster acme/orders and 2 more are no longer reached through it
        there is no StorageClass gp3 (StorageClassMissing)
        which metadata its brokers have isn't known, since its Kafka object doesn't say so any more; it would get 4.3-IV0, which can't be undone
          to go on: put `spec.kafka.metadataVersion` of the Kafka object back to what its brokers have, or let the operator write it into the object's status
        no file names it any more, which counts from 2026-11-21T12:00:30Z on, should it last
        kubectl-edit keeps changing /spec/hard/pods of ResourceQuota ns/quota back; it is left as it is until 2026-11-21T12:00:30Z
          to end it: make whoever changes it stop, or change the spec to what it should be
        cannot write it; it is tried again at 2026-11-21T12:00:30Z
        refused, disks only grow
        the target would refuse Namespace kafka-acme--orders: 403 Forbidden: no
          to go on: allow it
        autoscaler manages `.spec.x` of Namespace kafka-acme--orders, which is left as it is
          to have it as the spec says: make autoscaler leave it alone
        "#);
    }
}
