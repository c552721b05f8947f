//! The command line. Each verb has a file of its own.

mod apply;
mod approve;
mod backup;
mod checkout;
mod client_properties;
mod command;
mod completions;
mod config;
mod console;
mod credentials;
mod daemon_client;
mod events;
mod explain;
mod failure;
mod forget;
mod format;
mod get;
mod init;
mod last_used;
mod logs;
mod manual;
mod named_cluster;
mod paths;
mod plan;
mod ready;
mod reload;
mod report;
mod restore;
mod role;
mod round;
mod saved_plan;
mod schema;
mod secret;
mod serve;
mod settings;
mod sign_in;
mod status;
mod token;
mod validate;
mod why;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use console::Console;
use format::OutputFormat;
use serve::LogFormat;

use crate::vitals::{Journal, JsonLines, LineFields};

/// Exit codes shared by all verbs. For the codes of a plan see [`crate::plan::Plan::exit_code`].
pub mod exit {
    /// All done, or nothing to do.
    pub const OK: u8 = 0;
    pub const PROBLEM: u8 = 1;
    /// At least one step waits.
    pub const WAITING: u8 = 3;
    /// The state folder was removed under a running process. Restarting would create a new installation, so
    /// the service unit does not restart on this code.
    pub const STATE_GONE: u8 = 4;
    /// The command line could not be parsed (`EX_USAGE` of sysexits.h).
    pub const USAGE: u8 = 64;
    /// The reader closed standard output: what a shell reports for a process killed by SIGPIPE.
    pub const BROKEN_PIPE: u8 = 141;
}

/// Keeps Kafka fleets on Kubernetes equal to a tree of YAML files, and shows every change before it is made.
///
/// Exit codes: 0 nothing to do or all done, 1 a problem, 2 a plan has changes, 3 something waits, 4 the state
/// folder was removed, 64 usage.
#[derive(Debug, Parser)]
#[command(name = "streamfleet", version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    /// Log more: -v logs each action, -vv adds details. The variable STREAMFLEET_LOG takes filters instead.
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Init(init::Init),
    Validate(validate::Validate),
    Plan(plan::Plan),
    Apply(apply::Apply),
    Serve(serve::Serve),
    Ready(ready::Ready),
    Status(status::Status),
    Get(get::Get),
    ClientProperties(client_properties::ClientProperties),
    Why(why::Why),
    Logs(logs::Logs),
    Events(events::EventsVerb),
    Explain(explain::Explain),
    Schema(schema::Schema),
    Approve(approve::Approve),
    Forget(forget::Forget),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Role(role::Role),
    #[command(subcommand)]
    Secret(secret::Secret),
    #[command(subcommand)]
    Token(token::TokenVerb),
    SignIn(sign_in::SignIn),
    #[command(subcommand)]
    Config(config::Config),
    Completions(completions::Completions),
    Manual(manual::Manual),
}

/// Parses the arguments, runs the verb and returns its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let parsed = Cli::command().try_get_matches_from(arguments).and_then(|arguments| {
        let cli = Cli::from_arg_matches(&arguments)?;
        Ok((cli, arguments))
    });
    let (cli, arguments) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error),
    };
    // The log is the only output of a daemon, so `serve` logs at `info` by default.
    let serve = match &cli.verb {
        Verb::Serve(serve) => Some(serve),
        _ => None,
    };
    let format = serve.and_then(|serve| serve.log_format);
    log_to_stderr(cli.verbose.max(u8::from(serve.is_some())), serve.is_some(), format);
    let mut console = Console::new();
    let result = match cli.verb {
        Verb::Init(verb) => init::run(&verb, &mut console),
        Verb::Validate(verb) => validate::run(&verb, &mut console),
        Verb::Plan(verb) => plan::run(&verb, &mut console),
        Verb::Apply(verb) => apply::run(&verb, &mut console),
        Verb::Serve(verb) => serve::run(&verb, &mut console),
        Verb::Ready(verb) => ready::run(&verb, &mut console),
        Verb::Status(verb) => status::run(&verb, &mut console),
        Verb::Get(verb) => get::run(&verb, &mut console),
        Verb::ClientProperties(verb) => client_properties::run(&verb, &mut console),
        Verb::Why(verb) => why::run(&verb, &mut console),
        Verb::Logs(verb) => logs::run(&verb, &mut console),
        Verb::Events(verb) => events::run(&verb, &mut console),
        Verb::Explain(verb) => explain::run(&verb, &mut console),
        Verb::Schema(verb) => schema::run(&verb, &mut console),
        Verb::Approve(verb) => approve::run(&verb, &mut console),
        Verb::Forget(verb) => forget::run(&verb, &mut console),
        Verb::Backup(verb) => backup::run(&verb, &mut console),
        Verb::Restore(verb) => restore::run(&verb, &mut console),
        Verb::Role(verb) => role::run(&verb, &mut console),
        Verb::Secret(verb) => secret::run(&verb, &mut console),
        Verb::Token(verb) => token::run(&verb, &mut console),
        Verb::SignIn(verb) => sign_in::run(&verb, &mut console),
        Verb::Config(verb) => config::run(&verb, innermost(&arguments), &mut console),
        Verb::Completions(verb) => completions::run(&verb, &mut console),
        Verb::Manual(_) => manual::run(&mut console),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        // With `--log-format json` every line must be an object, the last one too.
        Err(failure) if format == Some(LogFormat::Json) => {
            tracing::error!(hint = failure.hint.as_deref(), "{}", failure.chain.join(": "));
            ExitCode::from(failure.code)
        }
        Err(failure) => console.fail(&failure),
    }
}

/// Returns the arguments of the innermost subcommand.
fn innermost(arguments: &ArgMatches) -> &ArgMatches {
    arguments.subcommand().map_or(arguments, |(_, inner)| innermost(inner))
}

/// Prints clap's message. `--help` and `--version` exit with 0.
fn usage(error: &clap::Error) -> ExitCode {
    // When even this can't be printed, only the exit code is left.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::OK })
}

/// Sends the log to journald where standard error of a service leads there, otherwise to standard error.
/// Standard output is for data only. `runs_on` is set for a daemon, whose lines have timestamps and whose
/// form can be chosen.
fn log_to_stderr(verbose: u8, runs_on: bool, format: Option<LogFormat>) {
    use tracing_subscriber::EnvFilter;
    use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
    use tracing_subscriber::util::SubscriberInitExt as _;
    let default = match verbose {
        0 => "warn",
        1 => "streamfleet=info,warn",
        _ => "streamfleet=debug,info",
    };
    // Filters name modules, so the modules have to be visible.
    let names_modules = std::env::var_os("STREAMFLEET_LOG").is_some();
    let filter = EnvFilter::try_from_env("STREAMFLEET_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    if format == Some(LogFormat::Json) {
        let _ = tracing_subscriber::registry()
            .with(JsonLines::to(std::io::stderr()).with_filter(filter))
            .try_init();
        return;
    }
    if let Some(journal) = Journal::of_service().filter(|_| format.is_none()) {
        let _ = tracing_subscriber::registry().with(journal.with_filter(filter)).try_init();
        return;
    }
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(console::stderr_has_color())
        .with_target(verbose > 1 || names_modules)
        .fmt_fields(LineFields);
    let _ = if runs_on { log.try_init() } else { log.without_time().try_init() };
}
