//! `streamfleet ready`: the health check of a container, which may have neither a shell nor curl.

use clap::Args;

use crate::cli::console::Console;
use crate::cli::daemon_client::RunningDaemon;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::settings::{Settings, TreeArgs};

/// Check that the running `serve` makes progress and has read the specs: a health check for containers.
///
/// It asks the same as `/healthz` and `/readyz`, over the socket, so it needs no open port. It waits at most 5 s for
/// an answer.
///
/// Exit codes: 0 ready, 1 not ready, or no `serve` runs.
#[derive(Debug, Args)]
pub struct Ready {
    #[command(flatten)]
    tree: TreeArgs,
}

pub fn run(verb: &Ready, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let mut daemon = RunningDaemon::required(&settings, "not ready")?;
    for path in ["/healthz", "/readyz"] {
        if let Some(fault) = daemon.probe(path)? {
            return Err(Failure::new(format!("not ready: {fault}"))
                .hint("read the log of `serve`, which says what it waits for"));
        }
    }
    console.print("ready\n")?;
    Ok(exit::OK)
}
