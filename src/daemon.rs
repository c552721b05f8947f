//! The long-running process: one closed list of events, and one loop.
//!
//! Slow operations run beside the loop and report back as events: plans are made on one thread ([`look`]),
//! each fleet's work runs on a thread of its own ([`work`]), and specs are watched or fetched ([`feed`]). The
//! schedule depends on data alone ([`schedule`]).

mod certificate_task;
mod feed;
mod log;
mod plan_thread;
mod probe_task;
mod schedule;
#[cfg(test)]
mod tests;
mod work;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use jiff::Timestamp;
use secrecy::SecretString;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::api::{self, Hook, ListenError, ListeningSockets, RequestQueue, ServerSetup};
use crate::config::Config;
use crate::names::FleetKey;
use crate::parallel::locked;
use crate::round::{Installation, Round, RoundMemory};
use crate::state::StateError;
use crate::vitals::Vitals;
use crate::writing::Writer;
use certificate_task::CertificateTask;
use plan_thread::PlanningContext;
use probe_task::ProbeTask;
use schedule::{Action, Schedule};
use work::FleetWorker;

pub use feed::SpecSource;
pub use schedule::{PendingWork, ReadyFleet};

/// How long a resource has to be missing from the files before it counts as removed. A checkout, or an
/// editor's save, takes less.
const ABSENCE: Duration = Duration::from_secs(30);

/// How long to collect further changes of a target: a client that writes one object often writes several.
const DEBOUNCE: Duration = Duration::from_millis(20);

pub enum Event {
    /// The specs may have changed.
    Specs,
    Target,
    /// A caller requests a plan or an approval.
    RequestReceived,
    /// A webhook reports a push to the branch of the specs.
    Pushed,
    /// SIGHUP: check everything now and reload the settings.
    ReloadRequested,
    /// A timer expired.
    TimerElapsed,
    Planned(Box<PlannedRound>),
    /// The work on a fleet ended, successfully or not.
    FleetWorkEnded {
        fleet: FleetKey,
    },
    /// No further plan can be made.
    PlanningFailed(DaemonError),
    Stop,
}

pub struct PlannedRound {
    pub outlook: PendingWork,
    /// The plan; `None` without specs to make one from.
    pub round: Option<Arc<Round>>,
}

#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error("cannot {attempted}: {error}")]
    System {
        /// A verb with its object.
        attempted: &'static str,
        error: std::io::Error,
    },
    /// The API can't be served.
    #[error(transparent)]
    Closed(#[from] ListenError),
    #[error("internal error: planning stopped; the log lines above have the details")]
    ThreadPanicked,
}

pub struct Setup {
    pub installation: Installation,
    pub source: SpecSource,
    pub socket: Utf8PathBuf,
    /// The secret that signs webhooks; `None` if none are accepted.
    pub webhook_secret: Option<SecretString>,
    /// The actor of the process's own decisions, for the audit trail.
    pub actor: String,
    pub vitals: Arc<Vitals>,
    pub reload: Box<dyn FnMut() -> Reloaded>,
}

#[derive(Default)]
pub struct Reloaded {
    /// The new settings; `None` if none of those that can be reloaded changed.
    pub config: Option<Config>,
    /// The new secret of webhooks; `None` if it stays the same.
    pub webhook_secret: Option<SecretString>,
}

/// Runs until a signal ends it.
///
/// # Errors
/// If the state can't be read any more, or the operating system refuses a required operation.
pub fn run(setup: Setup) -> Result<(), DaemonError> {
    let runtime = runtime()?;
    let (tell, events) = mpsc::unbounded_channel();
    forward_signals(&runtime, &tell)?;
    let (request_queue, hook) = (new_request_queue(&setup, &tell), new_webhook_receiver(&setup, &tell));
    let listeners = start_api(&setup, Arc::clone(&request_queue), hook.clone(), &runtime)?;
    let mut process = Process::start(setup, (request_queue, listeners), hook, runtime, (tell, events))?;
    process.vitals.notify_ready();
    let ended = process.serve();
    process.vitals.stopping();
    drop(process.listeners);
    // Work that is still running on threads ends with the process.
    process.runtime.shutdown_background();
    ended
}

