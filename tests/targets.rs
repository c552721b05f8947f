//! Targets and states that were damaged, lost, restored or moved.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Tree, approval_id};

const FOLDER: &str = ".streamfleet/output/acme/main";
const INVENTORY: &str = ".streamfleet/output/acme/main/.streamfleet-inventory.json";

fn unprotected() -> Tree {
    let tree = Tree::example("two-organizations");
    let specs: Vec<String> = crate::support::files(&tree.path())
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.contains("/fleets/") || path.contains("/clusters/"))
        .collect();
    for path in specs {
        let text = tree.read(&path).replace("deletion_protection: true\n", "");
        let text = if text.contains("deletion_protection") {
            text
        } else {
            text.replacen("identifier:", "deletion_protection: false\nidentifier:", 1)
        };
        tree.write(&path, text);
    }
    tree.run("apply tree --yes").expect(0);
    tree
}

#[test]
fn a_target_that_cant_be_read_is_never_fine() {
    type Harm<'a> = &'a dyn Fn(&Tree);
    let harms: [(Harm, &str); 4] = [
        (&|tree| tree.write(INVENTORY, "{"), "it is damaged"),
        (
            &|tree| {
                tree.remove(INVENTORY);
                fs::create_dir(tree.path().join(INVENTORY)).unwrap();
            },
            "it is a link or not a file",
        ),
        (
            &|tree| {
                tree.remove(INVENTORY);
                symlink("/dev/null", tree.path().join(INVENTORY)).unwrap();
            },
            "it is a link or not a file",
        ),
        (
            &|tree| {
                let folder = tree.path().join(FOLDER);
                fs::rename(&folder, tree.beside("moved")).unwrap();
                symlink(tree.beside("moved"), folder).unwrap();
            },
            "cannot use `acme/main`: it is a link or not a folder",
        ),
    ];
    for (harm, reason) in harms {
        let tree = unprotected();
        harm(&tree);
        tree.run("plan tree").expect(3).says(&[
            "fleet acme/main   directory, Unreachable",
            "the target can't be reached: cannot ",
            reason,
            "if everything on it is gone for good: streamfleet forget acme/main tree",
            "1 waiting",
        ]);
        tree.run("apply tree --yes").expect(3);
        let status = tree.run("status tree").expect(0).out;
        let lines: Vec<&str> = status.lines().filter(|line| line.contains("acme/")).collect();
        assert!(lines.len() > 1, "{status}");
        assert!(lines.iter().all(|line| line.contains("Unreachable")), "{status}");
        let (fleet, clusters) = lines.split_first().unwrap();
        assert!(fleet.contains(reason), "{status}");
        assert!(clusters.iter().all(|line| line.ends_with("  fleet acme/main can't be reached")), "{status}");
    }
}

#[test]
fn a_missing_inventory_is_told_with_what_leads_out() {
    let told = [
        "the target can't be reached: cannot read the inventory `acme/main/.streamfleet-inventory.json`: it is missing, \
         though the state records that streamfleet wrote 7 files there; restore the inventory from a backup or from version \
         control; or stop what applies the fleet's folder, move all of the folder's content away and apply again",
        "1 waiting",
    ];
    let tree = unprotected();
    let (before, inventory) = (tree.output(), tree.read(INVENTORY));
    tree.remove(INVENTORY);
    tree.run("plan tree").expect(3).says(&told).says_nothing_of(&["forget", "isn't managed by"]);
    tree.run("apply tree --yes").expect(3).says(&told);
    tree.write(INVENTORY, inventory);
    assert!(tree.output() == before, "something was written");
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);

    tree.remove(INVENTORY);
    fs::rename(tree.path().join(FOLDER), tree.beside("moved")).unwrap();
    tree.run("apply tree --yes").expect(0);
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
    let paths = |files: Vec<(String, Vec<u8>)>| files.into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    assert_eq!(paths(tree.output()), paths(before));
}

#[test]
fn a_fleet_whose_file_and_cache_are_gone_is_deleted_all_the_same() {
    let tree = unprotected();
    fs::remove_dir_all(tree.path().join(".streamfleet/state/cache-v1")).unwrap();
    tree.remove("acme/clusters/events.yaml");
    tree.remove("acme/fleets/main.yaml");
    let plan = tree.run("plan tree").expect(3).says(&["- Kafka kafka-acme--events/events"]);
    tree.run(&format!("approve {} tree", approval_id(&plan.out))).expect(0);
    tree.run("apply tree --yes").expect(3);
    assert!(!tree.output().iter().any(|(path, _)| path.contains("acme/main/kafka-acme--events/")));
}

#[test]
fn a_restored_state_doesnt_override_newer_protection_on_the_target() {
    let tree = unprotected();
    let state = tree.path().join(".streamfleet/state");
    crate::support::copy(&state, &tree.beside("backup"));
    let spec = "acme/clusters/events.yaml";
    tree.edit(spec, "deletion_protection: false", "deletion_protection: true");
    tree.run("apply tree --yes").expect(0);
    fs::remove_dir_all(&state).unwrap();
    crate::support::copy(&tree.beside("backup"), &state);
    let text = tree.read(spec);
    tree.remove(spec);
    for _ in 0..2 {
        tree.run("plan tree").expect(3).says(&["! cluster events     blocked: deletion protection is on"]);
        tree.run("apply tree --yes").expect(3);
    }
    tree.write(spec, text.replace("deletion_protection: true", "deletion_protection: false"));
    tree.run("apply tree --yes").expect(0);
    tree.remove(spec);
    tree.run("plan tree").expect(2).says(&["- cluster events"]);
}

