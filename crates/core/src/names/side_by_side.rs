use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The entries of two maps by their keys, each key once and in order. It compares keys once for each entry, where a search
/// would for each level of the other map.
pub fn side_by_side<'a, K: Ord, V, W>(
    one: &'a BTreeMap<K, V>,
    other: &'a BTreeMap<K, W>,
) -> impl Iterator<Item = (&'a K, Option<&'a V>, Option<&'a W>)> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    std::iter::from_fn(move || {
        let order = match (one.peek(), other.peek()) {
            (Some((key, _)), Some((its, _))) => key.cmp(its),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let first = one.next_if(|_| order.is_le());
        let second = other.next_if(|_| order.is_ge());
        let key = first.map(|(key, _)| key).or(second.map(|(key, _)| key))?;
        Some((key, first.map(|(_, value)| value), second.map(|(_, value)| value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_either_map_comes_once_and_in_order() {
        let (one, other) =
            (BTreeMap::from([(1, 'a'), (3, 'b'), (4, 'c')]), BTreeMap::from([(2, 'x'), (3, 'y')]));
        let all: Vec<_> = side_by_side(&one, &other).collect();
        assert_eq!(
            all,
            [
                (&1, Some(&'a'), None),
                (&2, None, Some(&'x')),
                (&3, Some(&'b'), Some(&'y')),
                (&4, Some(&'c'), None)
            ]
        );
    }
}
