//! Kills the real binary while it applies one edit after another.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::interrupted::{output, replace_certificate};
use crate::pipeline::{Surroundings, plan_round};
use crate::support::{Tree, copy, memory_folder, one_in};

const FLEET: &str = "acme/fleets/eu.yaml";
const ORDERS: &str = "acme/clusters/orders.yaml";
const SANDBOX: &str = "acme/clusters/sandbox.yaml";
/// All kills, and the usual part of them. Both end where the cycle of edits has every cluster.
const KILLS: [u32; 2] = [202, 52];

const KILL: i32 = 9;

/// One of a cycle of edits. They return to the start, except for values that only grow.
fn edit(tree: &Tree, number: u32, kills: u32, sandbox: &str, fleet: &str) {
    match number % 6 {
        0 => tree.remove(SANDBOX),
        1 => tree.write(FLEET, tree.read(FLEET).replace("max_tenants: 5", "max_tenants: 6")),
        2 => replace_certificate(tree),
        3 => tree.write(SANDBOX, sandbox),
        4 => tree.write(FLEET, fleet),
        _ => tree.write(ORDERS, tree.read(ORDERS).replace("value: checkout", "value: checkout2")),
    }
    if number == kills / 2 {
        tree.write("acme/clusters/payments.yaml", tree.read(ORDERS).replace("orders", "payments"));
    }
}

/// How long a run may live: fractions of the whole spread evenly and never equal (multiples of the golden
/// ratio), so that the kills hit everything from the start of the process to its end.
fn life(number: u32, whole: Duration) -> Duration {
    whole.mul_f64((f64::from(number) * 0.618_033_988_749_895).fract())
}

#[tokio::test]
async fn many_kills_later_one_clean_run_ends_where_no_kill_would_have() {
    let tree = Tree::example("quickstart");
    let config = "[policy]\ncluster_deletions_per_hour = 1000\n";
    std::fs::write(tree.beside("config.toml"), config).unwrap();
    let apply = "apply tree --yes --config config.toml";
    // An installation with its id and keys, before the first apply.
    drop(plan_round(&tree, &Surroundings::default()).await);
    let fresh = memory_folder();
    copy(&tree.path().join(".streamfleet"), fresh.path());

    let start = Instant::now();
    tree.run(apply).expect(0);
    let mut whole = start.elapsed();
    let (sandbox, fleet) = (tree.read(SANDBOX), tree.read(FLEET));
    let mut killed = 0;
    let kills = KILLS[one_in(2) - 1];
    for number in 0..kills {
        edit(&tree, number, kills, &sandbox, &fleet);
        let mut child = tree
            .command(apply)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The only sleep of this test: a kill at any moment is what is tested, and no assertion depends on
        // how far the run gets.
        sleep(life(number, whole));
        child.kill().unwrap();
        let is_killed = child.wait().unwrap().signal() == Some(KILL);
        killed += u32::from(is_killed);
        // A run's duration depends on its work and on the machine's load.
        whole = whole.mul_f64(if is_killed { 1.05 } else { 0.9 });
    }
    assert!(killed > kills / 4, "only {killed} runs were killed before they ended");

    // A run that saw `payments` appear as `sandbox` disappeared took it for a rename. `sandbox` is back, and
    // a run has to see that.
    tree.run(apply);
    // A deleted and recreated cluster has another id, and how often that happens depends on the kills.
    tree.remove(SANDBOX);
    // The certificate of two clusters changes: with one disruption at a time that takes two runs.
    let runs = (1..=4).find(|_| {
        tree.run(apply);
        tree.run("plan tree --config config.toml").code == 0
    });
    assert!(
        runs.is_some_and(|runs| runs <= 2),
        "{runs:?} {}",
        tree.run("plan tree --config config.toml").out
    );
    let found = output(&tree);

    std::fs::remove_dir_all(tree.path().join(".streamfleet")).unwrap();
    copy(fresh.path(), &tree.path().join(".streamfleet"));
    tree.run(apply).expect(0);
    let expected = output(&tree);
    let paths = |files: &[(String, String)]| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&found), paths(&expected));
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}
