//! Measures `serve` on folders: from a saved file to the changed manifest, cost while idle, time to ready,
//! and the same with a git repository of as many files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::floor::{self, memory_kib, processor_time_of};
use crate::serve::{Serve, Told};
use crate::tree::{Hosts, Tree};
use crate::{Run, files};

pub const FEW: usize = 100;

/// Number of saved files, one after the other.
const EDITS: usize = 40;

const IDLE: Duration = Duration::from_secs(60);

/// Number of rounds with a small tree, and with a large one.
const ROUNDS: [usize; 2] = [1_000, 100];

const DEBOUNCE: Duration = Duration::from_millis(100);

const TICK: Duration = Duration::from_millis(1);

/// The targets, each relative to a figure of the same run.
const LIMITS: &str = "aims: a saved file is done within the debounce and 6 times what reading and hashing all specs takes; a \
                      start is ready within 8 times what reading and hashing specs and manifests takes; an idle process takes \
                      less than 2 % of one processor; memory grows by less than a tenth over the rounds";

struct Figures {
    specs: Duration,
    all: Duration,
    warm: Duration,
    lost: Duration,
    edits: Vec<Duration>,
    /// Processor time for each of them.
    edit: Duration,
    idle: Duration,
    memory: [u64; 3],
    rounds: usize,
    round: Duration,
    fetched: Duration,
    pushed: Duration,
}

pub fn measure(folder: &Path, clusters: usize) -> io::Result<()> {
    println!("\nserve on folders; {LIMITS}\n");
    for clusters in [FEW, clusters] {
        let figures = Figures::of(&folder.join(format!("served-{clusters}")), clusters)?;
        figures.tell(clusters);
    }
    Ok(())
}

impl Figures {
    fn of(folder: &Path, clusters: usize) -> io::Result<Figures> {
        let hosts = Hosts { clusters: 100, infra_type: "directory", settings: String::new() };
        let tree = Tree::write(&folder.join("tree"), clusters, hosts);
        Run::of(&["apply", "--yes"], tree.root())?;
        let specs = floor::read_and_hash(tree.root())?.time;
        let all = specs + floor::read_and_hash(&tree.root().join(".streamfleet/output"))?.time;
        let words = [Path::new("--specs"), tree.root()];

        let warm = ready(&words)?;

        let mut serve = Serve::start(&words)?;
        serve.wait_for(Told::Planned)?;
        serve.wait_until_idle()?;
        let id = serve.id().to_string();
        let before = processor_time_of(&id);
        let edits = (0..EDITS).map(|edit| save(&tree, edit, &mut serve)).collect::<io::Result<_>>()?;
        serve.wait_until_idle()?;
        let edit = processor_time_of(&id).saturating_sub(before) / u32::try_from(EDITS).unwrap_or(1);
        let before = processor_time_of(&id);
        sleep(IDLE);
        let idle = processor_time_of(&id).saturating_sub(before);

        let first = memory_kib(&id, "VmRSS:");
        let rounds = ROUNDS[usize::from(clusters > 1_000)];
        let begin = Instant::now();
        for _ in 0..rounds {
            serve.look()?;
        }
        let round = begin.elapsed() / u32::try_from(rounds).unwrap_or(1);
        let memory = [first, memory_kib(&id, "VmRSS:"), memory_kib(&id, "VmHWM:")];
        serve.stop()?;

        // Comes last: the first edit of each fleet would have to record everything of it again.
        fs::remove_dir_all(tree.root().join(".streamfleet/state/cache-v1"))?;
        let lost = ready(&words)?;

        let (fetched, pushed) = from_git(folder, &tree)?;
        Ok(Figures { specs, all, warm, lost, edits, edit, idle, memory, rounds, round, fetched, pushed })
    }

    fn tell(&self, clusters: usize) {
        let ratio = |time: Duration, to: Duration| time.as_secs_f64() / to.as_secs_f64();
        let ms = |time: Duration| format!("{:.0} ms", time.as_secs_f64() * 1000.0);
        let of_hundred = |part: usize| {
            let mut edits = self.edits.clone();
            edits.sort();
            edits[(edits.len() * part).div_ceil(100).max(1) - 1]
        };
        let (half, most) = (of_hundred(50), of_hundred(99));
        println!("{clusters} clusters");
        println!(
            "  floor: reading and hashing all specs {}, and all manifests, too, {}",
            ms(self.specs),
            ms(self.all)
        );
        for (what, time) in [("half of the saved files", half), ("99 of 100", most)] {
            let beyond = time.saturating_sub(DEBOUNCE);
            let to = ratio(beyond, self.specs);
            println!(
                "  {what} were done within {}, {} beyond the debounce ({to:.1} x the specs)",
                ms(time),
                ms(beyond)
            );
        }
        println!("  each took {} of processor time", ms(self.edit));
        for (what, time) in [("warm", self.warm), ("lost", self.lost)] {
            println!(
                "  ready with a {what} cache within {} ({:.1} x specs and manifests)",
                ms(time),
                ratio(time, self.all)
            );
        }
        let share = ratio(self.idle, IDLE) * 100.0;
        println!(
            "  idle for {} s: {} of processor time ({share:.2} % of one)",
            IDLE.as_secs(),
            ms(self.idle)
        );
        let [first, last, peak] = self.memory.map(|kib| kib / 1024);
        let (rounds, round) = (self.rounds, ms(self.round));
        println!("  {rounds} rounds of {round}: {first} MB before, {last} MB after, {peak} MB at most");
        let (fetched, pushed) = (ms(self.fetched), ms(self.pushed));
        println!(
            "  git: from the start to the first plan of all files {fetched}; from a signal to a pushed change done {pushed}"
        );
    }
}

