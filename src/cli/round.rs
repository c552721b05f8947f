//! The steps that most verbs begin with: open the installation, read the tree, check it and plan.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use secrecy::SecretString;
use tokio::runtime::{Handle, Runtime};

use crate::catalog::ResolvedTree;
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::settings::Settings;
use crate::execute::{ExecutionProgress, ExecutionReport};
use crate::plan;
use crate::round::{Installation, Recorder, Round, WaitingChanges};
use crate::secret::{Keyring, SecretStore};
use crate::source::directory;
use crate::source::git::{Fetched, GitError, Mirror};
use crate::spec::{self, Documents, Snapshot};
use crate::state::{LockWait, State, StateError};

/// How a verb uses the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateAccess {
    /// Reads what other processes wrote, and writes nothing.
    ReadOnly,
    /// Writes to an existing state, and never creates one.
    Existing,
    /// Creates the state where it is missing.
    Write,
    /// As `StateAccess::Write`, for a daemon: it waits longer for another process that uses the state.
    Serve,
}

impl StateAccess {
    fn patience(self) -> Duration {
        match self {
            StateAccess::Serve => Duration::from_secs(60),
            _ => Duration::from_secs(5),
        }
    }
}

pub struct CommandRound {
    pub settings: Settings,
    pub installation: Installation,
    pub round: Round,
    runtime: Runtime,
}

pub fn time(asked: Option<Timestamp>) -> Timestamp {
    asked.unwrap_or_else(Timestamp::now)
}

/// Reads a tree and resolves it.
///
/// # Errors
/// When the tree, the state or the keys can't be read. Mistakes in specs are in the catalog instead.
pub fn check(
    settings: &Settings,
    access: StateAccess,
    now: Timestamp,
    console: &mut Console,
) -> Result<ResolvedTree, Failure> {
    let documents = read(settings)?;
    open(settings, access, console)?.check(&documents, now).map_err(unreadable_state)
}

/// Reads a tree, observes the targets and plans.
pub fn plan_tree(
    settings: Settings,
    access: StateAccess,
    now: Timestamp,
    console: &mut Console,
) -> Result<CommandRound, Failure> {
    let documents = read(&settings)?;
    let installation = open(&settings, access, console)?;
    look_with(settings, installation, &documents, now, console)
}

/// Plans a proposal, such as the checkout of a pull request, as if it were the tree. Nothing is written, and
/// only kubeconfigs that were applied are used to connect.
pub fn plan_checkout(
    settings: Settings,
    proposed: &Snapshot,
    now: Timestamp,
    console: &mut Console,
) -> Result<CommandRound, Failure> {
    let installation = Installation { proposed: true, ..open(&settings, StateAccess::ReadOnly, console)? };
    look_with(settings, installation, &Arc::new(spec::read(proposed, None)), now, console)
}

fn look_with(
    settings: Settings,
    installation: Installation,
    documents: &Arc<Documents>,
    now: Timestamp,
    console: &mut Console,
) -> Result<CommandRound, Failure> {
    let runtime = runtime()?;
    let round = installation.plan(documents, now, runtime.handle(), None).map_err(unreadable_state)?;
    round.warnings().for_each(|warning| console.warn(&warning));
    let plan::Summary { create, change, delete, waiting, unchanged, errors, .. } = round.plan.summary;
    tracing::debug!(plan = round.plan.id, create, change, delete, waiting, unchanged, errors, "planned");
    Ok(CommandRound { settings, installation, round, runtime })
}

/// Starts the runtime for all network access.
pub fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::during("cannot start the runtime", &error))
}

pub fn read(settings: &Settings) -> Result<Arc<Documents>, Failure> {
    if settings.from_git {
        return fetch(settings).map(Arc::new);
    }
    let snapshot = directory::scan(&settings.tree).map_err(|error| {
        Failure::during(format!("cannot read the tree `{}`", settings.tree_as_given), &error)
    })?;
    Ok(Arc::new(spec::read(&snapshot, None)))
}

