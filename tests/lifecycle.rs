//! What people do to an applied tree, and the mistakes they make.

use crate::support::{Tree, approval_id, stable};

const ORDERS: &str = "acme/clusters/orders.yaml";
const SANDBOX: &str = "acme/clusters/sandbox.yaml";

fn applied() -> Tree {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    tree
}

#[test]
fn more_units_change_only_what_follows_from_them() {
    let tree = applied();
    let before = tree.output();
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    let plan = tree.run("plan tree").expect(2);
    insta::assert_snapshot!("more_units", stable(&plan.out));
    tree.run("apply tree --yes").expect(0);
    let changed: Vec<String> = tree
        .output()
        .into_iter()
        .filter(|file| !before.contains(file))
        .map(|(path, _)| path)
        .filter(|path| !path.contains("inventory"))
        .collect();
    insta::assert_snapshot!("more_units_files", changed.join("\n"));
    tree.run("plan tree").expect(0);
}

#[test]
fn a_protected_cluster_whose_file_is_removed_stays_and_the_plan_says_how_to_delete_it() {
    let tree = applied();
    let before = tree.output();
    tree.remove(ORDERS);
    tree.run("plan tree").expect(3).says(&["deletion_protection", "deletion_protection: false"]);
    tree.run("apply tree --yes").expect(3);
    assert_eq!(tree.output(), before);
}

#[test]
fn a_cluster_is_deleted_when_its_protection_was_turned_off_and_applied_before() {
    let tree = applied();
    tree.remove(SANDBOX);
    let plan = tree.run("plan tree").expect(2);
    insta::assert_snapshot!("delete_with_data", stable(&plan.out));
    tree.run("apply tree --yes").expect(0);
    assert!(tree.output().iter().all(|(path, _)| !path.contains("sandbox")), "{:?}", paths(&tree));
    tree.run("plan tree").expect(0);
}

#[test]
fn turning_protection_off_and_removing_the_file_at_once_deletes_nothing() {
    let tree = applied();
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 1\ndeletion_protection: false");
    tree.remove(ORDERS);
    tree.run("apply tree --yes").expect(3).says(&["deletion_protection"]);
    assert!(tree.output().iter().any(|(path, _)| path.contains("orders")));
}

#[test]
fn data_that_is_retained_keeps_its_namespace() {
    let tree = applied();
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 1\ndeletion_protection: false");
    tree.run("apply tree --yes").expect(0);
    tree.remove(ORDERS);
    tree.run("apply tree --yes").expect(0);
    let left: Vec<String> = paths(&tree).into_iter().filter(|path| path.contains("orders")).collect();
    assert_eq!(left, ["acme/eu/_cluster/namespace-kafka-acme--orders.yaml"]);
    tree.run("plan tree").expect(0);
}

#[test]
fn a_broken_file_deletes_nothing_and_the_rest_proceeds() {
    let tree = applied();
    tree.write(SANDBOX, "apiVersion: streamfleet/v1\nkind: Cluster\n  identifier: [sandbox\n");
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    tree.run("plan tree").expect(1).says(&["acme/clusters/sandbox.yaml:3", "kafka_units 1 → 2"]);
    tree.run("apply tree --yes").expect(1);
    assert!(tree.output().iter().any(|(path, _)| path.contains("sandbox")));
    let pool = tree.output().into_iter().find(|(path, _)| path.ends_with("orders/kafkanodepool-broker.yaml"));
    assert!(String::from_utf8(pool.unwrap().1).unwrap().contains("replicas: 6"));
}

#[test]
fn a_cluster_with_a_mistake_stays_as_it_was() {
    let tree = applied();
    let before = tree.output();
    tree.edit(ORDERS, "kafka_units: 1", "kafka_unit: 2");
    tree.run("apply tree --yes").expect(1).says(&["unknown key `kafka_unit`", "did you mean `kafka_units`?"]);
    assert_eq!(tree.output(), before);
}

#[test]
fn a_rename_in_place_is_refused() {
    let tree = applied();
    let before = tree.output();
    tree.edit(SANDBOX, "identifier: sandbox", "identifier: playground");
    tree.run("apply tree --yes").expect(1).says(&["sandbox", "playground"]);
    assert_eq!(tree.output(), before);
}

