//! Logs of brokers, merged by time, and followed over restarts of their pods.
//!
//! A log is written by programs that a tenant runs, and passed on by an API server that a tenant owns: it is bounded in
//! the length of a line, in bytes and in time, and its lines are escaped.

mod lines;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::{self, BoxStream, SelectAll};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::KubernetesTarget;
use super::api::{KindRef, LogPart};
use super::error::KubeError;
use super::untrusted::Weigh;
use crate::component::{broker_of, broker_selector};
use lines::{LogLines, ReadLine};

/// The most pods whose logs are read at a time.
const MAX_PODS: usize = 50;

/// How many of the last lines of each pod are read if no time is given.
const LAST_LINES: u32 = 500;

/// The most bytes of one reading.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The begin of a note that the answer ends before the logs do.
pub const GOES_ON: &str = "the log goes on";

/// How much earlier than its last line the answer begins that goes on with another one: lines of several pods are in the
/// order in which they arrive.
pub const OVERLAP: SignedDuration = SignedDuration::from_secs(5);

/// How often the pods are listed while logs are followed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Which logs to read.
#[derive(Debug, Clone)]
pub struct LogRequest {
    /// The namespaces of the clusters.
    pub namespaces: BTreeSet<String>,
    /// The cluster's identifier, if it is only one.
    pub cluster: Option<String>,
    /// The only broker to read.
    pub broker: Option<u32>,
    /// Only lines of this time or later. Without it, the last lines of each pod.
    pub since: Option<Timestamp>,
    /// Go on with what is logged from now on.
    pub follows: bool,
    /// When to end; none to end with the logs.
    pub ends: Option<Instant>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEntry {
    /// A line of a pod's log, escaped.
    Line { at: Timestamp, pod: Arc<str>, text: String },
    /// Something that is said about the logs, not by them.
    Note(String),
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(transparent)]
    Kubernetes(#[from] KubeError),
    #[error("there is no broker {broker}")]
    NoBroker { broker: u32, known: Vec<u32> },
    #[error("{pods} brokers run, and at most {MAX_PODS} logs are read at a time")]
    TooManyPods { pods: usize },
}

/// A pod of a broker, as it was listed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListedPod {
    namespace: String,
    name: Arc<str>,
}

impl Weigh for ListedPod {
    fn weight(&self) -> usize {
        size_of::<Self>() + self.namespace.len() + self.name.len()
    }
}

/// How far a log was read: the time of its last line, and how many lines of that time there were.
#[derive(Debug, Clone, Copy)]
struct ReadUpTo {
    at: Timestamp,
    lines: usize,
}

#[derive(Debug)]
struct KnownPod {
    namespace: String,
    read: Option<ReadUpTo>,
    /// What its log has once more, since it was opened again: everything before a time, and so many lines of it.
    repeated: Option<ReadUpTo>,
    /// The time of the last line since its log was opened, which is also that of a line without one.
    present: Option<Timestamp>,
    /// Whether its log is being read.
    is_open: bool,
    /// Whether it was told that the pod is gone.
    is_gone: bool,
}

/// A log that is read up to the present, with its next line.
struct PastLog {
    pod: Arc<str>,
    lines: LogLines,
    /// The time of its last line.
    last: Option<Timestamp>,
    next: Option<(Timestamp, String)>,
}

/// An event of a log that is followed.
struct Followed {
    pod: Arc<str>,
    /// None at its end.
    line: Option<ReadLine>,
}

/// Reads logs, one entry at a time.
pub struct LogReader {
    target: KubernetesTarget,
    request: LogRequest,
    pods: BTreeMap<Arc<str>, KnownPod>,
    notes: VecDeque<String>,
    past: Vec<PastLog>,
    followed: SelectAll<BoxStream<'static, Followed>>,
    looks_at: Instant,
    bytes: usize,
    /// The latest time of a line that was returned.
    last: Option<Timestamp>,
    is_over: bool,
}

