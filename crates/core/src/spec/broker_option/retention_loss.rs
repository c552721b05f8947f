//! Retention options: lowering one makes brokers delete records at once and for good.
//!
//! Defaults are those printed by Apache Kafka 4.3.1's `kafka.server.KafkaConfig`, each beside its option.
//! Other log options are harmless: the segment size only affects when deletable records are removed, and
//! local retention affects only copies of what is in tiered storage.
//!
//! Options that no spec may set are included: they may have been set by hand, and when they are removed, so
//! are the records that they kept.

use serde_json::{Map, Value};

use self::Unit::{Bytes, Members, Milliseconds, Minutes};

/// An option that sets how much or how long something is kept.
struct RetentionOption {
    option: &'static str,
    /// The options that Kafka falls back to if this one is absent, in their order, each with the factor from
    /// its unit to this one's.
    otherwise: &'static [(&'static str, i64)],
    default: i64,
    unit: Unit,
    /// The effect as a sentence, with `{}` for the new value.
    goes: &'static str,
}

#[derive(Clone, Copy)]
pub(in crate::spec) enum Unit {
    Milliseconds,
    Minutes,
    Bytes,
    Members,
}

const WEEK_MS: i64 = 7 * 24 * 60 * 60 * 1000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
const HOUR_MS: i64 = 60 * 60 * 1000;
const WEEK_MINUTES: i64 = 7 * 24 * 60;
const RETENTION_MS: &str = "log.retention.ms";
const CLEANUP_POLICY: &str = "log.cleanup.policy";
const CLEANER: &str = "log.cleaner.enable";

#[rustfmt::skip]
const KEEPS: &[RetentionOption] = &[
    // Default `null`: then `log.retention.minutes`, `null` too, and then `log.retention.hours`, 168.
    RetentionOption { option: RETENTION_MS, otherwise: &[("log.retention.minutes", 60_000), ("log.retention.hours", HOUR_MS)], default: WEEK_MS, unit: Milliseconds, goes: "records older than {} are deleted, in topics without a `retention.ms` of their own" },
    // Default -1.
    RetentionOption { option: "log.retention.bytes", otherwise: &[], default: -1, unit: Bytes, goes: "all but the newest \
         {} of each partition are deleted, in topics without a `retention.bytes` of their own" },
    // Default 0.
    RetentionOption { option: "log.cleaner.min.compaction.lag.ms", otherwise: &[], default: 0, unit: Milliseconds, goes: "records with a newer one of the same key are deleted when they are older than {}, in compacted topics without a `min.compaction.lag.ms` of their own" },
    // Default 86400000.
    RetentionOption { option: "log.cleaner.delete.retention.ms", otherwise: &[], default: DAY_MS, unit: Milliseconds, goes: "markers \
         of deleted records are removed when they are older than {}, in compacted topics without a `delete.retention.ms` \
         of their own, so slower consumers miss them" },
    // Default `null`: then `log.roll.hours`, 168. The newest segment is not compacted, and not deleted while
    // any of its records has to be kept.
    RetentionOption { option: "log.roll.ms", otherwise: &[("log.roll.hours", HOUR_MS)], default: WEEK_MS, unit: Milliseconds, goes: "segments \
         end when they are {} old, so their records are deleted or compacted sooner, in topics without a `segment.ms` of \
         their own" },
    // Default 10080.
    RetentionOption { option: "offsets.retention.minutes", otherwise: &[], default: WEEK_MINUTES, unit: Minutes, goes: "offsets \
         of consumer groups that have been empty for longer than {} are deleted, so these groups start over" },
];

pub fn keeps(option: &str) -> bool {
    option == CLEANUP_POLICY || KEEPS.iter().any(|keeps| keeps.option == option)
}

/// Describes what brokers delete for good when an option changes, as a sentence; `None` if nothing. `Null` is
/// an absent option.
pub fn deleted(option: &str, before: &Value, after: &Value) -> Option<String> {
    if option == CLEANUP_POLICY {
        return deleted_by_policy(before, after);
    }
    let keeps = KEEPS.iter().find(|keeps| keeps.option == option)?;
    let value = |value: &Value| if value.is_null() { Some(None) } else { number(value).map(Some) };
    keeps.less(value(before)?, value(after)?)
}

/// Describes what brokers delete for good when their options change, one sentence each.
pub fn all_deleted(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    let mut deleted: Vec<String> =
        KEEPS.iter().filter_map(|keeps| keeps.less(keeps.set(before), keeps.set(after))).collect();
    let [was, is] = [before, after].map(|options| options.get(CLEANUP_POLICY).unwrap_or(&Value::Null));
    deleted.extend(deleted_by_policy(was, is));
    let cleans = |options: &Map<String, Value>| {
        options.get(CLEANER).is_none_or(|value| *value != Value::Bool(false) && value != "false")
    };
    if !cleans(before) && cleans(after) {
        deleted.push(
            "compacted topics are compacted, which they were not before: of records with one key all but the newest are \
             deleted"
                .to_owned(),
        );
    }
    deleted
}

