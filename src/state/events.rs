//! Two files of events: the audit trail, and what happened recently.
//!
//! The audit trail is the record: it is kept for ever, and on disk before a change counts. Recent events are a
//! view: a bounded file of bounded lines, which can be read while it is written. They are written without
//! waiting for the disk, and losing them loses nothing else.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::lines::{AppendFile, read_whole, whole_length};
use super::{StateError, folder, records};
use crate::names::{FleetKey, Identifier, ResourceKey};
use crate::plan::Verb;
use crate::problem::truncate_bytes;
use crate::spec::Commit;

/// The most bytes of recent events kept. The oldest are dropped when the file is twice as large.
pub const EVENT_BYTES_KEPT: u64 = 8 << 20;

/// The longest text of an event, in bytes. Messages from servers may be of any length.
const LONGEST: usize = 4 << 10;

pub(super) const FILE: &str = "events.jsonl";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// Increases with each event; 0 in the audit trail.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub number: u64,
    pub at: Timestamp,
    /// The person or process that caused it.
    pub actor: String,
    /// Whether the actor is a super user, whose name is hidden from the members of organizations.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_super_user: bool,
    /// The commit that caused it, if the specs come from a git repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The fleet that it happens on, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetKey>,
    /// The resource that it is about; none for the installation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceKey>,
    /// The change to the resource, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verb: Option<Verb>,
    pub outcome: EventOutcome,
    /// The action in words: `created`.
    pub what: String,
    /// The cause, the reason to wait or the error; empty if there is nothing to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventOutcome {
    /// Decided, and about to begin.
    Decided,
    Waits,
    Done,
    Failed,
}

impl EventOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            EventOutcome::Decided => "decided",
            EventOutcome::Waits => "waits",
            EventOutcome::Done => "done",
            EventOutcome::Failed => "failed",
        }
    }
}

impl RecordedEvent {
    /// A finished action outside of any plan or commit, and about no single resource.
    pub fn done(at: Timestamp, actor: impl Into<String>, what: impl Into<String>) -> RecordedEvent {
        RecordedEvent {
            number: 0,
            at,
            actor: actor.into(),
            by_super_user: false,
            commit: None,
            plan: None,
            fleet: None,
            resource: None,
            verb: None,
            outcome: EventOutcome::Done,
            what: what.into(),
            why: String::new(),
        }
    }

    /// Shortens texts to at most `LONGEST` bytes each.
    fn bounded(mut self) -> RecordedEvent {
        let author = self.commit.as_mut().map(|commit| &mut commit.author);
        for text in [&mut self.actor, &mut self.what, &mut self.why].into_iter().chain(author) {
            if text.len() > LONGEST {
                *text = truncate_bytes(text, LONGEST).into_owned();
            }
        }
        self
    }

    /// The organization that it happened in; none for the installation.
    pub fn organization(&self) -> Option<&Identifier> {
        let fleet = self.fleet.as_ref().map(|fleet| &fleet.organization);
        self.resource.as_ref().map(|resource| &resource.organization).or(fleet)
    }
}

/// The index entry of an event, for finding it without reading the file.
#[derive(Debug, Clone)]
pub struct EventIndexEntry {
    pub number: u64,
    pub at: Timestamp,
    /// The organization that it happened in; none for the installation.
    pub organization: Option<Identifier>,
    /// The resource that it is about; none for the installation.
    pub resource: Option<ResourceKey>,
    pub verb: Option<Verb>,
    /// The offset and the length of its line.
    place: (u64, usize),
}

/// How long the events of a log are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retention {
    /// All events, each on disk before the writer continues: the audit trail.
    Forever,
    /// The latest [`EVENT_BYTES_KEPT`]. Writes don't wait for the disk.
    Recent,
}

/// A file of events, open for writing.
pub(super) struct EventLog {
    lines: AppendFile,
    retention: Retention,
    next: u64,
    /// The index of all events in the file, the oldest first; empty for the audit trail.
    marks: Vec<EventIndexEntry>,
}

/// A part of the file, to be read without blocking the writer.
pub(super) struct Part {
    path: Utf8PathBuf,
    file: File,
    places: Vec<(u64, usize)>,
}

impl EventLog {
    /// The log of a state that is only read. A [`Follower`] reads the file.
    pub(super) fn unopened(path: Utf8PathBuf, retention: Retention) -> EventLog {
        EventLog { lines: AppendFile::unopened(path), retention, next: 0, marks: Vec::new() }
    }

    /// Opens the file, and creates it if it is missing. A last line cut short by a crash is dropped, so that
    /// the next one starts a line of its own. Returns warnings.
    pub(super) fn open(
        path: Utf8PathBuf,
        retention: Retention,
    ) -> Result<(EventLog, Vec<String>), StateError> {
        let (mut lines, bytes, exposed) = match retention {
            Retention::Forever => AppendFile::open(path)?,
            Retention::Recent => AppendFile::open_unsynced(path)?,
        };
        let mut warnings = Vec::from_iter(exposed);
        let whole = whole_length(&bytes);
        if whole != bytes.len() {
            lines.truncate(whole as u64)?;
            if retention == Retention::Forever {
                let path = lines.path();
                warnings.push(format!("the last line of `{path}` was cut short by a crash and was dropped"));
            }
        }
        let marks = match retention {
            Retention::Forever => Vec::new(),
            Retention::Recent => marks(&bytes[..whole]),
        };
        let next = marks.last().map_or(0, |mark| mark.number + 1);
        Ok((EventLog { lines, retention, next, marks }, warnings))
    }

    pub(super) fn marks(&self) -> &[EventIndexEntry] {
        &self.marks
    }

