//! The fields in which two objects differ, and the direction of each change.

use std::cmp::Ordering;

use serde_json::Value;

use super::SecretSlot;
use super::consequence::Direction;
use crate::names::QUANTITY_SUFFIXES;

/// A changed field of an object. Absent values are null.
pub struct Difference<'a> {
    /// The field, as a JSON pointer.
    pub pointer: String,
    pub before: &'a Value,
    pub after: &'a Value,
}

impl Difference<'_> {
    pub fn direction(&self) -> Direction {
        let on = |value: &Value| *value == Value::Bool(true);
        match (on(self.before), on(self.after)) {
            (false, true) => return Direction::On,
            (true, false) => return Direction::Off,
            _ => {}
        }
        if let (Value::Array(before), Value::Array(after)) = (self.before, self.after) {
            return resized(before, after);
        }
        match magnitude(self.before).zip(magnitude(self.after)).and_then(|(a, b)| a.partial_cmp(&b)) {
            Some(Ordering::Less) => Direction::Up,
            Some(Ordering::Greater) => Direction::Down,
            _ => Direction::Other,
        }
    }
}

/// Returns how a list changes: it grows if all old items stay, and shrinks if all new items were there.
fn resized(before: &[Value], after: &[Value]) -> Direction {
    let within = |inner: &[Value], outer: &[Value]| inner.iter().all(|item| outer.contains(item));
    match (within(before, after), within(after, before)) {
        (true, false) => Direction::Up,
        (false, true) => Direction::Down,
        _ => Direction::Other,
    }
}

/// Returns all changed fields. Objects, and lists of equal length, are compared recursively.
pub fn differences<'a>(before: &'a Value, after: &'a Value) -> Vec<Difference<'a>> {
    let mut found = Vec::new();
    walk(&mut String::new(), before, after, &mut found);
    found
}

fn walk<'a>(pointer: &mut String, before: &'a Value, after: &'a Value, found: &mut Vec<Difference<'a>>) {
    if before == after || same_secret(before, after) {
        return;
    }
    match (before, after) {
        (Value::Object(was), Value::Object(is)) if !is.contains_key(SecretSlot::KEY) => {
            let added = is.keys().filter(|key| !was.contains_key(*key));
            for key in was.keys().chain(added) {
                let part = key.replace('~', "~0").replace('/', "~1");
                let [before, after] = [was, is].map(|object| object.get(key).unwrap_or(&Value::Null));
                within(pointer, &part, before, after, found);
            }
        }
        (Value::Array(was), Value::Array(is)) if was.len() == is.len() => {
            for (index, (before, after)) in was.iter().zip(is).enumerate() {
                within(pointer, &index.to_string(), before, after, found);
            }
        }
        _ => found.push(Difference { pointer: pointer.clone(), before, after }),
    }
}

fn within<'a>(
    pointer: &mut String,
    part: &str,
    before: &'a Value,
    after: &'a Value,
    found: &mut Vec<Difference<'a>>,
) {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(part);
    walk(pointer, before, after, found);
    pointer.truncate(length);
}

/// Whether two values are the same secret: another slot or a bare fingerprint of the same value.
fn same_secret(before: &Value, after: &Value) -> bool {
    let Some(slot) = SecretSlot::from_value(after) else {
        return false;
    };
    match SecretSlot::from_value(before) {
        Some(before) => before.fingerprint == slot.fingerprint && before.encoding == slot.encoding,
        None => before.as_str() == Some(&slot.fingerprint),
    }
}

/// Returns the order of a value: a number, a Kubernetes quantity, a version, or a level of pod security.
fn magnitude(value: &Value) -> Option<Vec<f64>> {
    match value {
        Value::Number(number) => Some(vec![number.as_f64()?]),
        Value::String(text) => {
            let size = || quantity(text).map(|size| vec![size]);
            size().or_else(|| version(text)).or_else(|| pod_security(text).map(|level| vec![level]))
        }
        _ => None,
    }
}

/// Parses a Kubernetes quantity, such as `500Gi` or `2900m`.
fn quantity(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (_, factor) = QUANTITY_SUFFIXES.iter().find(|(name, _)| *name == suffix)?;
    Some(number.parse::<f64>().ok()? * factor)
}

fn pod_security(text: &str) -> Option<f64> {
    [("privileged", 0.0), ("baseline", 1.0), ("restricted", 2.0)]
        .into_iter()
        .find_map(|(name, level)| (name == text).then_some(level))
}

/// Returns the numbers of a version, such as `4.3.1` or `4.3-IV0`.
fn version(text: &str) -> Option<Vec<f64>> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    numbers.map(|part| part.parse().ok()).collect()
}
