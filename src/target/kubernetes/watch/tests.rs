//! The watches, against a scripted server and with a paused clock.

pub(in crate::target::kubernetes) mod server;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::component;
use crate::target::kubernetes::api::Mode;
use server::Server;

const THINGS: &str = "/apis/example.org/v1/things";

fn pods() -> HealthQuery {
    let kind = component::kinds().find(|kind| kind.kind == "Pod").unwrap();
    HealthQuery { kind, selector: kind.health.unwrap().selector }
}

fn thing(name: &str) -> ObjectKey {
    format!("example.org/v1|Thing|ns|{name}").try_into().unwrap()
}

fn object(name: &str, version: u64, field: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
        "labels": {"app.kubernetes.io/managed-by": "streamfleet"}, "managedFields": [
            {"manager": "streamfleet", "operation": "Apply", "fieldsV1": {"f:spec": {field: {}}}},
        ]}, "status": {"version": version}})
}

fn event(kind: &str, object: Value) -> Value {
    json!({"type": kind, "object": object})
}

fn cluster(bound: Option<&str>) -> Arc<KubernetesCluster> {
    Arc::new(KubernetesCluster {
        field: crate::target::AccessField::Kubeconfig,
        access: Err("a scripted server needs none".to_owned()),
        described: true,
        bound: bound.map(str::to_owned),
        taken: Arc::new(BTreeMap::new()),
        allowed: Vec::new(),
    })
}

fn view(server: &Server) -> ClusterWatch {
    let api = Arc::new(Api::remembering(server.client()));
    let fleet = "acme/eu".to_owned().try_into().unwrap();
    let view = ClusterWatch::start(
        (fleet, Uuid::nil()),
        cluster(Some("first")),
        api,
        Handle::current(),
        Arc::default(),
    );
    view.follow([Topic::of(&thing("a"))]);
    view
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it is still not so that {what}");
}

fn is_there(view: &ClusterWatch, name: &str) -> bool {
    matches!(view.find(&thing(name)), Some(CachedState::There(..)))
}

#[tokio::test(start_paused = true)]
async fn what_matters_is_told_from_what_does_not() {
    let server = Server::new();
    server.world().objects.insert(THINGS, vec![object("a", 5, "f:size")]);
    let view = view(&server);
    assert!(view.is_complete().await.unwrap() && is_there(&view, "a") && !is_there(&view, "b"));
    let first = view.revision().unwrap();

    // A change of status, and a bookmark.
    server.tell(THINGS, &event("MODIFIED", object("a", 11, "f:size")));
    server.tell(THINGS, &event("BOOKMARK", json!({"metadata": {"resourceVersion": "12"}})));
    until("both are taken in", || view.feeds().values().any(|it| it.feed.state().cache.version == 12)).await;
    assert_eq!(view.revision(), Some(first));

    for (kind, name, version, field) in
        [("MODIFIED", "a", 13, "f:other"), ("ADDED", "b", 14, "f:size"), ("DELETED", "a", 15, "f:other")]
    {
        let before = view.revision();
        server.tell(THINGS, &event(kind, object(name, version, field)));
        until("it matters", || view.revision().is_some() && view.revision() != before).await;
    }
    assert!(!is_there(&view, "a") && is_there(&view, "b"));
    assert_eq!(server.count("GET /apis/example.org/v1/things?"), 2, "a list and a watch");
}

fn pod(version: u64, ready: &str, ip: &str) -> Value {
    json!({"metadata": {"name": "orders-0", "namespace": "ns", "resourceVersion": version.to_string(),
        "labels": {"strimzi.io/cluster": "orders"}, "managedFields": [{"manager": "kubelet"}]},
        "spec": {"nodeName": "n"}, "status": {"podIP": ip, "conditions": [{"type": "Ready", "status": ready}]}})
}

