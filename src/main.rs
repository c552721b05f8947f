//! The `streamfleet` command: see `streamfleet --help`.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// Rounds of large installations allocate and free millions of small blocks on several threads, which the
/// system allocator handles badly. At 10,000 clusters, the median create took 61 ms with it and takes 35 ms
/// with jemalloc.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The most milliseconds that a git server may take to accept a connection, and to stay silent. A fetch has
/// its own deadline; these limits end the thread that waits.
const GIT_CONNECTS_WITHIN: i32 = 10_000;
const GIT_ANSWERS_WITHIN: i32 = 60_000;

fn main() -> ExitCode {
    bound_git();
    streamfleet::cli::main(std::env::args_os())
}

/// By default, libgit2 waits for ever.
#[allow(
    unsafe_code,
    reason = "libgit2 keeps these in globals, which are set before there is a second thread"
)]
fn bound_git() {
    // SAFETY: `main` calls this before anything else, so no other thread reads or writes these globals.
    // Setting them can't fail.
    unsafe {
        let _ = git2::opts::set_server_connect_timeout_in_milliseconds(GIT_CONNECTS_WITHIN);
        let _ = git2::opts::set_server_timeout_in_milliseconds(GIT_ANSWERS_WITHIN);
    }
}