impl KubernetesTarget {
    /// Opens the logs of brokers.
    ///
    /// # Errors
    /// When the server can't be read or refuses logs, there is no such broker, or there are too many.
    pub async fn logs(&self, request: LogRequest) -> Result<LogReader, LogError> {
        let listed = self.broker_pods(&request).await?;
        let mut known: Vec<u32> = listed.iter().filter_map(|pod| broker_of(&pod.name)).collect();
        let is_wanted =
            |pod: &ListedPod| request.broker.is_none_or(|broker| broker_of(&pod.name) == Some(broker));
        let wanted: Vec<ListedPod> = listed.into_iter().filter(is_wanted).collect();
        if let (Some(broker), true) = (request.broker, wanted.is_empty()) {
            known.sort_unstable();
            return Err(LogError::NoBroker { broker, known });
        }
        if wanted.len() > MAX_PODS {
            return Err(LogError::TooManyPods { pods: wanted.len() });
        }
        let mut reader = LogReader {
            target: self.clone(),
            request,
            pods: BTreeMap::new(),
            notes: VecDeque::new(),
            past: Vec::new(),
            followed: SelectAll::new(),
            looks_at: Instant::now(),
            bytes: 0,
            last: None,
            is_over: false,
        };
        reader.open_past(wanted).await?;
        Ok(reader)
    }

    async fn broker_pods(&self, request: &LogRequest) -> Result<Vec<ListedPod>, KubeError> {
        let namespace = match (request.namespaces.len(), request.namespaces.first()) {
            (1, only) => only.map(String::as_str),
            _ => None,
        };
        let text =
            |pod: &Value, pointer: &str| pod.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let keep = |pod: Value| {
            let namespace = text(&pod, "/metadata/namespace")?;
            let name = text(&pod, "/metadata/name")?.into();
            request.namespaces.contains(&namespace).then_some(ListedPod { namespace, name })
        };
        let selector = broker_selector(request.cluster.as_deref());
        self.api().await?.list(KindRef::core("Pod"), namespace, &selector, keep).await
    }
}

impl LogReader {
    /// Whether lines of several pods may be read, now or when pods are added.
    pub fn names_pods(&self) -> bool {
        self.request.broker.is_none()
    }

    async fn open_past(&mut self, pods: Vec<ListedPod>) -> Result<(), LogError> {
        let part = self.request.since.map_or(LogPart::Last(LAST_LINES), LogPart::Since);
        let api = self.target.api().await?;
        let opened = join_all(pods.iter().map(|pod| api.log(&pod.namespace, &pod.name, part, false))).await;
        let mut past = Vec::new();
        if pods.is_empty() {
            self.notes.push_back("no broker runs".to_owned());
        }
        for (pod, opened) in pods.into_iter().zip(opened) {
            let ListedPod { namespace, name } = pod;
            match opened {
                Ok(log) => {
                    let lines = LogLines::new(log, Arc::clone(api.budget()));
                    past.push(PastLog { pod: Arc::clone(&name), lines, last: None, next: None });
                }
                // Without the right, no log can be read.
                Err(error) if error.is_code(401) || error.is_code(403) => return Err(error.into()),
                Err(error) => self.notes.push_back(unread(&name, &error)),
            }
            let mut known = KnownPod::new(namespace);
            known.read = self.request.since.map(|at| ReadUpTo { at, lines: 0 });
            self.pods.insert(name, known);
        }
        for log in &mut past {
            log.advance(self.request.since).await;
        }
        self.past = past;
        Ok(())
    }

    /// The next entry; none at the end. Dropping the future before it is ready may lose an entry.
    pub async fn next(&mut self) -> Option<LogEntry> {
        loop {
            if let Some(note) = self.notes.pop_front() {
                return Some(LogEntry::Note(note));
            }
            if self.is_over {
                return None;
            }
            let ends = self.request.ends;
            let step = Box::pin(self.step());
            let entry = match ends {
                Some(ends) => timeout_at(ends, step).await.unwrap_or(LogStep::Cut),
                None => step.await,
            };
            match entry {
                LogStep::Entry(entry) => return Some(self.counted(entry)),
                LogStep::Nothing => {}
                LogStep::End => self.is_over = true,
                LogStep::Cut => self.cut("its time is over"),
            }
        }
    }

