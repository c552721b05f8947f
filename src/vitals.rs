//! How a running process is, for whoever keeps it running: a service manager, probes, metrics.
//!
//! The process says what happens to it where it happens; it is told on from here. Nothing of it decides anything.

mod entry;
mod exposition;
mod figures;
mod journal;
mod json;
mod manager;

use std::future::Future;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::time::sleep;

use crate::execute::{Progress, Report};
use crate::parallel::locked;
use crate::round::Round;
use figures::Figures;
use manager::Manager;

pub use entry::Lines;
pub use figures::Outcome;
pub use journal::Journal;
pub use json::JsonLines;

/// After how long without a turn of the loop the process counts as stuck. No single answer of a target is waited for longer
/// than 30 s.
const STUCK: Duration = Duration::from_secs(300);

/// How often a process that only waits says that it does.
const PULSE: Duration = Duration::from_secs(10);

/// How a running process is.
pub struct Vitals {
    manager: Option<Manager>,
    figures: Mutex<Figures>,
    turn: Mutex<Turn>,
}

/// The loop's last turn.
struct Turn {
    at: Instant,
    /// When the service manager was told of one.
    told: Instant,
}

impl Vitals {
    /// Of a process that begins, with the service manager that the environment names.
    pub fn begin(now: Timestamp) -> Vitals {
        let manager = Manager::of(&|name| std::env::var_os(name)).unwrap_or_else(|error| {
            tracing::warn!(%error, "NOTIFY_SOCKET names no socket, so that no service manager is told anything");
            None
        });
        let at = Instant::now();
        Vitals { manager, figures: Mutex::new(Figures::begin(now)), turn: Mutex::new(Turn { at, told: at }) }
    }

    /// Everything that a start takes is there. That specs were read isn't waited for: a git server that is away at boot
    /// must not make the service manager end the process, which would begin anew with the same.
    pub fn is_up(&self) {
        self.tell(&format!("READY=1\nSTATUS={}", locked(&self.figures).status_line()));
        self.turned();
    }

    /// The loop goes on.
    pub fn turned(&self) {
        let mut turn = locked(&self.turn);
        turn.at = Instant::now();
        let Some(watchdog) = self.manager.as_ref().and_then(|manager| manager.watchdog) else { return };
        if turn.at.duration_since(turn.told) >= watchdog / 4 {
            turn.told = turn.at;
            self.tell("WATCHDOG=1");
        }
    }

    /// Waits for something, and says all the while that it does.
    pub async fn during<T>(&self, what: impl Future<Output = T>) -> T {
        tokio::pin!(what);
        let watchdog = self.manager.as_ref().and_then(|manager| manager.watchdog);
        let every = watchdog.map_or(PULSE, |watchdog| PULSE.min(watchdog / 2));
        loop {
            self.turned();
            tokio::select! {
                done = &mut what => return done,
                () = sleep(every) => {}
            }
        }
    }

    /// The settings are read anew. [`Vitals::is_up`] ends it.
    pub fn reloading(&self) {
        if let Some(manager) = &self.manager {
            manager.reloading();
        }
    }

    /// The process ends.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=finishes what is being done");
    }

    /// The source was looked at, or fetched from, and answered.
    pub fn read(&self, at: Timestamp) {
        locked(&self.figures).read(at);
    }

    /// A round was planned.
    pub fn planned(&self, round: &Round, now: Timestamp) {
        let status = {
            let mut figures = locked(&self.figures);
            figures.planned(round, now);
            figures.status_line()
        };
        self.tell(&format!("STATUS={status}"));
    }

    /// Something happens while a plan is carried out.
    pub fn progress(&self, progress: &Progress<'_>) {
        locked(&self.figures).progress(progress);
    }

    /// What is no fleet's matter was done.
    pub fn noted(&self, report: &Report) {
        locked(&self.figures).noted(report);
    }

    /// A fleet's part of a plan was carried out.
    pub fn carried_out(&self, report: &Report) {
        locked(&self.figures).carried_out(report);
    }

    /// A round ended: specs were read, and planned where they could be.
    pub fn round(&self, outcome: Outcome, took: Duration) {
        let status = {
            let mut figures = locked(&self.figures);
            figures.round(outcome, took);
            figures.status_line()
        };
        if outcome == Outcome::Unreadable {
            self.tell(&format!("STATUS={status}"));
        }
    }

    /// Whether specs were read and planned, by this process.
    pub fn is_ready(&self) -> bool {
        locked(&self.figures).is_ready()
    }

    /// For how long the loop has not turned, where that is too long.
    pub fn stuck(&self) -> Option<Duration> {
        Some(locked(&self.turn).at.elapsed()).filter(|&since| since > STUCK)
    }

    /// The metrics, as Prometheus reads them.
    pub fn metrics(&self) -> String {
        locked(&self.figures).page()
    }

    fn tell(&self, lines: &str) {
        if let Some(manager) = &self.manager {
            manager.tell(lines);
        }
    }
}
