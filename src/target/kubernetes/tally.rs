//! How many calls this process made to Kubernetes clusters. It is one number for all of them, as labels by fleet would grow with
//! the installation, and what it is for is to see that a round in which nothing changed makes none.

use std::sync::atomic::{AtomicU64, Ordering};

use super::answer::Failed;

/// What came of a call.
const OUTCOMES: [&str; 3] = ["answered", "refused", "failed"];

static CALLS: [AtomicU64; OUTCOMES.len()] = [const { AtomicU64::new(0) }; OUTCOMES.len()];

/// Counts a call, however often it was tried.
pub(super) fn count<T>(answer: &Result<T, (Failed, u32)>) {
    let outcome = match answer {
        Ok(_) => 0,
        // A URL that isn't served is refused without words.
        Err((Failed::Refused { .. } | Failed::Stray { code: 404, .. }, _)) => 1,
        Err(_) => 2,
    };
    CALLS[outcome].fetch_add(1, Ordering::Relaxed);
}

/// How many calls to Kubernetes clusters this process made, by what came of them: `answered`, `refused` by the API server, or
/// `failed` on the way.
pub fn calls() -> [(&'static str, u64); OUTCOMES.len()] {
    std::array::from_fn(|outcome| (OUTCOMES[outcome], CALLS[outcome].load(Ordering::Relaxed)))
}
