//! The `streamfleet` command: see `streamfleet --help`.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// Rounds of large installations make and drop millions of small pieces of memory on several threads, which the system's own
/// allocator keeps apart badly: at 10,000 clusters, half of the creates took 61 ms with it and take 35 ms with this one.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// How long a git server may take to accept a connection, and how long it may be silent, in milliseconds. A fetch has a
/// deadline of its own; this ends the thread that waits.
const GIT_CONNECTS_WITHIN: i32 = 10_000;
const GIT_ANSWERS_WITHIN: i32 = 60_000;

fn main() -> ExitCode {
    bound_git();
    streamfleet::cli::main(std::env::args_os())
}

/// By default git waits for ever.
#[allow(
    unsafe_code,
    reason = "libgit2 keeps these in globals, which are set before there is a second thread"
)]
fn bound_git() {
    // SAFETY: `main` calls this before anything else, so that no other thread reads or writes them. Setting them can't fail.
    unsafe {
        let _ = git2::opts::set_server_connect_timeout_in_milliseconds(GIT_CONNECTS_WITHIN);
        let _ = git2::opts::set_server_timeout_in_milliseconds(GIT_ANSWERS_WITHIN);
    }
}
