//! A scripted API server.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::StreamExt as _;
use futures_util::stream;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tower::BoxError;

type Answer = BoxBody<Bytes, Infallible>;

pub struct World {
    pub uid: String,
    /// The objects by the URL path of their collection.
    pub objects: BTreeMap<&'static str, Vec<Value>>,
    /// The kinds of the API version `example.org/v1`, with their plural names.
    pub served: BTreeMap<&'static str, &'static str>,
    pub version: u64,
    /// Watches can't resume from before this version.
    pub compacted: u64,
    /// A part of a URL, and the status that such requests get.
    pub refused: Option<(&'static str, u16)>,
    pub away: bool,
    pub asked: Vec<String>,
    watches: Vec<(String, UnboundedSender<Value>)>,
}

#[derive(Clone)]
pub struct Server(Arc<Mutex<World>>);

impl Server {
    pub fn new() -> Server {
        Server(Arc::new(Mutex::new(World {
            uid: "first".to_owned(),
            objects: BTreeMap::new(),
            served: BTreeMap::from([("Thing", "things")]),
            version: 10,
            compacted: 0,
            refused: None,
            away: false,
            asked: Vec::new(),
            watches: Vec::new(),
        })))
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    pub fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = server.world().answer(&request);
            async move { answer }
        });
        Client::new(service, "default")
    }

    pub fn tell(&self, collection: &str, event: &Value) {
        let mut world = self.world();
        let (of, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut world.watches).into_iter().partition(|(place, _)| place == collection);
        assert!(!of.is_empty(), "nobody watches {collection}");
        world.watches =
            of.into_iter().filter(|(_, watch)| watch.send(event.clone()).is_ok()).chain(others).collect();
    }

    /// Ends all watches, as a server that shuts down.
    pub fn end_watches(&self) {
        self.world().watches.clear();
    }

    pub fn count(&self, part: &str) -> usize {
        self.world().asked.iter().filter(|asked| asked.contains(part)).count()
    }
}

impl World {
    fn answer(&mut self, request: &Request<Body>) -> Result<Response<Answer>, BoxError> {
        let url = request.uri().to_string();
        self.asked.push(format!("{} {url}", request.method()));
        if self.away {
            return Err("it is away".into());
        }
        if let Some((_, code)) = self.refused.filter(|(part, _)| url.contains(part)) {
            return Ok(refusal(code));
        }
        let path = request.uri().path();
        Ok(match path {
            "/api/v1/namespaces/kube-system" => {
                whole(&json!({"kind": "Namespace", "metadata": {"name": "kube-system", "uid": self.uid}}))
            }
            "/api/v1" => whole(&json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
                {"name": "configmaps", "kind": "ConfigMap", "namespaced": true},
                {"name": "namespaces", "kind": "Namespace", "namespaced": false},
                {"name": "pods", "kind": "Pod", "namespaced": true},
            ]})),
            "/apis/example.org/v1" => {
                let kind =
                    |(kind, name): (&&str, &&str)| json!({"name": name, "kind": kind, "namespaced": true});
                let kinds: Vec<Value> = self.served.iter().map(kind).collect();
                whole(
                    &json!({"kind": "APIResourceList", "groupVersion": "example.org/v1", "resources": kinds}),
                )
            }
            _ if url.contains("watch=true") => self.watch(path, &url),
            _ if request.method() == "PATCH" => {
                self.version += 1;
                whole(
                    &json!({"kind": "Thing", "metadata": {"name": "a", "uid": "u", "resourceVersion": self.version.to_string(),
                    "labels": {"app.kubernetes.io/managed-by": "streamfleet"}}}),
                )
            }
            _ if request.method() == "DELETE" && !path.ends_with("/a") => refusal(404),
            _ if request.method() == "DELETE" => whole(&json!({"kind": "Status", "status": "Success"})),
            _ => {
                let mut items = self.objects.get(path).cloned().unwrap_or_default();
                let accepted = request.headers().get("accept").and_then(|accept| accept.to_str().ok());
                let is_metadata = accepted.is_some_and(|it| it.contains("PartialObjectMetadataList"));
                if is_metadata {
                    for item in &mut items {
                        *item = json!({"metadata": item["metadata"]});
                    }
                }
                let kind = match path.rsplit_once('/') {
                    _ if is_metadata => "PartialObjectMetadataList",
                    Some((_, "things")) => "ThingList",
                    Some((_, "pods")) => "PodList",
                    _ => "ConfigMapList",
                };
                let version = self.version.to_string();
                whole(&json!({"kind": kind, "metadata": {"resourceVersion": version}, "items": items}))
            }
        })
    }

    fn watch(&mut self, path: &str, url: &str) -> Response<Answer> {
        let since = url.split("resourceVersion=").nth(1).and_then(|rest| rest.split('&').next());
        if since.and_then(|since| since.parse::<u64>().ok()).is_none_or(|since| since < self.compacted) {
            return refusal(410);
        }
        let (tell, mut events) = unbounded_channel::<Value>();
        self.watches.push((path.to_owned(), tell));
        let lines = stream::poll_fn(move |context| events.poll_recv(context));
        let frames = lines.map(|event| Ok::<_, Infallible>(Frame::data(Bytes::from(format!("{event}\n")))));
        Response::new(BoxBody::new(StreamBody::new(frames)))
    }
}

fn whole(value: &Value) -> Response<Answer> {
    Response::new(BoxBody::new(Full::from(value.to_string())))
}

fn refusal(code: u16) -> Response<Answer> {
    let status =
        json!({"kind": "Status", "status": "Failure", "code": code, "reason": "No", "message": "no"});
    let mut answer = whole(&status);
    *answer.status_mut() = StatusCode::from_u16(code).unwrap();
    answer
}
