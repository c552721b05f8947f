//! Memory for persons, limited for each person and in all.

use std::collections::VecDeque;

pub trait Kept {
    /// Whether both belong to the same person.
    fn is_of_owner(&self, other: &Self) -> bool;

    /// Its size in bytes.
    fn size(&self) -> usize;
}

/// The number of items of one person and in all, and their size in bytes together.
pub struct Bounds {
    pub of_one: usize,
    pub count: usize,
    pub bytes: usize,
}

impl Bounds {
    /// Adds an item. The oldest ones of its person go first; if there is too much in all, those of the person who has the most.
    pub fn add<T: Kept>(&self, kept: &mut VecDeque<T>, item: T) {
        let own = kept.iter().filter(|known| known.is_of_owner(&item)).count();
        if own >= self.of_one
            && let Some(oldest) = kept.iter().position(|known| known.is_of_owner(&item))
        {
            kept.remove(oldest);
        }
        kept.push_back(item);
        while kept.len() > self.count || kept.iter().map(Kept::size).sum::<usize>() > self.bytes {
            let room = |of: &T| {
                let own = kept.iter().filter(|known| known.is_of_owner(of));
                own.fold((0, 0), |(size, count), known| (size + known.size(), count + 1))
            };
            let most = kept.iter().map(room).max();
            let Some(oldest) = kept.iter().position(|known| Some(room(known)) == most) else { break };
            kept.remove(oldest);
        }
    }
}
