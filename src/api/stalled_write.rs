//! A stream with a timeout for writes that make no progress, and a peek at its first byte.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

const STALL: Duration = Duration::from_secs(10);

pub(super) struct StallTimeoutStream<S> {
    stream: S,
    /// A byte that was peeked at and not yet read.
    first: Option<u8>,
    /// The timeout of a write in progress.
    stalls: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> StallTimeoutStream<S> {
    pub fn new(stream: S) -> StallTimeoutStream<S> {
        StallTimeoutStream { stream, first: None, stalls: None }
    }

    /// Peeks at the first byte; the next read returns it again.
    ///
    /// # Errors
    /// When the stream ends or fails.
    pub async fn peek_first_byte(&mut self) -> io::Result<u8> {
        let first = self.stream.read_u8().await?;
        self.first = Some(first);
        Ok(first)
    }

    /// Passes on the result of a write, or times out when there was no progress for too long.
    fn wait<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalls = None;
            return written;
        }
        let stalls = self.stalls.get_or_insert_with(|| Box::pin(sleep(STALL)));
        ready!(stalls.as_mut().poll(context));
        self.stalls = None;
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "nothing is taken any more")))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for StallTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() > 0
            && let Some(first) = self.first.take()
        {
            buffer.put_slice(&[first]);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for StallTimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wait(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.wait(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.wait(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.wait(context, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_not_waited_for() {
        let (mut near, far) = duplex(4);
        let mut patient = StallTimeoutStream::new(far);
        let error = patient.write_all(b"abcdefgh").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        // A slow reader is served as long as it makes progress.
        let reads = tokio::spawn(async move {
            let mut read = Vec::new();
            let mut byte = [0];
            while near.read(&mut byte).await.unwrap() > 0 {
                read.push(byte[0]);
                sleep(STALL / 2).await;
            }
            read
        });
        patient.write_all(b"ijklmnop").await.unwrap();
        drop(patient);
        assert_eq!(reads.await.unwrap(), b"abcdijklmnop");
    }

    #[tokio::test]
    async fn the_first_byte_is_looked_at_and_read() {
        let (mut near, far) = duplex(8);
        near.write_all(b"abc").await.unwrap();
        drop(near);
        let mut patient = StallTimeoutStream::new(far);
        assert_eq!(patient.peek_first_byte().await.unwrap(), b'a');
        let mut read = Vec::new();
        patient.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"abc");
    }
}
