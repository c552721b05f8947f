//! Deletions through the API begin at once within the deletion budget, and the answer says what they wait
//! for.

use serde_json::{Value, json};

use super::Api;
use crate::support::Tree;

fn unprotected() -> Tree {
    let tree = Tree::example("quickstart");
    let orders = tree.read("acme/clusters/orders.yaml") + "deletion_protection: false\n";
    tree.write("acme/clusters/orders.yaml", orders);
    tree
}

#[test]
fn what_a_call_deletes_from_a_folder_goes_at_once_and_the_budget_of_deletions_holds() {
    let tree = unprotected();
    let policy = "[policy]\ncluster_deletions_per_hour = 1\n";
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", policy);
    api.settle();
    let first = api.call("DELETE /v1/clusters/sandbox", Value::Null).expect(202).body;
    assert_eq!(
        (&first["status"], &first["status_reason"], &first["conditions"]),
        (&json!("Deleting"), &json!("deletion scheduled"), &json!([])),
        "a file that vanished would be waited for"
    );
    api.serve.until("it is gone", || (api.get("/v1/clusters/sandbox").status == 404).then_some(()));

    // The organization's last cluster, and the second deletion within the hour: neither counts as a mistake,
    // but the second waits.
    let second = api.call("DELETE /v1/clusters/orders", Value::Null).expect(202).body;
    let plan = api.get("/v1/plan").expect(200).body;
    let id = plan["fleets"][0]["guard"]["id"].as_str().expect("it waits for approval").to_owned();
    let told = second["status_reason"].as_str().unwrap();
    let expected = format!(
        "spec file missing: needs approval {id}: limit of 1 cluster deletion per fleet and hour. Deletes "
    );
    assert!(told.starts_with(&expected), "{told}");
    let condition = json!([{"kind": "DeletionWaits", "degraded": false, "message": told}]);
    assert_eq!(second["conditions"], condition);
    let now = api.get("/v1/clusters/orders").expect(200).body;
    assert_eq!(
        (&now["status"], now["status_reason"].as_str(), &now["conditions"]),
        (&json!("Deleting"), Some(told), &condition)
    );
    let status = tree.run("status tree --config settings.toml").out;
    let line = status.lines().find(|line| line.contains("acme/orders")).unwrap();
    assert!(line.contains("Deleting") && line.contains(told), "{status}");
    assert_eq!(tree.run("get clusters tree --config settings.toml").out, "acme/orders  Deleting\n");
    api.call(&format!("POST /v1/plans/{id}/approve"), Value::Null).expect(200);
    api.serve.until("it is gone", || (api.get("/v1/clusters/orders").status == 404).then_some(()));
    assert_eq!(api.serve.stop(), Some(0));
}

/// "Deleting" would be untrue of a cluster that is protected.
#[test]
fn what_is_protected_is_as_it_runs_where_its_file_is_gone() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    tree.remove("acme/clusters/orders.yaml");
    let path = "/v1/clusters/orders";
    let is_missing = |now: &Value| now["status_reason"].as_str().unwrap_or_default().contains("protection");
    let now = api.serve.until("it is missing", || Some(api.get(path).body).filter(is_missing));
    let told = now["status_reason"].as_str().unwrap();
    assert!(told.starts_with("spec file missing: deletion protection is on"), "{told}");
    assert_eq!(now["status"], "Written");
    let status = tree.run("status tree --config settings.toml").out;
    let line = status.lines().find(|line| line.contains("acme/orders")).unwrap();
    assert!(line.contains("Written") && line.contains(told), "{status}");
    let why = format!("cluster acme/orders can't be changed: {told}");
    api.call(&format!("PATCH {path}"), json!({"kafka_units": 2})).refused(409, "not_editable", &why);
    api.call(&format!("DELETE {path}"), Value::Null).refused(409, "not_editable", &why);
    assert_eq!(api.serve.stop(), Some(0));
}

/// A file removed by hand may be a mistake even if the API removed and recreated the resource before.
#[test]
fn what_is_made_again_and_vanishes_is_waited_for() {
    let tree = unprotected();
    let policy = "[policy]\ncluster_deletions_per_hour = 0\n";
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", policy);
    api.settle();
    let file = tree.read("acme/clusters/sandbox.yaml");
    let told =
        || api.get("/v1/clusters/sandbox").body["status_reason"].as_str().unwrap_or_default().to_owned();
    api.call("DELETE /v1/clusters/sandbox", Value::Null).expect(202);
    api.serve.until("it waits for approval", || told().contains("approval").then_some(()));
    tree.write("acme/clusters/sandbox.yaml", &file);
    let is_back = || (api.get("/v1/clusters/sandbox").body["status"] == "Written").then_some(());
    api.serve.until("it is back", is_back);
    missing_for_a_moment(&tree, &api);

    // Also where it returns with a mistake.
    api.call("DELETE /v1/clusters/sandbox", Value::Null).expect(202);
    api.serve.until("it waits for approval", || told().contains("approval").then_some(()));
    tree.write("acme/clusters/sandbox.yaml", file.replace("kafka_units: 1", "kafka_units: none"));
    api.serve.until("it is held", || {
        told().contains("its spec has 1 problem; it stays as it was last applied").then_some(())
    });
    missing_for_a_moment(&tree, &api);
    assert_eq!(api.serve.stop(), Some(0));
}

fn missing_for_a_moment(tree: &Tree, api: &Api) {
    let told =
        || api.get("/v1/clusters/sandbox").body["status_reason"].as_str().unwrap_or_default().to_owned();
    let file = tree.read("acme/clusters/sandbox.yaml");
    tree.remove("acme/clusters/sandbox.yaml");
    api.serve.until("it is missing", || told().contains("spec file missing").then_some(()));
    tree.write("acme/clusters/sandbox.yaml", file);
    api.serve.until("it is named again", || (!told().contains("spec file missing")).then_some(()));
}
