//! A stream of events as they happen (server-sent events).
//!
//! A connection lives for a minute, so a stream ends before that, and the client resumes it with the id of the last
//! event that it received. Meanwhile the connection counts as idle and may be closed for others. The caller's rights are
//! looked up again for each part of the stream.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::events::{self, sees};
use super::{Answered, Call, CallerRequest, Service};
use crate::api::caller::{Caller, CallerIdentity};
use crate::api::openapi::EVENT_STREAM;
use crate::http::problem::ProblemDocument;
use crate::names::Identifier;
use crate::parallel::locked;

/// The header with which browsers resume a stream.
const LAST_EVENT_ID: &str = "last-event-id";

/// How long a stream lasts: less than a connection (60 s).
const LONGEST: Duration = Duration::from_secs(50);

/// How often a client hears something, so that neither it nor a proxy takes the stream for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How often the token is checked while nothing happens.
const CHECK: Duration = Duration::from_secs(1);

/// How many events are sent at once.
const MOST_AT_ONCE: usize = 100;

/// The number of streams at a time, in all and of one owner.
const STREAMS: usize = 256;
const STREAMS_OF_ONE: usize = 20;

/// How many of the streams are for users of this host and super users alone: whoever runs the installation gets a
/// place, however many tenants watch.
const RESERVED: usize = 16;

/// How long a client waits before it resumes the stream, in milliseconds.
const RETRY: &str = "retry: 1000\n\n";

/// Begins a stream after the event that the client received last, or with the next event.
pub(super) fn stream(call: &Call) -> Answered {
    let service = &call.service;
    let organization = call.queried_organization()?;
    let heard = service.state.hear_events();
    let last = call.headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    let next = begin(call, last.or_else(|| call.query.get("after")))?;
    let slot = call.stream_slot()?;
    let reader =
        EventReader { service: Arc::clone(service), who: call.caller.identity().clone(), organization, next };
    let now = Instant::now();
    let clock = StreamClock { ends: now + LONGEST, told: now };
    let stream = EventStream { reader, heard, is_behind: true, is_new: true, clock, _slot: slot };
    let parts = stream::unfold(stream, EventStream::part);
    let mut response = Response::new(Body::from_stream(parts));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    // nginx would hold events back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl CallerRequest {
    /// Takes one of the caller's places among the open streams.
    pub(super) fn stream_slot(&self) -> Result<StreamSlot, ProblemDocument> {
        let owner = self.caller.token().map(|token| token.owner.to_ascii_lowercase());
        self.service.streams.take(owner, self.caller.is_super()).ok_or_else(|| {
            ProblemDocument::too_many("too many streams are open", Duration::from_secs(10))
                .hint("close one of them, or ask from time to time without following")
        })
    }
}

/// The number of the first event after the one with an id; `None` for the next that happens.
fn begin(call: &Call, last: Option<&str>) -> Result<u64, ProblemDocument> {
    let numbers = call.service.state.find_events(|_| true);
    let Some(last) = last else { return Ok(numbers.last().map_or(0, |number| number + 1)) };
    if !events::is_id(last) {
        let why = "`Last-Event-ID`, or `after`, is not the id of an event";
        return Err(ProblemDocument::malformed(why).hint("leave it out for the events from now on"));
    }
    let keyring = call.made.installation.secrets.keyring();
    let found = numbers.iter().rev().find(|number| keyring.event_id(**number) == last);
    // If the event was dropped since, so were all older ones.
    Ok(found.map_or(0, |number| number + 1))
}

/// Reads events on behalf of a caller.
#[derive(Clone)]
struct EventReader {
    service: Arc<Service>,
    who: CallerIdentity,
    organization: Option<Identifier>,
    /// The number of the first event to read.
    next: u64,
}

impl EventReader {
    /// Reads the next events as text, and whether there may be more. `None` if that is impossible.
    fn read(&mut self) -> Option<(String, bool)> {
        let service = &self.service;
        let current = service.request_queue.made()?;
        let (made, pending) = service.writer.newest(|| service.request_queue.made().unwrap_or(current));
        let caller = Caller::by_plan(&self.who, Some(&made), &pending);
        let wanted = |event: &_| sees(&caller, self.organization.as_ref(), event);
        let (numbers, next) = service.state.find_events_from(self.next, MOST_AT_ONCE, wanted);
        let found = service.state.events(&numbers);
        let found = found
            .map_err(|error| tracing::warn!(%error, hint = error.hint(), "cannot stream events"))
            .ok()?;
        self.next = next;
        let keyring = made.installation.secrets.keyring();
        let mut text = String::new();
        for event in found {
            let id = keyring.event_id(event.number);
            let data = events::shown(caller.is_super(), &event, &id);
            // Can't fail: the text is in memory. JSON has no line breaks.
            let _ = write!(text, "id: {id}\ndata: {data}\n\n");
        }
        Some((text, numbers.len() == MOST_AT_ONCE))
    }
}

struct EventStream {
    reader: EventReader,
    /// Tells of new events.
    heard: watch::Receiver<()>,
    /// Whether there may be unread events.
    is_behind: bool,
    /// Whether nothing was sent yet.
    is_new: bool,
    clock: StreamClock,
    _slot: StreamSlot,
}

