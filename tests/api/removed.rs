//! Deletions through the API begin at once within the deletion budget, and the answer says what they wait
//! for.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::Api;
use super::exchanges::{cluster, fleet};
use super::unreached::kubeconfig;
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
    // A file that vanished would be waited for. There is no reason any more once the deletion has begun.
    let is_at_once = first["status_reason"].as_str().is_none_or(|reason| reason == "deletion scheduled");
    assert!(is_at_once && first["status"] == "Deleting" && first["conditions"] == json!([]), "{first:#}");
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

/// `/v1/status` and `why` agree with the record also before a plan includes the write.
#[test]
fn what_is_written_is_told_alike_everywhere_before_it_is_planned() {
    let tree = unprotected();
    let targets = "[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n";
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", targets);
    api.settle();
    tree.edit("organizations.yaml", "fleets: 2", "fleets: 3");
    // Planning waits for an API server that accepts a connection and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let kubeconfig = kubeconfig(silent.local_addr().unwrap().port());
    // The ids of new clusters are read from their fleet's target before anything is planned.
    let far = tree.read("acme/clusters/sandbox.yaml").replace("identifier: sandbox", "identifier: far");
    let far = far.replace("infrastructure: eu", "infrastructure: us\ncloud_provider: byok");
    tree.write("acme/clusters/far.yaml", far);
    let us = tree.read("acme/fleets/eu.yaml").replace("identifier: eu", "identifier: us");
    let us = us.replace("infra_type: directory", "infra_type: byok");
    tree.write("acme/fleets/us.yaml", format!("{us}advanced_config:\n  kubeconfig: '{kubeconfig}'\n"));
    let _connection = api.serve.until("the server is asked", || silent.accept().ok());

    let mut body = fleet();
    body["identifier"] = json!("asia");
    api.call("POST /organizations/acme/infrastructure", body).expect(201);
    let asia = api.get("/organizations/acme/infrastructure/asia").expect(200).body;
    let told = line(&api, "Fleet/acme/asia");
    assert_eq!(told["status"], asia["status"]);
    assert_eq!(told["kafka_units"], json!({"before": 0, "after": 0, "limit": asia["max_kafka_units"]}));
    assert_eq!(told["clusters"], json!({"before": 0, "after": 0, "limit": asia["max_tenants"]}));

    api.call("POST /v1/clusters", cluster()).expect(201);
    told_alike(&api, "payments", "Pending");
    api.call("PATCH /v1/clusters/orders", json!({"kafka_units": 2})).expect(200);
    told_alike(&api, "orders", "Updating");
    api.call("DELETE /v1/clusters/sandbox", Value::Null).expect(202);
    told_alike(&api, "sandbox", "Deleting");
    assert_eq!(api.serve.stop(), Some(0));
}

/// The line of a resource in `/v1/status`; null if there is none.
fn line(api: &Api<'_>, resource: &str) -> Value {
    let status = api.get("/v1/status").expect(200).body;
    let mut lines = status["items"].as_array().unwrap().iter();
    lines.find(|line| line["resource"] == resource).cloned().unwrap_or_default()
}

#[track_caller]
fn told_alike(api: &Api<'_>, name: &str, status: &str) {
    let record = api.get(&format!("/v1/clusters/{name}")).expect(200).body;
    let line = line(api, &format!("Cluster/acme/{name}"));
    let why = api.get(&format!("/v1/clusters/{name}/why")).expect(200).body;
    assert_eq!(record["status"], status, "{record:#}");
    for told in [&line, &why] {
        let told = (&told["status"], &told["reason"]);
        assert_eq!(told, (&record["status"], &record["status_reason"]), "{name}");
    }
    assert_eq!(why["plan"], json!(["its last write through the API is not planned yet"]), "{why:#}");
    assert_eq!(why["next"], json!(["wait, and check again"]), "{why:#}");
    assert_eq!(why["spec"].is_null(), status == "Deleting", "{why:#}");
    assert_eq!(why["fleet"], "acme/eu", "{why:#}");
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
