//! Benchmarks a fleet on Kubernetes beside kubectl and beside a bare loop of the same calls, each on an API
//! server of its own.
//!
//! ```sh
//! cargo bench --bench kubernetes                                       # 100 clusters
//! STREAMFLEET_BENCH_CLUSTERS=1000 cargo bench --bench kubernetes
//! cargo bench --bench kubernetes -- apply                              # only that
//! STREAMFLEET_BENCH_EDITS=100 cargo bench --bench kubernetes -- serve  # only that, with 100 edits
//! ```
//!
//! Nothing here fails for being slow; a person judges the figures. The API server takes most of the processor
//! time and shares the machine with every side. Wall-clock time depends on what else the machine does; the
//! server's processor time and the number of requests hardly do.

#![allow(clippy::disallowed_methods, reason = "measures what a server and the processors do")]

mod floor;
mod live;
mod measure;
mod ours;
#[allow(dead_code, reason = "another bench uses the rest")]
mod serve;
mod table;
#[allow(dead_code, unused_imports, reason = "tests use more of what is there for them")]
#[path = "../../tests"]
mod tests {
    pub mod support;
}
#[path = "../scale/tree.rs"]
mod tree;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use floor::Floor;
use measure::Measured;
use table::Table;
use tests::support::control_plane::ControlPlane;
use tree::{Hosts, Tree};

/// Default number of clusters, and the most that a fleet may host.
const CLUSTERS: usize = 100;
const MOST: usize = 1_000;

/// Default number of edits while `serve` runs.
const EDITS: usize = 50;

/// The settings file that allows kubeconfigs that point at this host.
const SETTINGS_FILE: &str = "streamfleet.toml";
const SETTINGS: &str = "[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n";

/// An edit of a cluster's spec that changes exactly one object.
const LARGER_DISKS: &str = "  storage:\n    size_gib: 2000\n";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let is_wanted = |part: &str| {
        let parts = ["apply", "serve"];
        words.iter().any(|word| word == part) || !words.iter().any(|word| parts.contains(&word.as_str()))
    };
    let clusters = number("STREAMFLEET_BENCH_CLUSTERS").unwrap_or(CLUSTERS).clamp(1, MOST);
    let edits = number("STREAMFLEET_BENCH_EDITS").unwrap_or(EDITS).max(1);
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("the disk takes a folder");
    let folder = folder.path();
    let apply = || if is_wanted("apply") { compare(folder, clusters) } else { Ok(()) };
    let serve = || if is_wanted("serve") { live::measure(folder, clusters, edits) } else { Ok(()) };
    let settings = fs::write(folder.join(SETTINGS_FILE), SETTINGS);
    match settings.and_then(|()| apply()).and_then(|()| serve()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Measures all sides with the same objects in three phases: create everything, find nothing changed, change
/// one object.
fn compare(folder: &Path, clusters: usize) -> io::Result<()> {
    let plane = ControlPlane::start();
    let tree = Tree::write(&folder.join("tree"), clusters, hosts(&plane));
    let settings = folder.join(SETTINGS_FILE);
    let before = ours::objects(tree.root())?;
    let mut table = Table::new(before.len());
    println!("{} clusters in {} fleet, {} objects\n", tree.clusters, tree.fleets, before.len());

    let apply = || ours::apply(&plane, &tree, &settings);
    let mut ours = vec![apply()?, apply()?];
    tree.change(clusters / 2, 1, LARGER_DISKS);
    let after = ours::objects(tree.root())?;
    let changed: Vec<&Value> = after.iter().filter(|object| !before.contains(object)).collect();
    assert_eq!(changed.len(), 1, "the edit changes one object");
    ours.push(apply()?);
    drop(plane);

    let plane = ControlPlane::start();
    let floor = Floor::connect(&plane)?;
    let floor = vec![floor.apply(&before)?, floor.list(&before)?, floor.apply(changed)?];
    drop(plane);

    let plane = ControlPlane::start();
    let kubectl = |objects: &[Value]| kubectl(&plane, &folder.join("objects.json"), objects);
    let kubectl = vec![kubectl(&before)?, kubectl(&before)?, kubectl(&after)?];

    table.add("floor", floor);
    table.add("streamfleet apply", ours);
    table.add("kubectl apply --server-side", kubectl);
    table.print();
    Ok(())
}

fn hosts(plane: &ControlPlane) -> Hosts {
    let settings = format!("advanced_config:\n  kubeconfig: '{}'\n", plane.kubeconfig());
    Hosts { clusters: MOST, infra_type: "byok", settings }
}

fn kubectl(plane: &ControlPlane, file: &Path, objects: &[Value]) -> io::Result<Measured> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(file, list.to_string())?;
    let words = format!("apply --server-side --filename={}", file.display());
    let command = plane.kubectl_command(ControlPlane::KUBECONFIG, &words);
    Measured::of_command(plane, command)
}
