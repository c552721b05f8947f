//! The body of a request, with how much of it is taken and how long is waited for it.
//!
//! What is small is always taken. What is more than that, of all bodies together, has a bound of its own ([`Bulk`]): it is in memory
//! until the request is answered, and there may be many.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::room::Chair;

/// How much of a body is taken whatever others send, in bytes.
const SMALL: usize = 64 << 10;

/// How much there is room for beside what is small, of all bodies together, in bytes.
#[derive(Debug)]
pub(super) struct Bulk(AtomicUsize);

impl Bulk {
    /// With room for so much.
    pub fn new(bytes: usize) -> Arc<Bulk> {
        Arc::new(Bulk(AtomicUsize::new(bytes)))
    }

    /// Takes room; false where there isn't so much.
    fn take(&self, bytes: usize) -> bool {
        let take = |free: usize| free.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

/// A body that ends in an error where it is too large or takes too long.
pub(super) struct Measured {
    body: Body,
    /// How much came, and how much may, in bytes.
    taken: usize,
    most: usize,
    deadline: Pin<Box<Sleep>>,
    fate: Fate,
    /// What hears that all of it is there.
    whole: Option<Chair>,
}

/// What became of a body, for who answers: whoever reads it may not tell one error from another. As long as this lives, the
/// body has its room.
#[derive(Debug, Clone)]
pub(super) struct Fate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    cut: AtomicU8,
    bulk: Arc<Bulk>,
    held: AtomicUsize,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.bulk.0.fetch_add(*self.held.get_mut(), Ordering::Relaxed);
    }
}

/// Why not all of a body was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Cut {
    /// It is larger than what is taken.
    #[error("the body is too large")]
    TooLarge,
    /// There is no room for it beside those of others.
    #[error("there are too many bodies")]
    Crowded,
    /// It takes longer than what is waited for.
    #[error("the body takes too long")]
    Late,
}

impl Measured {
    /// Measures a body. The connection that it comes over has nobody wait for it until all of it is there.
    pub fn new(
        body: Body,
        (most, within): (usize, Duration),
        bulk: Arc<Bulk>,
        whole: Option<Chair>,
    ) -> (Measured, Fate) {
        let fate = Fate(Arc::new(Shared { cut: AtomicU8::new(0), bulk, held: AtomicUsize::new(0) }));
        let deadline = Box::pin(sleep(within));
        (Measured { body, taken: 0, most, deadline, fate: fate.clone(), whole }, fate)
    }

    /// Whether there is room for so much more.
    fn take(&mut self, length: usize) -> Result<(), Cut> {
        let before = self.taken.max(SMALL);
        self.taken = self.taken.saturating_add(length);
        if self.taken > self.most {
            return Err(Cut::TooLarge);
        }
        let more = self.taken.saturating_sub(before);
        if more > 0 && !self.fate.0.bulk.take(more) {
            return Err(Cut::Crowded);
        }
        self.fate.0.held.fetch_add(more, Ordering::Relaxed);
        Ok(())
    }

    fn cut(&self, cut: Cut) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.fate.0.cut.store(cut as u8 + 1, Ordering::Relaxed);
        Poll::Ready(Some(Err(axum::Error::new(cut))))
    }
}

impl Fate {
    /// Why not all of it was taken; none where nothing is wrong with it.
    pub fn cut(&self) -> Option<Cut> {
        let cut = self.0.cut.load(Ordering::Relaxed);
        [Cut::TooLarge, Cut::Crowded, Cut::Late].into_iter().find(|it| *it as u8 + 1 == cut)
    }
}

impl HttpBody for Measured {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
            ready!(self.deadline.as_mut().poll(context));
            return self.cut(Cut::Late);
        };
        let length = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        if frame.is_none() || self.body.is_end_stream() {
            self.whole.take().iter().for_each(Chair::is_busy);
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
            let (measured, fate) = Measured::new(body, (4, Duration::from_secs(10)), Bulk::new(0), None);
            let read = Body::new(measured).collect().await.map(|read| read.to_bytes().to_vec());
            (read.ok(), fate.cut())
        };
        assert_eq!(read(Body::from("abcd")).await, (Some(b"abcd".to_vec()), None));
        assert_eq!(read(Body::from("abcde")).await, (None, Some(Cut::TooLarge)));
        let endless = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        assert_eq!(read(Body::from_stream(endless)).await, (None, Some(Cut::Late)));
    }

    #[tokio::test]
    async fn what_is_large_has_room_beside_others_or_is_refused_and_what_is_small_is_always_taken() {
        let bulk = Bulk::new(SMALL);
        let read = |length: usize| {
            let bulk = Arc::clone(&bulk);
            async move {
                let body = Body::from(vec![b'x'; length]);
                let (measured, fate) = Measured::new(body, (4 * SMALL, Duration::from_secs(10)), bulk, None);
                let read = Body::new(measured).collect().await.map(|read| read.to_bytes().len());
                assert_eq!(read.is_ok(), fate.cut().is_none());
                fate
            }
        };
        let first = read(2 * SMALL).await;
        assert_eq!(first.cut(), None);
        assert_eq!(read(SMALL + 1).await.cut(), Some(Cut::Crowded));
        assert_eq!(read(SMALL).await.cut(), None);
        drop(first);
        assert_eq!(read(2 * SMALL).await.cut(), None);
        assert_eq!(bulk.0.load(Ordering::Relaxed), SMALL);
    }
}
