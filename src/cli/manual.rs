//! `streamfleet manual`: prints the manual page.

use clap::{Args, CommandFactory as _};

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::{Cli, exit};

/// Print the manual page, for `man -l -`.
#[derive(Debug, Args)]
pub struct Manual {}

pub fn run(console: &mut Console) -> Result<u8, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut page)
        .map_err(|error| Failure::during("cannot write the manual page", &error))?;
    console.print(&String::from_utf8_lossy(&page))?;
    Ok(exit::OK)
}