fn runtime() -> Result<Runtime, DaemonError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.map_err(|error| DaemonError::System { attempted: "start the runtime", error })
}

fn new_request_queue(
    Setup { installation, source, vitals, .. }: &Setup,
    tell: &UnboundedSender<Event>,
) -> Arc<RequestQueue> {
    // A commit is never half written.
    let absence = if source.is_git() { Duration::ZERO } else { ABSENCE };
    let (watcher, tell) = (Arc::clone(vitals), tell.clone());
    let memory = Arc::new(RoundMemory::with_absence(absence).watched_by(move || watcher.loop_iterated()));
    // The send fails only when the process is about to end.
    let specs = tell.clone();
    let writer = Writer::new(source.place(), Arc::clone(&memory), move || drop(specs.send(Event::Specs)));
    let wake = move || drop(tell.send(Event::RequestReceived));
    Arc::new(RequestQueue::new(installation.state.clone(), memory, wake).with_writer(Arc::new(writer)))
}

/// Creates the receiver of webhooks; `None` if none are accepted.
fn new_webhook_receiver(
    Setup { installation, webhook_secret, .. }: &Setup,
    tell: &UnboundedSender<Event>,
) -> Option<Arc<Hook>> {
    let (secret, tell) = (webhook_secret.clone()?, tell.clone());
    let branch = installation.config.source.branch.clone();
    Some(Arc::new(Hook::new(secret, branch, move || drop(tell.send(Event::Pushed)))))
}

fn start_api(
    Setup { installation, socket, actor, vitals, .. }: &Setup,
    request_queue: Arc<RequestQueue>,
    hook: Option<Arc<Hook>>,
    runtime: &Runtime,
) -> Result<ListeningSockets, DaemonError> {
    let (config, socket, vitals) = (installation.config.api.clone(), socket.clone(), Arc::clone(vitals));
    let setup = ServerSetup {
        config,
        socket,
        actor: actor.clone(),
        vitals,
        request_queue,
        hook,
        pages: crate::ui::routes,
        refused_pages: crate::ui::shown_to_browsers,
    };
    Ok(api::begin(setup, runtime.handle())?)
}

/// Converts signals to events: SIGINT, as from a terminal, and SIGTERM, as from a service manager, request a
/// stop; SIGHUP requests a fetch, a new plan and a reload of the settings.
fn forward_signals(runtime: &Runtime, tell: &UnboundedSender<Event>) -> Result<(), DaemonError> {
    let _inside = runtime.enter();
    let signals: [(SignalKind, fn() -> Event); 3] = [
        (SignalKind::interrupt(), || Event::Stop),
        (SignalKind::terminate(), || Event::Stop),
        (SignalKind::hangup(), || Event::ReloadRequested),
    ];
    for (kind, event) in signals {
        let attempted = "listen for signals";
        let mut signal = signal(kind).map_err(|error| DaemonError::System { attempted, error })?;
        let tell = tell.clone();
        runtime.spawn(async move { while signal.recv().await.is_some() && tell.send(event()).is_ok() {} });
    }
    Ok(())
}

struct Process {
    runtime: Runtime,
    tell: UnboundedSender<Event>,
    events: UnboundedReceiver<Event>,
    schedule: Schedule,
    /// Has the active settings. Running work finishes with the settings that it began with.
    installation: Arc<Installation>,
    /// The inputs of plans, used by one thread at a time.
    look: Arc<Mutex<PlanningContext>>,
    request_queue: Arc<RequestQueue>,
    listeners: ListeningSockets,
    work: FleetWorker,
    feed: feed::SourceFeed,
    /// The last plan; `None` before the first.
    round: watch::Sender<Option<Arc<Round>>>,
    vitals: Arc<Vitals>,
    hook: Option<Arc<Hook>>,
    reload: Box<dyn FnMut() -> Reloaded>,
    /// Set once the process can't continue.
    lost: Option<DaemonError>,
}

