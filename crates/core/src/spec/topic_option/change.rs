//! The consequences of changing a topic option for records and clients.
//!
//! A topic without an option has the cluster's value, which may be anything. So where one of the two values is
//! missing, the change counts as one that keeps less, unless the other value says that it can't.

use serde_json::Value;

use super::super::broker_option::Unit::{self, Bytes, Milliseconds};

struct Retention {
    option: &'static str,
    unit: Unit,
    /// The effect as a sentence, with `{}` for the new value.
    goes: &'static str,
}

const CLEANUP_POLICY: &str = "cleanup.policy";

#[rustfmt::skip]
const KEEPS: &[Retention] = &[
    Retention { option: "retention.ms", unit: Milliseconds, goes: "records older than {} are deleted" },
    Retention { option: "retention.bytes", unit: Bytes, goes: "all but the newest {} of each partition are deleted" },
    Retention { option: "min.compaction.lag.ms", unit: Milliseconds, goes: "if the topic is compacted, records with a newer one \
        of the same key are deleted when they are older than {}" },
    Retention { option: "delete.retention.ms", unit: Milliseconds, goes: "if the topic is compacted, markers of deleted records \
        are removed when they are older than {}, so slower consumers miss them" },
    Retention { option: "segment.ms", unit: Milliseconds, goes: "segments end when they are {} old, so their records are \
        deleted or compacted sooner" },
];

/// Whether a change of an option may keep less.
pub fn keeps(option: &str) -> bool {
    option == CLEANUP_POLICY || KEEPS.iter().any(|keeps| keeps.option == option)
}

/// Describes what brokers delete for good when an option changes, as a sentence; `None` if nothing. `Null` is
/// an absent option.
pub fn deleted(option: &str, before: &Value, after: &Value) -> Option<String> {
    if option == CLEANUP_POLICY {
        return deleted_by_policy(before, after);
    }
    let Retention { unit, goes, .. } = KEEPS.iter().find(|keeps| keeps.option == option)?;
    // A negative number means no limit.
    let number = |value: &Value| {
        let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
        number.map(|number| if number < 0 { i64::MAX } else { number })
    };
    let kept = |value: i64| if value == i64::MAX { "all".to_owned() } else { unit.text(value) };
    match (number(before), number(after)) {
        (Some(was), Some(is)) => {
            (is < was).then(|| format!("{} ({} before)", goes.replace("{}", &kept(is)), kept(was)))
        }
        (None, Some(is)) if is < i64::MAX => {
            Some(format!("{}, if the cluster's value kept more", goes.replace("{}", &kept(is))))
        }
        (Some(was), None) if was > 0 => {
            let goes = goes.replace("{}", "the cluster's value");
            Some(format!("{goes}, if that keeps less than {} as before", kept(was)))
        }
        _ => None,
    }
}

/// Describes what the new cleanup policy deletes and the old one didn't.
fn deleted_by_policy(before: &Value, after: &Value) -> Option<String> {
    let has = |value: &Value, policy: &str| {
        value.as_str().map(|value| value.split(',').any(|one| one.trim() == policy))
    };
    // An absent policy may be any.
    let added = |policy: &str| has(after, policy) != Some(false) && has(before, policy) != Some(true);
    let what: Vec<&str> = [
        ("delete", "records beyond the topic's retention are deleted"),
        ("compact", "of records with one key all but the newest are deleted, and so are those without a key"),
    ]
    .into_iter()
    .filter_map(|(policy, what)| added(policy).then_some(what))
    .collect();
    let unless = match (before, after) {
        (Value::Null, Value::Null) => return None,
        (Value::Null, _) => ", unless the cluster's policy did so before",
        (_, Value::Null) => ", if the cluster's policy says so",
        _ => "",
    };
    (!what.is_empty()).then(|| format!("{}{unless}", what.join("; ")))
}

/// Describes why brokers refuse clients that they accepted before; `None` if they don't.
pub fn refused_clients(option: &str, before: &Value, after: &Value) -> Option<String> {
    let (was, is) = (before.as_i64(), after.as_i64()?);
    match option {
        "max.message.bytes" if was.is_none_or(|was| is < was) => {
            let is = Bytes.text(is);
            Some(format!("producers that send batches above {is} to the topic are refused"))
        }
        "message.timestamp.after.max.ms" if was.is_none_or(|was| is < was) => {
            let is = Milliseconds.text(is);
            Some(format!("records whose timestamp is more than {is} ahead are refused"))
        }
        "message.timestamp.before.max.ms" if was.is_none_or(|was| is < was) => {
            let is = Milliseconds.text(is);
            Some(format!("records whose timestamp is more than {is} old are refused"))
        }
        _ => None,
    }
}

/// Describes another consequence of a change, as a sentence.
pub fn effect_of(option: &str, before: &Value, after: &Value) -> Option<String> {
    match (option, before.as_i64(), after.as_i64()) {
        ("min.insync.replicas", Some(was), Some(is)) if is < was => Some(format!(
            "a write with `acks=all` is acknowledged with {is} instead of {was} copies, and is lost if those are lost \
             before others have it"
        )),
        ("min.insync.replicas", _, Some(is)) if is > 1 => {
            Some(format!("writes with `acks=all` are refused while fewer than {is} copies are in sync"))
        }
        ("unclean.leader.election.enable", ..) if *after == Value::Bool(true) => {
            Some("records that were acknowledged may be lost when brokers fail".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_option_that_keeps_less_says_what_goes() {
        let none = Value::Null;
        let cases = [
            ("retention.ms", none.clone(), json!(86_400_000)),
            ("retention.ms", json!(604_800_000), json!(86_400_000)),
            ("retention.ms", json!(-1), json!(86_400_000)),
            ("retention.ms", json!(604_800_000), none.clone()),
            ("retention.bytes", json!(-1), json!(1_i64 << 30)),
            ("min.compaction.lag.ms", json!(3_600_000), json!(0)),
            ("delete.retention.ms", none.clone(), json!(0)),
            ("segment.ms", json!(604_800_000), json!(3_600_000)),
            ("cleanup.policy", none.clone(), json!("compact")),
            ("cleanup.policy", json!("compact"), none.clone()),
            ("cleanup.policy", json!("delete"), json!("compact")),
            ("cleanup.policy", json!("compact"), json!("delete,compact")),
        ];
        let told = cases.map(|(option, before, after)| {
            format!("{option} {before} → {after}: {}", deleted(option, &before, &after).unwrap())
        });
        insta::assert_snapshot!(told.join("\n"));
    }

    #[test]
    fn what_keeps_as_much_or_more_deletes_nothing() {
        for (option, before, after) in [
            ("retention.ms", json!(1), json!(2)),
            ("retention.ms", Value::Null, json!(-1)),
            ("retention.ms", json!(0), Value::Null),
            ("retention.bytes", json!(1), json!(-1)),
            ("cleanup.policy", json!("delete,compact"), json!("delete")),
            ("segment.bytes", json!(2_000_000), json!(1_048_576)),
            ("local.retention.ms", json!(1_000), json!(1)),
        ] {
            assert_eq!(deleted(option, &before, &after), None, "{option} {before} {after}");
        }
    }

    #[test]
    fn what_is_kept_is_said_of_options_that_may_be_set() {
        let all = KEEPS.iter().map(|keeps| keeps.option).chain([CLEANUP_POLICY]);
        all.for_each(|option| assert!(keeps(option) && super::super::find(option).is_some(), "{option}"));
    }
}