impl RetentionOption {
    /// Returns the configured value, from this option or one of its fallbacks; `None` if Kafka's default
    /// applies.
    fn set(&self, options: &Map<String, Value>) -> Option<i64> {
        let own = [(self.option, 1)];
        let mut all = own.iter().chain(self.otherwise);
        all.find_map(|(option, factor)| Some(number(options.get(*option)?)?.saturating_mul(*factor)))
    }

    fn less(&self, before: Option<i64>, after: Option<i64>) -> Option<String> {
        let RetentionOption { default, unit, goes, .. } = self;
        let (was, is) = (before.unwrap_or(*default), after.unwrap_or(*default));
        // A negative number means no limit.
        let limit = |value: i64| if value < 0 { i64::MAX } else { value };
        (limit(is) < limit(was)).then(|| {
            let kept = if was < 0 { "all" } else { &unit.text(was) };
            let by_default = if after.is_none() { "; Kafka's default applies now" } else { "" };
            format!("{} ({kept} before{by_default})", goes.replace("{}", &unit.text(is)))
        })
    }
}

/// Describes what the new cleanup policy deletes and the old one didn't. The default is `delete`.
fn deleted_by_policy(before: &Value, after: &Value) -> Option<String> {
    let has = |value: &Value, policy: &str| {
        value.as_str().unwrap_or("delete").split(',').any(|one| one.trim() == policy)
    };
    let added = |policy: &str| has(after, policy) && !has(before, policy);
    let what: Vec<&str> = [
        ("delete", "records beyond the retention of their topic are deleted"),
        ("compact", "of records with one key all but the newest are deleted, and so are those without a key"),
    ]
    .into_iter()
    .filter_map(|(policy, what)| added(policy).then_some(what))
    .collect();
    let where_ = "in topics without a `cleanup.policy` of their own";
    (!what.is_empty()).then(|| format!("{}, {where_}", what.join("; ")))
}

/// Returns a numeric value; manifests may contain it as text.
pub(super) fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

