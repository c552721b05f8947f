//! Aligns an old and a new list so that as few items as possible change.

use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The item of the old list becomes the item of the new one; they may be equal.
    Keep(usize, usize),
    /// Index in the old list.
    Remove(usize),
    /// Index in the new list.
    Insert(usize),
}

impl Step {
    pub fn removed(&self) -> Option<usize> {
        match self {
            Step::Remove(index) => Some(*index),
            Step::Keep(..) | Step::Insert(_) => None,
        }
    }
}

/// The cost of removing or inserting an item, on the scale of [`unlike`].
const EDIT_COST: usize = 4;
/// The most comparisons for which the optimal alignment is computed.
const MAX_COMPARISONS: usize = 1_000_000;

pub fn align(old: &[Value], new: &[Value]) -> Vec<Step> {
    let first = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[first..], &new[first..]);
    let last = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_middle, new_middle) = (&old_rest[..old_rest.len() - last], &new_rest[..new_rest.len() - last]);
    let shifted = |step: Step| match step {
        Step::Keep(i, j) => Step::Keep(i + first, j + first),
        Step::Remove(i) => Step::Remove(i + first),
        Step::Insert(j) => Step::Insert(j + first),
    };
    let tail = (0..last).map(|k| Step::Keep(old.len() - last + k, new.len() - last + k));
    let middle = between(old_middle, new_middle).into_iter().map(shifted);
    (0..first).map(|k| Step::Keep(k, k)).chain(middle).chain(tail).collect()
}

fn between(old: &[Value], new: &[Value]) -> Vec<Step> {
    let (rows, columns) = (old.len(), new.len());
    if rows.saturating_mul(columns) > MAX_COMPARISONS {
        let removed = (columns.min(rows)..rows).map(Step::Remove);
        let inserted = (rows.min(columns)..columns).map(Step::Insert);
        return (0..rows.min(columns)).map(|k| Step::Keep(k, k)).chain(removed).chain(inserted).collect();
    }
    // The least cost of the rest, from item i of the old list and item j of the new one.
    let mut costs = vec![vec![0_usize; columns + 1]; rows + 1];
    for i in (0..=rows).rev() {
        for j in (0..=columns).rev() {
            costs[i][j] = match (i < rows, j < columns) {
                (false, false) => 0,
                (true, false) => EDIT_COST + costs[i + 1][j],
                (false, true) => EDIT_COST + costs[i][j + 1],
                (true, true) => (EDIT_COST + costs[i + 1][j])
                    .min(EDIT_COST + costs[i][j + 1])
                    .min(item_difference(&old[i], &new[j]) + costs[i + 1][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut steps = Vec::new();
    while i < rows || j < columns {
        let both = i < rows && j < columns;
        if both && costs[i][j] == item_difference(&old[i], &new[j]) + costs[i + 1][j + 1] {
            steps.push(Step::Keep(i, j));
            (i, j) = (i + 1, j + 1);
        } else if i < rows && costs[i][j] == EDIT_COST + costs[i + 1][j] {
            steps.push(Step::Remove(i));
            i += 1;
        } else {
            steps.push(Step::Insert(j));
            j += 1;
        }
    }
    steps
}

/// Returns how different two items are, from 0 to less than the cost of removing one and inserting the other.
fn item_difference(old: &Value, new: &Value) -> usize {
    match (old, new) {
        _ if old == new => 0,
        // The same member with another role, or the same label with another value.
        _ if is_same_item(old, new) => 3,
        (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_)) => 2 * EDIT_COST - 2,
        _ => 2 * EDIT_COST - 1,
    }
}

/// Fields that identify the items of a list.
const NAMES: [&str; 4] = ["identifier", "name", "key", "email"];

/// Whether two items of a list describe the same thing, perhaps with other values, so that a comment on one
/// also applies to the other.
pub fn is_same_item(old: &Value, new: &Value) -> bool {
    let (Value::Object(fields), Value::Object(others)) = (old, new) else { return old == new };
    match NAMES.iter().find(|name| fields.contains_key(**name) && others.contains_key(**name)) {
        Some(name) => fields[*name] == others[*name],
        None => fields.iter().any(|(name, value)| others.get(name) == Some(value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Step::{Insert, Keep, Remove};
    use super::*;

    #[test]
    fn what_is_the_same_stays() {
        let steps = |old: Value, new: Value| align(old.as_array().unwrap(), new.as_array().unwrap());
        assert_eq!(steps(json!([1, 2, 3]), json!([1, 3])), [Keep(0, 0), Remove(1), Keep(2, 1)]);
        assert_eq!(steps(json!([1, 3]), json!([1, 2, 3])), [Keep(0, 0), Insert(1), Keep(1, 2)]);
        assert_eq!(steps(json!([1, 2]), json!([1, 5])), [Keep(0, 0), Keep(1, 1)]);
        assert_eq!(steps(json!([]), json!([1])), [Insert(0)]);
        assert_eq!(steps(json!([1, 2]), json!([2, 1])).iter().filter(|s| matches!(s, Keep(..))).count(), 1);
        let (ann, bob) =
            (json!({"email": "ann", "role": "admin"}), json!({"email": "bob", "role": "viewer"}));
        let promoted = json!({"email": "bob", "role": "editor"});
        assert_eq!(steps(json!([ann, bob]), json!([promoted])), [Remove(0), Keep(1, 0)]);
        assert_eq!(steps(json!([bob]), json!([ann, promoted])), [Insert(0), Keep(0, 1)]);
    }

    #[test]
    fn long_lists_are_paired_one_by_one() {
        let list = |from: usize, count: usize| (from..from + count).map(Value::from).collect::<Vec<_>>();
        let steps = align(&list(0, 2_000), &list(1, 2_001));
        assert_eq!(steps.len(), 2_001);
        assert_eq!(steps.last(), Some(&Insert(2_000)));
    }
}
