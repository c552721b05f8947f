//! Limits on what this process reads and keeps of one fleet's Kubernetes cluster. A fleet's API server is
//! under its owner's control. It must not cost other fleets their memory, or more than a part of a CPU.
//!
//! The largest fleet that specs allow has 1,000 clusters of 10,000 Kafka units together (`max_tenants`,
//! `max_kafka_units`), which are up to 34,000 brokers and controllers. It stays below each of these limits.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::retry;
use crate::parallel::locked;

/// Objects per list. Kubernetes itself is designed for 150,000 pods at most ("Considerations for large
/// clusters").
const OBJECTS: usize = 150_000;

/// Pages per list: three times what the objects need, because a server may return less than was requested.
const PAGES: usize = 1_000;

/// Bytes per list. 35,000 pods of 14 KiB each take half of that.
const BYTES: usize = 1024 * 1024 * 1024;

/// The time limit of a list. An API server forgets what it listed after five minutes
/// (`--etcd-compaction-interval`).
const LASTS: Duration = Duration::from_secs(300);

/// The time limit while a plan waits. Listing 35,000 pods takes 20 s.
const LASTS_WHILE_PLANNING: Duration = Duration::from_secs(60);

/// Bytes kept of one cluster. The largest fleet takes about 160 MiB: by the recordings 35,000 pods of 1.8 KiB
/// and 33,000 claims of 0.8 KiB, 30,000 objects of ours of 0.8 KiB, and 1.5 KiB each for their inventory
/// entries.
const KEPT: usize = 176 * 1024 * 1024;

/// Bytes that may be read in a burst; more is read at [`RATE`]. The largest fleet has about 1 GiB with all
/// kinds, which takes a minute.
const BURST: f64 = 256.0 * 1024.0 * 1024.0;

/// Bytes per second in the long run, which takes a tenth of a CPU.
const RATE: f64 = 16.0 * 1024.0 * 1024.0;

/// The least that an event counts as, in bytes, because each also costs CPU time: 1,000 events per second in
/// the long run. Kubernetes' own scale tests change 100 pods per second, each some five times.
const EVENT: usize = 16 * 1024;

/// The budget of one cluster: bytes kept, and a token bucket for reads.
pub(super) struct Budget {
    kept: AtomicUsize,
    /// The bytes that may still be read in a burst, and when that was computed. Negative while reads are
    /// delayed.
    reads: Mutex<(f64, Instant)>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { kept: AtomicUsize::new(0), reads: Mutex::new((BURST, Instant::now())) }
    }
}

/// Which limit was exceeded, as the end of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OverBudget(pub(super) String);

impl Budget {
    /// Counts bytes that were read, and waits until the rate allows more.
    pub(super) async fn pace(&self, bytes: usize) {
        let wait = {
            let mut reads = locked(&self.reads);
            let (left, since) = *reads;
            let now = Instant::now();
            let left = (left + (now - since).as_secs_f64() * RATE).min(BURST) - bytes as f64;
            *reads = (left, now);
            -left / RATE
        };
        if wait > 0.0 {
            sleep(Duration::from_secs_f64(wait)).await;
        }
    }

    pub(super) async fn pace_event(&self, bytes: usize) {
        self.pace(bytes.max(EVENT)).await;
    }
}

/// A share of the budget, returned on drop.
pub(super) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Charge {
    pub(super) fn new(budget: &Arc<Budget>) -> Charge {
        Charge { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Adds bytes, unless the budget would be exceeded.
    pub(super) fn add(&mut self, bytes: usize) -> Result<(), OverBudget> {
        let kept = self.budget.kept.fetch_add(bytes, Ordering::Relaxed);
        if kept + bytes > KEPT {
            self.budget.kept.fetch_sub(bytes, Ordering::Relaxed);
            let limit = KEPT / 1024 / 1024;
            return Err(OverBudget(format!("keeping it would take more than {limit} MiB")));
        }
        self.bytes += bytes;
        Ok(())
    }

    pub(super) fn set(&mut self, bytes: usize) -> Result<(), OverBudget> {
        self.sub(self.bytes.saturating_sub(bytes));
        self.add(bytes - self.bytes)
    }

    pub(super) fn absorb(&mut self, mut other: Charge) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    pub(super) fn sub(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.kept.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.sub(self.bytes);
    }
}

pub(super) struct Listing {
    began: Instant,
    lasts: Duration,
    pages: usize,
    objects: usize,
    bytes: usize,
    tokens: BTreeSet<String>,
}

impl Listing {
    pub(super) fn begin() -> Listing {
        let lasts = if retry::is_hasty() { LASTS_WHILE_PLANNING } else { LASTS };
        let (began, tokens) = (Instant::now(), BTreeSet::new());
        Listing { began, lasts, pages: 0, objects: 0, bytes: 0, tokens }
    }

    pub(super) fn page(&mut self, objects: usize, bytes: usize) -> Result<(), OverBudget> {
        self.pages += 1;
        self.objects += objects;
        self.bytes += bytes;
        let over = |what: String| Err(OverBudget(what));
        match () {
            () if self.objects > OBJECTS => over(format!("one list has more than {OBJECTS} objects")),
            () if self.pages > PAGES => over(format!("one list has more than {PAGES} pages")),
            () if self.bytes > BYTES => over(format!("one list has more than {} MiB", BYTES / 1024 / 1024)),
            () if self.began.elapsed() > self.lasts => {
                over(format!("one list didn't end within {} s", self.lasts.as_secs()))
            }
            () => Ok(()),
        }
    }

    pub(super) fn is_next(&mut self, token: &str) -> bool {
        self.tokens.insert(token.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_at_each_of_its_limits() {
        for (objects, bytes, pages, expected) in [
            (500, 0, 301, "one list has more than 150000 objects"),
            (0, 0, 1_001, "one list has more than 1000 pages"),
            (0, 64 << 20, 17, "one list has more than 1024 MiB"),
        ] {
            let mut listing = Listing::begin();
            (1..pages).for_each(|_| listing.page(objects, bytes).unwrap());
            assert_eq!(listing.page(objects, bytes), Err(OverBudget(expected.to_owned())));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_ends_with_its_time() {
        let mut listing = Listing::begin();
        sleep(LASTS).await;
        listing.page(1, 1).unwrap();
        sleep(Duration::from_millis(1)).await;
        let expected = OverBudget("one list didn't end within 300 s".to_owned());
        assert_eq!(listing.page(1, 1), Err(expected));
    }

    #[test]
    fn what_is_given_back_may_be_taken_again() {
        let budget = Arc::default();
        let (mut first, mut second) = (Charge::new(&budget), Charge::new(&budget));
        first.add(KEPT).unwrap();
        let expected = OverBudget("keeping it would take more than 176 MiB".to_owned());
        assert_eq!(second.add(1), Err(expected));
        drop(first);
        second.add(KEPT - 1).unwrap();
        second.sub(1);
        second.add(1).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_without_end_is_read_at_a_bounded_rate() {
        let (budget, began) = (Budget::default(), Instant::now());
        budget.pace(BURST as usize).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        budget.pace(10 * RATE as usize).await;
        assert_eq!(began.elapsed().as_secs(), 10);
    }
}
