//! The connection pool, with a limit in all and one for each address. When it is full, the connection that
//! has been idle for longest is closed; if none is idle, a new connection waits for a moment.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::timeout;

use super::limiter::Address;
use crate::parallel::locked;

/// How long a new connection waits for a slot.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) struct Room {
    most: usize,
    most_of_one: usize,
    seats: Mutex<Seats>,
    freed: Notify,
}

#[derive(Default)]
struct Seats {
    next: u64,
    taken: BTreeMap<u64, Seat>,
}

struct Seat {
    address: Option<Address>,
    /// Since when the connection is idle or still sending a request body; `None` while a request is
    /// processed.
    idle: Option<Instant>,
    gone: Arc<Notify>,
}

/// A connection's slot, which is freed when this is dropped.
pub(super) struct Place {
    chair: Chair,
    gone: Arc<Notify>,
}

/// Sets whether a connection is busy or idle.
#[derive(Clone)]
pub(super) struct Chair {
    room: Arc<Room>,
    number: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Wholly,
    ForAddress,
}

impl Room {
    pub fn new(most: usize, most_of_one: usize) -> Arc<Room> {
        Arc::new(Room { most, most_of_one, seats: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a slot for a connection. Without an address, as on the socket, only the total limit applies.
    ///
    /// # Errors
    /// When no connection is idle and none ends in time.
    pub async fn enter(self: &Arc<Room>, address: Option<IpAddr>) -> Result<Place, Full> {
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

    fn take(self: &Arc<Room>, address: Option<IpAddr>) -> Result<Place, Full> {
        let address = address.map(Address::from);
        let mut seats = self.seats();
        let of_one = seats.taken.values().filter(|seat| address.is_some() && seat.address == address).count();
        if of_one >= self.most_of_one && !seats.send_away(|seat| seat.address == address) {
            return Err(Full::ForAddress);
        }
        if seats.taken.len() >= self.most && !seats.send_away(|_| true) {
            return Err(Full::Wholly);
        }
        let number = seats.next;
        seats.next += 1;
        let gone = Arc::new(Notify::new());
        let seat = Seat { address, idle: Some(Instant::now()), gone: Arc::clone(&gone) };
        seats.taken.insert(number, seat);
        Ok(Place { chair: Chair { room: Arc::clone(self), number }, gone })
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        // Updates replace whole values, so a poisoned lock is safe to use.
        locked(&self.seats)
    }
}

impl Seats {
    /// Closes the connection that has been idle for longest; returns false if none is idle.
    fn send_away(&mut self, of: impl Fn(&Seat) -> bool) -> bool {
        let idle = self.taken.iter().filter(|(_, seat)| of(seat));
        let idle = idle.filter_map(|(number, seat)| Some((seat.idle?, *number))).min();
        let seat = idle.and_then(|(_, number)| self.taken.remove(&number));
        seat.is_some_and(|seat| {
            seat.gone.notify_one();
            true
        })
    }
}

impl Chair {
    /// Marks the connection as busy, so that it isn't closed.
    pub fn is_busy(&self) {
        self.set(None);
    }

    pub fn is_idle(&self) {
        self.set(Some(Instant::now()));
    }

    fn set(&self, idle: Option<Instant>) {
        if let Some(seat) = self.room.seats().taken.get_mut(&self.number) {
            seat.idle = idle;
        }
    }
}

impl Place {
    pub fn chair(&self) -> &Chair {
        &self.chair
    }

    /// Waits until the connection has to close in favour of another.
    pub async fn is_gone(&self) {
        self.gone.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The slot may already have been given to another connection.
        let Chair { room, number } = &self.chair;
        if room.seats().taken.remove(number).is_some() {
            room.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    async fn is_sent_away(place: &Place) -> bool {
        timeout(Duration::from_millis(1), place.is_gone()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_been_idle_for_longest_gives_way() {
        let room = Room::new(3, 3);
        let enter =
            || async { room.enter(address("10.0.0.1")).await.unwrap_or_else(|full| panic!("{full:?}")) };
        let (first, second, third) = (enter().await, enter().await, enter().await);
        first.chair().is_busy();
        let fourth = enter().await;
        assert!(is_sent_away(&second).await);
        for place in [&first, &third, &fourth] {
            assert!(!is_sent_away(place).await);
        }
        assert_eq!(room.seats().taken.len(), 3);
        // It has lost its slot already, and doesn't free another's.
        drop(second);
        assert_eq!(room.seats().taken.len(), 3);
        first.chair().is_idle();
        let _fifth = enter().await;
        assert!(is_sent_away(&third).await && !is_sent_away(&first).await);
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_are_busy_one_waits_for_somebody_to_leave() {
        let room = Room::new(1, 1);
        let first = room.enter(None).await.unwrap_or_else(|full| panic!("{full:?}"));
        first.chair().is_busy();
        assert_eq!(room.enter(None).await.err(), Some(Full::Wholly));
        let waiting = tokio::spawn({
            let room = Arc::clone(&room);
            async move { room.enter(None).await.map(drop) }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert_eq!(waiting.await.unwrap(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_does_not_take_all_room() {
        let room = Room::new(4, 2);
        let mut places = Vec::new();
        for _ in 0..2 {
            places.push(room.enter(address("2001:db8::1")).await.unwrap_or_else(|full| panic!("{full:?}")));
        }
        places.iter().for_each(|place| place.chair().is_busy());
        assert_eq!(room.enter(address("2001:db8::2")).await.err(), Some(Full::ForAddress));
        assert!(room.enter(address("2001:db8:0:1::1")).await.is_ok());
        assert!(room.enter(address("10.0.0.1")).await.is_ok());
    }
}