impl Process {
    fn start(
        Setup { installation, source, actor, vitals, reload, .. }: Setup,
        (request_queue, listeners): (Arc<RequestQueue>, ListeningSockets),
        hook: Option<Arc<Hook>>,
        runtime: Runtime,
        (tell, events): (UnboundedSender<Event>, UnboundedReceiver<Event>),
    ) -> Result<Self, DaemonError> {
        let installation = Arc::new(installation);
        let memory = Arc::clone(&request_queue.memory);
        let (state, handle) = (installation.state.clone(), runtime.handle().clone());
        let work = FleetWorker::new(state, Arc::clone(&memory), &actor, Arc::clone(&vitals), handle.clone());
        runtime.spawn(forward_target_changes(Arc::clone(&memory), tell.clone()));
        let (feed, specs) =
            feed::start(source, &runtime, &tell, Arc::clone(&vitals), request_queue.writer.as_deref())?;
        let (certificates, state) = (actor.clone(), installation.state.clone());
        let look =
            PlanningContext::new(Arc::clone(&request_queue), specs, actor, Arc::clone(&vitals), handle);
        let (round, rounds) = watch::channel(None);
        let certificates = CertificateTask {
            state,
            rounds: rounds.clone(),
            tell: tell.clone(),
            actor: certificates,
            vitals: Arc::clone(&vitals),
        };
        let asks = runtime.handle().clone();
        let failed = tell.clone();
        thread("certificates", move || {
            let tell = SendOnDrop::new(failed, || Event::PlanningFailed(DaemonError::ThreadPanicked));
            certificates.run(&asks);
            tell.send(Event::TimerElapsed);
        })?;
        let table = Arc::clone(&request_queue.memory.reachability);
        runtime.spawn(ProbeTask::new(table, rounds, tell.clone(), Arc::clone(&vitals)).run());
        Ok(Process {
            runtime,
            tell,
            events,
            schedule: Schedule::new(at_once(&installation.config), Instant::now()),
            installation,
            look: Arc::new(Mutex::new(look)),
            request_queue,
            listeners,
            work,
            feed,
            round,
            vitals,
            hook,
            reload,
            lost: None,
        })
    }

    fn serve(&mut self) -> Result<(), DaemonError> {
        while self.step()? {}
        self.lost.take().map_or(Ok(()), Err)
    }

