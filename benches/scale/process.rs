//! A process that plans one tree again and again with a cache of parsed files.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use jiff::Timestamp;
use streamfleet::plan::Plan;
use streamfleet::round::{Installation, RoundMemory};
use streamfleet::secret::{Keyring, SecretStore};
use streamfleet::source::directory;
use streamfleet::spec::{self, Documents};
use streamfleet::state::State;
use tokio::runtime::Runtime;

use crate::tree::Tree;

pub struct Process {
    root: Utf8PathBuf,
    installation: Installation,
    runtime: Runtime,
    documents: Option<Arc<Documents>>,
    memory: RoundMemory,
}

pub struct Parts(Vec<(&'static str, Duration)>);

impl Parts {
    pub fn whole(&self) -> Duration {
        self.0.iter().map(|(_, time)| *time).sum()
    }

    pub fn tell(&self) -> String {
        let part = |(name, time): &(&str, Duration)| format!("{name} {} ms", time.as_millis());
        self.0.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}

impl Process {
    pub fn open(tree: &Tree) -> io::Result<Process> {
        let root = Utf8PathBuf::from_path_buf(tree.root().canonicalize()?).expect("the path is UTF-8");
        let own = root.join(".streamfleet");
        let keyring = Keyring::load_or_create(&own.join("state")).map_err(io::Error::other)?;
        let installation = Installation {
            state: Some(State::open(&own.join("state")).map_err(io::Error::other)?.into()),
            secrets: SecretStore::new(own.join("secrets"), |_| None, keyring).into(),
            config: Arc::default(),
            output_dir: own.join("output"),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            proposed: false,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        Ok(Process { root, installation, runtime, documents: None, memory: RoundMemory::default() })
    }

    /// Plans as every command does, but reuses unchanged files without parsing them again.
    pub fn plan(&mut self) -> io::Result<(Plan, Parts)> {
        let (mut parts, mut start) = (Vec::new(), Instant::now());
        let mut lap = |name| {
            parts.push((name, start.elapsed()));
            start = Instant::now();
        };
        let snapshot = directory::scan(&self.root).map_err(io::Error::other)?;
        lap("scan");
        let documents = Arc::new(spec::read(&snapshot, self.documents.as_deref()));
        lap("read");
        let memory = Some(&self.memory);
        let round = self.installation.plan(&documents, Timestamp::now(), self.runtime.handle(), memory);
        lap("plan");
        self.documents = Some(documents);
        Ok((round.map_err(io::Error::other)?.plan, Parts(parts)))
    }
}