    /// Adds events. Recent ones are numbered.
    pub(super) fn add(&mut self, events: Vec<RecordedEvent>) -> Result<(), StateError> {
        if events.is_empty() {
            return Ok(());
        }
        if self.retention == Retention::Forever {
            return self.lines.append(&events.iter().map(records::with_version).collect::<Vec<_>>());
        }
        let number = |(number, event): (_, RecordedEvent)| RecordedEvent { number, ..event.bounded() };
        let events: Vec<RecordedEvent> = (self.next..).zip(events).map(number).collect();
        let texts: Vec<String> = events.iter().map(records::with_version).collect();
        let bytes: u64 = texts.iter().map(|text| text.len() as u64 + 1).sum();
        if self.lines.length() + bytes > 2 * EVENT_BYTES_KEPT {
            self.drop_oldest()?;
        }
        let mut begin = self.lines.length();
        self.lines.append(&texts)?;
        for (event, text) in events.iter().zip(&texts) {
            self.marks.push(mark(event, (begin, text.len())));
            begin += text.len() as u64 + 1;
        }
        self.next += events.len() as u64;
        Ok(())
    }

    /// Replaces the file by one with the latest events. Open readers keep the old file.
    fn drop_oldest(&mut self) -> Result<(), StateError> {
        let path = self.lines.path().to_owned();
        let kept_from = self.lines.length().saturating_sub(EVENT_BYTES_KEPT);
        let first = self.marks.partition_point(|mark| mark.place.0 < kept_from);
        let begin = self.marks.get(first).map_or(self.lines.length(), |mark| mark.place.0);
        let mut bytes = read_whole(&path)?.unwrap_or_default();
        let rest = bytes.split_off(bytes.len().min(usize::try_from(begin).unwrap_or(usize::MAX)));
        folder::replace_file(&path, &rest)?;
        let next = self.next;
        *self = EventLog { next, ..EventLog::open(path, self.retention)?.0 };
        Ok(())
    }

    /// The events with these numbers, which must be sorted in either direction. Those that were dropped by
    /// now are left out.
    pub(super) fn numbered(&self, numbers: &[u64]) -> Result<Part, StateError> {
        let place = |number: &u64| {
            let index = self.marks.binary_search_by_key(number, |mark| mark.number).ok()?;
            self.marks.get(index).map(|mark| mark.place)
        };
        self.part(numbers.iter().filter_map(place).collect())
    }

    fn part(&self, places: Vec<(u64, usize)>) -> Result<Part, StateError> {
        Ok(Part { path: self.lines.path().to_owned(), file: self.lines.reader()?, places })
    }
}

impl Part {
    pub(super) fn read(self) -> Result<Vec<RecordedEvent>, StateError> {
        let Part { path, file, places } = self;
        let (mut events, mut bytes) = (Vec::new(), Vec::new());
        for (begin, length) in places {
            bytes.resize(length, 0);
            file.read_exact_at(&mut bytes, begin).map_err(StateError::io("read", &path))?;
            events.extend(parse(&bytes));
        }
        Ok(events)
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn marks(bytes: &[u8]) -> Vec<EventIndexEntry> {
    let mut begin = 0;
    let lines = bytes.split_inclusive(|&byte| byte == b'\n').filter_map(|line| {
        let place = (begin, line.len());
        begin += line.len() as u64;
        Some(mark(&serde_json::from_slice(line).ok()?, place))
    });
    lines.collect()
}

fn mark(event: &RecordedEvent, place: (u64, usize)) -> EventIndexEntry {
    let (organization, resource) = (event.organization().cloned(), event.resource.clone());
    EventIndexEntry { number: event.number, at: event.at, organization, resource, verb: event.verb, place }
}

/// Follows the events of a state folder that another process may use.
pub struct Follower {
    path: Utf8PathBuf,
    /// The number of the next unread event.
    next: u64,
    /// The file that was read last, at its first unread byte. While it is open, no other file gets its inode.
    file: Option<File>,
}

impl Follower {
    /// Starts at the oldest event.
    pub fn of(dir: &Utf8Path) -> Follower {
        Follower { path: dir.join(FILE), next: 0, file: None }
    }

    /// Returns the unread events, the oldest first. Invalid lines are skipped: events are only a view.
    pub fn unread_events(&mut self) -> Result<Vec<RecordedEvent>, StateError> {
        let Some(found) = folder::plain_file(&self.path)? else { return Ok(Vec::new()) };
        let whole = self.read_on(&found).map_err(StateError::io("read", &self.path))?;
        let mut events = parse(&whole);
        events.retain(|event| event.number >= self.next);
        self.next = events.last().map_or(self.next, |event| event.number + 1);
        Ok(events)
    }

    /// Reads the complete lines that were added, or all of a file that replaced the one read before.
    fn read_on(&mut self, found: &Metadata) -> io::Result<Vec<u8>> {
        let mut file = self.file.take().map_or_else(|| File::open(&self.path), Ok)?;
        if file.metadata()?.ino() != found.ino() || file.stream_position()? > found.len() {
            file = File::open(&self.path)?;
        }
        let begin = file.stream_position()?;
        let mut bytes = Vec::new();
        // Without the writer's lock: a reader that is stopped must not stop the writer. Half a line is read again
        // later.
        file.read_to_end(&mut bytes)?;
        bytes.truncate(whole_length(&bytes));
        file.seek(SeekFrom::Start(begin + bytes.len() as u64))?;
        self.file = Some(file);
        Ok(bytes)
    }
}

fn parse(bytes: &[u8]) -> Vec<RecordedEvent> {
    bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
