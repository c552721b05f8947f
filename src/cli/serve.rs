//! `streamfleet serve`: runs the daemon.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use secrecy::SecretString;

use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::last_used::SettingsComparison;
use crate::cli::reload::reload;
use crate::cli::round::{self, StateAccess};
use crate::cli::settings::{InstallationArgs, Settings, TreeArgs, read_config};
use crate::config::Listen;
use crate::daemon::{self, DaemonError, Reloaded, Setup, SpecSource};
use crate::source::git::GitError;
use crate::state::StateError;
use crate::vitals::Vitals;

/// Keep everything as the specs say, until a signal ends it.
///
/// Changes in the files, or commits pushed to the branch of the git repository that the settings name, are
/// planned and applied as `apply --yes` would. Drift on Kubernetes clusters is seen when it happens, and
/// corrected. What waits keeps waiting. Each decision is logged on one line, and so is each change of the
/// status of a fleet or cluster.
///
/// Exit codes: 0 ended by a signal, 1 a problem, 4 the state folder was removed.
#[derive(Debug, Args)]
pub struct Serve {
    /// The folder of spec files. Default: the git repository of the settings.
    #[arg(long, value_name = "DIR")]
    specs: Option<Utf8PathBuf>,
    #[command(flatten)]
    installation: InstallationArgs,
    /// The address and port of the web UI and the API: 127.0.0.1:3000, or `none` to open no port. Without this, the
    /// variable STREAMFLEET_LISTEN or `api.listen` in the settings says it. [default: 127.0.0.1:3000 if there are
    /// super users, otherwise none]
    #[arg(long, value_name = "ADDR")]
    listen: Option<Listen>,
    /// Log plain lines, or a JSON object on each line. Without this, a systemd service logs to the journal.
    #[arg(long, value_enum)]
    pub log_format: Option<LogFormat>,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object on each line.
    Json,
}

pub fn run(verb: &Serve, console: &mut Console) -> Result<u8, Failure> {
    let tree = TreeArgs { tree: verb.specs.clone(), installation: verb.installation.clone() };
    let listen = verb.listen;
    let settle = move || {
        refuse_unnamed_specs(&tree)?;
        let mut settings = Settings::settle(&tree)?;
        settings.config.api.listen = listen.or(settings.config.api.listen);
        Ok(settings)
    };
    let settings = settle()?;
    let mut used = SettingsComparison::of(&settings)?;
    used.refuse()?;
    let installation = round::open(&settings, StateAccess::Serve, console)?;
    used.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    if let Err(Failure { chain, hint, .. }) = used.remember(true) {
        tracing::warn!(hint, "{}", chain.join(": "));
    }
    let (source, actor) = (source(&settings), format!("{} (serve)", round::user()));
    let webhook_secret = webhook_secret(&settings)?;
    tracing::info!(specs = settings.shown(), mode = settings.config.policy.mode.as_str(), "serving");
    let state = installation.state.clone();
    let vitals = Arc::new(Vitals::begin(Timestamp::now()));
    let (socket, mut settings) = (settings.socket.clone(), settings);
    let reload = Box::new(move || {
        let config = reload(settle(), &settings).map(|anew| {
            settings = anew;
            let remembered = SettingsComparison::of(&settings).and_then(|used| used.remember(true));
            if let Err(Failure { chain, hint, .. }) = remembered {
                tracing::warn!(hint, "{}", chain.join(": "));
            }
            settings.config.clone()
        });
        Reloaded { config, webhook_secret: webhook_secret_anew(&settings) }
    });
    let setup = Setup { installation, source, socket, webhook_secret, actor, vitals, reload };
    let ended = daemon::run(setup);
    // Threads that still run may share the state, so `Drop` may come too late for this.
    state.iter().for_each(|state| state.write_snapshot());
    ended.map_err(failure)?;
    tracing::info!("stopped");
    Ok(exit::OK)
}

/// A tree that happens to lie in the current folder must not be applied.
fn refuse_unnamed_specs(tree: &TreeArgs) -> Result<(), Failure> {
    let config = tree.installation.config.as_deref().map(read_config).transpose()?;
    let is_named = tree.tree.is_some() || config.is_some_and(|(_, config)| config.source.git.is_some());
    is_named.then_some(()).ok_or_else(|| {
        Failure::new("nothing names the specs").hint(
            "name their folder, streamfleet serve --specs DIR, or set `git` under `[source]` in the settings",
        )
    })
}

fn source(settings: &Settings) -> SpecSource {
    match settings.mirror() {
        None => SpecSource::Folder(settings.tree.clone()),
        Some(mirror) => {
            let interval = Duration::from_secs(u64::from(settings.config.source.interval_seconds));
            SpecSource::Git(Arc::new(mirror), interval)
        }
    }
}

fn webhook_secret(settings: &Settings) -> Result<Option<SecretString>, Failure> {
    let secret = settings.mirror().map(|mirror| mirror.webhook_secret()).transpose();
    let failed =
        |error: GitError| Failure::during("cannot read the webhook secret", &error).hint(error.hint());
    Ok(secret.map_err(failed)?.flatten())
}

/// Reloads the webhook secret. If it can't be read, the previous one stays valid.
fn webhook_secret_anew(settings: &Settings) -> Option<SecretString> {
    webhook_secret(settings).unwrap_or_else(|Failure { chain, hint, .. }| {
        let error = chain.join(": ");
        tracing::error!(error, hint, "cannot reload the webhook secret; the previous one stays active");
        None
    })
}

fn failure(lost: DaemonError) -> Failure {
    match lost {
        DaemonError::State(error @ StateError::Gone { .. }) => {
            Failure { code: exit::STATE_GONE, ..round::unreadable_state(error) }
        }
        DaemonError::State(error) => round::unreadable_state(error),
        DaemonError::Closed(closed) => Failure::during(closed.to_string(), &closed).hint(closed.hint()),
        lost => Failure::new(lost.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_was_taken_away_is_told_by_a_code_of_its_own_for_which_the_unit_starts_nothing_anew() {
        let unit = include_str!("../../systemd/streamfleet.service");
        let gone = failure(DaemonError::State(StateError::Gone { dir: "state".into() }));
        assert!(unit.contains(&format!("\nRestartPreventExitStatus={}\n", gone.code)));
        assert_eq!((gone.code, failure(DaemonError::ThreadPanicked).code), (exit::STATE_GONE, exit::PROBLEM));
    }
}
