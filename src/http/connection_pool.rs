//! The connection pool, with a limit in all and one for each address. When it is full, the connection that
//! has been idle for longest is closed; if none is idle, a new connection waits for a moment.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::timeout;

use super::limiter::Address;
use crate::parallel::locked;

/// How long a new connection waits for a slot.
const PATIENCE: Duration = Duration::from_secs(3);

pub struct ConnectionPool {
    most: usize,
    most_of_one: usize,
    /// Updates replace whole values, so a poisoned lock is safe to use.
    slots: Mutex<SlotTable>,
    freed: Notify,
}

#[derive(Default)]
struct SlotTable {
    next: u64,
    taken: BTreeMap<u64, SlotEntry>,
}

struct SlotEntry {
    address: Option<Address>,
    /// Since when the connection is idle or still sending a request body; `None` while a request is
    /// processed.
    idle: Option<Instant>,
    gone: Arc<Notify>,
}

/// A connection's slot, which is freed when this is dropped.
pub struct ConnectionSlot {
    activity: SlotActivity,
    gone: Arc<Notify>,
}

/// Sets whether a connection is busy or idle.
#[derive(Clone)]
pub struct SlotActivity {
    pool: Arc<ConnectionPool>,
    number: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    Wholly,
    ForAddress,
}

impl ConnectionPool {
    pub fn new(most: usize, most_of_one: usize) -> Arc<ConnectionPool> {
        Arc::new(ConnectionPool { most, most_of_one, slots: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a slot for a connection. Without an address, as on the socket, only the total limit applies.
    ///
    /// # Errors
    /// When no connection is idle and none ends in time.
    pub async fn enter(self: &Arc<ConnectionPool>, address: Option<IpAddr>) -> Result<ConnectionSlot, Full> {
        let waits = async {
            loop {
                let freed = self.freed.notified();
                match self.take(address) {
                    // Only the total limit is waited for: one address must not make others wait.
                    Err(Full::Wholly) => freed.await,
                    taken => return taken,
                }
            }
        };
        timeout(PATIENCE, waits).await.unwrap_or(Err(Full::Wholly))
    }

    fn take(self: &Arc<ConnectionPool>, address: Option<IpAddr>) -> Result<ConnectionSlot, Full> {
        let address = address.map(Address::from);
        let mut slots = locked(&self.slots);
        let of_one = slots.taken.values().filter(|slot| address.is_some() && slot.address == address).count();
        if of_one >= self.most_of_one && !slots.evict_longest_idle(|slot| slot.address == address) {
            return Err(Full::ForAddress);
        }
        if slots.taken.len() >= self.most && !slots.evict_longest_idle(|_| true) {
            return Err(Full::Wholly);
        }
        let number = slots.next;
        slots.next += 1;
        let gone = Arc::new(Notify::new());
        let slot = SlotEntry { address, idle: Some(Instant::now()), gone: Arc::clone(&gone) };
        slots.taken.insert(number, slot);
        Ok(ConnectionSlot { activity: SlotActivity { pool: Arc::clone(self), number }, gone })
    }
}

impl SlotTable {
    /// Closes the connection that has been idle for longest; returns false if none is idle.
    fn evict_longest_idle(&mut self, of: impl Fn(&SlotEntry) -> bool) -> bool {
        let idle = self.taken.iter().filter(|(_, slot)| of(slot));
        let idle = idle.filter_map(|(number, slot)| Some((slot.idle?, *number))).min();
        let slot = idle.and_then(|(_, number)| self.taken.remove(&number));
        slot.is_some_and(|slot| {
            slot.gone.notify_one();
            true
        })
    }
}

impl SlotActivity {
    /// Marks the connection as busy, so that it isn't closed.
    pub fn mark_busy(&self) {
        self.set(None);
    }

    pub fn mark_idle(&self) {
        self.set(Some(Instant::now()));
    }

    fn set(&self, idle: Option<Instant>) {
        if let Some(slot) = locked(&self.pool.slots).taken.get_mut(&self.number) {
            slot.idle = idle;
        }
    }
}

impl ConnectionSlot {
    pub fn activity(&self) -> &SlotActivity {
        &self.activity
    }

    /// Waits until the connection has to close in favour of another.
    pub async fn evicted(&self) {
        self.gone.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        // The slot may already have been given to another connection.
        let SlotActivity { pool, number } = &self.activity;
        if locked(&pool.slots).taken.remove(number).is_some() {
            pool.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    async fn is_sent_away(place: &ConnectionSlot) -> bool {
        timeout(Duration::from_millis(1), place.evicted()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_been_idle_for_longest_gives_way() {
        let pool = ConnectionPool::new(3, 3);
        let enter =
            || async { pool.enter(address("10.0.0.1")).await.unwrap_or_else(|full| panic!("{full:?}")) };
        let (first, second, third) = (enter().await, enter().await, enter().await);
        first.activity().mark_busy();
        let fourth = enter().await;
        assert!(is_sent_away(&second).await);
        for place in [&first, &third, &fourth] {
            assert!(!is_sent_away(place).await);
        }
        assert_eq!(locked(&pool.slots).taken.len(), 3);
        // It has lost its slot already, and doesn't free another's.
        drop(second);
        assert_eq!(locked(&pool.slots).taken.len(), 3);
        first.activity().mark_idle();
        let _fifth = enter().await;
        assert!(is_sent_away(&third).await && !is_sent_away(&first).await);
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_are_busy_one_waits_for_somebody_to_leave() {
        let pool = ConnectionPool::new(1, 1);
        let first = pool.enter(None).await.unwrap_or_else(|full| panic!("{full:?}"));
        first.activity().mark_busy();
        assert_eq!(pool.enter(None).await.err(), Some(Full::Wholly));
        let waiting = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.enter(None).await.map(drop) }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert_eq!(waiting.await.unwrap(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_does_not_take_all_room() {
        let pool = ConnectionPool::new(4, 2);
        let mut places = Vec::new();
        for _ in 0..2 {
            places.push(pool.enter(address("2001:db8::1")).await.unwrap_or_else(|full| panic!("{full:?}")));
        }
        places.iter().for_each(|place| place.activity().mark_busy());
        assert_eq!(pool.enter(address("2001:db8::2")).await.err(), Some(Full::ForAddress));
        assert!(pool.enter(address("2001:db8:0:1::1")).await.is_ok());
        assert!(pool.enter(address("10.0.0.1")).await.is_ok());
    }
}