#[tokio::test(start_paused = true)]
async fn what_clusters_are_judged_by_is_told_and_moves_no_plan() {
    const PODS: &str = "/api/v1/pods";
    let server = Server::new();
    server.world().objects.insert(PODS, vec![pod(5, "True", "10.0.0.1")]);
    let view = view(&server);
    assert!(view.is_complete().await.unwrap());
    let plan = view.revision();
    let signs = view.signs(pods()).await.unwrap().unwrap();
    let kept = json!({"kind": "Pod", "metadata": {"name": "orders-0", "namespace": "ns",
        "labels": {"strimzi.io/cluster": "orders"}}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(signs, [Json::from(kept)]);
    until("the watch is known to go on", || view.health_revision().is_some()).await;

    let first = view.health_revision();
    server.tell(PODS, &event("MODIFIED", pod(11, "True", "10.0.0.2")));
    let version = || view.feeds().values().map(|it| it.feed.state().cache.version).max();
    until("it is taken in", || version() == Some(11)).await;
    assert_eq!(view.health_revision(), first, "its address says nothing");
    server.tell(PODS, &event("MODIFIED", pod(12, "False", "10.0.0.2")));
    until("it is taken in", || version() == Some(12)).await;
    assert_ne!(view.health_revision(), first);
    assert_eq!(view.revision(), plan);

    // Without permission to list, the caller asks the server, and plans go on.
    server.world().refused = Some(("pods", 403));
    server.end_watches();
    until("it is refused", || view.health_revision().is_none() && view.revision().is_some()).await;
    until("it is asked for", || view.stand(&Topic::health(pods())) == Some(WatchStatus::Forbidden)).await;
    assert_eq!(view.signs(pods()).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_reaches_too_far_back_is_begun_anew() {
    let server = Server::new();
    server.world().objects.insert(THINGS, vec![object("a", 5, "f:size")]);
    let view = view(&server);
    assert!(view.is_complete().await.unwrap());

    // In the middle of a watch, and at the start of the next one.
    for (version, name) in [(20, "b"), (30, "c")] {
        {
            let mut world = server.world();
            (world.version, world.compacted) = (version, version);
            world.objects.insert(THINGS, vec![object(name, version, "f:size")]);
        }
        if name == "b" {
            server.tell(THINGS, &event("ERROR", json!({"code": 410, "message": "too old resource version"})));
        } else {
            server.end_watches();
        }
        until("the new list is known", || is_there(&view, name)).await;
        until("it is followed again", || view.revision().is_some()).await;
    }
    assert!(!is_there(&view, "a") && !is_there(&view, "b"));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_silent_is_given_up_and_goes_on_where_it_was() {
    let server = Server::new();
    server.world().objects.insert(THINGS, vec![object("a", 5, "f:size")]);
    let view = view(&server);
    assert!(view.is_complete().await.unwrap());
    let (asked, listed) = (server.count("kube-system"), server.count("continue="));
    tokio::time::sleep(kind_watch::SILENCE * 2).await;
    assert!(server.count("watch=true") > 2);
    assert!(
        server.count("kube-system") > asked,
        "the cluster is asked which it is before it is believed again"
    );
    assert_eq!(server.count("continue="), listed, "nothing has to be listed again");
    assert!(is_there(&view, "a") && view.revision().is_some());
}

#[tokio::test(start_paused = true)]
async fn another_cluster_at_the_same_address_is_not_believed() {
    let server = Server::new();
    server.world().objects.insert(THINGS, vec![object("a", 5, "f:size")]);
    let view = view(&server);
    assert!(view.is_complete().await.unwrap());
    let listed = server.count("continue=");
    {
        let mut world = server.world();
        world.uid = "second".to_owned();
        world.objects.clear();
    }
    server.end_watches();
    until("the fleet is out of reach", || view.revision().is_none()).await;
    let error = view.is_complete().await.unwrap_err();
    let expected = KubeError::AnotherCluster { bound: "first".to_owned(), found: "second".to_owned() };
    assert_eq!(error, expected);
    assert_eq!(server.count("continue="), listed, "nothing of it is read");

    // Once the fleet is bound to the second cluster, that one is watched, without objects of the first.
    view.renew(cluster(Some("second")));
    until("the other is followed", || view.revision().is_some()).await;
    assert!(!is_there(&view, "a"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_no_empty_cluster() {
    let server = Server::new();
    server.world().objects.insert(THINGS, vec![object("a", 5, "f:size")]);
    let view = view(&server);
    assert!(view.is_complete().await.unwrap());
    server.world().away = true;
    server.end_watches();
    until("the fleet is out of reach", || view.revision().is_none()).await;
    let error = view.is_complete().await.unwrap_err();
    assert!(error.to_string().ends_with("it is away"), "{error}");
    server.world().away = false;
    until("it is back", || view.revision().is_some()).await;
    assert!(is_there(&view, "a"));

    // Nor is a server that refuses a list.
    {
        let mut world = server.world();
        (world.refused, world.version, world.compacted) = (Some(("things", 500)), 90, 90);
    }
    server.end_watches();
    until("the fleet is out of reach", || view.revision().is_none()).await;
    let error = view.is_complete().await.unwrap_err();
    assert!(error.to_string().contains("the server refused it with 500"), "{error}");
    server.world().refused = None;
    until("it is back", || view.revision().is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_listed_is_asked_for() {
    let server = Server::new();
    server.world().refused = Some(("things", 403));
    let view = view(&server);
    assert!(view.is_complete().await.unwrap());
    assert!(view.find(&thing("a")).is_none());
    assert_eq!(view.revision(), None, "a change could go unseen");
    server.world().refused = None;
    until("it is watched once it may be", || view.revision().is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_watched_once_it_is() {
    let server = Server::new();
    server.world().served.clear();
    let view = view(&server);
    assert!(view.is_complete().await.unwrap() && !is_there(&view, "a"));
    {
        let mut world = server.world();
        world.served.insert("Thing", "things");
        world.objects.insert(THINGS, vec![object("a", 5, "f:size")]);
    }
    until("the kind is known", || is_there(&view, "a")).await;
}

#[tokio::test(start_paused = true)]
async fn what_we_wrote_is_waited_for() {
    let server = Server::new();
    let view = view(&server);
    assert!(view.is_complete().await.unwrap());
    assert!(view.api.apply(&thing("a"), &json!({}), Mode { force: false, dry: false }).await.is_ok());
    assert_eq!(view.revision(), None);
    assert!(!view.is_complete().await.unwrap(), "the server would have to be asked");
    server.tell(THINGS, &event("ADDED", object("a", 11, "f:size")));
    assert!(view.is_complete().await.unwrap() && is_there(&view, "a"));

    // A deletion of a missing object is not waited for, another one is.
    assert!(view.api.delete(&thing("b"), "uid-b").await.is_ok() && view.is_complete().await.unwrap());
    assert!(view.api.delete(&thing("a"), "uid-a").await.is_ok() && !view.is_complete().await.unwrap());
    server.tell(THINGS, &event("DELETED", object("a", 12, "f:size")));
    assert!(view.is_complete().await.unwrap() && !is_there(&view, "a"));
}
