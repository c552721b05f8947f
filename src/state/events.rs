//! What happened lately: a file of bounded length, of lines of bounded length, which others may read while its owner writes.
//!
//! It is a view, and the audit trail is the truth: what was done stands there for ever, on disk before it counts. Events are
//! written without waiting for the disk, and losing them loses nothing else.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::lines::{Lines, whole_length};
use super::{AuditEntry, StateError, folder, records};
use crate::names::{FleetKey, Identifier, ResourceKey};
use crate::plan::Verb;
use crate::problem::cut;
use crate::spec::Commit;

/// How many events are kept at least, where they are no more than [`BYTES_KEPT`]; the oldest go first, when there are twice as many.
pub const EVENTS_KEPT: usize = 10_000;

/// How many bytes of events are kept at most. The file is twice as large before the oldest go.
const BYTES_KEPT: usize = 8 << 20;

/// The longest text of an event, in bytes: what a server says of itself may be longer than anybody reads.
const LONGEST: usize = 4 << 10;

/// Their file.
pub(super) const FILE: &str = "events.jsonl";

/// A decision or an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its number; each event has a greater one than those before.
    #[serde(default)]
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// Who made it happen.
    pub actor: String,
    /// Whether that is a super user, whose name is not for the members of organizations.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_super_user: bool,
    /// The commit that asked for it, where the specs come from a git repository.
    #[serde(default)]
    pub commit: Option<Commit>,
    /// The plan's id, where there was one.
    #[serde(default)]
    pub plan: Option<String>,
    /// The fleet that it happens on; none where it happens on none.
    #[serde(default)]
    pub fleet: Option<FleetKey>,
    /// The resource that it is about; none where it is about the installation.
    #[serde(default)]
    pub resource: Option<ResourceKey>,
    /// What is done to the resource, where anything is.
    #[serde(default)]
    pub verb: Option<Verb>,
    /// What became of it.
    pub outcome: Outcome,
    /// What happened, in words: `created`.
    pub what: String,
    /// Why: what caused it, what it waits for, why it failed.
    pub why: String,
}

/// What became of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was decided, and begins.
    Decided,
    /// It has to wait.
    Waits,
    /// It is done.
    Done,
    /// It could not be done.
    Failed,
}

impl Outcome {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Decided => "decided",
            Outcome::Waits => "waits",
            Outcome::Done => "done",
            Outcome::Failed => "failed",
        }
    }
}

impl From<&AuditEntry> for Event {
    /// What a person did to the installation, or to a resource.
    fn from(entry: &AuditEntry) -> Event {
        let AuditEntry { at, who, what, plan, commit, resource, by_super_user } = entry.clone();
        Event {
            number: 0,
            at,
            actor: who,
            by_super_user,
            commit,
            plan,
            fleet: None,
            resource,
            verb: None,
            outcome: Outcome::Done,
            what,
            why: String::new(),
        }
    }
}

impl Event {
    /// The event with texts that are no longer than anybody reads.
    fn bounded(mut self) -> Event {
        let author = self.commit.as_mut().map(|commit| &mut commit.author);
        for text in [&mut self.actor, &mut self.what, &mut self.why].into_iter().chain(author) {
            if text.len() > LONGEST {
                *text = cut(text, LONGEST).into_owned();
            }
        }
        self
    }

    /// Whose organization it happened in; none where it is about the installation.
    pub fn organization(&self) -> Option<&Identifier> {
        let fleet = self.fleet.as_ref().map(|fleet| &fleet.organization);
        self.resource.as_ref().map(|resource| &resource.organization).or(fleet)
    }
}

/// What is known of an event without reading it.
#[derive(Debug, Clone)]
pub struct EventMark {
    /// Its number.
    pub number: u64,
    /// When it happened.
    pub at: Timestamp,
    /// Whose organization it happened in; none where it is about the installation.
    pub organization: Option<Identifier>,
    /// Where its line begins, and how long that is.
    place: (u64, usize),
}

/// The file, open for writing.
pub(super) struct Events {
    lines: Lines,
    /// How many lines there are in it.
    count: usize,
    /// The number of the next.
    next: u64,
    /// Every event in it, the oldest first.
    marks: Vec<EventMark>,
}

/// A part of the file, to be read without holding up whoever writes.
pub(super) struct Part {
    path: Utf8PathBuf,
    file: File,
    places: Vec<(u64, usize)>,
}

impl Events {
    /// None, where the state is only read: its file is read by a [`Follower`].
    pub(super) fn unopened(dir: &Utf8Path) -> Events {
        Events { lines: Lines::unopened(dir.join(FILE)), count: 0, next: 0, marks: Vec::new() }
    }

    /// Opens the file, and makes it where it is missing. The second part says that others could read or write it.
    pub(super) fn open(dir: &Utf8Path) -> Result<(Events, Option<String>), StateError> {
        let (mut lines, bytes, exposed) = Lines::open_unsynced(dir.join(FILE))?;
        let whole = whole_length(&bytes);
        if whole != bytes.len() {
            lines.truncate(whole as u64)?;
        }
        let whole = &bytes[..whole];
        let count = whole.iter().filter(|&&byte| byte == b'\n').count();
        let marks = marks(whole);
        let next = marks.last().map_or(0, |mark| mark.number + 1);
        Ok((Events { lines, count, next, marks }, exposed))
    }

    /// The events that are in it, the oldest first.
    pub(super) fn marks(&self) -> &[EventMark] {
        &self.marks
    }