    /// Counts an entry, and ends the reading after too many bytes.
    fn counted(&mut self, entry: LogEntry) -> LogEntry {
        if let LogEntry::Line { at, text, .. } = &entry {
            self.last = self.last.max(Some(*at));
            self.bytes += text.len();
            if self.bytes > MAX_BYTES {
                self.cut(&format!("{} MiB are the limit", MAX_BYTES / 1024 / 1024));
            }
        }
        entry
    }

    /// Ends the reading before the end of the logs.
    fn cut(&mut self, why: &str) {
        self.is_over = true;
        // Lines of several pods are in the order in which they arrived.
        let at = self.last.and_then(|last| last.checked_sub(OVERLAP).ok()).max(self.request.since);
        let since = at.map(|at| format!("; go on since {at}, without the lines that you have"));
        self.notes.push_back(format!("{GOES_ON}: {why}{}", since.unwrap_or_default()));
    }

    async fn step(&mut self) -> LogStep {
        if !self.past.is_empty() {
            return self.past_line().await.map_or(LogStep::Nothing, LogStep::Entry);
        }
        if !self.request.follows {
            return LogStep::End;
        }
        tokio::select! {
            Some(followed) = self.followed.next(), if !self.followed.is_empty() => self.take(followed),
            () = sleep_until(self.looks_at) => {
                self.look().await;
                self.looks_at = Instant::now() + LOOK_AGAIN;
                LogStep::Nothing
            }
        }
    }

    /// The oldest of the next lines. A log is dropped at its end.
    async fn past_line(&mut self) -> Option<LogEntry> {
        self.past.retain(|log| log.next.is_some());
        let oldest = self.past.iter_mut().min_by_key(|log| log.next.as_ref().map(|(at, _)| *at))?;
        let (at, text) = oldest.next.take()?;
        let pod = Arc::clone(&oldest.pod);
        oldest.advance(self.request.since).await;
        if let Some(known) = self.pods.get_mut(&pod) {
            known.note(at);
        }
        Some(LogEntry::Line { at, pod, text })
    }

    fn take(&mut self, Followed { pod, line }: Followed) -> LogStep {
        let Some(known) = self.pods.get_mut(&pod) else { return LogStep::Nothing };
        let Some(line) = line else {
            known.is_open = false;
            return LogStep::Nothing;
        };
        match known.is_new(line.at) {
            Some(at) => LogStep::Entry(LogEntry::Line { at, pod, text: line.text }),
            None => LogStep::Nothing,
        }
    }

    /// Lists the pods, opens the logs of those whose log has ended, and tells which are gone.
    async fn look(&mut self) {
        // The server may be away for a moment; the logs that are open go on.
        let Ok(listed) = self.target.broker_pods(&self.request).await else { return };
        let there: BTreeSet<&Arc<str>> = listed.iter().map(|pod| &pod.name).collect();
        for (name, known) in self.pods.iter_mut().filter(|(name, _)| !there.contains(name)) {
            if !std::mem::replace(&mut known.is_gone, true) {
                self.notes.push_back(format!("pod {name} is gone"));
            }
        }
        for ListedPod { namespace, name } in listed {
            let is_wanted = self.request.broker.is_none_or(|broker| broker_of(&name) == Some(broker));
            if !is_wanted || self.pods.len() >= MAX_PODS && !self.pods.contains_key(&name) {
                continue;
            }
            let known = self.pods.entry(Arc::clone(&name)).or_insert_with(|| KnownPod::new(namespace));
            if known.is_open {
                continue;
            }
            let part = known.read.map_or(LogPart::Last(LAST_LINES), |read| LogPart::Since(read.at));
            let Ok(api) = self.target.api().await else { return };
            // A container that has not started yet has no log; it is looked at again.
            let Ok(log) = api.log(&known.namespace, &name, part, true).await else { continue };
            if std::mem::take(&mut known.is_gone) {
                self.notes.push_back(format!("pod {name} is there again"));
            }
            (known.is_open, known.repeated, known.present) = (true, known.read, None);
            let lines = LogLines::new(log, Arc::clone(api.budget()));
            self.followed.push(follow(name, lines));
        }
    }
}

