//! The logs of brokers, as a stream of lines.
//!
//! A connection lives for a minute, so a stream ends before that, and the client goes on with the time of the last line
//! that it received. A note at its end says that the log goes on. Meanwhile the caller's rights are looked up again.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use futures_util::stream;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::event_stream::StreamSlot;
use super::metrics::not_read;
use super::{A_TIME, Answered, Call, Service};
use crate::api::caller::{Caller, CallerIdentity};
use crate::api::openapi::PLAIN_TEXT;
use crate::names::Identifier;
use crate::target::LogReader;
use crate::views::logs::{self, LogQuery};

/// How long a stream lasts: less than a connection (60 s).
const LONGEST: Duration = Duration::from_secs(50);

/// How long opening the logs may take.
const OPENING: Duration = Duration::from_secs(20);

/// How often the caller's rights are looked up.
const CHECK: Duration = Duration::from_secs(1);

/// The most bytes that are sent at once, beside one line.
const PART: usize = 64 * 1024;

/// How many lines may wait to be sent.
const HELD: usize = 8;

/// Streams the logs of a cluster, or of all clusters of a fleet.
pub(super) fn read(call: &Call) -> Answered {
    let (key, _) = call.found_key()?;
    let truth = |text: &str| text.parse().ok();
    let query = LogQuery {
        broker: call.query.parsed("broker", "the number of a broker")?,
        since: call.query.parsed("since", A_TIME)?,
        follows: call.query.parsed_by("follow", "`true` or `false`", truth)?.unwrap_or_default(),
        ends: Some(Instant::now() + LONGEST),
    };
    let slot = call.stream_slot()?;
    let opening = logs::open(&call.made.round, &key, query, call.audience());
    let reader = call.runtime.block_on(async { timeout(OPENING, opening).await });
    let late = |_| Err(logs::LOGS.late(&key, OPENING.as_secs()));
    let reader = reader.unwrap_or_else(late).map_err(not_read)?;
    let (sender, lines) = mpsc::channel(HELD);
    let reading = call.runtime.spawn(read_on(reader, sender));
    let stream = LogStream {
        lines,
        reading,
        is_over: false,
        service: Arc::clone(&call.service),
        who: call.caller.identity().clone(),
        organization: key.organization,
        checked: Instant::now(),
        _slot: slot,
    };
    let mut response = Response::new(Body::from_stream(stream::unfold(stream, LogStream::part)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PLAIN_TEXT));
    // nginx would hold lines back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Reads while the stream is sent: what is being read must not be dropped when the stream has waited long enough.
async fn read_on(mut reader: LogReader, lines: Sender<String>) {
    let names_pods = reader.names_pods();
    while let Some(entry) = reader.next().await {
        if lines.send(logs::text(&entry, names_pods)).await.is_err() {
            return;
        }
    }
}

struct LogStream {
    lines: Receiver<String>,
    reading: JoinHandle<()>,
    is_over: bool,
    service: Arc<Service>,
    who: CallerIdentity,
    organization: Identifier,
    /// When the caller's rights were looked up.
    checked: Instant,
    _slot: StreamSlot,
}

impl Drop for LogStream {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl LogStream {
    /// Waits for the next lines; `None` at the end of the stream, or of the caller's rights.
    async fn part(mut self) -> Option<(Result<Bytes, Infallible>, LogStream)> {
        loop {
            if self.checked.elapsed() >= CHECK {
                self.may_read()?;
                self.checked = Instant::now();
            }
            let text = self.next_lines().await;
            if !text.is_empty() {
                return Some((Ok(text.into()), self));
            }
            if self.is_over {
                return None;
            }
        }
    }

    /// The lines that are there within a second, as many as are sent at once.
    async fn next_lines(&mut self) -> String {
        let mut text = match timeout(CHECK, self.lines.recv()).await {
            Ok(Some(line)) => line,
            Ok(None) => {
                self.is_over = true;
                String::new()
            }
            Err(_) => String::new(),
        };
        while text.len() < PART
            && !text.is_empty()
            && let Ok(line) = self.lines.try_recv()
        {
            text += &line;
        }
        text
    }

    fn may_read(&self) -> Option<()> {
        let service = &self.service;
        self.who.still_holds(&service.state).ok()?;
        let current = service.request_queue.made()?;
        let (made, pending) = service.writer.newest(|| service.request_queue.made().unwrap_or(current));
        Caller::by_plan(&self.who, Some(&made), &pending).sees(&self.organization).then_some(())
    }
}
