//! A round by the library, from the tree to the targets, so that a test can stop it between any two steps.

use std::pin::pin;
use std::task::{Context, Waker};

use camino::Utf8PathBuf;
use jiff::{SignedDuration, Timestamp};
use streamfleet::catalog::{self, Recorded, Secrets};
use streamfleet::config::Config;
use streamfleet::execute::{Report, execute};
use streamfleet::names::{FleetKey, Kind};
use streamfleet::plan::{self, Plan, Policy};
use streamfleet::render::render;
use streamfleet::secret::{Keyring, SecretStore};
use streamfleet::source::directory;
use streamfleet::spec::{self, Spec};
use streamfleet::state::State;
use streamfleet::target::Targets;

use crate::support::Tree;

/// What surrounds a round, and stays the same for all rounds of a test unless the test changes it.
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

/// A planned round, with everything that it takes to execute it.
pub struct Round {
    pub plan: Plan,
    pub recorded: Recorded,
    state: State,
    targets: Targets,
    secrets: Secrets,
    now: Timestamp,
}

fn folder(tree: &Tree, name: &str) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(tree.path().join(".streamfleet").join(name)).unwrap()
}

/// Reads a tree, looks at its targets and plans, as every verb does.
pub async fn plan_round(tree: &Tree, around: &Surroundings) -> Round {
    let root = Utf8PathBuf::from_path_buf(tree.path().canonicalize().unwrap()).unwrap();
    let documents = spec::read(&directory::scan(&root).unwrap(), None);
    let state = State::open(&folder(tree, "state")).unwrap();
    let recorded = state.recorded().unwrap();
    let keyring = Keyring::load_or_create(&folder(tree, "state")).unwrap();
    let secrets = SecretStore::new(folder(tree, "secrets"), |_| None, keyring).open_all(&documents);
    let catalog = catalog::resolve(&documents, &recorded, &secrets, &around.config, around.now);
    let desired = render(&catalog);
    let applied = recorded.resources.iter().filter(|(key, _)| key.kind == Kind::Fleet);
    let applied = applied
        .filter_map(|(key, record)| Spec::from_record(key.kind, &record.last_good.as_ref()?.spec).ok());
    let applied = applied.chain(catalog.fleets.values().map(|fleet| Spec::Fleet((*fleet.spec).clone())));
    let fleets = applied.filter_map(|spec| match spec {
        Spec::Fleet(fleet) => {
            let key = FleetKey { organization: fleet.organization, fleet: fleet.identifier };
            Some((key, fleet.advanced_config.path))
        }
        _ => None,
    });
    let targets = Targets::for_fleets(&folder(tree, "output"), recorded.installation, fleets);
    let observed = targets.observe(&recorded, &desired).await;
    let policy = Policy {
        now: around.now,
        cluster_deletions_per_hour: around.config.policy.cluster_deletions_per_hour,
        approval_lifetime: SignedDuration::from_hours(24),
        software: around.software.to_owned(),
    };
    let plan = plan::plan(&catalog, &desired, &recorded, &observed, &policy);
    Round { plan, recorded, state, targets, secrets, now: around.now }
}

impl Round {
    /// Executes the plan to its end.
    pub async fn execute(&self) -> Report {
        let clock = || self.now;
        execute(&self.plan, &self.targets, &self.state, &self.secrets, &clock, "ann", &mut |_| {}).await
    }

    /// Executes the plan and is killed at the so-manieth place where it lets others go on: between two steps, or between
    /// a step and the record of it. Says whether it was over before. The state is dropped with the round.
    pub async fn killed_after(self, polls: usize) -> bool {
        let mut run = pin!(self.execute());
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..polls {
            if run.as_mut().poll(&mut context).is_ready() {
                return true;
            }
            // The runtime wakes what yielded only when it gets its turn.
            tokio::task::yield_now().await;
        }
        assert!(polls < 2000, "the run comes to no end");
        false
    }
}

/// Applies until a plan has nothing that can be done, and says how many had. As with the command, a plan without work is
/// applied too: records may be out of date. Nothing may fail. Gives the last round, with what is recorded after it.
pub async fn converge(tree: &Tree, around: &Surroundings) -> (usize, Round) {
    for rounds in 0..8 {
        let mut round = plan_round(tree, around).await;
        let report = round.execute().await;
        assert_eq!(report.failed, []);
        if !round.plan.has_work() {
            round.recorded = round.state.recorded().unwrap();
            return (rounds, round);
        }
    }
    panic!("it never settles");
}
