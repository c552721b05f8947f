//! Pairwise rows: every pair of values of any two fields, in far fewer rows than there are combinations.

use std::collections::BTreeSet;

/// Indexes of a field and one of its values.
pub type Choice = (usize, usize);

/// Rows with the index of a value for every field. No row contains a `refused` combination. Greedy: each row
/// starts from a pair in no earlier row, and takes for every other field the value that adds the most new
/// pairs.
pub fn rows(values: &[usize], refused: impl Fn(&[Choice]) -> bool) -> Vec<Vec<usize>> {
    let mut missing = pairs(values);
    missing.retain(|&(one, other)| !refused(&[one, other]));
    let mut rows = Vec::new();
    while let Some(&(one, other)) = missing.first() {
        let mut chosen = vec![one, other];
        for field in (0..values.len()).filter(|&field| field != one.0 && field != other.0) {
            let fits = |&choice: &Choice| !refused(&[&chosen[..], &[choice]].concat());
            let gain = |choice: &Choice| {
                chosen.iter().filter(|before| missing.contains(&pair(**before, *choice))).count()
            };
            let choices = (0..values[field]).map(|value| (field, value)).filter(fits);
            // `max_by_key` returns the last of equals, and the first is wanted.
            let best = choices.rev().max_by_key(gain);
            chosen.push(best.unwrap_or_else(|| panic!("no value of field {field} goes with {chosen:?}")));
        }
        chosen.sort_unstable();
        missing.retain(|(one, other)| !(chosen.contains(one) && chosen.contains(other)));
        rows.push(chosen.into_iter().map(|(_, value)| value).collect());
    }
    rows
}

fn pairs(values: &[usize]) -> BTreeSet<(Choice, Choice)> {
    let choices =
        || values.iter().enumerate().flat_map(|(field, &count)| (0..count).map(move |it| (field, it)));
    let later = |one: Choice| choices().filter(move |other| other.0 > one.0).map(move |other| (one, other));
    choices().flat_map(later).collect()
}

fn pair(one: Choice, other: Choice) -> (Choice, Choice) {
    (one.min(other), one.max(other))
}

#[test]
fn every_pair_that_may_be_is_in_a_row() {
    let values = [2, 3, 4, 2, 1];
    let rows = rows(&values, |chosen| chosen.contains(&(0, 1)) && chosen.contains(&(2, 3)));
    let mut seen = BTreeSet::new();
    for row in &rows {
        let choices: Vec<Choice> = row.iter().copied().enumerate().collect();
        let both = |&one: &Choice| choices.iter().map(move |&other| (one, other));
        seen.extend(choices.iter().flat_map(both).filter(|(one, other)| one.0 < other.0));
    }
    let mut expected = pairs(&values);
    assert!(expected.remove(&((0, 1), (2, 3))));
    assert_eq!(seen, expected);
    assert!(rows.len() < 20, "{} rows, of 48 combinations", rows.len());
}