fn ready(words: &[&Path]) -> io::Result<Duration> {
    let start = Instant::now();
    let mut serve = Serve::start(words)?;
    let ready = serve.wait_for(Told::Planned)?;
    serve.stop()?;
    Ok(ready.duration_since(start))
}

/// Saves a cluster's spec, and returns how long it takes until its manifest is replaced.
fn save(tree: &Tree, edit: usize, serve: &mut Serve) -> io::Result<Duration> {
    let cluster = edit * 7919 % tree.clusters;
    let file = manifest(&tree.root().join(".streamfleet/output"), cluster)?;
    let before = number(&file)?;
    let start = Instant::now();
    enlarge(tree, cluster, edit);
    wait_for_another(&file, before)?;
    let done = start.elapsed();
    // The next round finds nothing to do.
    serve.wait_for(Told::Done)?;
    serve.wait_for(Told::Planned)?;
    Ok(done)
}

/// Waits until a file is replaced by another (a new inode).
fn wait_for_another(file: &Path, before: u64) -> io::Result<()> {
    while number(file)? == before {
        sleep(TICK);
    }
    Ok(())
}

/// An edit to larger disks, which changes one manifest.
fn enlarge(tree: &Tree, cluster: usize, edit: usize) {
    tree.change(cluster, 1, &format!("  storage:\n    size_gib: {}\n", 2_000 + edit));
}

/// The manifest with the size of a cluster's disks.
fn manifest(output: &Path, cluster: usize) -> io::Result<PathBuf> {
    let name = format!("--cluster-{cluster:05}/kafkanodepool-broker.yaml");
    let fleet = output.join(format!("org-{:02}/fleet-{:03}", cluster / 1000, cluster / 100));
    let found = files(&fleet)?.into_iter().find(|file| file.to_string_lossy().ends_with(&name));
    found.ok_or_else(|| io::Error::other(format!("nothing ends with {name}")))
}

fn number(file: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(fs::metadata(file)?.ino())
}

/// The same specs from a repository: the time to the first plan, and from the signal after a push to its
/// result.
fn from_git(folder: &Path, tree: &Tree) -> io::Result<(Duration, Duration)> {
    let remote = folder.join("specs.git");
    fs::remove_dir_all(tree.root().join(".streamfleet"))?;
    git(folder, &["init", "--quiet", "--bare", "--initial-branch=main", "specs.git"])?;
    git(tree.root(), &["init", "--quiet", "--initial-branch=main"])?;
    let push = || -> io::Result<()> {
        git(tree.root(), &["add", "--all"])?;
        git(tree.root(), &["commit", "--quiet", "--message=edit"])?;
        git(tree.root(), &["push", "--quiet", "../specs.git", "main"])
    };
    push()?;
    let (settings, output) = (folder.join("streamfleet.toml"), folder.join("output"));
    let text = format!(
        "state_dir = \"state\"\noutput_dir = \"output\"\n[source]\ngit = \"{}\"\n[secrets]\nallow_plain_in_git = true\n",
        remote.display()
    );
    fs::write(&settings, text)?;
    let words = [Path::new("--config"), &settings];
    let start = Instant::now();
    let mut serve = Serve::start(&words)?;
    let fetched = serve.wait_for(Told::Planned)?.duration_since(start);
    // A slow disk makes it silent for a while with much left to do.
    for fleet in 1..=tree.fleets {
        while manifest(&output, (100 * fleet).min(tree.clusters) - 1).is_err() {
            sleep(100 * TICK);
        }
    }
    serve.wait_until_idle()?;
    enlarge(tree, tree.clusters / 2, EDITS);
    push()?;
    let file = manifest(&output, tree.clusters / 2)?;
    let before = number(&file)?;
    let start = Instant::now();
    serve.signal("HUP")?;
    wait_for_another(&file, before)?;
    let pushed = start.elapsed();
    serve.stop()?;
    Ok((fetched, pushed))
}

pub fn git(folder: &Path, words: &[&str]) -> io::Result<()> {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]);
    git.args(words).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let status = git.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("git {words:?} failed"))) }
}
