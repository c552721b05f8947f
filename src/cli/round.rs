//! What every verb that looks at a tree does first: the installation is opened and the tree is read, checked and planned.

use camino::Utf8Path;
use jiff::Timestamp;
use secrecy::SecretString;
use tokio::runtime::Runtime;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::settings::Settings;
use crate::execute::{Progress, Report};
use crate::names::{FleetKey, ResourceKey};
use crate::plan;
use crate::round::{Checked, Installation, Round, Unknown};
use crate::secret::{Keyring, SecretStore};
use crate::source::directory;
use crate::spec::{self, Documents};
use crate::state::{self, State, StateError};
use crate::target::Target;

/// Whether a verb may write the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It leaves nothing behind: where there is no state, none is made.
    ReadOnly,
    /// It makes the state where there is none.
    Write,
}

/// A tree that was planned, with what it takes to do it.
pub struct Look {
    /// What the verb works with.
    pub settings: Settings,
    /// The installation, open.
    pub installation: Installation,
    /// What was found and what would be done.
    pub round: Round,
    runtime: Runtime,
}

/// The time of a verb: the one that a person asked about, or now.
pub fn time(asked: Option<Timestamp>) -> Timestamp {
    asked.unwrap_or_else(Timestamp::now)
}

/// Reads a tree and resolves it.
///
/// # Errors
/// When the tree, the state or the keys can't be read. Mistakes in specs are no such error: they are in the catalog.
pub fn check(
    settings: &Settings,
    access: Access,
    now: Timestamp,
    console: &mut Console,
) -> Result<Checked, Failure> {
    let documents = read(settings)?;
    open(settings, access, console)?.check(&documents, now).map_err(unreadable_state)
}

/// Reads a tree, looks at the targets and plans.
///
/// # Errors
/// As [`check`].
pub fn look(
    settings: Settings,
    access: Access,
    now: Timestamp,
    console: &mut Console,
) -> Result<Look, Failure> {
    let documents = read(&settings)?;
    let installation = open(&settings, access, console)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::during("could not start the runtime", &error))?;
    let round = installation.plan(&documents, now, runtime.handle()).map_err(unreadable_state)?;
    round.unknown.iter().for_each(|unknown| warn_of_unknown(unknown, console));
    let plan::Summary { create, change, delete, waiting, unchanged, errors, .. } = round.plan.summary;
    tracing::debug!(plan = round.plan.id, create, change, delete, waiting, unchanged, errors, "planned");
    Ok(Look { settings, installation, round, runtime })
}

fn read(settings: &Settings) -> Result<Documents, Failure> {
    let snapshot = directory::scan(&settings.tree).map_err(|error| {
        Failure::during(format!("could not read the tree `{}`", settings.tree_as_given), &error)
    })?;
    Ok(spec::read(&snapshot, None))
}

