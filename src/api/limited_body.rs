//! Request bodies with limits on size and time.
//!
//! Small bodies are always accepted. The part of a body beyond `SMALL` counts against a limit that all bodies
//! share ([`Bulk`]): it stays in memory until the request is answered, and there may be many such requests.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::connection_pool::SlotActivity;

/// The part of each body that doesn't count against the shared limit, in bytes.
const SMALL: usize = 64 << 10;

/// The memory left for large bodies, in bytes.
#[derive(Debug)]
pub(super) struct LargeBodyBudget(AtomicUsize);

impl LargeBodyBudget {
    pub fn new(bytes: usize) -> Arc<LargeBodyBudget> {
        Arc::new(LargeBodyBudget(AtomicUsize::new(bytes)))
    }

    /// Reserves memory; returns false if too little is left.
    fn take(&self, bytes: usize) -> bool {
        let take = |free: usize| free.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

/// A body that ends with an error when it is too large or too late.
pub(super) struct LimitedBody {
    body: Body,
    /// Received, and the limit, in bytes.
    taken: usize,
    most: usize,
    deadline: Pin<Box<Sleep>>,
    fate: BodyOutcome,
    /// Marked busy once the whole body has arrived.
    whole: Option<SlotActivity>,
}

/// Why a body was cut off, for the code that answers: a reader of the body may not be able to tell its errors
/// apart. The memory reserved for the body is freed when the last clone is dropped.
#[derive(Debug, Clone)]
pub(super) struct BodyOutcome(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    cut: AtomicU8,
    bulk: Arc<LargeBodyBudget>,
    held: AtomicUsize,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.bulk.0.fetch_add(*self.held.get_mut(), Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyLimitError {
    #[error("the body is too large")]
    TooLarge,
    /// The shared limit of large bodies is reached.
    #[error("there are too many bodies")]
    Crowded,
    #[error("the body takes too long")]
    Late,
}

impl LimitedBody {
    /// Until the whole body has arrived, the connection counts as idle and may be closed in favour of others.
    pub fn new(
        body: Body,
        (most, within): (usize, Duration),
        bulk: Arc<LargeBodyBudget>,
        whole: Option<SlotActivity>,
    ) -> (LimitedBody, BodyOutcome) {
        let fate = BodyOutcome(Arc::new(Shared { cut: AtomicU8::new(0), bulk, held: AtomicUsize::new(0) }));
        let deadline = Box::pin(sleep(within));
        (LimitedBody { body, taken: 0, most, deadline, fate: fate.clone(), whole }, fate)
    }

    /// Counts received bytes, and reserves memory for what exceeds `SMALL`.
    fn take(&mut self, length: usize) -> Result<(), BodyLimitError> {
        let before = self.taken.max(SMALL);
        self.taken = self.taken.saturating_add(length);
        if self.taken > self.most {
            return Err(BodyLimitError::TooLarge);
        }
        let more = self.taken.saturating_sub(before);
        if more > 0 && !self.fate.0.bulk.take(more) {
            return Err(BodyLimitError::Crowded);
        }
        self.fate.0.held.fetch_add(more, Ordering::Relaxed);
        Ok(())
    }

    fn cut(&self, cut: BodyLimitError) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.fate.0.cut.store(cut as u8 + 1, Ordering::Relaxed);
        Poll::Ready(Some(Err(axum::Error::new(cut))))
    }
}

impl BodyOutcome {
    /// `None` if the body wasn't cut off.
    pub fn cut(&self) -> Option<BodyLimitError> {
        let cut = self.0.cut.load(Ordering::Relaxed);
        [BodyLimitError::TooLarge, BodyLimitError::Crowded, BodyLimitError::Late]
            .into_iter()
            .find(|it| *it as u8 + 1 == cut)
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
            let (measured, fate) =
                LimitedBody::new(body, (4, Duration::from_secs(10)), LargeBodyBudget::new(0), None);
            let read = Body::new(measured).collect().await.map(|read| read.to_bytes().to_vec());
            (read.ok(), fate.cut())
        };
        assert_eq!(read(Body::from("abcd")).await, (Some(b"abcd".to_vec()), None));
        assert_eq!(read(Body::from("abcde")).await, (None, Some(BodyLimitError::TooLarge)));
        let endless = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        assert_eq!(read(Body::from_stream(endless)).await, (None, Some(BodyLimitError::Late)));
    }

    #[tokio::test]
    async fn what_is_large_has_room_beside_others_or_is_refused_and_what_is_small_is_always_taken() {
        let bulk = LargeBodyBudget::new(SMALL);
        let read = |length: usize| {
            let bulk = Arc::clone(&bulk);
            async move {
                let body = Body::from(vec![b'x'; length]);
                let (measured, fate) =
                    LimitedBody::new(body, (4 * SMALL, Duration::from_secs(10)), bulk, None);
                let read = Body::new(measured).collect().await.map(|read| read.to_bytes().len());
                assert_eq!(read.is_ok(), fate.cut().is_none());
                fate
            }
        };
        let first = read(2 * SMALL).await;
        assert_eq!(first.cut(), None);
        assert_eq!(read(SMALL + 1).await.cut(), Some(BodyLimitError::Crowded));
        assert_eq!(read(SMALL).await.cut(), None);
        drop(first);
        assert_eq!(read(2 * SMALL).await.cut(), None);
        assert_eq!(bulk.0.load(Ordering::Relaxed), SMALL);
    }
}
