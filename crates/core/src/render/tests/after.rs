use super::*;
use crate::component::fixtures::user;

fn named(name: &str, units: u32) -> ResolvedCluster {
    cluster(json!({"identifier": name, "kafka_units": units}))
}

/// The places of the objects' texts in memory: a copy has another place than the original.
fn places(rendered: &FleetManifests, owner: &str) -> Vec<*const u8> {
    let own = rendered.values().filter(|manifest| manifest.owner.name == owner);
    own.map(|manifest| manifest.body.as_str().as_ptr()).collect()
}

#[test]
fn a_fleet_rendered_after_another_time_is_the_same_and_shares_clusters_that_did_not_change() {
    let mut orders = named("orders", 1);
    orders.users.push(user(json!({"password": "hunter2"})));
    let fleet = orders.fleet.clone();
    let first = catalog([orders, named("payments", 1), named("gone", 1)]);
    let renderings = Renderings::default();
    let before = Renderer::after(&first, Some(&renderings)).fleet(&fleet).unwrap();
    assert_eq!(before, Renderer::new(&first).fleet(&fleet).unwrap());
    let again = Renderer::after(&first, Some(&renderings)).fleet(&fleet).unwrap();
    assert!(Arc::ptr_eq(&before, &again));

    let mut second = catalog([named("payments", 2), named("new", 1)]);
    let orders = first.clusters.iter().find(|(key, _)| key.name == "orders").unwrap();
    second.clusters.insert(orders.0.clone(), Arc::clone(orders.1));
    let after = Renderer::after(&second, Some(&renderings)).fleet(&fleet).unwrap();
    assert_eq!(after, Renderer::new(&second).fleet(&fleet).unwrap());
    for (owner, is_shared) in [("orders", true), ("orders/billing", true), ("payments", false)] {
        assert_eq!(places(&after, owner) == places(&before, owner), is_shared, "{owner}");
    }
    assert_eq!((places(&after, "gone").len(), places(&before, "new").len()), (0, 0));

    second.config = Config { state_dir: Some("elsewhere".into()), ..Config::default() }.into();
    let other = Renderer::after(&second, Some(&renderings)).fleet(&fleet).unwrap();
    assert_eq!(other, Renderer::new(&second).fleet(&fleet).unwrap());
    assert_ne!(places(&other, "orders"), places(&after, "orders"), "the settings are others");
}
