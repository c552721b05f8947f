//! A disk that is full while there is work, then has space again.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::{ORDERS, SANDBOX, SERVE, brokers, units};
use crate::state_faults::namespace;
use crate::support::serve::Serve;
use crate::support::{Tree, copy, skipped};

fn fill(file: &Path) {
    let mut file = File::create(file).unwrap();
    for size in [64 * 1024, 1] {
        let full = loop {
            match file.write_all(&vec![0; size]) {
                Ok(()) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), ErrorKind::StorageFull, "{full}");
    }
}

#[test]
fn a_full_disk_ends_nothing_and_loses_nothing_and_all_goes_on_when_there_is_room_again() {
    let Some(namespace) = namespace() else {
        skipped("a small file system can't be mounted here");
        return;
    };
    let tree = Tree::example("quickstart");
    fs::create_dir(tree.beside("state")).unwrap();
    let script = "mount -t tmpfs -o size=16m,mode=700 tmpfs state && exec \"$@\"";
    let mut serve =
        Serve::start_through(&tree, &[namespace, &["bash", "-c", script, "bash"]].concat(), SERVE);
    serve.has_made(&["cluster acme/orders", "cluster acme/sandbox"]);
    // The path in the process's mount namespace.
    let state = PathBuf::from(format!("/proc/{}/root", serve.id()));
    let state = state.join(tree.beside("state").strip_prefix("/").unwrap());
    let registry = fs::read_to_string(state.join("registry.jsonl")).unwrap();
    fill(&state.join("fill"));

    tree.write(ORDERS, units(&tree, 2));
    let another = tree.read(SANDBOX).replace("identifier: sandbox", "identifier: another");
    tree.write("acme/clusters/another.yaml", another);
    serve.says(&["ERROR", "No space left on device", "free some space"]);
    // It is logged once, not repeatedly.
    let rounds = serve.rounds();
    serve.signal("HUP");
    serve.until("there was another round", || (serve.rounds() > rounds).then_some(()));
    assert_eq!(serve.end(), None);
    assert!(!serve.log().contains("verb=delete") && !serve.log().contains("panicked"), "{}", serve.log());
    let now = fs::read_to_string(state.join("registry.jsonl")).unwrap();
    assert!(now.starts_with(&registry), "{now}");

    fs::remove_file(state.join("fill")).unwrap();
    brokers(&serve, 6);
    serve.has_made(&["cluster acme/another"]);
    copy(&state, &tree.beside("after"));
    assert_eq!(serve.stop(), Some(0));
    tree.run("plan tree --state-dir after --output-dir output").expect(0).says(&["Nothing to do"]);
}

#[test]
fn a_process_starts_on_a_full_disk_says_so_where_it_is_asked_and_goes_on_when_there_is_room() {
    let Some(namespace) = namespace() else {
        skipped("a small file system can't be mounted here");
        return;
    };
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes --state-dir before --output-dir output").expect(0);
    fs::create_dir(tree.beside("state")).unwrap();
    tree.write(ORDERS, units(&tree, 2));
    let script = "mount -t tmpfs -o size=16m,mode=700 tmpfs state && cp -a before/. state && \
                  dd if=/dev/zero of=state/fill bs=1K status=none 2>/dev/null; exec \"$@\"";
    let mut serve =
        Serve::start_through(&tree, &[namespace, &["bash", "-c", script, "bash"]].concat(), SERVE);
    serve.says(&["ERROR", "No space left on device", "free some space"]);
    assert_eq!(serve.end(), None);
    // The socket is visible only in the process's mount namespace.
    let inside = format!("/proc/{}/root{}", serve.id(), tree.beside("state").display());
    let status = format!("status tree --state-dir {inside} --output-dir output");
    serve.until("its status says so", || {
        tree.run(&status).out.contains("No space left on device").then_some(())
    });
    // Records written before any work on a fleet.
    tree.edit("organizations.yaml", "Acme Corporation", "Acme Inc.");
    serve.until("its status says that nothing is done", || {
        let said = tree.run(&status).err;
        let why =
            ["no command is accepted while the audit trail can't be written: ", "No space left on device"];
        why.iter().all(|why| said.contains(why)).then_some(())
    });

    fs::remove_file(PathBuf::from(inside).join("fill")).unwrap();
    brokers(&serve, 6);
    assert!(!serve.log().contains("panicked"), "{}", serve.log());
    assert_eq!(serve.stop(), Some(0));
}
