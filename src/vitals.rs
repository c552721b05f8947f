//! Reports the state of the running process to the service manager, to probes and as metrics.
//!
//! Other modules report events here, and nothing here influences decisions.

mod entry;
mod exposition;
mod journal;
mod json;
mod manager;
mod process_metrics;

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::time::sleep;

use crate::component::probe::ProbeReport;
use crate::execute::{ExecutionProgress, ExecutionReport};
use crate::parallel::locked;
use crate::round::Round;
use manager::Manager;
use process_metrics::ProcessMetrics;

pub use entry::LineFields;
pub use journal::{Journal, as_errors};
pub use json::JsonLines;
pub use process_metrics::RoundOutcome;

/// The main loop counts as stuck after this time without an iteration. No single request to a target may take
/// longer than 30 s.
const STUCK: Duration = Duration::from_secs(300);

/// How often a waiting process reports to the watchdog.
const PULSE: Duration = Duration::from_secs(10);

pub struct Vitals {
    manager: Option<Manager>,
    figures: Mutex<ProcessMetrics>,
    turn: Mutex<LoopIteration>,
}

/// The last iteration of the main loop.
struct LoopIteration {
    at: Instant,
    told: Instant,
}

impl Vitals {
    pub fn begin(now: Timestamp) -> Vitals {
        let manager = Manager::of(&|name| std::env::var_os(name)).unwrap_or_else(|error| {
            tracing::warn!(%error, "NOTIFY_SOCKET is not the path of a socket, so the service manager gets no notifications");
            None
        });
        let at = Instant::now();
        Vitals {
            manager,
            figures: Mutex::new(ProcessMetrics::begin(now)),
            turn: Mutex::new(LoopIteration { at, told: at }),
        }
    }

    /// Reports that the process is ready. It doesn't wait until specs are read: if a git server is down at
    /// boot, the service manager must not kill the process, since a restart would change nothing.
    pub fn notify_ready(&self) {
        self.tell_status("READY=1\n");
        self.loop_iterated();
    }

    pub fn loop_iterated(&self) {
        let mut turn = locked(&self.turn);
        turn.at = Instant::now();
        let Some(watchdog) = self.manager.as_ref().and_then(|manager| manager.watchdog) else { return };
        if turn.at.duration_since(turn.told) >= watchdog / 4 {
            turn.told = turn.at;
            self.tell("WATCHDOG=1");
        }
    }

    /// Awaits a future and keeps the watchdog informed meanwhile.
    pub async fn await_with_watchdog<T>(&self, what: impl Future<Output = T>) -> T {
        tokio::pin!(what);
        let watchdog = self.manager.as_ref().and_then(|manager| manager.watchdog);
        let every = watchdog.map_or(PULSE, |watchdog| PULSE.min(watchdog / 2));
        loop {
            self.loop_iterated();
            tokio::select! {
                done = &mut what => return done,
                () = sleep(every) => {}
            }
        }
    }

    /// The settings are being reloaded. [`Vitals::notify_ready`] ends this.
    pub fn reloading(&self) {
        if let Some(manager) = &self.manager {
            manager.reloading();
        }
    }

    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=finishing the current work");
    }

    /// The source was read, or fetched from, successfully.
    pub fn read(&self, at: Timestamp) {
        locked(&self.figures).read(at);
    }

    pub fn planned(&self, round: &Arc<Round>, now: Timestamp) {
        locked(&self.figures).planned(round, now);
        self.tell_status("");
    }

    pub fn progress(&self, progress: &ExecutionProgress<'_>) {
        locked(&self.figures).progress(progress);
    }

    /// The parts of a plan that belong to no fleet were executed.
    pub fn noted(&self, report: &ExecutionReport) {
        locked(&self.figures).noted(report);
    }

    pub fn carried_out(&self, report: &ExecutionReport) {
        locked(&self.figures).carried_out(report);
    }

    /// A cluster was probed.
    pub fn probed(&self, report: &ProbeReport) {
        locked(&self.figures).probed(report);
    }

    /// A round ended: specs were read, and planned if possible.
    pub fn round(&self, outcome: RoundOutcome, took: Duration) {
        locked(&self.figures).round(outcome, took);
        if outcome == RoundOutcome::Unreadable {
            self.tell_status("");
        }
    }

    /// Whether this process has read specs and planned.
    pub fn is_ready(&self) -> bool {
        locked(&self.figures).is_ready()
    }

    /// How long ago the main loop last completed an iteration, if that is too long.
    pub fn stuck(&self) -> Option<Duration> {
        Some(locked(&self.turn).at.elapsed()).filter(|&since| since > STUCK)
    }

    pub fn metrics(&self) -> String {
        locked(&self.figures).page()
    }

    /// Tells the service manager how the installation stands, after other lines.
    fn tell_status(&self, lines: &str) {
        if let Some(manager) = &self.manager {
            manager.tell(&format!("{lines}STATUS={}", locked(&self.figures).status_line()));
        }
    }

    fn tell(&self, lines: &str) {
        if let Some(manager) = &self.manager {
            manager.tell(lines);
        }
    }
}
