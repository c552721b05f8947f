//! A process that plans one tree again and again, and remembers what it parsed.

use std::io;
use std::time::{Duration, Instant, SystemTime};

use camino::Utf8PathBuf;
use futures_util::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use streamfleet::catalog::{self, Catalog, Secrets};
use streamfleet::config::Config;
use streamfleet::names::FleetKey;
use streamfleet::parallel;
use streamfleet::plan::{Plan, Planner, Policy, Site};
use streamfleet::render::Renderer;
use streamfleet::secret::{Keyring, SecretStore};
use streamfleet::source::directory;
use streamfleet::spec::{self, Documents};
use streamfleet::state::State;
use streamfleet::target::{Basis, Memory, Targets};

use crate::tree::Tree;

/// What the process keeps between two plans.
pub struct Process {
    root: Utf8PathBuf,
    state: State,
    config: Config,
    now: Timestamp,
    documents: Option<Documents>,
    memory: Memory,
}

/// How long each part of a plan took.
pub struct Parts(Vec<(&'static str, Duration)>);

impl Parts {
    /// All parts together.
    pub fn whole(&self) -> Duration {
        self.0.iter().map(|(_, time)| *time).sum()
    }

    /// Each part with its milliseconds.
    pub fn tell(&self) -> String {
        let part = |(name, time): &(&str, Duration)| format!("{name} {} ms", time.as_millis());
        self.0.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}

impl Process {
    /// Opens the installation of a tree that was applied.
    pub fn open(tree: &Tree) -> io::Result<Process> {
        let root = Utf8PathBuf::from_path_buf(tree.root().canonicalize()?).expect("the path is UTF-8");
        let state = State::open(&root.join(".streamfleet/state")).map_err(io::Error::other)?;
        Ok(Process {
            root,
            state,
            config: Config::default(),
            now: Timestamp::now(),
            documents: None,
            memory: Memory::default(),
        })
    }

    /// Plans as every verb does, but for the files that are as they were, which are not parsed again.
    pub fn plan(&mut self) -> io::Result<(Plan, Parts)> {
        let (mut parts, mut start) = (Vec::new(), Instant::now());
        let mut lap = |name| {
            parts.push((name, start.elapsed()));
            start = Instant::now();
        };
        let snapshot = directory::scan(&self.root).map_err(io::Error::other)?;
        lap("scan");
        let documents = spec::read(&snapshot, self.documents.as_ref());
        lap("read");
        let recorded = self.state.recorded_resources().map_err(io::Error::other)?;
        lap("recall");
        let secrets = self.secrets(&documents)?;
        let catalog = catalog::resolve(&documents, &recorded, &secrets, &self.config, self.now);
        lap("resolve");
        let policy = Policy {
            now: self.now,
            cluster_deletions_per_hour: 1,
            approval_lifetime: SignedDuration::from_hours(24),
            software: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let planner = Planner::new(&catalog, &recorded, Default::default(), &policy);
        lap("compare");
        let (renderer, targets) = (Renderer::new(&catalog), self.targets(&catalog, recorded.installation));
        let fleets: Vec<FleetKey> = planner.fleets().into_iter().collect();
        let look = |fleet: &FleetKey| {
            let held = self.state.recorded_fleet(fleet).map_err(io::Error::other)?;
            let desired = renderer.fleet(fleet);
            let seen =
                targets.get(fleet).map(|target| target.observe(&held, desired.as_ref()).now_or_never());
            let (desired, observed) = (desired.as_ref(), seen.flatten());
            Ok(planner.fleet(&Site { fleet, desired, recorded: Some(&held), observed: observed.as_ref() }))
        };
        let part = |fleet: &FleetKey| {
            let basis = Basis { desired: renderer.inputs(fleet), recorded: self.state.version_of(fleet) };
            let target = targets.get(fleet);
            self.memory.part(&planner, fleet, target, basis, SystemTime::now(), || look(fleet))
        };
        let fleets = parallel::map(&fleets, part).into_iter().collect::<io::Result<Vec<_>>>()?;
        lap("fleets");
        let plan = planner.finish(fleets);
        lap("finish");
        self.documents = Some(documents);
        Ok((plan, Parts(parts)))
    }

    fn secrets(&self, documents: &Documents) -> io::Result<Secrets> {
        let keyring =
            Keyring::load_or_create(&self.root.join(".streamfleet/state")).map_err(io::Error::other)?;
        Ok(SecretStore::new(self.root.join(".streamfleet/secrets"), |_| None, keyring).open_all(documents))
    }

    fn targets(&self, catalog: &Catalog, installation: uuid::Uuid) -> Targets {
        let fleets =
            catalog.fleets.iter().map(|(key, fleet)| (key.clone(), fleet.spec.advanced_config.path.clone()));
        Targets::for_fleets(&self.root.join(".streamfleet/output"), installation, fleets)
    }
}
