//! Where a running process has its specs from, and what says that there may be others.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot::{self, Receiver};
use tokio::time::{Instant, sleep, sleep_until};

use crate::cli::settings::Settings;
use crate::source::SourceError;
use crate::source::directory::{self, Glance};
use crate::source::git::{Fetched, GitError, Mirror};
use crate::spec::Snapshot;

/// How often is looked whether a spec file changed.
const TICK: Duration = Duration::from_secs(1);

/// A folder, or a git repository.
pub(super) enum Feed {
    Folder {
        tree: camino::Utf8PathBuf,
        /// The tree before the last round; none where it could not be looked at.
        glance: Option<Glance>,
    },
    Git(Box<Fetches>),
}

impl Feed {
    pub(super) fn of(settings: &Settings) -> Feed {
        match settings.mirror() {
            None => Feed::Folder { tree: settings.tree.clone(), glance: None },
            Some(mirror) => {
                let interval = Duration::from_secs(u64::from(settings.config.source.interval_seconds));
                Feed::Git(Box::new(Fetches::new(mirror, interval)))
            }
        }
    }

    /// The specs as they are now; none where nothing was fetched yet.
    pub(super) fn snapshot(&mut self) -> Result<Option<Snapshot>, SourceError> {
        match self {
            Feed::Folder { tree, glance } => {
                *glance = directory::glance(tree).ok();
                directory::scan(tree).map(Some)
            }
            Feed::Git(fetches) => Ok(fetches.snapshot()?),
        }
    }

    /// Comes back when there may be other specs than those of the last snapshot.
    pub(super) async fn changed(&mut self) {
        match self {
            Feed::Folder { tree, glance } => loop {
                sleep(TICK).await;
                // It takes no longer than a list of the folders.
                if directory::glance(tree).ok() != *glance {
                    tracing::debug!("the specs changed");
                    return;
                }
            },
            Feed::Git(fetches) => fetches.changed().await,
        }
    }

    /// A round with the specs of the last snapshot is over, and nothing of it failed.
    pub(super) fn settled(&mut self) {
        if let Feed::Git(fetches) = self {
            fetches.settled();
        }
    }

    /// Somebody says that there may be other specs.
    pub(super) fn hurry(&mut self) {
        if let Feed::Git(fetches) = self {
            fetches.hurry();
        }
    }
}

/// Fetches one after the other, each on a thread of its own: nothing waits for a remote that is silent.
pub(super) struct Fetches {
    mirror: Arc<Mirror>,
    interval: Duration,
    running: Option<Running>,
    /// When the next one begins.
    due: Instant,
    /// Whether a fetch of this process has ended, or took too long. Before, what an earlier one fetched may be long outdated.
    tried: bool,
    /// What was read last.
    snapshot: Option<Snapshot>,
    /// Why there is no fetching, as it was told last.
    trouble: Option<String>,
}

struct Running {
    done: Receiver<Result<Fetched, GitError>>,
    /// When it has taken too long. It can't be ended, so that no other begins before it ends.
    deadline: Instant,
    is_late: bool,
}

impl Fetches {
    fn new(mirror: Mirror, interval: Duration) -> Self {
        let (running, snapshot, trouble) = (None, None, None);
        let (mirror, due) = (Arc::new(mirror), Instant::now());
        Self { mirror, interval, running, due, tried: false, snapshot, trouble }
    }

    fn snapshot(&mut self) -> Result<Option<Snapshot>, GitError> {
        let Some(commit) = self.mirror.commit().filter(|_| self.tried) else { return Ok(None) };
        match &self.snapshot {
            Some(snapshot) if snapshot.revision == commit => {}
            _ => self.snapshot = Some(self.mirror.snapshot()?),
        }
        Ok(self.snapshot.clone())
    }

    fn settled(&mut self) {
        let commit = self.snapshot.as_mut().and_then(|snapshot| snapshot.commit.as_mut());
        if let Some(commit) = commit
            && commit.rewrote.is_some()
            && self.mirror.settled(&commit.id)
        {
            commit.rewrote = None;
        }
    }

    fn hurry(&mut self) {
        self.due = Instant::now();
    }

    /// Fetches whenever that is due, and comes back when something new was fetched, and after the first attempt in any case.
    /// It may be dropped at any time.
    async fn changed(&mut self) {
        loop {
            let Some(running) = &mut self.running else {
                sleep_until(self.due).await;
                self.begin();
                continue;
            };
            let ended = tokio::select! {
                // A thread that ends without a word died, and there is nothing new.
                done = &mut running.done => done.ok(),
                () = sleep_until(running.deadline), if !running.is_late => {
                    running.is_late = true;
                    self.troubled(&self.mirror.late());
                    if std::mem::replace(&mut self.tried, true) {
                        continue;
                    }
                    return;
                }
            };
            let is_first = !std::mem::replace(&mut self.tried, true);
            let was_late = self.running.take().is_some_and(|running| running.is_late);
            match ended {
                // That was told.
                Some(Err(_)) if was_late => {}
                Some(Err(error)) => self.troubled(&error),
                Some(Ok(fetched)) if self.is_news(&fetched) => return,
                Some(Ok(_)) | None => {}
            }
            if is_first {
                return;
            }
        }
    }

    fn begin(&mut self) {
        // From the beginning of one to the beginning of the next, if that one is over by then.
        self.due = Instant::now() + self.interval;
        let (tell, done) = oneshot::channel();
        let mirror = Arc::clone(&self.mirror);
        let fetch = move || {
            // Nobody hears it when the process is about to end.
            let _ = tell.send(mirror.fetch());
        };
        match std::thread::Builder::new().name("fetch".to_owned()).spawn(fetch) {
            Ok(_) => {
                let deadline = Instant::now() + self.mirror.timeout();
                self.running = Some(Running { done, deadline, is_late: false });
            }
            Err(error) => tracing::error!(%error, "could not start a thread to fetch with"),
        }
    }

    /// Says what was fetched, and whether it is something else than before.
    fn is_news(&mut self, Fetched { commit, is_new, rewritten }: &Fetched) -> bool {
        let source = self.mirror.source().0;
        let was_away = self.trouble.take().is_some();
        match (*rewritten, *is_new || was_away) {
            (true, _) => {
                tracing::warn!(
                    source,
                    commit,
                    "the branch was rewritten, and is taken as it is now; what is missing from it needs approval to be deleted"
                )
            }
            (false, true) => tracing::info!(source, commit, "fetched"),
            (false, false) => {}
        }
        *is_new
    }

    /// Says once what keeps from fetching.
    fn troubled(&mut self, error: &GitError) {
        let (error, hint) = (error.to_string(), error.hint());
        if self.trouble.as_ref() == Some(&error) {
            return;
        }
        let (source, in_force) = (self.mirror.source().0, self.mirror.commit());
        let what = match &in_force {
            Some(_) => "nothing is fetched, and the commit that was fetched last stays in force",
            None => "nothing is fetched, and nothing was before, so that nothing is done",
        };
        tracing::error!(source, error, hint, in_force, "{what}");
        self.trouble = Some(error);
    }
}
