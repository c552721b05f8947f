mod deletions;
mod remembered;
mod rights;
mod sessions;
mod writes;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::api::KindRef;
use super::inventory::{AppliedObject, ObjectEntry};
use super::*;
use crate::catalog::{RecordedFleet, Records};
use crate::names::{Digest, ObjectKey};
use crate::plan::Reach;
use crate::target::dns::DnsZones;
use crate::target::{Intent, ObjectWrite, Task};

mod hostile;

const MAPS: &str = "/api/v1/namespaces/streamfleet-system/configmaps";
const INVENTORY: &str = "/api/v1/namespaces/streamfleet-system/configmaps/inventory";
const THING_KIND: KindRef = KindRef { api_version: "example.org/v1", kind: "Thing" };
const THINGS: &str = "/apis/example.org/v1/things";
const THING: &str = "/apis/example.org/v1/namespaces/ns/things/a";

/// Responses by method and path, in order; the last one repeats. Status 0 means no response.
type Answers = BTreeMap<(&'static str, String), VecDeque<(u16, Value)>>;

#[derive(Clone, Default)]
struct Server {
    answers: Arc<Mutex<Answers>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// The requests, each with its query and its JSON body, or null.
    sent: Arc<Mutex<Vec<(String, String, Value)>>>,
}

impl Server {
    fn new() -> Server {
        let server = Server::default();
        server.says("GET", "/api/v1/namespaces/kube-system", [(200, namespace("kube-system"))]);
        let kinds = |version: &str, kinds: Value| json!({"kind": "APIResourceList", "groupVersion": version, "resources": kinds});
        let core = kinds(
            "v1",
            json!([
                {"name": "configmaps", "kind": "ConfigMap", "namespaced": true},
                {"name": "namespaces", "kind": "Namespace", "namespaced": false},
            ]),
        );
        let own = kinds("example.org/v1", json!([{"name": "things", "kind": "Thing", "namespaced": true}]));
        server.says("GET", "/api/v1", [(200, core)]);
        server.says("GET", "/apis/example.org/v1", [(200, own)]);
        server.says("GET", MAPS, [(200, list("ConfigMap", Vec::new()))]);
        server
    }

    fn says(&self, method: &'static str, path: &str, answers: impl IntoIterator<Item = (u16, Value)>) {
        locked(&self.answers).insert((method, path.to_owned()), answers.into_iter().collect());
    }

    /// Adds an inventory with these objects, as in the middle of a run.
    fn remembers(&self, objects: &BTreeMap<ObjectKey, ObjectEntry>) {
        let chunks = [
            ("inventory", inventory(Uuid::nil(), &BTreeMap::new(), &["intents-0"])),
            ("intents-0", inventory(Uuid::nil(), objects, &[])),
        ];
        let maps = chunks.map(|(name, chunk)| config_map(name, &chunk)).to_vec();
        self.says("GET", MAPS, [(200, list("ConfigMap", maps))]);
    }

    fn count(&self, asked: &str) -> usize {
        locked(&self.asked).iter().filter(|it| it.starts_with(asked)).count()
    }

    fn bodies(&self, asked: &str) -> Vec<Value> {
        let sent = locked(&self.sent);
        sent.iter().filter(|(it, ..)| it == asked).map(|(_, _, body)| body.clone()).collect()
    }

    fn queries(&self, asked: &str) -> Vec<String> {
        let sent = locked(&self.sent);
        sent.iter().filter(|(it, ..)| it == asked).map(|(_, query, _)| query.clone()).collect()
    }

    fn answer(&self, method: &str, path: &str, query: &str, body: &[u8]) -> (u16, Value) {
        locked(&self.asked).push(format!("{method} {path}"));
        let body_sent = serde_json::from_slice(body).unwrap_or_default();
        locked(&self.sent).push((format!("{method} {path}"), query.to_owned(), body_sent));
        let mut answers = locked(&self.answers);
        let said = answers.iter_mut().find(|((of, at), _)| *of == method && at == path);
        let said = said.and_then(|(_, answers)| match answers.len() {
            0 | 1 => answers.front().cloned(),
            _ => answers.pop_front(),
        });
        said.unwrap_or_else(|| match method {
            "POST" | "PUT" => {
                let mut object: Value = serde_json::from_slice(body).unwrap();
                object["metadata"]["uid"] = "new".into();
                object["metadata"]["resourceVersion"] = "7".into();
                (201, object)
            }
            "DELETE" => (200, json!({"kind": "Status", "status": "Success"})),
            _ => refusal(404),
        })
    }

    fn api(&self) -> Arc<Api> {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let query = head.uri.query().unwrap_or_default();
                let (code, value) = server.answer(head.method.as_str(), head.uri.path(), query, &body);
                if code == 0 {
                    std::future::pending::<()>().await;
                }
                let answer = Full::<Bytes>::from(value.to_string());
                Ok::<_, kube::Error>(Response::builder().status(code).body(answer).unwrap())
            }
        });
        Arc::new(Api::new(Client::new(service, "default")))
    }

    fn target(&self) -> KubernetesTarget {
        target(self.api(), None, None)
    }
}

