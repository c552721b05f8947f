//! Request bodies with limits on size and time.
//!
//! Small bodies are always accepted. Each byte beyond `SMALL` takes a permit of a semaphore that all bodies
//! share: it stays in memory until the request is answered, and there may be many such requests.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep};

use super::connection_pool::SlotActivity;

/// The part of each body that doesn't count against the shared limit, in bytes.
const SMALL: usize = 64 << 10;

/// A body that ends with an error when it is too large or too late.
pub struct LimitedBody {
    body: Body,
    /// Received, and the limit, in bytes.
    taken: usize,
    most: usize,
    deadline: Pin<Box<Sleep>>,
    outcome: BodyOutcome,
    /// Marked busy once the whole body has arrived.
    whole: Option<SlotActivity>,
}

/// Why a body was cut off, for the code that answers: a reader of the body may not be able to tell its errors
/// apart. The memory reserved for the body is freed when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct BodyOutcome(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    cut: OnceLock<BodyLimitError>,
    large: Arc<Semaphore>,
    /// The permits of `large` that this body took.
    held: AtomicUsize,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.large.add_permits(*self.held.get_mut());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyLimitError {
    #[error("the body is too large")]
    TooLarge,
    /// The shared limit of large bodies is reached.
    #[error("too many bodies at once")]
    Crowded,
    #[error("the body takes too long")]
    Late,
}

impl LimitedBody {
    /// Until the whole body has arrived, the connection counts as idle and may be closed in favour of others.
    pub fn new(
        body: Body,
        (most, within): (usize, Duration),
        large: Arc<Semaphore>,
        whole: Option<SlotActivity>,
    ) -> (LimitedBody, BodyOutcome) {
        let shared = Shared { cut: OnceLock::new(), large, held: AtomicUsize::new(0) };
        let outcome = BodyOutcome(Arc::new(shared));
        let deadline = Box::pin(sleep(within));
        (LimitedBody { body, taken: 0, most, deadline, outcome: outcome.clone(), whole }, outcome)
    }

    /// Counts received bytes, and reserves memory for what exceeds `SMALL`.
    fn take(&mut self, length: usize) -> Result<(), BodyLimitError> {
        let before = self.taken.max(SMALL);
        self.taken = self.taken.saturating_add(length);
        if self.taken > self.most {
            return Err(BodyLimitError::TooLarge);
        }
        let more = self.taken.saturating_sub(before);
        let permits =
            u32::try_from(more).ok().and_then(|more| self.outcome.0.large.try_acquire_many(more).ok());
        permits.ok_or(BodyLimitError::Crowded)?.forget();
        self.outcome.0.held.fetch_add(more, Ordering::Relaxed);
        Ok(())
    }

    fn cut(&self, cut: BodyLimitError) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let _ = self.outcome.0.cut.set(cut);
        Poll::Ready(Some(Err(axum::Error::new(cut))))
    }
}

impl BodyOutcome {
    /// `None` if the body wasn't cut off.
    pub fn cut(&self) -> Option<BodyLimitError> {
        self.0.cut.get().copied()
    }
}

impl HttpBody for LimitedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
            ready!(self.deadline.as_mut().poll(context));
            return self.cut(BodyLimitError::Late);
        };
        let length = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        if frame.is_none() || self.body.is_end_stream() {
            self.whole.take().iter().for_each(SlotActivity::mark_busy);
        }
        match self.take(length) {
            Ok(()) => Poll::Ready(frame),
            Err(cut) => self.cut(cut),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_too_large_and_what_never_comes_is_cut() {
        let read = |body: Body| async move {
            let (limited, outcome) =
                LimitedBody::new(body, (4, Duration::from_secs(10)), Arc::new(Semaphore::new(0)), None);
            let read = Body::new(limited).collect().await.map(|read| read.to_bytes().to_vec());
            (read.ok(), outcome.cut())
        };
        assert_eq!(read(Body::from("abcd")).await, (Some(b"abcd".to_vec()), None));
        assert_eq!(read(Body::from("abcde")).await, (None, Some(BodyLimitError::TooLarge)));
        let endless = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        assert_eq!(read(Body::from_stream(endless)).await, (None, Some(BodyLimitError::Late)));
    }

    #[tokio::test]
    async fn what_is_large_has_room_beside_others_or_is_refused_and_what_is_small_is_always_taken() {
        let large = Arc::new(Semaphore::new(SMALL));
        let read = |length: usize| {
            let large = Arc::clone(&large);
            async move {
                let body = Body::from(vec![b'x'; length]);
                let (limited, outcome) =
                    LimitedBody::new(body, (4 * SMALL, Duration::from_secs(10)), large, None);
                let read = Body::new(limited).collect().await.map(|read| read.to_bytes().len());
                assert_eq!(read.is_ok(), outcome.cut().is_none());
                outcome
            }
        };
        let first = read(2 * SMALL).await;
        assert_eq!(first.cut(), None);
        assert_eq!(read(SMALL + 1).await.cut(), Some(BodyLimitError::Crowded));
        assert_eq!(read(SMALL).await.cut(), None);
        drop(first);
        assert_eq!(read(2 * SMALL).await.cut(), None);
        assert_eq!(large.available_permits(), SMALL);
    }
}
