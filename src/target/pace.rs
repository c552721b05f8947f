use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    chance: (f64, f64),
    failures: u32,
}

impl Backoff {
    /// A backoff from `first` to `longest`. Each pause is between half and all of that, so that clients that
    /// lost the same server don't return at once.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, chance: (0.5, 1.0), failures: 0 }
    }

    /// A backoff from `first` to `longest`. Each pause is up to a fifth shorter or longer.
    pub const fn around(first: Duration, longest: Duration) -> Self {
        Self { first, longest, chance: (0.8, 1.2), failures: 0 }
    }

    /// The next pause: twice the last one, before jitter.
    pub fn next_pause(&mut self) -> Duration {
        let most = self.first.saturating_mul(2_u32.saturating_pow(self.failures)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        let (least, above) = self.chance;
        most.mul_f64(jitter(least / above) * above)
    }

    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

/// A random factor from `least` to 1.
pub(super) fn jitter(least: f64) -> f64 {
    // A new `RandomState` is seeded by the operating system. Nothing here has to be unpredictable.
    let chance = u32::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or(u32::MAX);
    least + (1.0 - least) * (f64::from(chance) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_limit_and_start_again() {
        let mut pace = Backoff::new(Duration::from_millis(250), Duration::from_secs(30));
        for milliseconds in [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            let (pause, most) = (pace.next_pause(), Duration::from_millis(milliseconds));
            assert!(pause >= most / 2 && pause <= most, "{pause:?} of {most:?}");
        }
        pace.reset();
        assert!(pace.next_pause() <= Duration::from_millis(250));
    }
}