fn target(api: Arc<Api>, bound: Option<&str>, view: Option<Arc<ClusterWatch>>) -> KubernetesTarget {
    let api = Arc::new(OnceCell::new_with(Some(api)));
    let cluster = cluster(bound);
    let (facts, ahead) = Default::default();
    KubernetesTarget {
        fleet: fleet(),
        installation: Uuid::nil(),
        cluster,
        api,
        view,
        facts,
        zones: DnsZones::default(),
        ahead,
    }
}

fn cluster(bound: Option<&str>) -> Arc<KubernetesCluster> {
    Arc::new(KubernetesCluster {
        field: AccessField::Kubeconfig,
        access: Err("a scripted server needs none".to_owned()),
        bound: bound.map(str::to_owned),
        taken: Arc::default(),
        allowed: Vec::new(),
        described: true,
    })
}

fn fleet() -> FleetKey {
    "acme/eu".to_owned().try_into().unwrap()
}

fn owner() -> ResourceKey {
    "Cluster/acme/orders".to_owned().try_into().unwrap()
}

fn key() -> ObjectKey {
    "example.org/v1|Thing|ns|a".to_owned().try_into().unwrap()
}

fn written(uid: &str) -> ObjectEntry {
    let applied = Digest::of("manifest");
    let written = AppliedObject { uid: uid.to_owned(), applied, fields: None, left: None };
    ObjectEntry { owner: owner(), written: Some(written), intended: None, adopts: None, deleting: false }
}

fn inventory(installation: Uuid, objects: &BTreeMap<ObjectKey, ObjectEntry>, chunks: &[&str]) -> Value {
    json!({"version": 2, "fleet": fleet(), "installation": installation, "objects": objects, "chunks": chunks})
}