/// Fetches a tree. When the fetch fails, the last fetched commit is used. Where there is no state yet, the
/// clone goes to a temporary folder and no state is created.
fn fetch(settings: &Settings) -> Result<Documents, Failure> {
    let attempt = || format!("cannot read the specs of {}", settings.shown());
    let failed = |error: GitError| Failure::during(attempt(), &error).hint(error.hint());
    let passing = tempfile::tempdir().map_err(|error| Failure::during(attempt(), &error))?;
    let place = match settings.state_dir.is_dir() {
        true => settings.state_dir.clone(),
        false => Utf8PathBuf::try_from(passing.path().to_owned())
            .map_err(|error| Failure::during(attempt(), &error))?,
    };
    let Some(mirror) = settings.mirror_in(place.join("git")) else {
        return Err(Failure::new(format!("{}: the settings have no repository", attempt())));
    };
    let mirror = Arc::new(mirror);
    match fetched(&mirror) {
        Ok(_) => {}
        Err(error) if mirror.commit().is_none() => return Err(failed(error)),
        Err(error) => {
            tracing::warn!(%error, hint = error.hint(), "cannot fetch the specs; using the last fetched commit")
        }
    }
    let snapshot = mirror.snapshot().map_err(failed)?;
    Ok(spec::read(&snapshot, None))
}

/// Fetches on a thread of its own, which is abandoned at the timeout.
fn fetched(mirror: &Arc<Mirror>) -> Result<Fetched, GitError> {
    let (tell, done) = mpsc::channel();
    let on_thread = Arc::clone(mirror);
    std::thread::spawn(move || tell.send(on_thread.fetch()));
    done.recv_timeout(mirror.timeout()).unwrap_or_else(|_| Err(mirror.timeout_error()))
}

pub fn open(
    settings: &Settings,
    access: StateAccess,
    console: &mut Console,
) -> Result<Installation, Failure> {
    Ok(Installation {
        state: open_state(settings, access, console)?.map(Arc::new),
        secrets: Arc::new(secret_store(settings, access)?),
        config: Arc::new(settings.config.clone()),
        output_dir: settings.output_dir.clone(),
        software: env!("CARGO_PKG_VERSION").to_owned(),
        proposed: false,
    })
}

pub fn unreadable_state(error: StateError) -> Failure {
    Failure::of_state("cannot read the state", &error)
}

/// Writes the `.gitignore` before anything else is written to the tree's own folder, which contains keys.
pub fn prepare(settings: &Settings, access: StateAccess) -> Result<(), Failure> {
    match access {
        StateAccess::ReadOnly | StateAccess::Existing => Ok(()),
        StateAccess::Write | StateAccess::Serve => settings.ignore_own_folder().map_err(|error| {
            Failure::during(
                format!("cannot write `.streamfleet` in the tree `{}`", settings.tree_as_given),
                &error,
            )
            .hint(
                "make the tree writable, or use folders elsewhere: --state-dir, --output-dir and \
                        --secrets-dir",
            )
        }),
    }
}

/// Opens the state and prints its warnings.
pub fn open_state(
    settings: &Settings,
    access: StateAccess,
    console: &mut Console,
) -> Result<Option<State>, Failure> {
    prepare(settings, access)?;
    let dir = &settings.state_dir;
    let opened = match access {
        StateAccess::ReadOnly => State::read(dir),
        StateAccess::Existing => waiting(dir, access, console, |wait| State::open_existing(dir, wait)),
        StateAccess::Write | StateAccess::Serve => {
            waiting(dir, access, console, |wait| State::open_after(dir, wait)).map(Some)
        }
    };
    let attempt = || format!("cannot open the state in `{}`", settings.state_dir);
    let state = opened.map_err(|error| Failure::of_state(attempt(), &error))?;
    for warning in state.iter().flat_map(State::warnings) {
        console.warn(&warning);
    }
    Ok(state)
}

