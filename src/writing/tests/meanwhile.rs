//! Changes between a plan and a call: files are saved, and planned changes are applied.

use super::*;
use crate::state::State;

const LEDGER: &str = "acme/clusters/by-hand.yaml";

fn ledger() -> String {
    ORDERS.replace("identifier: orders", "identifier: ledger")
}

#[test]
fn what_an_editor_saved_that_no_plan_has_read_counts() {
    let world = World::new();
    world.put(LEDGER, &ledger());
    let create = WriteAction::Create(cluster("ledger", 1));
    let there = "409 duplicate: cluster acme/ledger exists already\n";
    assert!(world.refuses("Cluster/acme/ledger", create).starts_with(there));
    // The limit is two clusters.
    let full = world.refuses("Cluster/acme/more", WriteAction::Create(cluster("more", 1)));
    assert!(full.starts_with("409 capacity: "), "{full}");
    fs::remove_file(world.tree().join("acme/clusters/orders.yaml")).unwrap();
    let needed = world.refuses("Fleet/acme/eu", WriteAction::Delete);
    assert!(needed.contains("can't be deleted: cluster acme/ledger needs it"), "{needed}");
    // The fleet was added after the plan.
    world.put("acme/fleets/us.yaml", &FLEET.replace("identifier: eu", "identifier: us"));
    let mut body = cluster("more", 1);
    body["infrastructure"] = json!("us");
    world.call("Cluster/acme/more", WriteAction::Create(body)).unwrap();
}

#[test]
fn a_file_that_an_editor_has_emptied_is_not_there_yet_and_not_gone() {
    let world = World::new();
    for text in ["", "\n"] {
        world.put("acme/clusters/orders.yaml", text);
        for what in [WriteAction::Patch(json!({"kafka_units": 3})), WriteAction::Delete] {
            assert_eq!(
                world.refuses("Cluster/acme/orders", what),
                "409 not_editable: the file was not changed: the file is empty; somebody may be saving it\n  = try again \
                 when it is saved\n"
            );
        }
    }
    // The file now has another document.
    world.put("acme/clusters/orders.yaml", &ledger());
    let gone = world.refuses("Cluster/acme/orders", WriteAction::Patch(json!({"kafka_units": 3})));
    assert!(gone.starts_with("404 not_found: "), "{gone}");
}

#[test]
fn a_tree_of_which_nothing_was_told_is_not_read_again() {
    let mut world = World::new();
    let watch = Watch::new(&world.tree());
    world.writer.use_watch(&watch, Arc::default());
    world.plan();
    let is_that_of_the_plan = |world: &World| {
        let tree = world.writer.tree_of_folder(&world.tree(), &world.made, None).unwrap();
        Arc::ptr_eq(&tree, &world.made.documents)
    };
    assert!(is_that_of_the_plan(&world));
    world.refuses("Cluster/acme/orders", WriteAction::Create(cluster("orders", 1)));
    assert!(is_that_of_the_plan(&world), "nothing was written");
    // There was no notification yet.
    world.put(LEDGER, &ledger());
    assert!(!is_that_of_the_plan(&world));
    assert!(
        world
            .refuses("Cluster/acme/ledger", WriteAction::Create(cluster("ledger", 1)))
            .contains("409 duplicate")
    );
}

#[test]
fn what_was_applied_since_the_plan_takes_room_whatever_became_of_its_document() {
    let mut world = World::new();
    let state = State::open(&world.tree().with_file_name("state")).unwrap();
    Arc::get_mut(&mut world.made.installation).unwrap().state = Some(Arc::new(state));
    world.put(LEDGER, &ledger());
    world.plan();
    let record = world.applied_record("Cluster/acme/ledger");
    fs::remove_file(world.tree().join(LEDGER)).unwrap();
    world.plan();
    let create = || WriteAction::Create(cluster("more", 1));
    let author = Author { name: "Ada".to_owned(), email: "ada@example.com".to_owned() };
    world.writer.propose(&world.made, &request("Cluster/acme/more", create())).unwrap();
    let state = world.made.installation.state.as_deref().unwrap();
    state.put_resource(&"Cluster/acme/ledger".to_owned().try_into().unwrap(), &record).unwrap();
    let refused =
        world.writer.write(&world.made, &request("Cluster/acme/more", create()), &author).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "not enough capacity for cluster acme/more: 2 of 2 `max_tenants` of fleet acme/eu are in use, and it needs 1 more"
    );
}

#[test]
fn what_is_written_is_kept_once_until_whoever_asks_has_a_plan_with_it() {
    let mut world = World::new();
    let units = |world: &World, units: u32| {
        world.call("Cluster/acme/orders", WriteAction::Patch(json!({"kafka_units": units}))).unwrap()
    };
    let first = world.made.clone();
    units(&world, 3);
    let last = units(&world, 4);
    assert_eq!(locked(&world.writer.book).written.len(), 1);
    world.plan();
    let fleet = world.call("Fleet/acme/eu", WriteAction::Patch(json!({"max_tenants": 3}))).unwrap();
    // A caller with the older plan still gets the write that it lacks.
    let pending = world.writer.pending(&first);
    assert_eq!(pending[&last.key].etag, last.etag);
    // A caller with the newest plan gets the rest; older writes are forgotten.
    let (made, pending) = world.writer.newest(|| world.made.clone());
    assert!(made.mark.writes == 2 && pending.keys().eq([&fleet.key]));
    assert!(locked(&world.writer.book).written.keys().eq([&fleet.key]));
}
