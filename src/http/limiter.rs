//! A rate limiter: so many requests a minute, with bursts of that size after a pause. The caller supplies the
//! time.
//!
//! It keeps one instant for each key, and a bounded number of keys. A key without requests for a minute is
//! forgotten, which changes nothing. If more keys than the bound are active within a minute, the least recent
//! ones are forgotten and start afresh: an attacker with that many addresses escapes the limit for each
//! address, but doesn't affect other callers.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::parallel::locked;

/// The period of a limit, and the pause after which the full burst is available again.
const MINUTE: Duration = Duration::from_secs(60);

/// The capacity of each of the two generations.
const HALF: usize = 1 << 15;

pub struct Limiter<K> {
    /// The share of the period that one request uses up.
    each: Duration,
    kept: Mutex<RateTable<K>>,
}

/// For each key, the instant at which its used requests are restored, in two generations.
struct RateTable<K> {
    lately: HashMap<K, Instant>,
    before: HashMap<K, Instant>,
    /// When the newer generation was started.
    since: Option<Instant>,
}

/// An address as far as it identifies a caller: of IPv6 the first 64 bits, since a customer gets at least a
/// /64 (RFC 6177).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address(IpAddr);

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Address {
        Address(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
            plain => plain,
        })
    }
}

/// Limits the log lines about refusals, so that unauthenticated callers can't flood the log from any number
/// of addresses.
pub struct LogLimit {
    of_one: Limiter<Address>,
    of_all: Limiter<()>,
}

impl LogLimit {
    /// Lines a minute, for one address and for all.
    const OF_ONE: u32 = 600;
    const OF_ALL: u32 = 6_000;

    /// Counts one more line, and returns whether it may be written. Requests without an address, as on the
    /// socket, are always logged.
    pub fn has_room(&self, from: Option<Address>, now: Instant) -> bool {
        from.is_none_or(|from| self.of_one.count(from, now).is_ok() && self.of_all.count((), now).is_ok())
    }
}

impl Default for LogLimit {
    fn default() -> LogLimit {
        LogLimit { of_one: Limiter::per_minute(Self::OF_ONE), of_all: Limiter::per_minute(Self::OF_ALL) }
    }
}

impl<K: Hash + Eq> Limiter<K> {
    pub fn per_minute(times: u32) -> Limiter<K> {
        let kept = RateTable { lately: HashMap::new(), before: HashMap::new(), since: None };
        Limiter { each: MINUTE / times.max(1), kept: Mutex::new(kept) }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// When the limit is exceeded, with the time to wait. A refused request isn't counted, so retrying doesn't
    /// lengthen the wait.
    pub fn count(&self, who: K, now: Instant) -> Result<(), Duration> {
        let mut kept = locked(&self.kept);
        let until = kept.until(&who).map_or(now, |until| until.max(now)) + self.each;
        let excess = until.saturating_duration_since(now).saturating_sub(MINUTE);
        if !excess.is_zero() {
            return Err(excess);
        }
        kept.put(who, until, now);
        Ok(())
    }
}

impl<K: Hash + Eq> RateTable<K> {
    fn until(&self, who: &K) -> Option<Instant> {
        self.lately.get(who).or_else(|| self.before.get(who)).copied()
    }

