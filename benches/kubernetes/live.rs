//! Latency from a saved file to the object on the API server under `serve`, and the memory `serve` holds
//! meanwhile.

use std::fmt;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::floor::Floor;
use crate::measure::{Memory, memory_kib};
use crate::ours;
use crate::serve::Serve;
use crate::tests::support::control_plane::{ControlPlane, PATIENCE};
use crate::tree::Tree;
use crate::{SETTINGS_FILE, hosts};

const NOTES: usize = 5;

/// The disk size after an edit, in GiB: unique per edit, and above the size that `kafka_units: 1` gives.
fn size(edit: usize) -> usize {
    2_000 + edit
}

/// Edits one cluster after the other, `edits` times, while `serve` runs. Prints how long each changed object
/// takes to appear on the server, beside a bare call that makes the same change.
pub fn measure(folder: &Path, clusters: usize, edits: usize) -> io::Result<()> {
    let plane = ControlPlane::start();
    let tree = Tree::write(&folder.join("live"), clusters, hosts(&plane));
    let objects = ours::objects(tree.root())?;
    for edit in 0..edits.min(clusters) {
        enlarge(&tree, edit);
    }
    let after = ours::objects(tree.root())?;
    let changed: Vec<Value> = after.into_iter().filter(|object| !objects.contains(object)).collect();
    drop((plane, tree));
    assert_eq!(changed.len(), edits.min(clusters), "each edit changes one object");

    let bare = bare_calls(&objects, &changed, edits)?;
    println!();
    let lives = Lives::of(folder, clusters, edits, &changed)?;
    println!("| from a change to the watch event of the changed object | p50 | p99 |\n|---|---|---|");
    for (what, times) in [
        ("a bare call", bare),
        ("a spec that is saved", lives.saved),
        ("of that, until `serve` notices", lives.until_noticed),
        ("of that, from there on", lives.from_noticed),
    ] {
        println!("| {what} | {} | {} |", Quantile(&times, 50), Quantile(&times, 99));
    }
    println!();
    for (rounds, kib) in lives.memory {
        println!("after {rounds} rounds, `serve` holds {} MB", kib / 1024);
    }
    println!("the most that it ever held: {} MB", lives.peak_kib / 1024);
    Ok(())
}

fn enlarge(tree: &Tree, edit: usize) {
    let settings = format!("  storage:\n    size_gib: {}\n", size(edit));
    tree.change(edit % tree.clusters, 1, &settings);
}

/// The floor: applies objects, then changes their disk size again and again, and returns how long each change
/// took until its watch event came.
fn bare_calls(objects: &[Value], changed: &[Value], edits: usize) -> io::Result<Vec<Duration>> {
    let plane = ControlPlane::start();
    let floor = Floor::connect(&plane)?;
    floor.apply(objects)?;
    let kinds = floor.kinds(&changed[..1].iter().collect::<Vec<_>>())?;
    let events = floor.watch(&kinds, &changed[0])?;
    let mut times = Vec::new();
    for edit in 0..edits {
        let first = &changed[edit % changed.len()];
        let text = first.to_string();
        let text = text.replace(&disk(edit % changed.len()), &disk(edit));
        let object: Value = serde_json::from_str(&text)?;
        let start = Instant::now();
        floor.apply_one(&kinds, &object)?;
        times.push(events.wait(&disk(edit), PATIENCE)?.duration_since(start));
    }
    Ok(times)
}

fn disk(edit: usize) -> String {
    format!("\"{}Gi\"", size(edit))
}

struct Lives {
    saved: Vec<Duration>,
    until_noticed: Vec<Duration>,
    from_noticed: Vec<Duration>,
    /// Memory in KiB by the number of rounds so far.
    memory: Vec<(usize, u64)>,
    peak_kib: u64,
}

impl Lives {
    fn of(folder: &Path, clusters: usize, edits: usize, changed: &[Value]) -> io::Result<Lives> {
        let plane = ControlPlane::start();
        let tree = Tree::write(&folder.join("served"), clusters, hosts(&plane));
        let floor = Floor::connect(&plane)?;
        let settings = folder.join(SETTINGS_FILE);
        let words = [Path::new("--specs"), tree.root(), Path::new("--config"), &settings];
        let mut serve = Serve::start(&words)?;
        serve.wait_until_idle()?;
        let kinds = floor.kinds(&changed[..1].iter().collect::<Vec<_>>())?;
        let events = floor.watch(&kinds, &changed[0])?;
        let (mut saved, mut until_noticed, mut from_noticed) = (Vec::new(), Vec::new(), Vec::new());
        let mut memory = vec![(serve.rounds(), memory_kib(serve.id(), Memory::Now))];
        for edit in 0..edits {
            // The poll interval is one second. The golden ratio spreads the edits evenly over the time
            // between two polls.
            sleep(Duration::from_secs(1).mul_f64((edit as f64 * 0.618).fract()));
            serve.listen();
            enlarge(&tree, edit);
            let start = Instant::now();
            let live = events.wait(&disk(edit), PATIENCE)?;
            // A round already under way reads the file without noticing a change first.
            let noticed = serve.listen().filter(|at| *at < live).unwrap_or(start);
            saved.push(live.duration_since(start));
            until_noticed.push(noticed.duration_since(start));
            from_noticed.push(live.duration_since(noticed));
            if (edit + 1) * NOTES % edits < NOTES {
                memory.push((serve.rounds(), memory_kib(serve.id(), Memory::Now)));
            }
        }
        serve.wait_until_idle()?;
        memory.push((serve.rounds(), memory_kib(serve.id(), Memory::Now)));
        let peak_kib = memory_kib(serve.id(), Memory::Peak);
        serve.stop()?;
        Ok(Lives { saved, until_noticed, from_noticed, memory, peak_kib })
    }
}

struct Quantile<'t>(&'t [Duration], usize);

impl fmt::Display for Quantile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantile(times, of_hundred) = self;
        let mut times = times.to_vec();
        times.sort();
        let rank = (times.len() * of_hundred).div_ceil(100).max(1);
        match times.get(rank - 1) {
            Some(time) => write!(f, "{:.1} ms", time.as_secs_f64() * 1000.0),
            None => write!(f, "nothing"),
        }
    }
}