fn config_map(name: &str, chunk: &Value) -> Value {
    json!({"kind": "ConfigMap", "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        "data": {"inventory.json": chunk.to_string()}})
}

fn namespace(name: &str) -> Value {
    let fields = json!([{"manager": "streamfleet", "operation": "Apply", "fieldsV1": {"f:metadata": {}}}]);
    let metadata = json!({"name": name, "uid": format!("uid-{name}"), "managedFields": fields});
    json!({"kind": "Namespace", "metadata": metadata})
}

fn thing(uid: &str) -> Value {
    json!({"kind": "Thing", "metadata": {"name": "a", "namespace": "ns", "uid": uid}})
}

fn list(kind: &str, items: Vec<Value>) -> Value {
    json!({"kind": format!("{kind}List"), "metadata": {"resourceVersion": "1"}, "items": items})
}

fn refusal(code: u16) -> (u16, Value) {
    (code, json!({"kind": "Status", "status": "Failure", "code": code, "reason": "No", "message": "no"}))
}

/// Runs one task on the only object, and returns its outcome as text.
async fn done(target: &KubernetesTarget, uid: Option<&str>, deletes: bool) -> String {
    let write = ObjectWrite {
        key: key(),
        owner: owner(),
        applied: Digest::of("manifest"),
        filled: thing(""),
        uid: uid.map(str::to_owned),
        recreate: false,
        adopts: false,
    };
    let intent = match deletes {
        true => Intent { deletes: vec![key()], ..Intent::default() },
        false => Intent { writes: vec![write], ..Intent::default() },
    };
    let mut session = match target.begin(intent).await {
        Ok(session) => session,
        Err(error) => return format!("not begun: {error}"),
    };
    session.start(0, Task { object: key(), uid: uid.map(str::to_owned), deletes });
    match session.next().await.unwrap().1 {
        Ok(uid) => format!("done: {uid:?}"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn namespaces_that_a_listing_lacks_are_asked_for_where_something_of_ours_is() {
    let server = Server::new();
    let names: Vec<String> = (0..20).map(|number| format!("n{number}")).collect();
    let objects = names.iter().map(|name| {
        let path = format!("/api/v1/namespaces/{name}");
        server.says("GET", &path, [(200, namespace(name))]);
        server.says("GET", &format!("{path}/configmaps"), [(200, list("ConfigMap", Vec::new()))]);
        (super::inventory::namespace_key(name), written(&format!("uid-{name}")))
    });
    server.remembers(&objects.collect());
    server.says("GET", "/api/v1/namespaces", [(200, list("Namespace", Vec::new()))]);
    server.says("GET", "/apis", [(200, json!({"kind": "APIGroupList", "groups": []}))]);
    let seen = server.target().observe(&RecordedFleet::default(), None, &Records::default()).await;
    assert_eq!((seen.reach, seen.objects.len()), (Reach::Reached, names.len()));
    assert!(seen.objects.values().all(|object| object.ours));
}

#[tokio::test(start_paused = true)]
async fn what_is_known_as_ours_is_never_given_up_as_somebody_elses() {
    let another = "an object that streamfleet did not create is there";
    let changed = "the object with this name was replaced since the plan was made";
    for (answer, there, calls, expected) in [
        ((200, thing("ours")), "ours", 1, "done: Some(\"ours\")".to_owned()),
        ((200, thing("theirs")), "theirs", 2, format!("cannot write Thing ns/a: {another}")),
        (refusal(409), "ours", 1, format!("cannot apply Thing ns/a: {changed}")),
        (refusal(409), "theirs", 1, format!("cannot write Thing ns/a: {another}")),
    ] {
        let server = Server::new();
        server.remembers(&[(key(), written("ours"))].into());
        server.says("GET", THING, [(200, thing(there))]);
        server.says("PATCH", THING, [answer]);
        assert_eq!(done(&server.target(), None, false).await, expected);
        assert_eq!(server.count(&format!("PATCH {THING}")), calls, "{expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_planned_to_go_is_not_reported_as_gone_while_it_is_there() {
    let changed = "cannot delete Thing ns/a: the object with this name was replaced since the plan was made";
    for (planned, answer, expected) in [
        (Some("planned"), (200, thing("planned")), changed),
        (Some("planned"), (200, thing("another")), "done: None"),
        (Some("planned"), refusal(404), "done: None"),
        (None, (200, thing("another")), "done: None"),
    ] {
        let server = Server::new();
        server.says("GET", THING, [answer]);
        assert_eq!(done(&server.target(), planned, true).await, expected);
        assert_eq!(server.count("DELETE"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_not_the_first_to_claim_a_cluster_writes_nothing_there() {
    let mine = "not begun: cannot write ConfigMap streamfleet-system/inventory: the object with this name was replaced \
                since the plan was made";
    let theirs =
        "not begun: cannot use the Kubernetes cluster: another installation of streamfleet writes to it";
    for (installation, expected) in [(Uuid::nil(), mine), (Uuid::max(), theirs)] {
        let server = Server::new();
        let quicker = config_map("inventory", &inventory(installation, &BTreeMap::new(), &["intents-0"]));
        server.says("GET", INVENTORY, [refusal(404), (200, quicker)]);
        server.says("POST", MAPS, [refusal(409)]);
        assert_eq!(done(&server.target(), None, false).await, expected);
        let written = (server.count(&format!("POST {MAPS}")), server.count("PUT"), server.count("PATCH"));
        assert_eq!(written, (1, 0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_missing_only_by_the_servers_word_and_whenever_that_is_given() {
    let server = Server::new();
    let silent = json!({"kind": "APIResourceList", "groupVersion": "example.org/v1"});
    server.says("GET", "/apis/example.org/v1", [(200, silent)]);
    let error = server.api().is_served(THING_KIND).await.unwrap_err().to_string();
    let expected = "cannot list the kinds of example.org/v1: the answer doesn't match the request";
    assert_eq!(error, expected);

    // A URL that isn't served gives a 404 without a `Status`, a collection possibly one with it.
    for gone in [(404, "404 page not found".into()), refusal(404)] {
        let server = Server::new();
        let api = server.api();
        server.says("GET", THINGS, [(200, list("Thing", Vec::new())), gone]);
        let things = || api.list(THING_KIND, None, "", Some);
        assert!(things().await.is_ok() && things().await.is_err());
        server.says("GET", "/apis/example.org/v1", [refusal(404)]);
        server.says("GET", "/apis", [(200, json!({"kind": "APIGroupList", "groups": []}))]);
        assert!(things().await.is_ok_and(|things| things.is_empty()));
        assert!(!api.is_served(THING_KIND).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_listing_of_the_inventory_is_believed_only_before_the_fleet_was_made() {
    for (bound, asked) in [(None, 0), (Some("first"), 1)] {
        let server = watch::tests::server::Server::new();
        server.world().refused = Some(("configmaps/inventory", 404));
        let api = Arc::new(Api::remembering(server.client()));
        let whose = (fleet(), Uuid::nil());
        let view =
            ClusterWatch::start(whose, cluster(bound), Arc::clone(&api), Handle::current(), Arc::default());
        let (found, inventory) = target(api, bound, Some(Arc::new(view))).base().await.unwrap();
        assert!(found == "first" && inventory.is_absent());
        assert_eq!(server.count("configmaps/inventory"), asked, "{bound:?}");
    }
}
