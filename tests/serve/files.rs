//! Saved files are noticed at once, however they are saved.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;

use super::{ORDERS, SANDBOX, SERVE, brokers, pool, units};
use crate::support::Tree;
use crate::support::serve::Serve;

#[test]
fn every_way_to_save_a_file_is_seen() {
    let tree = Tree::example("quickstart");
    let serve = Serve::start(&tree, SERVE);
    brokers(&serve, 3);
    let place = tree.path().join(ORDERS);
    let folder = place.parent().unwrap();

    // In place.
    fs::write(&place, units(&tree, 2)).unwrap();
    brokers(&serve, 6);
    // Written beside, and renamed over it.
    fs::write(folder.join(".orders.yaml.swp"), units(&tree, 3)).unwrap();
    fs::rename(folder.join(".orders.yaml.swp"), &place).unwrap();
    brokers(&serve, 9);
    // With the old version kept as a copy.
    let text = units(&tree, 4);
    fs::rename(&place, folder.join("orders.yaml~")).unwrap();
    fs::write(&place, text).unwrap();
    brokers(&serve, 12);
    // By a link to another file of the same top folder.
    fs::write(folder.join("orders.txt"), units(&tree, 5)).unwrap();
    symlink("orders.txt", folder.join("link")).unwrap();
    fs::rename(folder.join("link"), &place).unwrap();
    brokers(&serve, 15);
    fs::write(folder.join("orders.txt"), units(&tree, 6)).unwrap();
    brokers(&serve, 18);
    // A renamed folder, and files in new folders.
    let text = units(&tree, 7);
    fs::rename(folder, tree.path().join("acme/kafka")).unwrap();
    fs::create_dir_all(tree.path().join("acme/new/deeper")).unwrap();
    fs::remove_file(tree.path().join("acme/kafka/orders.yaml")).unwrap();
    fs::write(tree.path().join("acme/new/deeper/orders.yaml"), text).unwrap();
    brokers(&serve, 21);
    let moved = tree.path().join("acme/new/deeper/orders.yaml");
    let text = fs::read_to_string(&moved).unwrap();
    fs::write(&moved, text.replace("kafka_units: 7", "kafka_units: 8")).unwrap();
    brokers(&serve, 24);
    assert!(!serve.log().contains("verb=delete"), "{}", serve.log());
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_volume_of_kubernetes_is_swapped_as_a_whole() {
    let tree = Tree::example("quickstart");
    let folder = tree.path().join("acme/clusters");
    let volume = |name: &str, units_: u32| {
        fs::create_dir(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("orders.yaml"), units(&tree, units_)).unwrap();
        symlink(name, folder.join("..data_tmp")).unwrap();
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
    };
    volume("..2026_11_21_12_00_00.1", 1);
    fs::remove_file(folder.join("orders.yaml")).unwrap();
    symlink("..data/orders.yaml", folder.join("orders.yaml")).unwrap();
    let serve = Serve::start(&tree, SERVE);
    brokers(&serve, 3);
    volume("..2026_11_21_12_05_00.2", 2);
    fs::remove_dir_all(folder.join("..2026_11_21_12_00_00.1")).unwrap();
    brokers(&serve, 6);
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_tree_that_goes_away_and_comes_back_changes_nothing_and_is_watched_again() {
    let tree = Tree::example("quickstart");
    let serve = Serve::start(&tree, SERVE);
    brokers(&serve, 3);
    serve.says(&["done", "cluster acme/sandbox"]);
    fs::rename(tree.path(), tree.beside("away")).unwrap();
    serve.says(&["cannot read the specs; no changes until they can be read"]);
    fs::rename(tree.beside("away"), tree.path()).unwrap();
    tree.write(ORDERS, units(&tree, 2));
    brokers(&serve, 6);
    // The restored folder's own watch reports it.
    tree.write(ORDERS, units(&tree, 3));
    brokers(&serve, 9);
    assert!(!serve.log().contains("verb=delete"), "{}", serve.log());
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_file_that_somebody_still_writes_is_left_alone_until_it_is_whole() {
    let tree = Tree::example("quickstart");
    let serve = Serve::start(&tree, SERVE);
    brokers(&serve, 3);
    let text = units(&tree, 2);
    let (begin, end) = text.split_at(text.trim_end().rfind('\n').unwrap());
    // The part written so far would be a spec by itself.
    let mut file = fs::File::create(tree.path().join(ORDERS)).unwrap();
    file.write_all(begin.as_bytes()).unwrap();
    serve.says(&["ERROR", "this file is still being written"]);
    serve.says(&[
        "blocked: its spec may be in acme/clusters/orders.yaml:1, which can't be read",
        "cluster acme/orders",
    ]);
    assert!(pool(&tree).contains("replicas: 3\n"));
    file.write_all(end.as_bytes()).unwrap();
    drop(file);
    brokers(&serve, 6);
    let log = serve.log();
    assert_eq!(log.matches("decided to update cluster acme/orders").count(), 1, "{log}");
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn many_files_at_once_are_all_seen() {
    let tree = Tree::example("quickstart");
    let serve = Serve::start(&tree, SERVE);
    brokers(&serve, 3);
    for number in 0..200 {
        let text = format!("apiVersion: streamfleet/v1\nkind: Organization\nidentifier: many-{number}\n");
        tree.write(&format!("many/{}/{number}.yaml", number % 10), text);
        tree.write(&format!("many-{number}.yaml"), "");
        tree.remove(&format!("many-{number}.yaml"));
    }
    for number in 0..200 {
        let name = format!("{number}.yaml");
        fs::rename(
            tree.path().join(format!("many/{}", number % 10)).join(&name),
            tree.path().join(format!("many-{name}")),
        )
        .unwrap();
    }
    for number in [0, 7, 99, 100, 199] {
        serve.says(&["done", &format!("resource=\"organization many-{number}\" ")]);
    }
    assert_eq!(serve.stop(), Some(0));
}

/// Runs in a user namespace of its own, which has limits of its own.
#[test]
fn where_no_more_may_be_watched_the_files_are_looked_at_again_and_again_which_is_told_once() {
    let tree = Tree::example("quickstart");
    let Some(serve) = Serve::start_limited(&tree, SERVE, "user/max_inotify_watches", 2) else { return };
    brokers(&serve, 3);
    for more in 2..5 {
        tree.write(ORDERS, units(&tree, more));
        brokers(&serve, more * 3);
    }
    let told =
        "this user may not have more inotify watches, so streamfleet checks the specs once a second instead";
    let log = serve.log();
    assert_eq!(log.matches(told).count(), 1, "{log}");
    assert!(log.contains("raise it: sysctl fs.inotify.max_user_watches"), "{log}");
    drop(serve);

    let tree = Tree::example("quickstart");
    let Some(serve) = Serve::start_limited(&tree, SERVE, "user/max_inotify_instances", 0) else { return };
    brokers(&serve, 3);
    tree.write(ORDERS, units(&tree, 2));
    brokers(&serve, 6);
    serve.says(&["this user may not have more inotify instances", "max_user_instances"]);
    assert!(pool(&tree).contains("replicas: 6\n"));
}

#[test]
fn what_there_is_at_first_is_told_and_what_is_mended() {
    let tree = Tree::example("quickstart");
    let serve = Serve::start(&tree, SERVE);
    serve.says(&[
        "read the specs in ",
        "/tree. 0 to change, 5 to create, 0 to delete, 0 waiting",
        "fleets=1",
        "clusters=2",
    ]);
    brokers(&serve, 3);
    serve.says(&["done", "cluster acme/sandbox"]);
    let text = units(&tree, 1);
    tree.write(ORDERS, text.replace("kafka_units", "kafka_unitz"));
    serve.says(&["cluster acme/orders blocked: its spec has 2 problems; it stays as it was last applied"]);
    tree.write(ORDERS, text);
    serve.says(&["cluster acme/orders no longer waits: nothing to do"]);
    assert_eq!(serve.stop(), Some(0));
    let events = "events tree --state-dir state --output-dir output --resource acme/orders";
    tree.run(events).expect(0).says(&[
        "waits    cluster acme/orders unchanged on acme/eu: blocked: its spec has 2 problems",
        "done     cluster acme/orders no longer waits on acme/eu: nothing to do",
    ]);

    let serve = Serve::start(&tree, SERVE);
    serve.says(&["/tree. Nothing to do: 5 resources match their specs"]);
    assert_eq!(serve.stop(), Some(0));
    fs::create_dir(tree.beside("empty")).unwrap();
    let serve = Serve::start(&tree, "serve --specs empty --state-dir other --output-dir elsewhere");
    serve.says(&["no specs in ", "/empty", "set the folder of the specs with `--specs`"]);
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_file_that_was_removed_can_be_put_back_before_its_cluster_goes() {
    let tree = Tree::example("quickstart");
    let serve = Serve::start(&tree, SERVE);
    serve.has_made(&["cluster acme/orders", "cluster acme/sandbox"]);
    tree.remove(SANDBOX);
    serve.says(&["cluster acme/sandbox", "spec file missing"]);
    let page = tree.run("why sandbox tree --state-dir state --output-dir output").expect(0).out;
    // The times, of which only the moment isn't known.
    let words = |line: &str| -> String {
        let of = |word: &str| {
            if word.ends_with('Z') && word.contains('T') { "…".to_owned() } else { word.to_owned() }
        };
        line.split_whitespace().map(of).collect::<Vec<_>>().join(" ")
    };
    let lines: Vec<String> = page.lines().map(words).collect();
    for expected in [
        "spec spec file missing",
        "plan would delete it",
        "waiting: spec file missing; counts as removed at … unless it returns",
        "next to keep it: restore its spec file; otherwise it is deleted at …",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected}\n{page}");
    }
    assert_eq!(serve.stop(), Some(0));
}