impl Unit {
    /// Formats an amount in the largest unit that divides it: `7 days`, `90 minutes`, `512 MiB`.
    pub(in crate::spec) fn text(self, amount: i64) -> String {
        let units: &[(i64, &str)] = match self {
            Milliseconds => {
                &[(DAY_MS, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"), (1, "ms")]
            }
            Minutes => &[(24 * 60, "day"), (60, "hour"), (1, "minute")],
            Members => &[(1, "member")],
            Bytes => &[(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "byte")],
        };
        let smallest = units[units.len() - 1];
        let fits = |unit: &&(i64, &str)| amount != 0 && amount % unit.0 == 0;
        let (size, name) = *units.iter().find(fits).unwrap_or(&smallest);
        let number = amount / size;
        let plural = if number == 1 || name.ends_with('B') || name == "ms" { "" } else { "s" };
        format!("{number} {name}{plural}")
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
            (RETENTION_MS, none.clone(), json!(86_400_000)),
            (RETENTION_MS, json!(2_592_000_000_i64), none.clone()),
            (RETENTION_MS, json!(-1), json!(5_400_000)),
            (RETENTION_MS, json!("-1"), json!(1_500)),
            ("log.retention.bytes", none.clone(), json!(1_i64 << 30)),
            ("log.retention.bytes", json!(1_i64 << 30), json!(1_i64 << 29)),
            ("log.cleaner.min.compaction.lag.ms", json!(3_600_000), none.clone()),
            ("log.cleaner.delete.retention.ms", none.clone(), json!(0)),
            ("offsets.retention.minutes", none.clone(), json!(1_440)),
            ("log.roll.ms", none.clone(), json!(3_600_000)),
            (CLEANUP_POLICY, none.clone(), json!("compact")),
            (CLEANUP_POLICY, json!("compact"), none.clone()),
            (CLEANUP_POLICY, json!("compact"), json!("delete,compact")),
            (CLEANUP_POLICY, json!("delete"), json!("delete,compact")),
        ];
        let told = cases.map(|(option, before, after)| {
            format!("{option} {before} → {after}: {}", deleted(option, &before, &after).unwrap())
        });
        insta::assert_snapshot!(told.join("\n"), @r#"
        log.retention.ms null → 86400000: records older than 1 day are deleted, in topics without a `retention.ms` of their own (7 days before)
        log.retention.ms 2592000000 → null: records older than 7 days are deleted, in topics without a `retention.ms` of their own (30 days before; Kafka's default applies now)
        log.retention.ms -1 → 5400000: records older than 90 minutes are deleted, in topics without a `retention.ms` of their own (all before)
        log.retention.ms "-1" → 1500: records older than 1500 ms are deleted, in topics without a `retention.ms` of their own (all before)
        log.retention.bytes null → 1073741824: all but the newest 1 GiB of each partition are deleted, in topics without a `retention.bytes` of their own (all before)
        log.retention.bytes 1073741824 → 536870912: all but the newest 512 MiB of each partition are deleted, in topics without a `retention.bytes` of their own (1 GiB before)
        log.cleaner.min.compaction.lag.ms 3600000 → null: records with a newer one of the same key are deleted when they are older than 0 ms, in compacted topics without a `min.compaction.lag.ms` of their own (1 hour before; Kafka's default applies now)
        log.cleaner.delete.retention.ms null → 0: markers of deleted records are removed when they are older than 0 ms, in compacted topics without a `delete.retention.ms` of their own, so slower consumers miss them (1 day before)
        offsets.retention.minutes null → 1440: offsets of consumer groups that have been empty for longer than 1 day are deleted, so these groups start over (7 days before)
        log.roll.ms null → 3600000: segments end when they are 1 hour old, so their records are deleted or compacted sooner, in topics without a `segment.ms` of their own (7 days before)
        log.cleanup.policy null → "compact": of records with one key all but the newest are deleted, and so are those without a key, in topics without a `cleanup.policy` of their own
        log.cleanup.policy "compact" → null: records beyond the retention of their topic are deleted, in topics without a `cleanup.policy` of their own
        log.cleanup.policy "compact" → "delete,compact": records beyond the retention of their topic are deleted, in topics without a `cleanup.policy` of their own
        log.cleanup.policy "delete" → "delete,compact": of records with one key all but the newest are deleted, and so are those without a key, in topics without a `cleanup.policy` of their own
        "#);
    }

    /// Set by hand, as numbers or as text.
    #[test]
    fn options_that_no_spec_may_set_count_too() {
        let of = |before: Value, after: Value| {
            all_deleted(before.as_object().unwrap(), after.as_object().unwrap()).join("; ")
        };
        let told = [
            of(json!({"log.retention.hours": 87_600}), json!({})),
            of(json!({"log.retention.hours": "-1"}), json!({})),
            of(json!({"log.retention.minutes": 20_160, "log.retention.hours": 1}), json!({})),
            of(json!({"log.retention.hours": 336}), json!({"log.retention.ms": 86_400_000})),
            of(json!({"log.roll.hours": 336}), json!({})),
            of(json!({"log.cleaner.enable": "false"}), json!({})),
            of(json!({"log.cleaner.enable": false}), json!({"log.cleaner.enable": true})),
        ];
        insta::assert_snapshot!(told.join("\n"), @"
        records older than 7 days are deleted, in topics without a `retention.ms` of their own (3650 days before; Kafka's default applies now)
        records older than 7 days are deleted, in topics without a `retention.ms` of their own (all before; Kafka's default applies now)
        records older than 7 days are deleted, in topics without a `retention.ms` of their own (14 days before; Kafka's default applies now)
        records older than 1 day are deleted, in topics without a `retention.ms` of their own (14 days before)
        segments end when they are 7 days old, so their records are deleted or compacted sooner, in topics without a `segment.ms` of their own (14 days before; Kafka's default applies now)
        compacted topics are compacted, which they were not before: of records with one key all but the newest are deleted
        compacted topics are compacted, which they were not before: of records with one key all but the newest are deleted
        ");
        // The option that took precedence still does.
        let week = json!({"log.retention.ms": WEEK_MS, "log.retention.hours": 87_600});
        assert_eq!(of(week, json!({"log.retention.ms": WEEK_MS})), "");
        assert_eq!(of(json!({"log.retention.hours": 168}), json!({})), "");
        assert_eq!(of(json!({}), json!({"log.cleaner.enable": true})), "");
    }

    #[test]
    fn what_keeps_as_much_or_more_deletes_nothing() {
        let week = json!(WEEK_MS);
        for (option, before, after) in [
            (RETENTION_MS, Value::Null, week.clone()),
            (RETENTION_MS, week, Value::Null),
            (RETENTION_MS, json!(1_000), json!(-1)),
            (RETENTION_MS, json!(1_000), Value::Null),
            ("log.retention.bytes", json!(1_000), Value::Null),
            ("log.cleaner.min.compaction.lag.ms", Value::Null, json!(1_000)),
            (CLEANUP_POLICY, json!("delete,compact"), json!("compact")),
            (CLEANUP_POLICY, json!("delete,compact"), Value::Null),
            (CLEANUP_POLICY, json!("compact, delete"), json!("delete,compact")),
            // Options about segment sizes, and about local copies of what is in a bucket.
            ("log.segment.bytes", json!(1_i64 << 30), json!(1_i64 << 20)),
            ("log.segment.delete.delay.ms", json!(60_000), json!(0)),
            ("log.local.retention.ms", json!(-2), json!(1_000)),
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
