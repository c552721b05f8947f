//! Runs a round by the library, from the tree to the targets, so that a test can stop it between any two
//! steps.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use streamfleet::catalog::{Recorded, Secrets};
use streamfleet::config::Config;
use streamfleet::execute::{ExecutionReport, RunContext, execute};
use streamfleet::plan::Plan;
use streamfleet::round::{self, Installation};
use streamfleet::secret::{Keyring, SecretStore};
use streamfleet::source::directory;
use streamfleet::spec;
use streamfleet::state::State;
use streamfleet::target::Targets;
use tokio::runtime::Handle;

use crate::support::Tree;

/// The environment of a round, the same for all rounds of a test unless the test changes it.
pub struct Surroundings {
    pub now: Timestamp,
    pub config: Config,
    pub software: &'static str,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self { now: "2026-12-01T12:00:00Z".parse().unwrap(), config: Config::default(), software: "0.1.0" }
    }
}

pub struct Round {
    pub plan: Plan,
    pub recorded: Recorded,
    installation: Installation,
    targets: Targets,
    secrets: Secrets,
    now: Timestamp,
}

fn folder(tree: &Tree, name: &str) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(tree.path().join(".streamfleet").join(name)).unwrap()
}

/// Reads a tree, observes its targets and plans, as every command does.
pub async fn plan_round(tree: &Tree, around: &Surroundings) -> Round {
    let root = Utf8PathBuf::from_path_buf(tree.path().canonicalize().unwrap()).unwrap();
    let documents = Arc::new(spec::read(&directory::scan(&root).unwrap(), None));
    let keyring = Keyring::load_or_create(&folder(tree, "state")).unwrap();
    let installation = Installation {
        state: Some(State::open(&folder(tree, "state")).unwrap().into()),
        secrets: SecretStore::new(folder(tree, "secrets"), |_| None, keyring).into(),
        config: Arc::new(around.config.clone()),
        output_dir: folder(tree, "output"),
        software: around.software.to_owned(),
        proposed: false,
    };
    // Planning blocks, so it runs on a thread of its own.
    let runtime = Handle::current();
    let round = thread::scope(|scope| {
        scope.spawn(|| installation.plan(&documents, around.now, &runtime, None)).join().unwrap().unwrap()
    });
    let round::Round { checked, targets, plan, .. } = round;
    // A round carries no fleet records.
    let recorded = installation.state.as_ref().unwrap().recorded().unwrap();
    Round { plan, recorded, installation, targets, secrets: checked.secrets.clone(), now: around.now }
}

impl Round {
    fn state(&self) -> &State {
        self.installation.state.as_ref().unwrap()
    }

    pub async fn execute(&self) -> ExecutionReport {
        let clock = || self.now;
        let Round { plan, recorded, targets, secrets, .. } = self;
        let state = self.state();
        let context = RunContext {
            plan,
            recorded,
            targets,
            state,
            secrets,
            keyring: &Keyring::ephemeral().unwrap(),
            clock: &clock,
            actor: "ann",
        };
        execute(context, &mut |_| {}).await
    }

    /// Executes the plan and is killed at the nth await: between two steps, between a step and its record, or
    /// with calls in flight. Returns whether it was over before. The state is dropped with the round.
    pub async fn killed_after(self, polls: usize) -> bool {
        assert!(polls < 2000, "the run comes to no end");
        let mut run = pin!(self.execute());
        let mut left = polls;
        poll_fn(|context| match left.checked_sub(1) {
            None => Poll::Ready(false),
            Some(less) => {
                left = less;
                run.as_mut().poll(context).map(|_| true)
            }
        })
        .await
    }
}

/// Applies until a plan has no executable step. Returns the number of plans that had one and the last round
/// with the records after it. As with the command, a plan without work is applied too, since records may be
/// out of date. Nothing may fail.
pub async fn converge(tree: &Tree, around: &Surroundings) -> (usize, Round) {
    for rounds in 0..8 {
        let mut round = plan_round(tree, around).await;
        let report = round.execute().await;
        assert_eq!(report.failed, []);
        if !round.plan.has_work() {
            round.recorded = round.state().recorded().unwrap();
            return (rounds, round);
        }
    }
    panic!("it never settles");
}