    fn put(&mut self, who: K, until: Instant, now: Instant) {
        let is_over = self.since.is_none_or(|since| now.saturating_duration_since(since) >= MINUTE);
        if is_over || self.lately.len() >= HALF {
            // Entries of the older generation are at least a minute old and made up for, unless the capacity
            // forced an early switch.
            self.before = std::mem::take(&mut self.lately);
            self.since = Some(now);
        }
        self.lately.insert(who, until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::from(text.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn as_many_at_once_as_in_a_minute_and_then_one_whenever_one_is_made_up_for() {
        let limiter = Limiter::per_minute(30);
        let begin = Instant::now();
        let after = |millis| begin + Duration::from_millis(millis);
        assert_eq!((0..30).filter(|_| limiter.count("a", begin).is_ok()).count(), 30);
        assert_eq!(limiter.count("a", begin), Err(Duration::from_secs(2)));
        assert_eq!(limiter.count("a", after(1_999)), Err(Duration::from_millis(1)));
        // A refused try doesn't lengthen the wait, and other keys aren't affected.
        assert_eq!(limiter.count("b", begin), Ok(()));
        assert_eq!(limiter.count("a", after(2_000)), Ok(()));
        assert_eq!(limiter.count("a", after(2_000)), Err(Duration::from_secs(2)));
        assert_eq!((0..40).filter(|_| limiter.count("a", after(62_000)).is_ok()).count(), 30);
    }

    #[test]
    fn any_number_a_minute_holds_to_the_request() {
        for times in [1, 7, 59, 60, 61, 600, 6_000, 99_999, 1_000_000] {
            let (limiter, begin) = (Limiter::per_minute(times), Instant::now());
            let granted = (0..times + 10).filter(|_| limiter.count((), begin).is_ok()).count();
            let expected = times as usize;
            // The division loses a fraction of a nanosecond for each request.
            assert!((expected..=expected + 10).contains(&granted), "{times}: {granted}");
        }
    }

    #[test]
    fn a_million_addresses_take_bounded_memory_and_hold_nobody_else() {
        let (limiter, begin) = (Limiter::per_minute(1), Instant::now());
        for number in 0..1_000_000_u32 {
            assert_eq!(limiter.count(Address::from(IpAddr::from(number.to_be_bytes())), begin), Ok(()));
            let kept = locked(&limiter.kept);
            assert!(kept.lately.len() + kept.before.len() <= 2 * HALF);
        }
        let kept = locked(&limiter.kept);
        assert!(kept.lately.capacity() + kept.before.capacity() <= 8 * HALF);
        drop(kept);
        let last = Address::from(IpAddr::from(999_999_u32.to_be_bytes()));
        assert_eq!(limiter.count(last, begin), Err(Duration::from_secs(60)));
        assert_eq!(limiter.count(address("192.0.2.1"), begin), Ok(()));
    }

    #[test]
    fn refusals_have_a_bounded_number_of_lines_of_one_address_and_of_all() {
        let (told, now) = (LogLimit::default(), Instant::now());
        let one = Some(address("192.0.2.1"));
        assert_eq!((0..1_000).filter(|_| told.has_room(one, now)).count(), 600);
        let network =
            |number: u32| Some(address(&format!("2001:db8:{:x}:{:x}::1", number >> 16, number & 0xffff)));
        assert_eq!((0..100_000).filter(|number| told.has_room(network(*number), now)).count(), 5_400);
        assert!((0..10_000).all(|_| told.has_room(None, now)));
        assert!(told.has_room(network(100_000), now + MINUTE));
    }

    #[test]
    fn who_is_forgotten_has_nothing_to_make_up_for() {
        let (limiter, begin) = (Limiter::per_minute(60), Instant::now());
        let after = |seconds| begin + Duration::from_secs(seconds);
        while limiter.count("a", begin).is_ok() {}
        // The generations switch while another key is active.
        for second in 1..60 {
            limiter.count("b", after(second)).unwrap();
            let granted = (0..3).filter(|_| limiter.count("a", after(second)).is_ok()).count();
            assert_eq!(granted, 1, "{second}");
        }
        for second in 60..400 {
            limiter.count("b", after(second)).unwrap();
        }
        assert!(locked(&limiter.kept).until(&"a").is_none());
        assert!(locked(&limiter.kept).until(&"b").is_some());
    }

    #[test]
    fn an_address_of_ipv6_is_its_network_and_one_of_ipv4_is_itself_however_it_is_written() {
        assert_eq!(address("2001:db8:1:2::1"), address("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        assert_ne!(address("192.0.2.1"), address("192.0.2.2"));
    }
}
