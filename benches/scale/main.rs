//! Benchmarks trees of many clusters for time and memory, beside a floor measured in the same run.
//!
//! ```sh
//! cargo bench --bench scale                                       # 10 fleets with 1,000 clusters
//! STREAMFLEET_BENCH_CLUSTERS=10000 cargo bench --bench scale      # 100 fleets with 10,000 clusters
//! cargo bench --bench scale -- commands                           # only the commands
//! cargo bench --bench scale -- serve                              # only `serve`, also with 100 clusters
//! cargo bench --bench scale -- api                                # only the API, by `wrk`
//! cargo bench --bench scale -- pages                              # only the web UI, by `wrk`
//! cargo bench --bench scale -- topics                             # only 10,000 topics of one cluster
//! cargo bench --bench scale -- probe                              # only rounds beside probes of dead addresses
//! ```
//!
//! Nothing here fails for being slow; a person judges the figures, on a machine that they know.

#![allow(clippy::disallowed_methods, reason = "measures what the disk and the processors do")]

mod api;
mod daemon;
mod floor;
mod pages;
mod probe;
mod process;
#[allow(dead_code, reason = "another bench uses the rest")]
#[path = "../kubernetes/serve.rs"]
mod serve;
mod topics;
mod tree;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use process::Process;
use tree::{Hosts, Tree};

/// Default number of clusters.
const CLUSTERS: usize = 1_000;

/// First argument of the measured child process: this binary, run as the command line.
const CHILD: &str = "--as-streamfleet";

/// Prefix of the line on which the child reports its peak memory in KiB and its processor time in
/// milliseconds.
const TOOK: &str = "took ";

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == CHILD) {
        arguments.remove(1);
        let code = streamfleet::cli::main(arguments);
        eprintln!("{TOOK}{} {}", floor::peak_kib(), floor::processor_time().as_millis());
        return code;
    }
    let clusters = std::env::var("STREAMFLEET_BENCH_CLUSTERS").ok();
    let clusters = clusters.and_then(|text| text.parse().ok()).unwrap_or(CLUSTERS);
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("the disk takes a folder");
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let is_wanted = |part: &str| {
        words.contains(&part)
            || !["commands", "serve", "api", "pages", "topics", "probe"].iter().any(|it| words.contains(it))
    };
    let commands = || if is_wanted("commands") { measure(folder.path(), clusters) } else { Ok(()) };
    let serve = || if is_wanted("serve") { daemon::measure(folder.path(), clusters) } else { Ok(()) };
    let api = || if is_wanted("api") { api::measure(folder.path(), clusters) } else { Ok(()) };
    let pages = || if is_wanted("pages") { pages::measure(folder.path(), clusters) } else { Ok(()) };
    let probe = || if is_wanted("probe") { probe::measure(folder.path(), clusters) } else { Ok(()) };
    let topics = || if is_wanted("topics") { topics::measure(folder.path()) } else { Ok(()) };
    let parts = commands().and_then(|()| serve()).and_then(|()| api()).and_then(|()| pages());
    match parts.and_then(|()| topics()).and_then(|()| probe()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(folder: &Path, clusters: usize) -> io::Result<()> {
    let hosts = Hosts { clusters: 100, infra_type: "directory", settings: String::new() };
    let tree = Tree::write(&folder.join("tree"), clusters, hosts);
    println!("{} clusters in {} fleets\n", tree.clusters, tree.fleets);
    println!(
        "{:<46} {:>9} {:>9} {:>9}   {:<42} {:>9} {:>7}",
        "", "time", "processor", "peak", "floor", "time", "ratio"
    );
    let run = |words: &[&str]| Run::of(words, tree.root());

    let specs = floor::read_and_hash(tree.root())?;
    run(&["plan"])?.tell("plan of an empty installation", &specs);
    let applied = run(&["apply", "--yes"])?;
    let output = tree.root().join(".streamfleet/output");
    applied.tell("apply to a folder", &floor::write_and_sync(&output, &folder.join("copy"))?);
    println!("{:79} {}", "", floor::write_each(&output, &folder.join("each"))?);
    let all = &specs + &floor::read_and_hash(&output)?;
    run(&["plan"])?.tell("plan with nothing changed", &all);

    let mut process = Process::open(&tree)?;
    process.plan()?;
    tree.change(clusters / 2, 2, "");
    let before = floor::processor_time();
    let (plan, parts) = process.plan()?;
    let processor = floor::processor_time() - before;
    Run { time: parts.whole(), processor, peak_kib: floor::peak_kib() }
        .tell("plan in a running process, one file changed", &all);
    println!("  {} of {} resources change: {}", plan.summary.change, plan.summary.unchanged, parts.tell());
    Ok(())
}

struct Run {
    time: Duration,
    processor: Duration,
    peak_kib: u64,
}

impl Run {
    fn of(words: &[&str], tree: &Path) -> io::Result<Run> {
        let (verb, flags) = words.split_first().expect("a verb is named");
        let mut command = Command::new(std::env::current_exe()?);
        command.args([CHILD, verb]).arg(tree).args(flags);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let start = Instant::now();
        let output = command.spawn()?.wait_with_output()?;
        let time = start.elapsed();
        let told = String::from_utf8_lossy(&output.stderr);
        let took = told.lines().find_map(|line| line.strip_prefix(TOOK)?.split_once(' ')).unwrap_or_default();
        if !matches!(output.status.code(), Some(0 | 2)) {
            return Err(io::Error::other(format!("{} failed:\n{told}", words.join(" "))));
        }
        Ok(Run {
            time,
            processor: Duration::from_millis(took.1.parse().unwrap_or(0)),
            peak_kib: took.0.parse().unwrap_or(0),
        })
    }

    fn tell(&self, what: &str, floor: &floor::Floor) {
        let ratio = self.time.as_secs_f64() / floor.time.as_secs_f64();
        println!(
            "{what:<46} {:>7.2} s {:>7.2} s {:>6} MB   {:<42} {:>7.2} s {ratio:>7.1}",
            self.time.as_secs_f64(),
            self.processor.as_secs_f64(),
            self.peak_kib / 1024,
            floor.what,
            floor.time.as_secs_f64(),
        );
        // A large tree takes long; show the lines as they come.
        let _ = io::stdout().flush();
    }
}

/// Every file below a folder, sorted.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            match kind.is_dir() {
                true if entry.file_name() == ".streamfleet" => {}
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found.sort();
    Ok(found)
}
