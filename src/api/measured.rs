//! The body of a request, with how much of it is taken and how long is waited for it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// A body that ends in an error where it is too large or takes too long.
pub(super) struct Measured {
    body: Body,
    /// How much may still come, in bytes.
    left: usize,
    deadline: Pin<Box<Sleep>>,
    fate: Fate,
}

/// What became of a body, for who answers: whoever reads it may not tell one error from another.
#[derive(Debug, Clone, Default)]
pub(super) struct Fate(Arc<AtomicU8>);

/// Why not all of a body was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Cut {
    /// It is larger than what is taken.
    #[error("the body is too large")]
    TooLarge,
    /// It takes longer than what is waited for.
    #[error("the body takes too long")]
    Late,
}

impl Measured {
    /// Measures a body.
    pub fn new(body: Body, most: usize, within: Duration) -> (Measured, Fate) {
        let fate = Fate::default();
        let deadline = Box::pin(sleep(within));
        (Measured { body, left: most, deadline, fate: fate.clone() }, fate)
    }

    fn cut(&self, cut: Cut) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.fate.0.store(cut as u8 + 1, Ordering::Relaxed);
        Poll::Ready(Some(Err(axum::Error::new(cut))))
    }
}

impl Fate {
    /// Why not all of it was taken; none where nothing is wrong with it.
    pub fn cut(&self) -> Option<Cut> {
        [Cut::TooLarge, Cut::Late].into_iter().find(|cut| *cut as u8 + 1 == self.0.load(Ordering::Relaxed))
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
        match self.left.checked_sub(length) {
            Some(left) => {
                self.left = left;
                Poll::Ready(frame)
            }
            None => self.cut(Cut::TooLarge),
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
            let (measured, fate) = Measured::new(body, 4, Duration::from_secs(10));
            let read = Body::new(measured).collect().await.map(|read| read.to_bytes().to_vec());
            (read.ok(), fate.cut())
        };
        assert_eq!(read(Body::from("abcd")).await, (Some(b"abcd".to_vec()), None));
        assert_eq!(read(Body::from("abcde")).await, (None, Some(Cut::TooLarge)));
        let endless = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        assert_eq!(read(Body::from_stream(endless)).await, (None, Some(Cut::Late)));
    }
}