fn open(settings: &Settings, access: Access, console: &mut Console) -> Result<Installation, Failure> {
    Ok(Installation {
        state: open_state(settings, access, console)?,
        secrets: secret_store(settings, access)?,
        config: settings.config.clone(),
        output_dir: settings.output_dir.clone(),
        software: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn unreadable_state(error: StateError) -> Failure {
    Failure::of_state("could not read the state", &error)
}

fn warn_of_unknown(unknown: &Unknown, console: &mut Console) {
    let Unknown { fleet, owner, objects } = unknown;
    console.warn(&format!(
        "fleet {fleet} holds objects of {owner} ({objects}), which is neither recorded nor in the tree, as after an older \
         backup was restored: they stay; to go on with it or to delete it, put its spec back and apply first"
    ));
}

/// Before anything is written to the tree's own folder, git is told to leave it alone: it holds keys.
///
/// # Errors
/// When the folder can't be written.
pub fn prepare(settings: &Settings, access: Access) -> Result<(), Failure> {
    match access {
        Access::ReadOnly => Ok(()),
        Access::Write => settings
            .ignore_own_folder()
            .map_err(|error| {
                Failure::during(format!("could not write `.streamfleet` in the tree `{}`", settings.tree_as_given), &error)
                    .hint("make the tree writable, or keep things elsewhere: --state-dir, --output-dir and --secrets-dir")
            }),
    }
}

/// Opens the state and passes on what it has to say about its own health.
pub fn open_state(
    settings: &Settings,
    access: Access,
    console: &mut Console,
) -> Result<Option<State>, Failure> {
    prepare(settings, access)?;
    let opened = match access {
        Access::ReadOnly => State::open_existing(&settings.state_dir),
        Access::Write => State::open(&settings.state_dir).map(Some),
    };
    let attempt = || format!("could not open the state in `{}`", settings.state_dir);
    let state = opened.map_err(|error| Failure::of_state(attempt(), &error))?;
    for warning in state.iter().flat_map(State::warnings) {
        console.warn(&warning);
    }
    Ok(state)
}

/// The keys of the installation and the places that secrets are in.
pub fn secret_store(settings: &Settings, access: Access) -> Result<SecretStore, Failure> {
    let variable = |name: &str| std::env::var(name).ok().map(SecretString::from);
    Ok(SecretStore::new(settings.secrets_dir.clone(), variable, keyring(settings, access)?))
}

/// The keys of the installation. Without any, a dry run can still compare what it can't open; it makes none that it would
/// leave behind.
pub fn keyring(settings: &Settings, access: Access) -> Result<Keyring, Failure> {
    prepare(settings, access)?;
    let attempt = || format!("could not read the keys in `{}`", settings.state_dir);
    state::finish_restore(&settings.state_dir).map_err(|error| Failure::of_state(attempt(), &error))?;
    let keyring = match access {
        Access::Write => Keyring::load_or_create(&settings.state_dir),
        Access::ReadOnly => match Keyring::load(&settings.state_dir) {
            Ok(None) => Keyring::ephemeral(),
            Ok(Some(keyring)) => Ok(keyring),
            Err(error) => Err(error),
        },
    };
    keyring.map_err(|error| Failure::of_secret(attempt(), &error))
}

impl Look {
    /// Does what the plan says.
    ///
    /// # Errors
    /// When there is no state to keep book in. Steps that fail are in the report.
    pub fn execute(&self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Report, Failure> {
        let Some(state) = &self.installation.state else {
            return Err(Failure::new("nothing can be applied without a state"));
        };
        Ok(self.runtime.block_on(self.round.execute(state, &Timestamp::now, &actor(), progress)))
    }

    /// Where the fleets that this plan changes have their manifests.
    pub fn written_folders(&self) -> Vec<String> {
        let changed = self.round.plan.fleets.iter().filter(|fleet| fleet.ordered_steps().next().is_some());
        changed.filter_map(|fleet| self.folder(&fleet.fleet)).collect()
    }

    /// Where a cluster's manifests are.
    pub fn manifests_of(&self, cluster: &ResourceKey) -> Option<String> {
        let cluster = self.round.checked.catalog.clusters.get(cluster)?;
        Some(format!("{}/{}", self.folder(&cluster.fleet)?, cluster.namespace))
    }

    fn folder(&self, fleet: &FleetKey) -> Option<String> {
        match self.round.targets.get(fleet)? {
            Target::Directory(directory) => Some(self.shorten(&directory.root())),
        }
    }

    /// A path as the person would write it: below the tree as they named it.
    fn shorten(&self, path: &Utf8Path) -> String {
        match path.strip_prefix(&self.settings.tree) {
            Ok(below) => self.settings.tree_as_given.join(below).into_string(),
            Err(_) => path.to_string(),
        }
    }
}

/// Who runs the command, for the audit trail.
pub fn actor() -> String {
    let user = std::env::var("SUDO_USER")
        .or_else(|_| std::env::var("USER"))
        .unwrap_or_else(|_| "unknown".to_owned());
    format!("{user} (command line)")
}