    fn step(&mut self) -> Result<bool, DaemonError> {
        let event = self.next();
        for order in self.actions_for(event) {
            match order {
                Action::Fetch => self.feed.hurry(),
                Action::Plan => self.plan()?,
                Action::Start(fleet) => self.begin(&fleet)?,
                Action::Leave => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Returns the actions for an event. Actions that begin with a plan use the one that was made last.
    fn actions_for(&mut self, event: Event) -> Vec<Action> {
        let orders = self.schedule.step(&event, Instant::now());
        self.handle_event(event);
        orders
    }

    fn next(&mut self) -> Event {
        let pause = self.schedule.pause(Instant::now());
        let next = async { timeout(pause, self.events.recv()).await.ok().flatten() };
        // While a plan is being made, its own thread reports progress to the watchdog.
        let next = match self.schedule.is_planning() {
            true => self.runtime.block_on(next),
            false => self.runtime.block_on(self.vitals.await_with_watchdog(next)),
        };
        // The senders live as long as this process.
        next.unwrap_or(Event::TimerElapsed)
    }

    /// Stores the plan, and handles events without an action.
    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Planned(planned) => {
                if let Some(round) = planned.round {
                    let table = &self.request_queue.memory.reachability;
                    let fleets = Arc::clone(&round);
                    let before = self.round.send_replace(Some(round));
                    table.planned(fleets.targets.fleets());
                    // Dropping a large tree takes time and must not delay the work. Without a thread, it is
                    // dropped here.
                    let _ = thread("drop", move || drop(before));
                }
            }
            Event::Stop => {
                self.vitals.stopping();
                self.request_queue.close();
                let number = self.schedule.running();
                tracing::info!(fleets = number, "shutdown requested: finishing the current work first");
            }
            Event::ReloadRequested => {
                // SIGHUP requests a check of everything, folders included.
                self.request_queue.memory.doubt_folders();
                self.reload();
            }
            Event::PlanningFailed(lost) => {
                self.vitals.stopping();
                self.request_queue.close();
                let number = self.schedule.running();
                tracing::error!(fleets = number, error = %lost, "planning stopped: finishing the current work first");
                self.lost.get_or_insert(lost);
            }
            Event::Specs
            | Event::Target
            | Event::RequestReceived
            | Event::Pushed
            | Event::TimerElapsed
            | Event::FleetWorkEnded { .. } => {}
        }
    }

    /// Reloads the settings, for the next plan, and the secret of webhooks.
    fn reload(&mut self) {
        self.vitals.reloading();
        self.listeners.reload();
        let Reloaded { config, webhook_secret } = (self.reload)();
        if let Some(hook) = &self.hook
            && webhook_secret.is_some_and(|secret| hook.renew(secret))
        {
            tracing::info!("webhook secret reloaded");
        }
        if let Some(config) = config {
            self.schedule.set_at_once(at_once(&config));
            let config = Arc::new(config);
            self.installation = Arc::new(Installation { config, ..Installation::clone(&self.installation) });
        }
        self.vitals.notify_ready();
    }

    fn plan(&mut self) -> Result<(), DaemonError> {
        let (look, tell) = (Arc::clone(&self.look), self.tell.clone());
        let installation = Arc::clone(&self.installation);
        thread("plan", move || {
            let tell = SendOnDrop::new(tell, || Event::PlanningFailed(DaemonError::ThreadPanicked));
            let event = locked(&look).run_planning(&installation);
            tell.send(event);
        })
    }

    fn begin(&mut self, fleet: &FleetKey) -> Result<(), DaemonError> {
        let Some(round) = self.round.borrow().clone() else { return Ok(()) };
        // No plan is being made at this time, so the lock is free.
        locked(&self.look).begins(fleet);
        let work = self.work.begin(round, fleet.clone());
        let (fleet, tell) = (fleet.clone(), self.tell.clone());
        thread("fleet", move || {
            // Sent even if the thread panics.
            let _tell = SendOnDrop::new(tell, move || Event::FleetWorkEnded { fleet });
            work.run();
        })
    }
}

fn at_once(config: &Config) -> usize {
    usize::try_from(config.daemon.fleets_at_once).unwrap_or(1)
}

async fn forward_target_changes(memory: Arc<RoundMemory>, tell: UnboundedSender<Event>) {
    loop {
        memory.changed().await;
        sleep(DEBOUNCE).await;
        if tell.send(Event::Target).is_err() {
            return;
        }
    }
}

fn thread(name: &str, does: impl FnOnce() + Send + 'static) -> Result<(), DaemonError> {
    let begun = std::thread::Builder::new().name(name.to_owned()).spawn(does);
    begun.map(drop).map_err(|error| DaemonError::System { attempted: "start a thread", error })
}

/// Sends an event even if its thread panics first.
struct SendOnDrop<F: FnOnce() -> Event> {
    tell: UnboundedSender<Event>,
    otherwise: Option<F>,
}

impl<F: FnOnce() -> Event> SendOnDrop<F> {
    fn new(tell: UnboundedSender<Event>, otherwise: F) -> Self {
        Self { tell, otherwise: Some(otherwise) }
    }

    fn send(mut self, event: Event) {
        self.otherwise = None;
        // The send fails only when the process is about to end.
        let _ = self.tell.send(event);
    }
}

impl<F: FnOnce() -> Event> Drop for SendOnDrop<F> {
    fn drop(&mut self) {
        if let Some(otherwise) = self.otherwise.take() {
            let _ = self.tell.send(otherwise());
        }
    }
}

/// Returns the duration until a time, by the system clock.
fn until(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default()
}