#[test]
fn an_emptied_tree_deletes_nothing() {
    let tree = applied();
    let before = tree.output();
    for file in [SANDBOX, ORDERS, "acme/fleets/eu.yaml", "organizations.yaml"] {
        tree.remove(file);
    }
    tree.remove("acme/base-domains/kafka.acme.example.com.yaml");
    tree.run("plan tree").expect(3).says(&["approval"]);
    tree.run("apply tree --yes").expect(3);
    assert_eq!(tree.output(), before);
}

#[test]
fn an_emptied_file_deletes_its_cluster_only_when_approved() {
    let tree = applied();
    let before = tree.output();
    tree.write(SANDBOX, "");
    let plan = tree.run("plan tree").expect(3).says(&["acme/clusters/sandbox.yaml was emptied"]);
    tree.run("apply tree --yes").expect(3);
    assert_eq!(tree.output(), before);

    let id = approval_id(&plan.out);
    tree.run("approve 000000000000 tree").expect(1).says(&["no step of the current plan waits for approval"]);
    tree.run(&format!("approve {id} tree")).expect(0).says(&["Approved", "cluster acme/sandbox"]);
    tree.run("apply tree --yes").expect(0);
    assert!(tree.output().iter().all(|(path, _)| !path.contains("sandbox")));
}

#[test]
fn a_second_deletion_within_the_hour_waits_for_approval() {
    let tree = Tree::example("two-organizations");
    for name in ["one", "two"] {
        tree.write(
            &format!("acme/clusters/{name}.yaml"),
            format!(
                "apiVersion: streamfleet/v1\nkind: Cluster\norganization: acme\ninfrastructure: main\nidentifier: \
                    {name}\ncluster_type: kafka\ntenancy_mode: Shared\nkafka_units: 1\ndeletion_protection: \
                    false\nadvanced_config:\n  version: 4.3.1\n  profile: dev\n"
            ),
        );
    }
    tree.run("apply tree --yes").expect(0);
    tree.remove("acme/clusters/one.yaml");
    tree.run("apply tree --yes").expect(0);
    tree.remove("acme/clusters/two.yaml");
    let plan = tree.run("plan tree").expect(3).says(&["approval"]);
    tree.run("apply tree --yes").expect(3);
    assert!(tree.output().iter().any(|(path, _)| path.contains("acme--two")));
    tree.run(&format!("approve {} tree", approval_id(&plan.out))).expect(0);
    tree.run("apply tree --yes").expect(0);
    assert!(!paths(&tree).iter().any(|path| path.contains("/kafka-two")));
}

#[test]
fn hand_edits_are_drift_and_undone() {
    let tree = applied();
    let before = tree.output();
    let pool = ".streamfleet/output/acme/eu/kafka-acme--orders/kafkanodepool-broker.yaml";
    tree.edit(pool, "replicas: 3", "replicas: 1");
    tree.run("plan tree").expect(2).says(&[
        "because the target differs from what was applied",
        "replicas: 1",
        "replicas: 3",
    ]);
    tree.run("apply tree --yes").expect(0);
    assert_eq!(tree.output(), before);
}

#[test]
fn a_file_of_somebody_else_is_left_alone() {
    let tree = Tree::example("quickstart");
    let namespace = ".streamfleet/output/acme/eu/_cluster/namespace-kafka-acme--orders.yaml";
    tree.write(namespace, "mine: true\n");
    tree.run("apply tree --yes").expect(3).says(&["isn't managed by streamfleet"]);
    assert_eq!(tree.read(namespace), "mine: true\n");
}

#[test]
fn a_lost_cache_changes_nothing() {
    let tree = applied();
    std::fs::remove_dir_all(tree.path().join(".streamfleet/state/cache-v1")).unwrap();
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
    tree.remove(ORDERS);
    tree.run("plan tree").expect(3).says(&["deletion_protection"]);
}

#[test]
fn a_saved_plan_is_applied_as_it_was_seen_or_not_at_all() {
    let tree = applied();
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    tree.run("plan tree --out plan.json").expect(2);
    tree.edit(ORDERS, "kafka_units: 2", "kafka_units: 3");
    tree.run("apply plan.json --yes").expect(1).says(&["is out of date", "spec"]);
    tree.edit(ORDERS, "kafka_units: 3", "kafka_units: 2");
    tree.run("apply plan.json --yes").expect(0);
    tree.run("apply plan.json --yes").expect(1).says(&["is out of date"]);
    tree.run("plan tree").expect(0);
}

