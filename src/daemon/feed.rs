//! The source of a running process's specs, and the notification of changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot::{self, Receiver};
use tokio::time::{Instant, sleep_until};

use super::{DaemonError, Event, thread};
use crate::parallel::locked;
use crate::source::SourceError;
use crate::source::directory::{Scanner, Watch};
use crate::source::git::{Fetched, GitError, Mirror};
use crate::spec::Snapshot;
use crate::vitals::Vitals;
use crate::writing::{SpecStore, Writer};

pub enum SpecSource {
    Folder(Utf8PathBuf),
    /// A git repository, and the interval between fetches.
    Git(Arc<Mirror>, Duration),
}

impl SpecSource {
    pub(super) fn is_git(&self) -> bool {
        matches!(self, SpecSource::Git(..))
    }

    pub(super) fn place(&self) -> SpecStore {
        match self {
            SpecSource::Folder(tree) => SpecStore::Folder(tree.clone()),
            SpecSource::Git(mirror, _) => SpecStore::Git(Arc::clone(mirror)),
        }
    }
}

pub(super) enum SpecReader {
    Folder(Utf8PathBuf, Arc<Mutex<Scanner>>, Arc<Vitals>),
    Git {
        mirror: Arc<Mirror>,
        /// Whether a fetch of this process has ended or timed out. Until then, the clone may be long
        /// outdated.
        tried: Arc<AtomicBool>,
        snapshot: Option<Arc<Snapshot>>,
    },
}

impl SpecReader {
    /// Returns the current specs; `None` if nothing was fetched yet.
    pub(super) fn snapshot(&mut self) -> Result<Option<Arc<Snapshot>>, SourceError> {
        match self {
            SpecReader::Folder(tree, scanner, vitals) => {
                let snapshot = locked(scanner).scan(tree)?;
                vitals.read(Timestamp::now());
                Ok(Some(snapshot))
            }
            SpecReader::Git { mirror, tried, snapshot } => {
                let is_tried = tried.load(Ordering::Acquire);
                let Some(commit) = mirror.commit().filter(|_| is_tried) else { return Ok(None) };
                match snapshot {
                    Some(snapshot) if snapshot.revision == commit => {}
                    _ => *snapshot = Some(mirror.latest()?),
                }
                Ok(snapshot.clone())
            }
        }
    }

    /// Has the next snapshot of a folder made of all of it, whatever was told of changes.
    pub(super) fn doubt(&self) {
        if let SpecReader::Folder(_, scanner, _) = self {
            locked(scanner).doubt();
        }
    }

    /// Clears the last snapshot's mark of a rewritten branch once the state has recorded it.
    pub(super) fn clear_rewritten(&mut self) {
        if let SpecReader::Git { mirror, snapshot: Some(snapshot), .. } = self
            && let Some(commit) = &snapshot.commit
            && commit.rewrote.is_some()
            && mirror.settle_rewrite(&commit.id)
            && let Some(commit) = &mut Arc::make_mut(snapshot).commit
        {
            commit.rewrote = None;
        }
    }
}

pub(super) struct SourceFeed {
    fetch_now: Arc<Notify>,
}

impl SourceFeed {
    /// Requests a fetch without waiting for the interval.
    pub(super) fn hurry(&self) {
        self.fetch_now.notify_one();
    }
}

pub(super) fn start(
    source: SpecSource,
    runtime: &Runtime,
    tell: &UnboundedSender<Event>,
    vitals: Arc<Vitals>,
    writer: Option<&Writer>,
) -> Result<(SourceFeed, SpecReader), DaemonError> {
    let (hurry, tell) = (Arc::new(Notify::new()), tell.clone());
    let feed = SourceFeed { fetch_now: Arc::clone(&hurry) };
    match source {
        SpecSource::Folder(tree) => {
            // The watch starts before the first scan, so that later changes are reported.
            let mut watch = Watch::new(&tree);
            let scanner = Arc::new(Mutex::new(Scanner::of(&watch)));
            if let Some(writer) = writer {
                writer.use_watch(&watch, Arc::clone(&scanner));
            }
            thread("watch", move || {
                loop {
                    watch.changed();
                    tracing::debug!("specs may have changed");
                    if tell.send(Event::Specs).is_err() {
                        return;
                    }
                }
            })?;
            Ok((feed, SpecReader::Folder(tree, scanner, vitals)))
        }
        SpecSource::Git(mirror, interval) => {
            let tried = Arc::new(AtomicBool::new(false));
            let mut fetches = FetchLoop::new(Arc::clone(&mirror), interval, Arc::clone(&tried), vitals);
            runtime.spawn(async move {
                loop {
                    tokio::select! {
                        () = hurry.notified() => fetches.hurry(),
                        () = fetches.changed() => {
                            if tell.send(Event::Specs).is_err() {
                                return;
                            }
                        }
                    }
                }
            });
            Ok((feed, SpecReader::Git { mirror, tried, snapshot: None }))
        }
    }
}

/// Fetches one after the other, each on a thread of its own, so that an unresponsive remote blocks nothing.
struct FetchLoop {
    mirror: Arc<Mirror>,
    interval: Duration,
    running: Option<RunningFetch>,
    due: Instant,
    tried: Arc<AtomicBool>,
    /// The last logged error.
    trouble: Option<String>,
    /// The state of the clone, recorded by the fetching thread, since reading it may take long.
    stands: Arc<Mutex<CloneContents>>,
    /// Receives the time of each successful fetch.
    vitals: Arc<Vitals>,
}

