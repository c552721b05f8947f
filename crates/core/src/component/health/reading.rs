//! Reads fields from JSON of unknown shape.

use serde_json::Value;

/// A condition that the operator wrote.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperatorCondition {
    /// `Ready`, `NotReady`, `Warning`, `ReconciliationPaused`, …
    pub kind: String,
    pub holds: bool,
    pub reason: String,
    pub message: String,
    /// When the operator wrote it, as written. Distinguishes two equal verdicts.
    pub written: String,
}

/// The value at a path of keys.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

pub fn text(value: &Value, path: &[&str]) -> Option<String> {
    at(value, path)?.as_str().map(str::to_owned)
}

pub fn number<N: TryFrom<u64>>(value: &Value, path: &[&str]) -> Option<N> {
    N::try_from(at(value, path)?.as_u64()?).ok()
}

/// The count at a path. Values above 65,535 are no counts of anything here, and sums of counts must not
/// overflow.
pub fn count(value: &Value, path: &[&str]) -> Option<u32> {
    number::<u16>(value, path).map(u32::from)
}

pub fn items<'a>(value: &'a Value, path: &[&str]) -> impl Iterator<Item = &'a Value> + use<'a> {
    at(value, path).and_then(Value::as_array).into_iter().flatten()
}

pub fn name(object: &Value) -> Option<String> {
    text(object, &["metadata", "name"])
}

pub fn labelled(object: &Value, label: &str) -> Option<String> {
    text(object, &["metadata", "labels", label])
}

pub fn annotated(object: &Value, annotation: &str) -> Option<String> {
    text(object, &["metadata", "annotations", annotation])
}

pub fn deleting(object: &Value) -> bool {
    at(object, &["metadata", "deletionTimestamp"]).is_some()
}

pub fn conditions(object: &Value) -> Vec<OperatorCondition> {
    let word = |value: &Value, key| text(value, &[key]).unwrap_or_default();
    items(object, &["status", "conditions"])
        .map(|condition| OperatorCondition {
            kind: word(condition, "type"),
            // A pod set's status says `true` where all others say `True`.
            holds: word(condition, "status").eq_ignore_ascii_case("true"),
            reason: word(condition, "reason"),
            message: word(condition, "message"),
            written: word(condition, "lastTransitionTime"),
        })
        .collect()
}

pub fn holds(object: &Value, kind: &str) -> bool {
    conditions(object).iter().any(|condition| condition.kind == kind && condition.holds)
}
