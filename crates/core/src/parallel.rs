//! Parallel work with results that don't depend on the number of processors, and locks.

pub mod fair_queue;
mod memo;

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

pub use memo::Memo;

/// Maps every item on several threads. The results are in the order of the items.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    if threads < 2 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return done };
            done.push((index, work(item)));
        }
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(take)).collect();
        let mut done = take();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Locks a mutex even if a thread panicked while holding it. Only for values that are changed in one step, or
/// that are harmless when half changed.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_outlives_a_thread_that_died_with_it() {
        let number = Mutex::new(1);
        let died = thread::scope(|scope| {
            scope
                .spawn(|| {
                    let _held = locked(&number);
                    panic!("with the lock");
                })
                .join()
        });
        assert!(died.is_err() && number.is_poisoned());
        assert_eq!(*locked(&number), 1);
    }

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for count in [0, 1, 2, 1_000] {
            let items: Vec<usize> = (0..count).collect();
            let expected: Vec<usize> = items.iter().map(|item| item * 2).collect();
            assert_eq!(map(&items, |item| item * 2), expected);
        }
    }
}
