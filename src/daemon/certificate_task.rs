//! Gets certificates beside the loop: an authority may take minutes, and nothing else waits for it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::Event;
use crate::config::Mode;
use crate::round::{Recorder, Round};
use crate::state::State;
use crate::target::Backoff;
use crate::vitals::Vitals;

const FAILURE_BACKOFF: Backoff = Backoff::around(Duration::from_secs(1), Duration::from_secs(60));

pub struct CertificateTask {
    pub state: Option<Arc<State>>,
    /// The last plan, which says what is due.
    pub rounds: watch::Receiver<Option<Arc<Round>>>,
    pub tell: UnboundedSender<Event>,
    pub actor: String,
    pub vitals: Arc<Vitals>,
}

impl CertificateTask {
    /// Runs until the process ends. It blocks.
    pub fn run(mut self, runtime: &Handle) {
        let mut pauses = FAILURE_BACKOFF;
        while runtime.block_on(self.rounds.changed()).is_ok() {
            let round = self.rounds.borrow_and_update().clone();
            let (Some(round), Some(state)) = (round, &self.state) else { continue };
            let has_leftovers = state.certificates().is_ok_and(|kept| kept.has_leftovers());
            if !(round.has_certificates() || has_leftovers) {
                continue;
            }
            if round.checked.catalog.config.policy.mode == Mode::PlanOnly {
                continue;
            }
            let recorder = Recorder { state, clock: &Timestamp::now, actor: &self.actor };
            let report = runtime.block_on(round.execute_certificates(recorder, &mut |_| {}));
            self.vitals.noted(&report);
            report.failed.iter().for_each(|failed| tracing::error!(hint = failed.hint, "{failed}"));
            match (report.failed.is_empty(), report.done.is_empty()) {
                (true, true) => continue,
                (true, false) => pauses.reset(),
                // A state that can't be written doesn't remember the failure.
                (false, _) => std::thread::sleep(pauses.next_pause()),
            }
            // The send fails only when the process is about to end.
            let _ = self.tell.send(Event::Target);
        }
    }
}
