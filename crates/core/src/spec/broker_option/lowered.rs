//! Options that make brokers refuse clients when they are lowered or become false.
//!
//! Broker defaults are those printed by Apache Kafka 4.3.1's `kafka.server.KafkaConfig`; client defaults are
//! those of Kafka's own clients.

use serde_json::Value;

use super::retention_loss::Unit::{self, Bytes, Members, Milliseconds};
use super::retention_loss::number;

struct Lowered {
    option: &'static str,
    default: i64,
    unit: Unit,
    /// The effect as a sentence, with `{}` for the new value.
    refuses: &'static str,
}

#[rustfmt::skip]
const LOWERED: &[Lowered] = &[
    Lowered { option: "connections.max.idle.ms", default: 600_000, unit: Milliseconds, refuses: "clients that are idle for \
         longer than {} are cut off and must reconnect; by default clients close idle connections after 9 minutes" },
    Lowered { option: "group.max.session.timeout.ms", default: 1_800_000, unit: Milliseconds, refuses: "consumers that \
         request a session timeout above {} can't join their group; by default they request 45 seconds" },
    Lowered { option: "group.max.size", default: i32::MAX as i64, unit: Members, refuses: "consumer groups with more than \
         {} lose the others, which can't join again" },
    Lowered { option: "log.message.timestamp.after.max.ms", default: 3_600_000, unit: Milliseconds, refuses: "records \
         whose timestamp is more than {} ahead are refused, in topics without a `message.timestamp.after.max.ms` of their \
         own" },
    Lowered { option: "log.message.timestamp.before.max.ms", default: i64::MAX, unit: Milliseconds, refuses: "records \
         whose timestamp is more than {} old are refused, in topics without a `message.timestamp.before.max.ms` of their \
         own" },
    Lowered { option: "message.max.bytes", default: 1_048_588, unit: Bytes, refuses: "batches of records above {} are \
         refused, in topics without a `max.message.bytes` of their own; by default producers send up to 1 MiB" },
    Lowered { option: "producer.id.expiration.ms", default: 86_400_000, unit: Milliseconds, refuses: "producers that are \
         idle for longer than {} are forgotten, so records that they send again later may be duplicated" },
    Lowered { option: "transaction.max.timeout.ms", default: 900_000, unit: Milliseconds, refuses: "producers that request \
         a transaction timeout above {} can't start transactions; by default they request 1 minute" },
    Lowered { option: "transactional.id.expiration.ms", default: 604_800_000, unit: Milliseconds, refuses: "transactional \
         ids that are unused for longer than {} are forgotten, and producers that return with one must start over" },
];

/// The options that permit something to clients, and the effect on clients without it. Kafka's default of
/// each is true.
const ALLOWING: [(&str, &str); 2] = [
    ("auto.create.topics.enable", "clients that name a missing topic get an error instead of a new topic"),
    ("delete.topic.enable", "clients can't delete topics any more"),
];

/// Describes which further clients brokers refuse when an option changes, as a sentence; `None` if none.
/// `Null` is an absent option.
pub fn refused_clients(option: &str, before: &Value, after: &Value) -> Option<String> {
    if let Some((_, refuses)) = ALLOWING.iter().find(|(allowing, _)| *allowing == option) {
        let allows = |value: &Value| !matches!(value, Value::Bool(false)) && value != "false";
        return (allows(before) && !allows(after)).then(|| (*refuses).to_owned());
    }
    let lowered = LOWERED.iter().find(|lowered| lowered.option == option)?;
    let value = |value: &Value| if value.is_null() { Some(lowered.default) } else { number(value) };
    let (was, is) = (value(before)?, value(after)?);
    (is < was).then(|| lowered.refuses.replace("{}", &lowered.unit.text(is)))
}

/// Describes the effect on clients of lowering an option or making it false, for any new value; `None` if
/// there is no effect.
pub(super) fn text(option: &str) -> Option<String> {
    if let Some((_, refuses)) = ALLOWING.iter().find(|(allowing, _)| *allowing == option) {
        return Some(format!("When it becomes false, {refuses}."));
    }
    let lowered = LOWERED.iter().find(|lowered| lowered.option == option)?;
    Some(format!("When it is lowered, {}.", lowered.refuses.replace("{}", "the new limit")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_is_turned_away_is_told() {
        assert_eq!(
            refused_clients("group.max.session.timeout.ms", &Value::Null, &json!(30_000)).unwrap(),
            "consumers that request a session timeout above 30 seconds can't join their group; by default they request 45 \
             seconds"
        );
        assert_eq!(
            refused_clients("message.max.bytes", &json!(2 << 20), &Value::Null).unwrap(),
            "batches of records above 1048588 bytes are refused, in topics without a `max.message.bytes` of their own; by \
             default producers send up to 1 MiB"
        );
        assert_eq!(
            refused_clients("group.max.size", &Value::Null, &json!(1)).unwrap(),
            "consumer groups with more than 1 member lose the others, which can't join again"
        );
        for (before, after) in [(json!(true), json!(false)), (Value::Null, json!("false"))] {
            assert_eq!(
                refused_clients("auto.create.topics.enable", &before, &after).unwrap(),
                "clients that name a missing topic get an error instead of a new topic"
            );
            assert_eq!(
                refused_clients("delete.topic.enable", &before, &after).unwrap(),
                "clients can't delete topics any more"
            );
            assert_eq!(refused_clients("delete.topic.enable", &after, &before), None);
        }
        for (option, before, after) in [
            ("delete.topic.enable", json!(true), Value::Null),
            ("message.max.bytes", Value::Null, json!(2 << 20)),
            ("message.max.bytes", json!(1_024), json!("1024")),
            ("num.partitions", json!(3), json!(1)),
        ] {
            assert_eq!(refused_clients(option, &before, &after), None, "{option}");
        }
    }

    #[test]
    fn whoever_is_turned_away_is_told_of_options_that_may_be_set() {
        let lowered = LOWERED.iter().map(|lowered| lowered.option);
        for option in lowered.chain(ALLOWING.map(|(option, _)| option)) {
            assert!(super::super::find(option).is_some() && text(option).is_some(), "{option}");
        }
    }
}
