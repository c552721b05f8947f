//! The same with a fleet on a real API server, which answers slowly and sometimes not at all.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::specs::Specs;
use super::{Source, Turmoil, assert_same, edits, output, without_ids};
use crate::faults::objects;
use crate::support::Tree;
use crate::support::control_plane::ControlPlane;
use crate::support::proxy::{Fault, Proxy, Rule};

const EDITS: usize = 25;

const LATE: Duration = Duration::from_millis(40);

/// The namespace of a cluster that comes and goes stays, since its data is retained, and so do its records.
const COMES: &str = "kafka-acme--comes-a";

/// The ConfigMap with those records, which has no others.
const COMES_RECORDS: &str = "inventory-1e";

/// Injects a random fault into a call that comes soon.
fn harm(turmoil: &mut Turmoil<'_>, proxy: &Proxy) {
    let faults = [Fault::Lost, Fault::Reset, Fault::ResetInBody, Fault::Cut];
    let fault = faults[turmoil.chance.usize(..faults.len())].clone();
    turmoil.history.push(format!("{fault:?}"));
    proxy.inject(Rule::always(fault).from(turmoil.chance.usize(1..20)).times(1));
}

/// The objects on the server without values that differ between runs. Asserts that the inventory lists
/// exactly these.
fn found(proxy: &Proxy) -> BTreeMap<String, Value> {
    let ours = objects::of(proxy);
    let uids = objects::assert_owned(&ours);
    let comes = |path: &str| path.contains(COMES) || path.ends_with(COMES_RECORDS);
    let ours = ours.into_iter().filter(|(path, _)| !comes(path));
    let mut ours: BTreeMap<_, _> =
        ours.map(|(path, object)| (path, objects::comparable(object, &uids))).collect();
    for text in ours.values_mut().filter_map(|object| object.pointer_mut("/data/inventory.json")) {
        *text = text.as_str().unwrap().replace(&format!("\"{COMES_RECORDS}\","), "").into();
    }
    ours
}

#[test]
fn a_cluster_ends_as_after_one_clean_run() {
    let plane = ControlPlane::lease();
    let proxy = Proxy::before(&plane);
    let tree = Tree::example("quickstart");
    let specs = Specs::write(&tree, |fleet, text| {
        if fleet == "us" {
            return text;
        }
        // Only controllers would end the deletion of a namespace.
        let text = text.replace("on_delete: Delete", "on_delete: Retain");
        let text = text.replace("cluster_type", "cloud_provider: byok\ncluster_type");
        match text.contains("infra_type: directory") {
            true => format!(
                "{}advanced_config:\n  kubeconfig: '{}'\n",
                text.replace("infra_type: directory", "infra_type: byok"),
                proxy.kubeconfig()
            ),
            false => text,
        }
    });
    let mut turmoil = Turmoil::new(specs, Source::Folder);
    turmoil.start();
    turmoil.serve.as_ref().unwrap().has_made(&["acme/orders", "acme/stays-a", "acme/stays-b"]);
    let number = edits(EDITS);
    for _ in 0..number {
        // Faults that haven't occurred are removed now and then.
        if turmoil.chance.u32(..8) == 0 {
            proxy.reset();
            proxy.inject(Rule::always(Fault::Late(LATE)).changing(true));
        }
        harm(&mut turmoil, &proxy);
        turmoil.step();
    }
    proxy.reset();
    turmoil.specs.mend();
    // A failing process has a growing backoff; a new one starts without.
    turmoil.kill();
    turmoil.settle();
    let (all, folder) = (found(&proxy), output(&tree));
    assert!(turmoil.kills > number / 10, "{} kills", turmoil.kills);
    assert!(turmoil.done > number / 20, "{} changes were done", turmoil.done);
    turmoil.assert_kept();

    turmoil.specs.remove_others();
    tree.run(&turmoil.words("apply", "")).expect(0);
    tree.run(&turmoil.words("plan", "")).expect(0);
    let (left, left_folder) = (found(&proxy), output(&tree));

    // One clean run of each.
    let clean = |turmoil: &Turmoil<'_>| {
        objects::remove(&proxy, objects::of(&proxy).into_keys());
        (turmoil.clean(), found(&proxy))
    };
    let (expected_folder, expected) = clean(&turmoil);
    assert_same(&left_folder, &expected_folder);
    assert_same_objects(&left, &expected);
    turmoil.specs.mend();
    let (expected_folder, expected) = clean(&turmoil);
    assert_same(&without_ids(&folder), &without_ids(&expected_folder));
    assert_same_objects(&all, &expected);
    let Turmoil { kills, stops, done, .. } = &turmoil;
    println!("{number} edits, {kills} kills, {stops} stops, {done} changes");
}

fn assert_same_objects(found: &BTreeMap<String, Value>, expected: &BTreeMap<String, Value>) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (path, object) in found {
        assert_eq!(object, &expected[path], "{path}");
    }
}
