//! The `streamfleet` command: see `streamfleet --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    streamfleet::cli::main(std::env::args_os())
}