#[test]
fn a_fleet_that_holds_a_kept_namespace_stays_until_it_is_removed_by_hand() {
    let tree = unprotected();
    tree.remove("acme/clusters/events.yaml");
    tree.run("apply tree --yes").expect(0);
    tree.remove("acme/fleets/main.yaml");
    let plan = tree.run("plan tree").expect(3);
    plan.says(&[
        "! fleet main         blocked: Namespace kafka-acme--events is kept for its data",
        "to delete it: remove Namespace kafka-acme--events from the target by hand once you no longer need its data",
    ]);
    tree.run("apply tree --yes").expect(3);
    let kept = tree.output().into_iter().map(|(path, _)| path);
    let kept =
        kept.filter(|path| path.starts_with("acme/") && path.contains("namespace-")).collect::<Vec<_>>();
    let [kept] = kept.as_slice() else { panic!("{kept:?}") };
    tree.remove(&format!(".streamfleet/output/{kept}"));
    tree.run("apply tree --yes").expect(0);
    assert!(tree.output().iter().all(|(path, _)| !path.starts_with("acme/")));
}

#[test]
fn a_plan_is_saved_over_nothing_but_a_plan() {
    let tree = unprotected();
    let spec = "acme/clusters/events.yaml";
    for (file, why) in [
        (spec, "another file is there, which is not a saved plan"),
        (".streamfleet/state/registry.jsonl", "streamfleet keeps its own files there"),
        (".streamfleet/new.json", "streamfleet keeps its own files there"),
    ] {
        let before = fs::read(tree.path().join(file)).ok();
        let refusal = format!("cannot save the plan to `tree/{file}`: {why}");
        tree.run(&format!("plan tree --out tree/{file}")).expect(1).says(&[&refusal]);
        assert_eq!(fs::read(tree.path().join(file)).ok(), before);
    }
    tree.run("plan tree --out plan.json").expect(0);
    tree.run("plan tree --out plan.json").expect(0);
}

#[test]
fn a_dry_run_without_the_registry_is_refused_and_changes_nothing() {
    let tree = unprotected();
    tree.remove(".streamfleet/state/registry.jsonl");
    let before: Vec<String> = crate::support::files(&tree.path()).into_iter().map(|(path, _)| path).collect();
    tree.run("plan tree")
        .expect(1)
        .says(&["registry.jsonl` is missing", "take it from a backup: tar -xf FILE -C "]);
    let after: Vec<String> = crate::support::files(&tree.path()).into_iter().map(|(path, _)| path).collect();
    assert_eq!(after, before);
}

#[test]
fn the_log_says_what_is_done_and_how_when_asked() {
    let tree = Tree::example("two-organizations");
    let quiet = tree.run("plan tree").expect(2);
    assert!(!quiet.err.contains("planned"), "{}", quiet.err);
    tree.run("apply tree --yes -vv").expect(0).says(&[
        "planned plan=",
        "step fleet=acme/main resource=\"cluster acme/events\" verb=create object=\"Kafka",
        "done: create cluster acme/events fleet=\"acme/main\" resource=\"cluster acme/events\" verb=create",
    ]);
    let audit = tree.read(".streamfleet/state/audit.jsonl");
    assert!(audit.contains("created cluster acme/events"), "{audit}");
}

#[test]
fn two_installations_do_not_undo_each_others_work() {
    let (one, two) = (unprotected(), Tree::example("two-organizations"));
    let before = one.output();
    let output = one.path().join(".streamfleet/output");
    let words = format!("apply tree --yes --output-dir {}", output.display());
    two.run(&words).expect(3).says(&[
        "another installation of streamfleet writes to this folder",
        "use that installation's state with `state_dir`, or set another folder with `output_dir`; if that state is lost, \
         move what is in its place away and restore that installation's state: streamfleet restore FILE TREE; without a \
         backup, remove the line `installation` from the inventory to take over the folder with its ids and protection",
    ]);
    assert_eq!(one.output(), before);
    one.run("plan tree").expect(0);
}

#[test]
fn a_folder_in_a_manifests_place_is_named_and_the_rest_goes_on() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    let pool = ".streamfleet/output/acme/eu/kafka-acme--orders/kafkanodepool-broker.yaml";
    tree.remove(pool);
    fs::create_dir(tree.path().join(pool)).unwrap();
    tree.run("plan tree")
        .expect(3)
        .says(&[
            "KafkaNodePool kafka-acme--orders/broker can't be written: `kafka-acme--orders/kafkanodepool-broker.yaml` in \
             the fleet's folder is a link or of the wrong type",
            "to continue: move `kafka-acme--orders/kafkanodepool-broker.yaml` away; a file or folder of streamfleet's \
             belongs there",
        ])
        .says_nothing_of(&["isn't ours"]);
    tree.run("status tree").expect(0).says(&[
        "cluster acme/orders   Degraded      KafkaNodePool kafka-acme--orders/broker can't be written",
    ]);
    fs::remove_dir(tree.path().join(pool)).unwrap();
    tree.run("apply tree --yes").expect(0);
    assert!(tree.path().join(pool).is_file());
}

#[test]
fn an_older_output_folder_that_was_put_back_is_told_as_drift() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    let (output, older) = (tree.path().join(".streamfleet/output"), tree.beside("older"));
    crate::support::copy(&output, &older);
    tree.edit("acme/clusters/orders.yaml", "kafka_units: 1", "kafka_units: 2");
    tree.run("apply tree --yes").expect(0);
    let newer = tree.output();
    fs::remove_dir_all(&output).unwrap();
    crate::support::copy(&older, &output);
    tree.run("plan tree")
        .expect(2)
        .says(&["because the target differs from what was applied"])
        .says_nothing_of(&["renders it differently"]);
    tree.run("apply tree --yes").expect(0);
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&tree.output()), names(&newer));
}
