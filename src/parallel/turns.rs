//! Places for work that parties who don't trust each other take in turns: nobody has to wait until everything of another is done.

use std::collections::{BTreeMap, VecDeque};

/// The most parties of which it is remembered when they last had a place.
const REMEMBERED: usize = 1024;

/// Places, and who waits for one. The next place is for a party that comes first, then for the one that has the fewest, then for
/// the one that had none for the longest.
#[derive(Debug)]
pub struct Turns<P, T> {
    places: usize,
    /// How many more there are, for parties that have no place.
    more: usize,
    comes_first: fn(&P) -> bool,
    taken: BTreeMap<P, usize>,
    waiting: BTreeMap<P, VecDeque<T>>,
    /// Which place each party took last, counted from the first.
    last: BTreeMap<P, u64>,
    count: u64,
}

impl<P: Ord + Clone, T> Turns<P, T> {
    /// So many places, all of them free.
    pub fn new(places: usize) -> Self {
        Self {
            places,
            more: 0,
            comes_first: |_| false,
            taken: BTreeMap::new(),
            waiting: BTreeMap::new(),
            last: BTreeMap::new(),
            count: 0,
        }
    }

    /// The same with so many more places for parties that have none.
    pub fn with_more(self, more: usize) -> Self {
        Self { more, ..self }
    }

    /// The same where some parties are always served before the others.
    pub fn putting_first(self, comes_first: fn(&P) -> bool) -> Self {
        Self { comes_first, ..self }
    }

    /// From now on there are so many places, and so many more for parties that have none. Who has one keeps it.
    pub fn set_places(&mut self, places: usize, more: usize) {
        (self.places, self.more) = (places, more);
    }

    /// A party wants another place, for this.
    pub fn wait(&mut self, party: P, item: T) {
        self.waiting.entry(party).or_default().push_back(item);
    }

    /// What a party waits for.
    pub fn waiting(&self, party: &P) -> impl Iterator<Item = &T> {
        self.waiting.get(party).into_iter().flatten()
    }

    /// Lets only some of it go on waiting.
    pub fn retain(&mut self, goes_on: impl Fn(&T) -> bool) {
        self.waiting.values_mut().for_each(|items| items.retain(&goes_on));
        self.waiting.retain(|_, items| !items.is_empty());
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Nobody waits any more.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// What doesn't have to wait any longer, and whose it is. It has a place until the party [leaves](Turns::leave) it.
    pub fn admit(&mut self) -> Option<(P, T)> {
        let taken = |party: &P| self.taken.get(party).copied().unwrap_or_default();
        let all: usize = self.taken.values().sum();
        let is_free = |party: &P| all < self.places || (all < self.places + self.more && taken(party) == 0);
        let order = |party: &P| (!(self.comes_first)(party), taken(party), self.last.get(party).copied());
        let waiting = self.waiting.keys().filter(|party| is_free(party));
        let party = waiting.min_by_key(|party| order(party))?.clone();
        let items = self.waiting.get_mut(&party)?;
        let item = items.pop_front()?;
        if items.is_empty() {
            self.waiting.remove(&party);
        }
        *self.taken.entry(party.clone()).or_default() += 1;
        self.count += 1;
        self.last.insert(party.clone(), self.count);
        self.forget_oldest();
        Some((party, item))
    }

    /// A party gives one of its places back.
    pub fn leave(&mut self, party: &P) {
        if let Some(taken) = self.taken.get_mut(party) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(party);
            }
        }
    }

    fn forget_oldest(&mut self) {
        if self.last.len() > REMEMBERED {
            let oldest = self.last.iter().min_by_key(|(_, last)| **last).map(|(party, _)| party.clone());
            oldest.and_then(|oldest| self.last.remove(&oldest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(turns: &mut Turns<&'static str, u32>) -> Vec<(&'static str, u32)> {
        std::iter::from_fn(|| turns.admit()).collect()
    }

    #[test]
    fn parties_take_turns_and_each_in_the_order_of_what_it_wants() {
        let mut turns = Turns::new(1);
        (0..3).for_each(|number| turns.wait("many", number));
        turns.wait("one", 7);
        let mut order = Vec::new();
        while let Some((party, number)) = turns.admit() {
            order.push((party, number));
            assert_eq!(turns.admit(), None, "there is one place");
            turns.leave(&party);
        }
        assert_eq!(order, [("many", 0), ("one", 7), ("many", 1), ("many", 2)]);
        // Who had a turn is remembered when it wants another one.
        turns.wait("many", 3);
        turns.wait("one", 8);
        assert_eq!(turns.admit(), Some(("one", 8)));
        assert_eq!(turns.waiting(&"many").count(), 1);
        turns.retain(|number| *number != 3);
        assert!(turns.is_empty());
    }

    #[test]
    fn a_party_that_has_all_places_leaves_the_others_one_each() {
        let mut turns = Turns::new(2).with_more(2);
        (0..9).for_each(|number| turns.wait("many", number));
        assert_eq!(served(&mut turns), [("many", 0), ("many", 1)]);
        (0..2).for_each(|number| turns.wait("one", number));
        assert_eq!(served(&mut turns), [("one", 0)], "and no more than one");
        ["two", "three"].into_iter().for_each(|party| turns.wait(party, 0));
        assert_eq!(served(&mut turns), [("three", 0)], "and no more than there are");
        turns.leave(&"one");
        assert_eq!(served(&mut turns), [("two", 0)]);
        // Once there is room again, it goes on with who has the fewest.
        ["two", "three", "many"].iter().for_each(|party| turns.leave(party));
        assert_eq!(served(&mut turns), [("one", 1)]);
        turns.leave(&"one");
        assert_eq!(served(&mut turns), [("many", 2)]);
    }

    #[test]
    fn who_comes_first_is_served_first() {
        let mut turns = Turns::new(1).putting_first(|party| *party == "owner");
        turns.wait("guest", 0);
        turns.wait("owner", 1);
        turns.wait("owner", 2);
        for expected in [("owner", 1), ("owner", 2), ("guest", 0)] {
            assert_eq!(turns.admit(), Some(expected));
            turns.leave(&expected.0);
        }
        assert!(turns.is_empty());
    }

    #[test]
    fn what_is_remembered_of_parties_is_bounded() {
        let mut turns = Turns::new(1);
        for party in 0..2 * REMEMBERED {
            turns.wait(party, ());
            assert!(turns.admit().is_some());
            turns.leave(&party);
        }
        assert_eq!(turns.last.len(), REMEMBERED);
        assert!(turns.taken.is_empty() && turns.is_empty());
    }
}