#[derive(Debug, Clone, Default)]
struct CloneContents {
    /// The active commit.
    in_force: Option<String>,
    /// The commit that was active before signatures were required.
    unsigned: Option<String>,
}

struct RunningFetch {
    done: Receiver<Result<Fetched, GitError>>,
    /// When the fetch counts as late. It can't be cancelled, so no other begins before it ends.
    deadline: Instant,
    is_late: bool,
}

impl FetchLoop {
    fn new(mirror: Arc<Mirror>, interval: Duration, tried: Arc<AtomicBool>, vitals: Arc<Vitals>) -> Self {
        let (running, due, trouble, stands) = (None, Instant::now(), None, Arc::default());
        Self { mirror, interval, running, due, tried, trouble, stands, vitals }
    }

    fn hurry(&mut self) {
        self.due = Instant::now();
    }

    /// Fetches at the interval. Returns when something new was fetched, and after the first attempt in any
    /// case. Cancel safe.
    async fn changed(&mut self) {
        loop {
            let Some(running) = &mut self.running else {
                sleep_until(self.due).await;
                self.begin();
                continue;
            };
            let ended = tokio::select! {
                // A closed channel means that the thread panicked: there is nothing new.
                done = &mut running.done => done.ok(),
                () = sleep_until(running.deadline), if !running.is_late => {
                    running.is_late = true;
                    self.log_fetch_error(&self.mirror.timeout_error());
                    if self.tried.swap(true, Ordering::AcqRel) {
                        continue;
                    }
                    return;
                }
            };
            let is_first = !self.tried.swap(true, Ordering::AcqRel);
            let was_late = self.running.take().is_some_and(|running| running.is_late);
            if let Some(Ok(_)) = ended {
                self.vitals.read(Timestamp::now());
            }
            match ended {
                // The delay was logged already.
                Some(Err(_)) if was_late => {}
                Some(Err(error)) => self.log_fetch_error(&error),
                Some(Ok(fetched)) if self.log_fetched(&fetched) => return,
                Some(Ok(_)) | None => {}
            }
            if is_first {
                return;
            }
        }
    }

    fn begin(&mut self) {
        // The interval runs from the start of one fetch to the start of the next, unless the fetch takes
        // longer.
        self.due = Instant::now() + self.interval;
        let (tell, done) = oneshot::channel();
        let (mirror, stands) = (Arc::clone(&self.mirror), Arc::clone(&self.stands));
        let fetch = move || {
            let look = || {
                let found = CloneContents { in_force: mirror.commit(), unsigned: mirror.unsigned() };
                *locked(&stands) = found;
            };
            look();
            let fetched = mirror.fetch();
            look();
            // The send fails only when the process is about to end.
            let _ = tell.send(fetched);
        };
        match std::thread::Builder::new().name("fetch".to_owned()).spawn(fetch) {
            Ok(_) => {
                let deadline = Instant::now() + self.mirror.timeout();
                self.running = Some(RunningFetch { done, deadline, is_late: false });
            }
            Err(error) => tracing::error!(%error, "cannot start a thread for fetching"),
        }
    }

    /// Logs what was fetched, and returns whether it differs from before.
    fn log_fetched(&mut self, Fetched { commit, is_new, rewritten }: &Fetched) -> bool {
        let source = self.mirror.source().0;
        let was_away = self.trouble.take().is_some();
        match (*rewritten, *is_new || was_away) {
            (true, _) => {
                tracing::warn!(
                    source,
                    commit,
                    "the branch was rewritten; its new commits are used, and deletions of missing resources need \
                     approval"
                )
            }
            (false, true) => tracing::info!(source, commit, "fetched"),
            (false, false) => {}
        }
        *is_new
    }

    /// Logs a fetch error once.
    fn log_fetch_error(&mut self, error: &GitError) {
        let (error, hint) = (error.to_string(), error.hint());
        if self.trouble.as_ref() == Some(&error) {
            return;
        }
        let source = self.mirror.source().0;
        let CloneContents { in_force, unsigned } = locked(&self.stands).clone();
        let what = fetch_outage_text(in_force.is_some(), unsigned.as_deref());
        tracing::error!(source, error, hint, in_force, "{what}");
        self.trouble = Some(error);
    }
}

fn fetch_outage_text(is_in_force: bool, unsigned: Option<&str>) -> String {
    match unsigned {
        _ if is_in_force => "cannot fetch; the last fetched commit stays active".to_owned(),
        Some(unsigned) => format!(
            "cannot fetch; commit {unsigned}, which was active, is not known to be signed by a key of `source.signed_by`, \
             so nothing is applied"
        ),
        None => "cannot fetch, and there is no earlier commit, so nothing is applied".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_counts_no_more_since_signatures_are_asked_for_is_named() {
        assert_eq!(
            fetch_outage_text(false, Some("3f2c1ab")),
            "cannot fetch; commit 3f2c1ab, which was active, is not known to be signed by a key of `source.signed_by`, so \
             nothing is applied"
        );
        assert!(fetch_outage_text(false, None).contains(
            "cannot fetch, and there is no earlier commit, so nothing is \
                                                         applied"
        ));
        assert!(fetch_outage_text(true, Some("3f2c1ab")).ends_with("stays active"));
    }
}
