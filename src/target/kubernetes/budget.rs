//! How much of one fleet's Kubernetes cluster this process takes in. Whoever runs a fleet's API server decides what it sends,
//! and must not cost other fleets their memory, nor more than a part of a processor.
//!
//! The largest fleet that specs allow has 1,000 clusters of 10,000 Kafka units together (`max_tenants`, `max_kafka_units`),
//! which are up to 34,000 brokers and controllers. It stays below each of these limits.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::retry;
use crate::parallel::locked;

/// How many objects one list may have. Kubernetes itself is made for 150,000 pods at most ("Considerations for large
/// clusters").
const OBJECTS: usize = 150_000;

/// How many pages one list may have: three times as many as that takes, since a server may give less than was asked for.
const PAGES: usize = 1_000;

/// How many bytes one list may have. 35,000 pods of 14 KiB each take half of that.
const BYTES: usize = 1024 * 1024 * 1024;

/// How long one list may take. An API server forgets what it listed after five minutes (`--etcd-compaction-interval`).
const LASTS: Duration = Duration::from_secs(300);

/// The same while a plan waits for it. Listing 35,000 pods takes 20 s.
const LASTS_WHILE_PLANNING: Duration = Duration::from_secs(60);

/// How much of one cluster may be kept, in bytes. Of the largest fleet it is about 160 MiB: 35,000 pods of 1.8 KiB and 33,000
/// claims of 0.8 KiB, by the recordings, 30,000 objects of ours of 0.8 KiB, and what the inventory says of them, 1.5 KiB each.
const KEPT: usize = 192 * 1024 * 1024;

/// How many bytes may come at once. More is read only as fast as [`RATE`] says. What the largest fleet has, about 1 GiB with
/// all kinds, is read in a minute.
const BURST: f64 = 256.0 * 1024.0 * 1024.0;

/// How many bytes a second are read in the long run, which takes a tenth of a processor.
const RATE: f64 = 16.0 * 1024.0 * 1024.0;

/// What an event counts as at least, since each is also looked at: 1,000 a second in the long run. Kubernetes' own tests of
/// scale change 100 pods a second, each some five times.
const EVENT: usize = 16 * 1024;

/// What is kept of one cluster, and how much was read lately.
pub(super) struct Budget {
    kept: AtomicUsize,
    /// How much may be read at once, and since when.
    reads: Mutex<(f64, Instant)>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { kept: AtomicUsize::new(0), reads: Mutex::new((BURST, Instant::now())) }
    }
}

/// Why more is not taken in, as the end of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OverBudget(pub(super) String);

impl Budget {
    /// Waits until so many bytes more may be read.
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

    /// The same for an event.
    pub(super) async fn pace_event(&self, bytes: usize) {
        self.pace(bytes.max(EVENT)).await;
    }
}

/// What somebody keeps of a cluster. It counts until this is dropped.
pub(super) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Charge {
    pub(super) fn new(budget: &Arc<Budget>) -> Charge {
        Charge { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Counts so many bytes more, where there is room for them.
    pub(super) fn add(&mut self, bytes: usize) -> Result<(), OverBudget> {
        let kept = self.budget.kept.fetch_add(bytes, Ordering::Relaxed);
        if kept + bytes > KEPT {
            self.budget.kept.fetch_sub(bytes, Ordering::Relaxed);
            let limit = KEPT / 1024 / 1024;
            return Err(OverBudget(format!("what is kept of it would take more than {limit} MiB")));
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Counts so many bytes, and no longer what was counted before.
    pub(super) fn set(&mut self, bytes: usize) -> Result<(), OverBudget> {
        self.sub(self.bytes.saturating_sub(bytes));
        self.add(bytes - self.bytes)
    }

    /// Counts what another counted.
    pub(super) fn absorb(&mut self, mut other: Charge) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Counts so many bytes less.
    pub(super) fn sub(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.kept.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The bytes that are counted.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.sub(self.bytes);
    }
}

/// How far one list has come.
pub(super) struct Listing {
    began: Instant,
    lasts: Duration,
    pages: usize,
    objects: usize,
    bytes: usize,
    /// What was asked for as the next page.
    tokens: BTreeSet<String>,
}

impl Listing {
    pub(super) fn begin() -> Listing {
        let lasts = if retry::is_hasty() { LASTS_WHILE_PLANNING } else { LASTS };
        let (began, tokens) = (Instant::now(), BTreeSet::new());
        Listing { began, lasts, pages: 0, objects: 0, bytes: 0, tokens }
    }

    /// Counts a page that was read.
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

    /// Whether a page is one that wasn't asked for before.
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
        let expected = OverBudget("what is kept of it would take more than 192 MiB".to_owned());
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
