//! Requests and responses on one connection.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::fault::Fault;
use super::wire::{self, Request};

/// How long a server has to answer one thing, unless a test says otherwise.
pub const STEP: Duration = Duration::from_secs(5);

pub struct Conversation<S> {
    pub stream: S,
    /// The limit of each exchange.
    step: Duration,
    asked: i32,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Conversation<S> {
    pub fn new(stream: S, step: Duration) -> Self {
        Conversation { stream, step, asked: 0 }
    }

    /// Sends a request and waits for its response.
    pub async fn ask<R: Request>(&mut self, request: &R) -> Result<R::Response, Fault> {
        self.asked = self.asked.wrapping_add(1);
        let exchange = wire::exchange(&mut self.stream, request, self.asked);
        timeout(self.step, exchange).await.unwrap_or(Err(Fault::Silent(self.step)))
    }

    /// The limit of an exchange in milliseconds, as requests tell it to the broker: a little less, so that its
    /// own answer comes first.
    pub fn patience_ms(&self) -> i32 {
        i32::try_from(self.step.as_millis() * 4 / 5).unwrap_or(i32::MAX)
    }
}