/// Runs an operation that may wait for another process using the state, and tells the user which.
pub fn waiting<T>(
    dir: &Utf8Path,
    access: StateAccess,
    console: &mut Console,
    open: impl FnOnce(&mut LockWait<'_>) -> T,
) -> T {
    let at_most = access.patience();
    let mut tell = |holder: Option<u32>| {
        let holder = holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
        console.tell(&format!(
            "waiting up to {} s for {holder}, which is using the state in `{dir}`\n",
            at_most.as_secs()
        ));
    };
    open(&mut LockWait { at_most, tell: &mut tell })
}

pub fn secret_store(settings: &Settings, access: StateAccess) -> Result<SecretStore, Failure> {
    let variable = |name: &str| std::env::var(name).ok().map(SecretString::from);
    Ok(SecretStore::new(settings.secrets_dir.clone(), variable, keyring(settings, access)?))
}

/// Loads the keys of the installation. `StateAccess::ReadOnly` and `StateAccess::Existing` create none: without
/// keys they use temporary ones, so that a dry run can still compare what it can't open.
pub fn keyring(settings: &Settings, access: StateAccess) -> Result<Keyring, Failure> {
    prepare(settings, access)?;
    let attempt = || format!("cannot read the keys in `{}`", settings.state_dir);
    let keyring = match access {
        StateAccess::Write | StateAccess::Serve => Keyring::load_or_create(&settings.state_dir),
        StateAccess::ReadOnly | StateAccess::Existing => match Keyring::load(&settings.state_dir) {
            Ok(None) => Keyring::ephemeral(),
            Ok(Some(keyring)) => Ok(keyring),
            Err(error) => Err(error),
        },
    };
    keyring.map_err(|error| Failure::of_secret(attempt(), &error))
}

impl CommandRound {
    pub fn runtime(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Carries out the plan.
    ///
    /// # Errors
    /// When there is no state to record it in. Failed steps are in the report.
    pub fn execute(
        &self,
        progress: &mut dyn FnMut(ExecutionProgress<'_>),
    ) -> Result<ExecutionReport, Failure> {
        let Some(state) = &self.installation.state else {
            return Err(Failure::new("cannot apply without a state"));
        };
        let actor = actor();
        WaitingChanges::default().record(&self.round, state, &actor, Timestamp::now());
        let recorder = Recorder { state, clock: &Timestamp::now, actor: &actor };
        let report = self.runtime.block_on(self.round.execute(recorder, progress));
        if let Some(mirror) = self.settings.mirror().filter(|_| report.failed.is_empty()) {
            mirror.settle_rewrite(&self.round.plan.inputs.revision);
        }
        Ok(report)
    }

    /// Whether this run got a certificate, which clusters use with the next plan.
    pub fn got_certificate(&self, report: &ExecutionReport) -> bool {
        let changes = self.round.plan.organizations.iter().flat_map(|organization| &organization.changes);
        let mut got = changes.filter(|change| change.certificate.is_some());
        got.any(|change| report.done.iter().any(|done| done.resource == change.resource))
    }

    /// The manifest folders of the fleets that this plan changes.
    pub fn written_folders(&self) -> Vec<String> {
        let changed = self.round.plan.fleets.iter().filter(|fleet| fleet.ordered_steps().next().is_some());
        let folders = changed.filter_map(|fleet| self.round.folder_of(&fleet.fleet));
        let folders = folders.filter(|folder| folder.is_dir());
        folders.map(|folder| self.settings.shorten(&folder)).collect()
    }
}

/// Identifies the user for the audit trail.
pub fn actor() -> String {
    format!("{} (command line)", user())
}

/// The user of the process, and beside it the name from the environment, which anyone can set.
pub fn user() -> String {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    named(rustix::process::geteuid().as_raw(), &users, |name| std::env::var(name).ok())
}

/// Looks a user up in `/etc/passwd`. Falls back to the number, as in a container.
fn named(uid: u32, users: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let is_it = |line: &&str| line.split(':').nth(2).and_then(|field| field.parse().ok()) == Some(uid);
    let name = users.lines().find(is_it).and_then(|line| line.split(':').next());
    let name = name.map_or_else(|| format!("uid {uid}"), str::to_owned);
    let said = ["SUDO_USER", "USER"].into_iter().find_map(|variable_name| {
        let said: String =
            variable(variable_name)?.chars().filter(|letter| !letter.is_control()).take(64).collect();
        (!said.is_empty() && said != name).then_some((variable_name, said))
    });
    match said {
        Some((variable, said)) => format!("{name} ({variable}={said})"),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs_a_command_is_told_by_the_process_and_not_by_the_environment() {
        let users = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        let user = |uid, variables: &[(&str, &str)]| {
            named(uid, users, |name| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(user(1000, &[("USER", "ann")]), "ann");
        assert_eq!(user(0, &[("SUDO_USER", "ann"), ("USER", "root")]), "root (SUDO_USER=ann)");
        assert_eq!(user(1000, &[("USER", "ro\not")]), "ann (USER=root)");
        assert_eq!(user(7, &[]), "uid 7");
        assert_eq!(user(7, &[("USER", "ann")]), "uid 7 (USER=ann)");
    }
}