enum LogStep {
    Entry(LogEntry),
    Nothing,
    End,
    /// The time is over before the logs are.
    Cut,
}

impl KnownPod {
    fn new(namespace: String) -> KnownPod {
        let (read, repeated, present) = (None, None, None);
        KnownPod { namespace, read, repeated, present, is_open: false, is_gone: false }
    }

    /// Notes that a line of this time was read.
    fn note(&mut self, at: Timestamp) {
        match &mut self.read {
            Some(read) if read.at > at => {}
            Some(read) if read.at == at => read.lines += 1,
            _ => self.read = Some(ReadUpTo { at, lines: 1 }),
        }
    }

    /// Notes a line of the open log, and returns its time if it wasn't read before. A log is opened from a second on,
    /// and has the lines of that second once more, in the same order.
    fn is_new(&mut self, at: Option<Timestamp>) -> Option<Timestamp> {
        let before = || self.present.or(self.read.map(|read| read.at));
        let at = at.or_else(before).unwrap_or_else(Timestamp::now);
        self.present = Some(at);
        match &mut self.repeated {
            Some(repeated) if at < repeated.at => return None,
            Some(repeated) if at == repeated.at && repeated.lines > 0 => {
                repeated.lines -= 1;
                return None;
            }
            Some(repeated) if at > repeated.at => self.repeated = None,
            _ => {}
        }
        self.note(at);
        Some(at)
    }
}

impl PastLog {
    /// Reads its next line of a time or later.
    async fn advance(&mut self, since: Option<Timestamp>) {
        loop {
            let Some(ReadLine { at, text }) = self.lines.next().await else { return };
            // A line without a time belongs to the one before.
            let at = at.or(self.last).unwrap_or(Timestamp::UNIX_EPOCH);
            self.last = Some(at);
            if since.is_none_or(|since| at >= since) {
                self.next = Some((at, text));
                return;
            }
        }
    }
}

fn follow(pod: Arc<str>, lines: LogLines) -> BoxStream<'static, Followed> {
    let next = |(pod, lines): (Arc<str>, Option<LogLines>)| async move {
        let mut lines = lines?;
        let line = lines.next().await;
        let rest = line.is_some().then_some(lines);
        Some((Followed { pod: Arc::clone(&pod), line }, (pod, rest)))
    };
    stream::unfold((pod, Some(lines)), next).boxed()
}

/// Why a pod's log can't be read. The server's own words may tell of addresses in its network.
fn unread(pod: &str, error: &KubeError) -> String {
    match error {
        error if error.is_code(400) => format!("pod {pod} has no log yet: its container has not started"),
        error if error.is_code(404) => format!("pod {pod} is gone"),
        _ => format!("the log of pod {pod} can't be read now"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_opened_again_goes_on_after_the_lines_that_were_read() {
        let at = |second: i64| Some(Timestamp::from_second(second).unwrap());
        let mut pod = KnownPod::new("kafka".to_owned());
        let mut opened = |lines: &[Option<Timestamp>]| -> Vec<bool> {
            (pod.repeated, pod.present) = (pod.read, None);
            lines.iter().map(|at| pod.is_new(*at).is_some()).collect()
        };
        // Lines of one time, and one without any, which belongs to the one before.
        assert_eq!(opened(&[at(1), at(2), at(2), None]), [true; 4]);
        assert_eq!(
            opened(&[at(1), at(2), at(2), None, None, at(2), at(3)]),
            [false, false, false, false, true, true, true]
        );
        // While it is open, a line may be older than the one before.
        assert_eq!(opened(&[at(3), at(3), at(2), at(4)]), [false, true, false, true]);
        assert_eq!(opened(&[at(4), at(5), at(4)]), [false, true, true]);
    }
}