impl EventStream {
    /// Waits for the next part of the stream; `None` at its end.
    async fn part(mut self) -> Option<(Result<Bytes, Infallible>, EventStream)> {
        if self.is_new {
            self.is_new = false;
            return Some((Ok(Bytes::from_static(RETRY.as_bytes())), self));
        }
        loop {
            // Checked right before events are read: after a revocation there are none.
            self.reader.who.still_holds(&self.reader.service.state).ok()?;
            if self.heard.has_changed().ok()? || self.is_behind {
                self.heard.mark_unchanged();
                let mut reader = self.reader.clone();
                let read = tokio::task::spawn_blocking(move || Some((reader.read()?, reader)));
                let ((text, is_behind), reader) = read.await.ok()??;
                (self.reader, self.is_behind) = (reader, is_behind);
                if !text.is_empty() {
                    self.clock.told = Instant::now();
                    return Some((Ok(text.into()), self));
                }
            }
            match self.clock.next(Instant::now()) {
                StreamEvent::End => return None,
                StreamEvent::KeepAlive => {
                    self.clock.told = Instant::now();
                    return Some((Ok(Bytes::from_static(b":\n\n")), self));
                }
                StreamEvent::Wait(pause) if !self.is_behind => {
                    self.is_behind = timeout(pause, self.heard.changed()).await.is_ok();
                }
                StreamEvent::Wait(_) => {}
            }
        }
    }
}

/// When a stream ends, and when a client was last told anything.
struct StreamClock {
    ends: Instant,
    told: Instant,
}

#[derive(Debug, PartialEq, Eq)]
enum StreamEvent {
    End,
    KeepAlive,
    /// Nothing to do for so long.
    Wait(Duration),
}

impl StreamClock {
    fn next(&self, now: Instant) -> StreamEvent {
        if now >= self.ends {
            return StreamEvent::End;
        }
        let due = self.told + KEEP_ALIVE;
        if now >= due {
            return StreamEvent::KeepAlive;
        }
        StreamEvent::Wait(CHECK.min(due - now).min(self.ends - now))
    }
}

/// The open streams by owner; of local users together, without one.
#[derive(Default)]
pub(super) struct StreamSlots(Arc<Mutex<BTreeMap<Option<String>, usize>>>);

/// A place among the open streams, which is freed when this is dropped.
pub(super) struct StreamSlot {
    open: Arc<Mutex<BTreeMap<Option<String>, usize>>>,
    owner: Option<String>,
}

impl StreamSlots {
    /// `None` if too many streams are open, in all or of the owner.
    fn take(&self, owner: Option<String>, is_super: bool) -> Option<StreamSlot> {
        let most = if is_super { STREAMS } else { STREAMS - RESERVED };
        let mut open = locked(&self.0);
        let of_one = open.get(&owner).copied().unwrap_or_default();
        if of_one >= STREAMS_OF_ONE || open.values().sum::<usize>() >= most {
            return None;
        }
        open.insert(owner.clone(), of_one + 1);
        Some(StreamSlot { open: Arc::clone(&self.0), owner })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = locked(&self.open);
        if let Some(count) = open.get_mut(&self.owner) {
            *count -= 1;
        }
        open.retain(|_, count| *count > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_tells_something_every_15_s_and_ends_before_its_connection() {
        let begin = Instant::now();
        let second = |number: u64| begin + Duration::from_secs(number);
        let clock = StreamClock { ends: second(50), told: second(3) };
        for (now, expected) in [
            (3, StreamEvent::Wait(CHECK)),
            (17, StreamEvent::Wait(CHECK)),
            (18, StreamEvent::KeepAlive),
            (50, StreamEvent::End),
            (99, StreamEvent::End),
        ] {
            assert_eq!(clock.next(second(now)), expected, "{now}");
        }
        let half = Duration::from_millis(500);
        assert_eq!(clock.next(second(18) - half), StreamEvent::Wait(half));
        let clock = StreamClock { told: second(49), ..clock };
        assert_eq!(clock.next(second(50) - half), StreamEvent::Wait(half));
    }

    #[test]
    fn streams_are_limited_for_each_owner_and_in_all() {
        let slots = StreamSlots::default();
        let take = |owner: &str| slots.take(Some(owner.to_owned()), false);
        let mut kept: Vec<_> = std::iter::from_fn(|| take("ada")).collect();
        assert_eq!(kept.len(), STREAMS_OF_ONE);
        drop(kept.pop());
        kept.extend(take("ada"));
        assert!(kept.len() == STREAMS_OF_ONE && take("ada").is_none());
        for other in 0.. {
            match take(&format!("{other}")) {
                Some(slot) => kept.push(slot),
                None => break,
            }
        }
        assert_eq!(kept.len(), STREAMS - RESERVED);
        // The last ones are for those who run the installation.
        assert!(slots.take(None, false).is_none());
        kept.extend((0..RESERVED).map(|_| slots.take(None, true).unwrap()));
        assert!(kept.len() == STREAMS && slots.take(Some("root".to_owned()), true).is_none());
        kept.clear();
        assert!(locked(&slots.0).is_empty());
    }
}
