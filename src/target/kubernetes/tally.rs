//! A counter of calls to Kubernetes clusters. It has no fleet label, which would grow with the installation.
//! Its purpose is to show that a round without changes makes no calls.

use std::sync::atomic::{AtomicU64, Ordering};

use super::answer::CallError;

const OUTCOMES: [&str; 3] = ["answered", "refused", "failed"];

static CALLS: [AtomicU64; OUTCOMES.len()] = [const { AtomicU64::new(0) }; OUTCOMES.len()];

/// Counts a call once, whatever the number of tries.
pub(super) fn count<T>(answer: &Result<T, (CallError, u32)>) {
    let outcome = match answer {
        Ok(_) => 0,
        // A URL that isn't served is refused without a `Status`.
        Err((CallError::Refused { .. } | CallError::Stray { code: 404, .. }, _)) => 1,
        Err(_) => 2,
    };
    CALLS[outcome].fetch_add(1, Ordering::Relaxed);
}

/// The number of calls by outcome: `answered`, `refused` by the API server, or `failed` on the way.
pub fn calls() -> [(&'static str, u64); OUTCOMES.len()] {
    std::array::from_fn(|outcome| (OUTCOMES[outcome], CALLS[outcome].load(Ordering::Relaxed)))
}
