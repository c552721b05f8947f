//! `streamfleet serve`: keep everything as the specs say.

mod feed;
mod log;
mod wake;

use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::api;
use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::reload;
use crate::cli::round::{self, Access};
use crate::cli::settings::{InstallationArgs, Settings, TreeArgs};
use crate::execute::{Progress, Report};
use crate::plan::{Change, FleetPlan, Plan, Verb, Waiting};
use crate::round::{Installation, Memory, Round, Waits};
use crate::spec::{self, Documents};
use crate::vitals::{Outcome, Vitals};
use feed::Feed;
use log::Log;
use wake::{Stop, Wake};

/// How long a resource has to be missing from the files before it counts as removed: a checkout, or an editor that saves,
/// is over by then.
const ABSENCE: SignedDuration = SignedDuration::from_secs(30);

/// How long nothing may be looked at without a reason: folders that fleets write to are not watched, and an hour that is
/// over lets things go on. Where nothing changed, no Kubernetes cluster is asked anything.
const EVERY: SignedDuration = SignedDuration::from_secs(30);

/// How long before the same is done once more, where it was undone at once.
const AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// How long what is being done may go on after a signal to stop. What isn't done then is found by the next start.
const GRACE: Duration = Duration::from_secs(20);

/// Keep everything as the specs say, until a signal ends it.
///
/// What changes in the files, or is pushed to the branch of the git repository that the settings name, is planned and
/// applied as `apply --yes` would; drift on Kubernetes clusters is seen when it
/// happens, and corrected. What waits, waits. One line is logged for each decision, and for each change of how a fleet or a
/// cluster is.
///
/// Exit codes: 0 ended by a signal, 1 a problem.
#[derive(Debug, Args)]
pub struct Serve {
    /// The folder of spec files. By default the git repository that the settings name, and else this folder.
    #[arg(long, value_name = "DIR")]
    specs: Option<Utf8PathBuf>,
    #[command(flatten)]
    installation: InstallationArgs,
}

/// Runs the verb.
pub fn run(verb: &Serve, console: &mut Console) -> Result<u8, Failure> {
    let tree = TreeArgs { tree: verb.specs.clone(), installation: verb.installation.clone() };
    let settings = Settings::settle(&tree)?;
    let runtime = round::runtime()?;
    let stop = Stop::on_signals(&runtime)?;
    let installation = round::open(&settings, Access::Write, console)?;
    let vitals = Arc::new(Vitals::begin(Timestamp::now()));
    let memory = memory(&settings, &vitals);
    answer(&settings, &vitals, &runtime)?;
    let (documents, log, feed) = (None, Log::default(), Feed::of(&settings));
    tracing::info!(specs = settings.shown(), "serving");
    let (args, planned, waits) = (tree, None, Waits::default());
    let mut process = Process {
        args,
        settings,
        feed,
        installation,
        runtime,
        stop,
        memory,
        documents,
        log,
        planned,
        vitals,
        waits,
    };
    process.vitals.is_up();
    process.serve(console)?;
    process.vitals.stopping();
    tracing::info!("stopped");
    Ok(exit::OK)
}

/// Answers over HTTP where the settings say so.
fn answer(settings: &Settings, vitals: &Arc<Vitals>, runtime: &Runtime) -> Result<(), Failure> {
    let config = &settings.config.api;
    let address = config.listen.map(|address| address.to_string()).unwrap_or_default();
    api::begin(config, vitals, runtime.handle()).map_err(|error| {
        Failure::during(format!("could not listen on {address}"), &error)
            .hint("name another address by `api.listen` in the config file, or end what listens there")
    })
}

/// What a process remembers that has looked at nothing yet.
fn memory(settings: &Settings, vitals: &Arc<Vitals>) -> Memory {
    let watcher = Arc::clone(vitals);
    // A commit is never half written.
    Memory::with_absence(if settings.from_git { SignedDuration::ZERO } else { ABSENCE })
        .watched_by(move || watcher.turned())
}

/// A process that plans and applies one tree again and again.
struct Process {
    /// What the process was started with, and the settings that hold.
    args: TreeArgs,
    settings: Settings,
    feed: Feed,
    installation: Installation,
    runtime: Runtime,
    stop: Stop,
    memory: Memory,
    /// What was read last: files that are as they were aren't parsed again.
    documents: Option<Documents>,
    log: Log,
    /// The id of the plan that was carried out last.
    planned: Option<String>,
    vitals: Arc<Vitals>,
    /// What waited for what, as it was recorded last.
    waits: Waits,
}

impl Process {
    /// One round after the other. What happens says only that it is time for one: each plans from all there is.
    fn serve(&mut self, console: &mut Console) -> Result<(), Failure> {
        loop {
            let begun = Instant::now();
            let (next, outcome) = self.round(console)?;
            if let Some(outcome) = outcome {
                self.vitals.round(outcome, begun.elapsed());
            }
            let wake = Wake { feed: &mut self.feed, memory: &self.memory, next };
            if self.stop.is_asked() || self.runtime.block_on(self.vitals.during(wake.or(&mut self.stop))) {
                return Ok(());
            }
            if let Some(at) = self.feed.answered() {
                self.vitals.read(at);
            }
            if self.stop.takes_hangup() {
                self.reload();
            }
        }
    }

