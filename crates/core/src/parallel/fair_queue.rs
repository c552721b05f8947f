//! A fair queue for parties that don't trust each other: no party waits until all work of another is done.

use std::collections::{BTreeMap, VecDeque};

/// The maximum number of parties whose last turn is remembered.
const REMEMBERED: usize = 1024;

/// A limited number of slots, and the items that wait for one. The next slot is given to a party that has
/// priority, then to the one with the fewest slots, then to the one that has had none for the longest time.
#[derive(Debug)]
pub struct FairQueue<P, T> {
    places: usize,
    /// Additional slots for parties that have none.
    more: usize,
    comes_first: fn(&P) -> bool,
    taken: BTreeMap<P, usize>,
    waiting: BTreeMap<P, VecDeque<T>>,
    /// The number of the last slot that each party was given, in order of assignment.
    last: BTreeMap<P, u64>,
    count: u64,
}

impl<P: Ord + Clone, T> FairQueue<P, T> {
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

    /// Adds slots that are only given to parties that have none.
    pub fn with_reserve_slots(self, more: usize) -> Self {
        Self { more, ..self }
    }

    /// Sets which parties are always served before the others.
    pub fn with_priority(self, comes_first: fn(&P) -> bool) -> Self {
        Self { comes_first, ..self }
    }

    /// Changes the number of slots. Assigned slots stay assigned.
    pub fn set_places(&mut self, places: usize, more: usize) {
        (self.places, self.more) = (places, more);
    }

    pub fn enqueue(&mut self, party: P, item: T) {
        self.waiting.entry(party).or_default().push_back(item);
    }

    pub fn waiting(&self, party: &P) -> impl Iterator<Item = &T> {
        self.waiting.get(party).into_iter().flatten()
    }

    /// Drops the waiting items for which `goes_on` returns false.
    pub fn retain(&mut self, goes_on: impl Fn(&T) -> bool) {
        self.waiting.values_mut().for_each(|items| items.retain(&goes_on));
        self.waiting.retain(|_, items| !items.is_empty());
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Assigns a slot to the next item and returns it with its party. The slot is taken until the party
    /// [frees](FairQueue::release_slot) it.
    pub fn assign_slot(&mut self) -> Option<(P, T)> {
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

    /// Frees one of a party's slots.
    pub fn release_slot(&mut self, party: &P) {
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

    fn served(turns: &mut FairQueue<&'static str, u32>) -> Vec<(&'static str, u32)> {
        std::iter::from_fn(|| turns.assign_slot()).collect()
    }

    #[test]
    fn parties_take_turns_and_each_in_the_order_of_what_it_wants() {
        let mut turns = FairQueue::new(1);
        (0..3).for_each(|number| turns.enqueue("many", number));
        turns.enqueue("one", 7);
        let mut order = Vec::new();
        while let Some((party, number)) = turns.assign_slot() {
            order.push((party, number));
            assert_eq!(turns.assign_slot(), None, "there is one place");
            turns.release_slot(&party);
        }
        assert_eq!(order, [("many", 0), ("one", 7), ("many", 1), ("many", 2)]);
        // The last turn is still remembered when a party returns.
        turns.enqueue("many", 3);
        turns.enqueue("one", 8);
        assert_eq!(turns.assign_slot(), Some(("one", 8)));
        assert_eq!(turns.waiting(&"many").count(), 1);
        turns.retain(|number| *number != 3);
        assert!(turns.is_empty());
    }

    #[test]
    fn a_party_that_has_all_places_leaves_the_others_one_each() {
        let mut turns = FairQueue::new(2).with_reserve_slots(2);
        (0..9).for_each(|number| turns.enqueue("many", number));
        assert_eq!(served(&mut turns), [("many", 0), ("many", 1)]);
        (0..2).for_each(|number| turns.enqueue("one", number));
        assert_eq!(served(&mut turns), [("one", 0)], "and no more than one");
        ["two", "three"].into_iter().for_each(|party| turns.enqueue(party, 0));
        assert_eq!(served(&mut turns), [("three", 0)], "and no more than there are");
        turns.release_slot(&"one");
        assert_eq!(served(&mut turns), [("two", 0)]);
        // Once there is room again, the party with the fewest slots comes next.
        ["two", "three", "many"].iter().for_each(|party| turns.release_slot(party));
        assert_eq!(served(&mut turns), [("one", 1)]);
        turns.release_slot(&"one");
        assert_eq!(served(&mut turns), [("many", 2)]);
    }

    #[test]
    fn who_comes_first_is_served_first() {
        let mut turns = FairQueue::new(1).with_priority(|party| *party == "owner");
        turns.enqueue("guest", 0);
        turns.enqueue("owner", 1);
        turns.enqueue("owner", 2);
        for expected in [("owner", 1), ("owner", 2), ("guest", 0)] {
            assert_eq!(turns.assign_slot(), Some(expected));
            turns.release_slot(&expected.0);
        }
        assert!(turns.is_empty());
    }

    #[test]
    fn what_is_remembered_of_parties_is_bounded() {
        let mut turns = FairQueue::new(1);
        for party in 0..2 * REMEMBERED {
            turns.enqueue(party, ());
            assert!(turns.assign_slot().is_some());
            turns.release_slot(&party);
        }
        assert_eq!(turns.last.len(), REMEMBERED);
        assert!(turns.taken.is_empty() && turns.is_empty());
    }
}