#[test]
fn over_capacity_waits_and_the_rest_proceeds() {
    let tree = applied();
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 12");
    tree.edit(SANDBOX, "version: 4.3.1", "version: 4.3.1\n  number_of_zones: 1");
    tree.run("plan tree").expect(3).says(&[
        "fleet acme/eu has max_kafka_units 10: 2 are in use and this adds 11",
        "raise `max_kafka_units`",
    ]);
}

#[test]
fn a_fleet_is_forgotten_only_by_name_and_only_when_its_target_is_gone() {
    let tree = applied();
    let before = tree.output();
    tree.run("forget acme/us tree --yes").expect(1).says(&["fleet acme/us is not recorded", "acme/eu"]);
    tree.run("forget acme/eu tree --yes").expect(1).says(&[
        "cannot forget fleet acme/eu: its target still exists, and `",
        ".streamfleet-inventory.json` lists streamfleet's objects",
        "to delete its clusters, remove their specs and apply; to leave the objects there, move the fleet's folder \
            away, then forget the fleet",
    ]);
    assert_eq!(tree.output(), before);
    tree.run("plan tree").expect(0);

    std::fs::rename(tree.path().join(".streamfleet/output/acme"), tree.beside("away")).unwrap();
    tree.run("forget acme/eu tree").expect(64).says(&["--yes"]);
    let forgot = tree.run("forget acme/eu tree --yes").expect(0);
    forgot.says(&["Forgot cluster acme/orders.", "Forgot cluster acme/sandbox.", "Forgot fleet acme/eu."]);
    tree.run("plan tree").expect(2).says(&["+ fleet eu", "+ cluster orders", "3 to create"]);
    tree.remove(ORDERS);
    tree.remove(SANDBOX);
    tree.remove("acme/fleets/eu.yaml");
    let plan = tree.run("plan tree").expect(0).out;
    assert!(plan.contains("Nothing to do") && !plan.contains("acme/eu"), "{plan}");
}

fn paths(tree: &Tree) -> Vec<String> {
    tree.output().into_iter().map(|(path, _)| path).filter(|path| !path.contains("inventory")).collect()
}

#[test]
fn an_upgrade_on_a_fleet_of_files_ends_when_a_person_says_so() {
    let tree = Tree::example("quickstart");
    tree.edit(SANDBOX, "version: 4.3.1", "version: 4.2.1");
    tree.run("apply tree --yes").expect(0);
    tree.edit(SANDBOX, "version: 4.2.1", "version: 4.3.1");
    tree.run("plan tree").expect(2).says(&["then metadata 4.2-IV1 → 4.3-IV0, which can't be undone"]);
    tree.run("apply tree --yes").expect(0);
    let is_raised = || {
        tree.output().iter().any(|(path, bytes)| {
            path.ends_with("kafka-sandbox.yaml")
                && String::from_utf8_lossy(bytes).contains("metadataVersion: 4.3-IV0")
        })
    };
    let plan = tree.run("plan tree").expect(3).says(&["streamfleet can't see whether all brokers run"]);
    tree.run("apply tree --yes").expect(3);
    assert!(!is_raised());
    tree.run(&format!("approve {} tree", approval_id(&plan.out))).expect(0);
    tree.run("apply tree --yes").expect(0);
    assert!(is_raised());
    tree.run("plan tree").expect(0);
    tree.edit(SANDBOX, "version: 4.3.1", "version: 4.2.1");
    tree.run("apply tree --yes").says(&["metadata version would go back from 4.3-IV0 to 4.2-IV1"]);
}

/// A deletion is counted once, though the cluster is rendered as long as it may be a mistake.
#[test]
fn a_plan_tells_the_sizes_of_clusters_that_go() {
    let tree = Tree::example("quickstart");
    let orders = tree.read("acme/clusters/orders.yaml") + "deletion_protection: false\n";
    tree.write("acme/clusters/orders.yaml", orders);
    tree.run("apply tree --yes").expect(0);
    tree.remove("acme/clusters/orders.yaml");
    tree.remove("acme/clusters/sandbox.yaml");
    let waits = tree.run("plan tree").expect(3).says_nothing_of(&["brokers and"]).out;
    tree.run(&format!("approve {} tree", approval_id(&waits))).expect(0);
    tree.run("plan tree").expect(2).says(&["4 → 0 brokers and 3 → 0 controllers"]);
}
