//! `streamfleet completions`: prints shell completions.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::{Cli, exit};

/// Print a completion script for a shell.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(verb: &Completions, console: &mut Console) -> Result<u8, Failure> {
    let mut script = Vec::new();
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(verb.shell, &mut command, name, &mut script);
    console.print(&String::from_utf8_lossy(&script))?;
    Ok(exit::OK)
}
