//! Races between a plan and its execution on a real control plane: others write first, and runs are killed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use streamfleet::config::Config;

use crate::kubernetes::{QUOTA, SANDBOX, on};
use crate::pipeline::{Surroundings, converge, plan_round};
use crate::support::control_plane::ControlPlane;
use crate::support::{Tree, one_in};

const PAYMENTS: &str = "acme/clusters/payments.yaml";

/// Settings that allow kubeconfigs for this host and repeated deletion of clusters.
fn surroundings() -> Surroundings {
    let mut config = Config::default();
    config.targets.allow_addresses = vec!["127.0.0.0/8".to_owned().try_into().unwrap()];
    config.policy.cluster_deletions_per_hour = 1_000;
    Surroundings { config, ..Surroundings::default() }
}

/// Foreign objects created after the plan found nothing there: one that differs in a field of ours, and one
/// to which an apply could add our fields without a conflict.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_made_after_the_plan_stays_theirs() {
    let (plane, around) = (ControlPlane::lease(), surroundings());
    let tree = on(&plane);
    drop(converge(&tree, &around).await);
    let mine = objects(&plane);
    for hard in [json!({"services": "1"}), json!({"pods": "99"})] {
        plane.kubectl(&format!("delete {QUOTA}"), "").expect(0);
        let round = plan_round(&tree, &around).await;
        let metadata = json!({"name": "sandbox", "namespace": "kafka-acme--sandbox"});
        let theirs = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}});
        plane.kubectl("create -f -", &theirs.to_string()).expect(0);

        let report = round.execute().await;
        let failures: Vec<String> = report.failed.iter().map(ToString::to_string).collect();
        assert_eq!(
            failures,
            ["cluster acme/sandbox (acme/clusters/sandbox.yaml:2): cannot write ResourceQuota \
                 kafka-acme--sandbox/sandbox: an object that streamfleet did not create is there"]
        );
        let left = plane.kubectl(&format!("get {QUOTA} --output=json --show-managed-fields"), "").expect(0);
        let left: Value = serde_json::from_str(&left.out).unwrap();
        assert_eq!(left["spec"], theirs["spec"]);
        assert_eq!(
            (&left["metadata"]["labels"], &left["metadata"]["annotations"]),
            (&Value::Null, &Value::Null)
        );
        assert!(!left["metadata"]["managedFields"].to_string().contains("streamfleet"), "{left:#}");

        // The next plan doesn't take it for ours either.
        drop(round);
        let round = plan_round(&tree, &around).await;
        assert_eq!(round.plan.fleets[0].foreign.len(), 1);
        drop(round);
        plane.kubectl(&format!("delete {QUOTA}"), "").expect(0);
        drop(converge(&tree, &around).await);
        assert_eq!(objects(&plane), mine);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_can_be_killed_between_any_two_calls_and_taken_back() {
    let (delete, retain) = ("on_delete: Delete", "on_delete: Retain");
    let edit = |tree: &Tree| tree.edit(SANDBOX, delete, retain);
    kill_everywhere(1, edit, |tree| tree.edit(SANDBOX, retain, delete)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn making_a_cluster_can_be_killed_while_calls_are_under_way_and_taken_back() {
    let add = |tree: &Tree| {
        let text = tree.read(SANDBOX).replace("sandbox", "payments");
        tree.write(PAYMENTS, text.replace("on_delete: Delete", "on_delete: Retain"));
    };
    kill_everywhere(4, add, |tree| tree.remove(PAYMENTS)).await;
}

/// Kills an edit's run at every place, or every `step`-th, reverts the edit, and checks the result. Objects
/// of ours must be known as ours at all times.
async fn kill_everywhere(step: usize, edit: impl Fn(&Tree), back: impl Fn(&Tree)) {
    let (plane, around) = (ControlPlane::lease(), surroundings());
    let tree = on(&plane);
    drop(converge(&tree, &around).await);
    edit(&tree);
    drop(converge(&tree, &around).await);
    let edited = objects(&plane);
    back(&tree);
    drop(converge(&tree, &around).await);
    let expected = objects(&plane);
    assert_ne!(edited, expected, "the edit changes something");
    for polls in (0..).step_by(step * one_in(3)) {
        edit(&tree);
        let over = plan_round(&tree, &around).await.killed_after(polls).await;
        let known = known(&plane);
        for object in objects(&plane).into_keys() {
            assert!(known.contains(&object), "nobody knows whose {object} is, killed after {polls} polls");
        }
        back(&tree);
        drop(converge(&tree, &around).await);
        assert_eq!(objects(&plane), expected, "killed after {polls} polls");
        if over {
            assert!(polls > 10, "there are only {polls} places");
            return;
        }
    }
}

/// Every object with our label, and its content.
fn objects(plane: &ControlPlane) -> BTreeMap<String, Value> {
    let kinds = "namespaces,secrets,configmaps,resourcequotas,networkpolicies,poddisruptionbudgets,kafkas,kafkanodepools,kafkausers";
    let get = format!(
        "get {kinds} --all-namespaces --selector=app.kubernetes.io/managed-by=streamfleet --output=json"
    );
    let list: Value = serde_json::from_str(&plane.kubectl(&get, "").expect(0).out).unwrap();
    let objects = list["items"].as_array().unwrap().iter();
    let objects = objects.filter(|object| object["metadata"]["namespace"] != "streamfleet-system");
    objects
        .map(|object| (name(object), json!([object["metadata"]["labels"], object["spec"], object["data"]])))
        .collect()
}

fn name(object: &Value) -> String {
    let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    let [namespace, name] = ["namespace", "name"].map(|field| text(&object["metadata"][field]));
    format!("{}|{namespace}|{name}", text(&object["kind"]))
}

/// The objects that the cluster's inventory lists as ours or as intended.
fn known(plane: &ControlPlane) -> BTreeSet<String> {
    let maps = plane.kubectl("get configmaps --namespace=streamfleet-system --output=json", "").expect(0);
    let maps: Value = serde_json::from_str(&maps.out).unwrap();
    let texts =
        maps["items"].as_array().unwrap().iter().filter_map(|map| map["data"]["inventory.json"].as_str());
    let chunks = texts.map(|text| serde_json::from_str::<Value>(text).unwrap());
    let keys =
        chunks.flat_map(|chunk| chunk["objects"].as_object().unwrap().keys().cloned().collect::<Vec<_>>());
    // Without the API version: an object may have more than one.
    keys.filter_map(|key| Some(key.split_once('|')?.1.to_owned())).collect()
}
