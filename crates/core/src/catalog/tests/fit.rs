//! `fit` says of a cluster what then happens to its document.

use super::*;
use crate::names::Kind;

/// Resolves a tree with one more cluster, and compares what became of it with what was foretold.
#[track_caller]
fn compare(case: &str, world: &World, document: &str) -> ClusterFit {
    let before = world.resolve();
    let mut with = world.clone();
    with.put("acme/zz-new.yaml", document);
    let after = with.resolve();
    let resource = after.resources.values().find(|resource| resource.key.name == "new").unwrap();
    let Spec::Cluster(cluster) = &resource.spec else { panic!("{case}") };
    let fleet = &before.fleets[&resource.fleet().unwrap()];
    let fit = before.fit(cluster, &fleet.spec);
    match &resource.hold {
        Some(Hold::Invalid { problems }) => {
            assert_eq!(fit.problems.len(), *problems as usize, "{case}: {fit:?}");
            let told = |problem: &Problem| after.problems.iter().any(|it| it.message == problem.message);
            assert!(fit.problems.iter().all(told), "{case}: {fit:?}");
        }
        hold => {
            // Documents aren't compared with a fleet that waits itself.
            let is_unknown = matches!(hold, Some(Hold::Dependency { on }) if on.kind == Kind::Fleet);
            assert!(fit.problems.is_empty() || is_unknown, "{case}: {fit:?}");
            assert_eq!(fit.holds.first(), hold.as_ref(), "{case}");
        }
    }
    fit
}

#[test]
fn what_is_foretold_of_a_cluster_is_what_happens_to_its_document() {
    let edited = |edits: &[(&str, &str, &str)]| {
        let mut world = World::new();
        world.apply();
        for (path, from, to) in edits {
            world.edit(path, from, to);
        }
        world
    };
    let worlds = [
        ("as it is", edited(&[])),
        ("tenants are used up", edited(&[("acme/base.yaml", "max_tenants: 10", "max_tenants: 1")])),
        ("quotas", edited(&[("organizations.yaml", "acme", "acme\nquotas: {kafka_units: 4, clusters: 1}")])),
        ("suspended", edited(&[("acme/base.yaml", "max_tenants: 10", "max_tenants: 10\nsuspend: true")])),
        ("another grows", edited(&[("acme/orders.yaml", "kafka_units: 1", "kafka_units: 8")])),
        ("another tenancy mode", edited(&[("acme/orders.yaml", "Shared", "Isolated")])),
        ("no domain", edited(&[("acme/base.yaml", "max_tenants", "placement_config: {}\nmax_tenants")])),
        ("units are unknown", {
            let mut world = edited(&[]);
            world.lose_cache();
            world
        }),
        ("the fleet waits", {
            let mut world = World::new();
            world.edit("organizations.yaml", "acme", "acme\nquotas: {fleets: 0}");
            world
        }),
    ];
    for (case, world) in &worlds {
        for units in [1, 2, 3, 4, 9, 10, 11, 256] {
            for more in ["", "  cluster_access: External\n", "  profile: dev\n", "  auto_upgrade: true\n"] {
                compare(case, world, &cluster("acme", "new", units, more));
            }
            let isolated = cluster("acme", "new", units, "").replace("Shared", "Isolated");
            compare(case, world, &isolated);
            let elsewhere =
                cluster("acme", "new", units, "").replace("advanced", "cloud_provider: byok\nadvanced");
            compare(case, world, &elsewhere);
        }
    }
}

#[test]
fn everything_that_is_missing_is_told_with_its_number() {
    let mut world = World::new();
    world.edit("organizations.yaml", "acme", "acme\nquotas: {kafka_units: 12}");
    world.edit("acme/base.yaml", "max_tenants: 10", "max_tenants: 1").apply();
    let fit = compare("both", &world, &cluster("acme", "new", 20, ""));
    let needs = fit.needs.clone().map(|need| (need.what, need.used, need.wanted, need.limit, need.missing()));
    assert_eq!(
        needs,
        [
            ("max_tenants", 1, 1, Some(1), 1),
            ("max_kafka_units", 1, 20, Some(10), 11),
            ("quotas.clusters", 1, 1, None, 0),
            ("quotas.kafka_units", 1, 20, Some(12), 9),
        ]
    );
    assert_eq!(fit.holds.len(), 3, "{fit:?}");
}