    /// Reads the settings anew. What was found under others may be found otherwise now, so all of it is looked at again.
    fn reload(&mut self) {
        self.vitals.reloading();
        if let Some(settings) = reload::reload(&self.args, &self.settings) {
            self.installation.config = settings.config.clone();
            self.memory = memory(&settings, &self.vitals);
            self.settings = settings;
        }
        self.vitals.is_up();
    }

    /// Plans, does what doesn't wait, and gives the time of the next round if nothing happens before, with what came of this
    /// one; nothing where there were no specs yet.
    fn round(&mut self, console: &mut Console) -> Result<(Timestamp, Option<Outcome>), Failure> {
        let now = Timestamp::now();
        let next = now.checked_add(EVERY).unwrap_or(now);
        let snapshot = match self.feed.snapshot() {
            Ok(Some(snapshot)) => snapshot,
            Ok(None) => return Ok((next, None)),
            Err(error) => {
                self.log.unreadable(&error);
                return Ok((next, Some(Outcome::Unreadable)));
            }
        };
        if let Some(at) = self.feed.answered() {
            self.vitals.read(at);
        }
        let documents = spec::read(&snapshot, self.documents.as_ref());
        let (runtime, memory) = (self.runtime.handle(), Some(&self.memory));
        let planned = self.installation.plan(&documents, now, runtime, memory);
        self.documents = Some(documents);
        let mut round = planned.map_err(round::unreadable_state)?;
        tracing::debug!(plan = round.plan.id, looked = round.looked, "planned");
        self.log.decisions(&round, console);
        self.vitals.planned(&round, now);
        if let Some(state) = &self.installation.state {
            self.waits.record(&round, state, &actor(), now);
        }
        let next = next_time(&round).map_or(next, |time| time.min(next));
        if !has_work(&round.plan) {
            self.planned = None;
            return Ok((next, Some(Outcome::Idle)));
        }
        // What was done a moment ago and is to be done again has time.
        if self.planned.as_ref() == Some(&round.plan.id) {
            self.planned = None;
            return Ok((now.checked_add(AGAIN).unwrap_or(now), Some(Outcome::Idle)));
        }
        self.planned = Some(round.plan.id.clone());
        round.plan.fleets.retain(is_concerned);
        Ok(match self.execute(&round)? {
            // There may be more to do now that this is done.
            Some(report) if report.failed.is_empty() => (now, Some(Outcome::Done)),
            Some(_) => (next, Some(Outcome::Failed)),
            None => (next, Some(Outcome::Stopped)),
        })
    }

    /// Does what a plan says; none where a signal came and it took too long.
    fn execute(&mut self, round: &Round) -> Result<Option<Report>, Failure> {
        let Some(state) = &self.installation.state else {
            return Err(Failure::new("nothing can be applied without a state"));
        };
        let vitals = Arc::clone(&self.vitals);
        let mut progress = |progress: Progress<'_>| {
            vitals.progress(&progress);
            if let Progress::Step { fleet, resource, verb, object } = progress {
                tracing::debug!(%fleet, %resource, %verb, %object, plan = round.plan.id, "step");
            }
        };
        let actor = actor();
        let work = round.execute(state, &Timestamp::now, &actor, &mut progress);
        let stop = &mut self.stop;
        let report = self.runtime.block_on(self.vitals.during(async {
            tokio::pin!(work);
            tokio::select! {
                report = &mut work => Some(report),
                () = stop.asked() => {
                    self.vitals.stopping();
                    tracing::info!("a signal came: what is being done is finished first");
                    timeout(GRACE, work).await.ok()
                }
            }
        }));
        if let Some(report) = &report {
            self.memory.learn(round, report, Timestamp::now());
            self.log.outcome(report);
            self.vitals.carried_out(report);
        }
        Ok(report)
    }
}

/// Whether anything of a plan is done now.
fn has_work(plan: &Plan) -> bool {
    let voids = |fleet: &FleetPlan| !fleet.void_approvals.is_empty();
    plan.has_work() || !plan.remember.is_empty() || plan.fleets.iter().any(voids)
}

/// Whether a fleet has to be in what is executed: something is done there, or something that waits there keeps the tree from
/// being recorded as applied. To all others nobody has to go.
fn is_concerned(fleet: &FleetPlan) -> bool {
    let concerns = |change: &Change| match change.verb {
        Verb::Create | Verb::Update | Verb::Recreate => change.waiting.is_empty(),
        Verb::Delete | Verb::Keep => true,
    };
    fleet.changes.iter().any(concerns) || !fleet.void_approvals.is_empty()
}

/// When something that waits for a time may go on, or a cluster may count as unwell, or well.
fn next_time(round: &Round) -> Option<Timestamp> {
    let waits = round.plan.changes().flat_map(|change| &change.waiting);
    let times = waits.filter_map(|waiting| match waiting {
        Waiting::Absence { until } | Waiting::Flapping { until, .. } | Waiting::Retry { until, .. } => {
            Some(*until)
        }
        _ => None,
    });
    times.chain(round.health.values().filter_map(|health| health.again)).min()
}

/// Who does what the process decides, for the audit trail.
fn actor() -> String {
    round::actor().replace("(command line)", "(serve)")
}
