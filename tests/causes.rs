//! The cause of a change after an unfinished round, and when only this software or its settings are new. Only
//! a change caused by the software alone needs approval before it disrupts anything.

use std::fs;

use streamfleet::names::ResourceKey;
use streamfleet::plan::{Cause, Change, Plan, Verdict};

use crate::interrupted::replace_certificate;
use crate::pipeline::{Surroundings, converge, plan_round};
use crate::support::Tree;

fn key(text: &str) -> ResourceKey {
    text.to_owned().try_into().unwrap()
}

fn orders(plan: &Plan) -> &Change {
    plan.changes().find(|change| change.resource == key("Cluster/acme/orders")).unwrap()
}

async fn applied(around: &Surroundings) -> Tree {
    let tree = Tree::example("quickstart");
    drop(converge(&tree, around).await);
    tree
}

/// Surroundings that give brokers more memory, which restarts them.
fn larger(software: &'static str) -> Surroundings {
    let mut around = Surroundings { software, ..Surroundings::default() };
    around.config.units.standard.broker_memory_mib += 1024;
    around
}

#[tokio::test]
async fn what_a_failed_step_leaves_to_do_is_still_the_references_doing() {
    let around = Surroundings::default();
    let tree = applied(&around).await;
    replace_certificate(&tree);
    let round = plan_round(&tree, &around).await;
    let mut files = tree.output().into_iter().map(|(path, _)| path);
    let in_the_way = files.find(|path| path.contains("orders/secrets/secret-")).unwrap();
    fs::write(tree.path().join(".streamfleet/output").join(in_the_way), "changed: while we looked\n")
        .unwrap();
    let report = round.execute().await;
    assert_eq!(report.failed.len(), 1, "{report:?}");
    assert_eq!(report.failed[0].resource, Some(key("Cluster/acme/orders")));
    drop(round);

    let plan = plan_round(&tree, &around).await.plan;
    let to = key("BaseDomain/acme/kafka.acme.example.com");
    assert!(plan.changes().all(|change| change.resource != to), "the domain itself is done");
    let change = orders(&plan);
    assert_eq!((&change.cause, change.verdict), (&Cause::Reference { to }, Verdict::RollingRestart));
    assert_eq!((change.guarded, change.waiting.as_slice()), (false, [].as_slice()));
}

#[tokio::test]
async fn other_settings_of_the_installation_are_not_the_softwares_doing() {
    let tree = applied(&Surroundings::default()).await;
    let plan = plan_round(&tree, &larger("0.1.0")).await.plan;
    let change = orders(&plan);
    assert_eq!((&change.cause, change.verdict), (&Cause::Settings, Verdict::RollingRestart));
    assert_eq!((change.guarded, change.waiting.as_slice()), (false, [].as_slice()));
}

#[tokio::test]
async fn what_another_version_may_have_caused_asks_a_person() {
    let tree = applied(&Surroundings::default()).await;
    let plan = plan_round(&tree, &larger("0.2.0")).await.plan;
    let change = orders(&plan);
    assert_eq!(change.cause, Cause::Software { version: "0.2.0".to_owned() });
    assert!(change.guarded && !change.waiting.is_empty());
}

#[tokio::test]
async fn a_version_that_changes_nothing_is_taken_note_of() {
    let tree = applied(&Surroundings::default()).await;
    let around = Surroundings { software: "0.2.0", ..Surroundings::default() };
    assert_eq!(converge(&tree, &around).await.0, 0);
    let plan = plan_round(&tree, &larger("0.2.0")).await.plan;
    assert_eq!(orders(&plan).cause, Cause::Settings);
}

#[tokio::test]
async fn what_was_made_from_is_forgotten_with_the_cache_and_then_a_person_is_asked() {
    let tree = applied(&Surroundings::default()).await;
    fs::remove_dir_all(tree.path().join(".streamfleet/state/cache-v1")).unwrap();
    let plan = plan_round(&tree, &larger("0.1.0")).await.plan;
    assert!(matches!(orders(&plan).cause, Cause::Software { .. }));
    assert!(orders(&plan).guarded);
}
