use super::*;
use crate::config::{ManifestsFile, OperatorRelease};

fn world(versions: &[&str]) -> World {
    let manifests = include_str!("../../config/release/strimzi.yaml");
    let release = || OperatorRelease {
        manifests: "strimzi.yaml".to_owned(),
        sha256: Digest::of(manifests).as_str().to_owned(),
        images: vec!["quay.io/strimzi/".to_owned()],
        content: ManifestsFile::of(Ok(manifests.as_bytes().to_owned())),
    };
    let mut world = World::new();
    world.config.operators.strimzi =
        versions.iter().map(|version| ((*version).to_owned(), release())).collect();
    world.edit(
        "acme/base.yaml",
        "infra_type: directory\n",
        "infra_type: directory\nadvanced_config: {components: {strimzi: 1.2.0}}\n",
    );
    world
}

fn messages(world: &World) -> Vec<String> {
    let problems = world.resolve().problems;
    let place = |problem: &Problem| problem.location.as_ref().map(|it| format!("{}:{}", it.path, it.line));
    problems
        .iter()
        .map(|problem| {
            format!("{}: {}: {}", place(problem).unwrap_or_default(), problem.code, problem.message)
        })
        .collect()
}

#[test]
fn a_fleet_takes_a_version_that_the_settings_have_and_goes_back_to_none() {
    let mut world = world(&["1.1.0", "1.2.0", "1.10.0"]);
    assert_eq!(messages(&world), [""; 0]);
    world.apply();
    world.edit("acme/base.yaml", "strimzi: 1.2.0", "strimzi: 1.10.0");
    assert_eq!(messages(&world), [""; 0]);
    world.apply();
    world.edit("acme/base.yaml", "strimzi: 1.10.0", "strimzi: 1.2.0");
    let key = |fleet: &Catalog| {
        fleet.resources.values().find(|it| it.key.kind == crate::names::Kind::Fleet).map(|it| it.hold.clone())
    };
    assert_eq!(
        messages(&world),
        ["acme/base.yaml:11: older-operator: the Strimzi operator can't go from 1.10.0 back to 1.2.0"]
    );
    assert_eq!(key(&world.resolve()), Some(Some(Hold::Invalid { problems: 1 })));
    world.edit("acme/base.yaml", "strimzi: 1.2.0", "strimzi: existing");
    assert_eq!(messages(&world), [""; 0]);
}

#[test]
fn a_version_that_cannot_be_installed_is_a_problem_of_the_fleets_line() {
    let world = world(&["1.1.0"]);
    assert_eq!(
        messages(&world),
        [
            "acme/base.yaml:11: unknown-operator-version: the settings of the installation have no manifests of Strimzi 1.2.0"
        ]
    );
}

#[test]
fn an_operator_that_no_longer_runs_the_kafka_of_a_cluster_is_refused_until_the_cluster_is_upgraded() {
    let mut world = world(&["1.2.0", "1.3.0"]);
    world.edit("acme/orders.yaml", "4.3.1", "4.2.1").apply();
    assert_eq!(messages(&world), [""; 0], "what it runs with already is left alone");
    world.put("acme/later.yaml", &cluster("acme", "later", 1, ""));
    let refusal = [
        "acme/base.yaml:11: operator-without-kafka: Strimzi 1.3.0 can't run the Kafka version of cluster acme/orders \
         (4.2.1)",
    ];
    world.edit("acme/base.yaml", "strimzi: 1.2.0", "strimzi: 1.3.0");
    assert_eq!(messages(&world), refusal);
    world.edit("acme/orders.yaml", "4.2.1", "4.3.1");
    assert_eq!(messages(&world), refusal, "the cluster runs what was applied");
    let hints: Vec<String> =
        world.resolve().problems.into_iter().filter_map(|problem| problem.hint).collect();
    assert_eq!(
        hints,
        [
            "it runs 4.2.0, 4.3.1: first set one of these in `advanced_config.version` of the clusters, and change the \
             operator when they are Healthy"
        ]
    );
    world.edit("acme/base.yaml", "strimzi: 1.3.0", "strimzi: 1.2.0").apply();
    world.edit("acme/base.yaml", "strimzi: 1.2.0", "strimzi: 1.3.0");
    assert_eq!(messages(&world), [""; 0]);
}
