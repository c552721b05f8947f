//! Plans executed on real folders, completely and killed at every point.

mod crash;
mod outcome;
mod planner;
mod records;
mod turn;

use std::sync::LazyLock;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use tempfile::TempDir;

use super::*;
use crate::catalog::Recorded;
use crate::names::{Kind, ResourceKey};
use crate::plan::Observed;
use crate::state::State;
use crate::target::Targets;
use planner::{TestSpecs, plan};

fn keyring() -> &'static Keyring {
    static KEYRING: LazyLock<Keyring> = LazyLock::new(|| Keyring::ephemeral().unwrap());
    &KEYRING
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn fleet(name: &str) -> FleetKey {
    format!("acme/{name}").try_into().unwrap()
}

fn cluster(name: &str) -> ResourceKey {
    ResourceKey::new(Kind::Cluster, &"acme".parse().unwrap(), name)
}

/// An installation with two fleets, in a folder of its own.
struct Place {
    _dir: TempDir,
    root: Utf8PathBuf,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        Place { _dir: dir, root }
    }

    fn state(&self) -> State {
        State::open(&self.root.join("state")).unwrap()
    }

    fn events(&self) -> Vec<crate::state::RecordedEvent> {
        crate::state::Follower::of(&self.root.join("state")).unread_events().unwrap()
    }

    fn output(&self) -> Utf8PathBuf {
        self.root.join("output")
    }

    fn targets(&self) -> Targets {
        Targets::for_fleets(
            &self.output(),
            uuid::Uuid::nil(),
            ["eu", "us"].map(|name| (fleet(name), crate::target::TargetLocation::Folder(None))),
        )
    }

    async fn plan(&self, state: &State, specs: &TestSpecs) -> (Plan, Recorded, Observed) {
        let recorded = state.recorded().unwrap();
        let observed = self.targets().observe(&recorded, &specs.desired()).await;
        (plan(specs, &recorded, &observed), recorded, observed)
    }

    async fn apply(&self, specs: &TestSpecs) -> ExecutionReport {
        let state = self.state();
        let (plan, ..) = self.plan(&state, specs).await;
        self.execute(&plan, &state, &specs.secrets()).await
    }

    async fn execute(&self, plan: &Plan, state: &State, secrets: &Secrets) -> ExecutionReport {
        let (targets, actor) = (self.targets(), "ann@example.com");
        let recorded = &state.recorded().unwrap();
        let context = RunContext {
            plan,
            recorded,
            targets: &targets,
            state,
            secrets,
            keyring: keyring(),
            clock: &now,
            actor,
        };
        execute(context, &mut |_| {}).await
    }

    fn files(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        collect(&self.output(), &mut files);
        files.sort();
        files
    }
}

fn collect(folder: &Utf8Path, files: &mut Vec<(String, String)>) {
    for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.push((path.to_string(), String::new()));
            collect(path, files);
        } else {
            files.push((path.to_string(), std::fs::read_to_string(path).unwrap()));
        }
    }
}