    /// Adds events, which get their numbers here.
    pub(super) fn add(&mut self, events: Vec<Event>) -> Result<(), StateError> {
        if events.is_empty() {
            return Ok(());
        }
        let number = |(number, event): (_, Event)| Event { number, ..event.bounded() };
        let events: Vec<Event> = (self.next..).zip(events).map(number).collect();
        let texts: Vec<String> = events.iter().map(records::with_version).collect();
        let bytes = self.lines.length() + texts.iter().map(|text| text.len() as u64 + 1).sum::<u64>();
        if self.count + events.len() > 2 * EVENTS_KEPT || bytes > 2 * BYTES_KEPT as u64 {
            return self.begin_anew(events);
        }
        let mut begin = self.lines.length();
        self.lines.append(&texts)?;
        for (event, text) in events.iter().zip(&texts) {
            self.marks.push(mark(event, (begin, text.len())));
            begin += text.len() as u64 + 1;
        }
        self.count += events.len();
        self.next += events.len() as u64;
        Ok(())
    }

    /// Puts a file with the latest events in the place of this one. Who reads the old one has it to its end.
    fn begin_anew(&mut self, events: Vec<Event>) -> Result<(), StateError> {
        let path = self.lines.path().to_owned();
        let next = self.next + events.len() as u64;
        let mut kept = self::read(&path)?;
        kept.extend(events);
        let kept = kept.split_off(kept.len().saturating_sub(EVENTS_KEPT));
        // Those from an older version may be of any length.
        let mut texts: Vec<String> = Vec::new();
        let mut bytes = 0;
        for event in kept.into_iter().rev() {
            let text = records::with_version(&event.bounded()) + "\n";
            bytes += text.len();
            if bytes > BYTES_KEPT {
                break;
            }
            texts.push(text);
        }
        let count = texts.len();
        let text: String = texts.into_iter().rev().collect();
        let failed = |error| StateError::io("write", &path)(error);
        let aside = path.with_extension("new");
        // What a crash left there is nobody's.
        let _ = fs::remove_file(&aside);
        let (mut lines, ..) = Lines::open_unsynced(aside.clone())?;
        lines.append(&[text.trim_end().to_owned()])?;
        fs::rename(&aside, &path).map_err(failed)?;
        let marks = marks(text.as_bytes());
        *self = Events { lines: Lines::open_unsynced(path)?.0, count, next, marks };
        Ok(())
    }

    /// The events of these numbers, which grow or fall, in this order. Those that are gone by now are left out.
    pub(super) fn numbered(&self, numbers: &[u64]) -> Result<Part, StateError> {
        let place = |number: &u64| {
            let index = self.marks.binary_search_by_key(number, |mark| mark.number).ok()?;
            self.marks.get(index).map(|mark| mark.place)
        };
        self.part(numbers.iter().filter_map(place).collect())
    }

    /// The events from this number on.
    pub(super) fn from(&self, number: u64) -> Result<Part, StateError> {
        let first = self.marks.partition_point(|mark| mark.number < number);
        let begin = self.marks.get(first).map(|mark| mark.place.0);
        let length = begin.and_then(|begin| usize::try_from(self.lines.length() - begin).ok());
        self.part(begin.zip(length).into_iter().collect())
    }

    fn part(&self, places: Vec<(u64, usize)>) -> Result<Part, StateError> {
        Ok(Part { path: self.lines.path().to_owned(), file: self.lines.reader()?, places })
    }
}

impl Part {
    /// The events in it.
    pub(super) fn read(self) -> Result<Vec<Event>, StateError> {
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

fn marks(bytes: &[u8]) -> Vec<EventMark> {
    let mut begin = 0;
    let lines = bytes.split_inclusive(|&byte| byte == b'\n').filter_map(|line| {
        let place = (begin, line.len());
        begin += line.len() as u64;
        Some(mark(&serde_json::from_slice(line).ok()?, place))
    });
    lines.collect()
}

fn mark(event: &Event, place: (u64, usize)) -> EventMark {
    let organization = event.organization().cloned();
    EventMark { number: event.number, at: event.at, organization, place }
}

/// Follows the events of a state folder, which another process may use.
pub struct Follower {
    path: Utf8PathBuf,
    /// The number of the next that wasn't seen.
    next: u64,
    /// The file that was read last, and how much of it.
    seen: Option<(u64, u64)>,
}

impl Follower {
    /// From the oldest event on.
    pub fn of(dir: &Utf8Path) -> Follower {
        Follower { path: dir.join(FILE), next: 0, seen: None }
    }

    /// From the event with this number on.
    pub fn skip(&mut self, number: u64) {
        self.next = number;
    }

    /// The number of the next event that wasn't seen.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The events that weren't seen yet, the oldest first. A line that is no event is left out: the file is a view, and what
    /// was done stands in the audit trail.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn news(&mut self) -> Result<Vec<Event>, StateError> {
        let Some(found) = folder::plain_file(&self.path)? else { return Ok(Vec::new()) };
        let from = self.seen.filter(|(file, from)| *file == found.ino() && *from <= found.len());
        let from = from.map_or(0, |(_, from)| from);
        let mut bytes = Vec::new();
        let mut read = || {
            let mut file = File::open(&self.path)?;
            // Nobody is in the middle of a line then.
            file.lock_shared()?;
            file.seek(SeekFrom::Start(from))?;
            file.read_to_end(&mut bytes)?;
            file.unlock()
        };
        read().map_err(StateError::io("read", &self.path))?;
        let whole = whole_length(&bytes);
        self.seen = Some((found.ino(), from + whole as u64));
        let mut events = parse(&bytes[..whole]);
        events.retain(|event| event.number >= self.next);
        self.next = events.last().map_or(self.next, |event| event.number + 1);
        Ok(events)
    }
}

fn read(path: &Utf8Path) -> Result<Vec<Event>, StateError> {
    Ok(super::lines::read_whole(path)?.map(|bytes| parse(&bytes)).unwrap_or_default())
}

fn parse(bytes: &[u8]) -> Vec<Event> {
    bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
