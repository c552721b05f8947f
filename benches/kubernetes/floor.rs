//! The floor: the same objects in a bare loop of calls with the same client library, the least that any
//! program does.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::api::{
    Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, TypeMeta, WatchEvent, WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, Config};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::measure::Measured;
use crate::tests::support::control_plane::ControlPlane;

/// Calls in flight at a time, and objects per page of a list.
const AT_ONCE: usize = 32;
const PAGE: u32 = 500;

pub struct Floor<'p> {
    plane: &'p ControlPlane,
    runtime: Runtime,
    client: Client,
}

pub type Kinds = BTreeMap<(String, String), ApiResource>;

impl<'p> Floor<'p> {
    pub fn connect(plane: &'p ControlPlane) -> io::Result<Floor<'p>> {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let runtime = Runtime::new()?;
        let client = runtime.block_on(async {
            let kubeconfig = Kubeconfig::from_yaml(&plane.kubeconfig()).map_err(io::Error::other)?;
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            Client::try_from(config.map_err(io::Error::other)?).map_err(io::Error::other)
        })?;
        Ok(Floor { plane, runtime, client })
    }

    /// Applies objects, cluster-scoped ones first. One call per object, nothing else.
    pub fn apply<'o>(&self, objects: impl IntoIterator<Item = &'o Value>) -> io::Result<Measured> {
        let objects: Vec<&Value> = objects.into_iter().collect();
        let kinds = self.kinds(&objects)?;
        let (namespaces, others): (Vec<&Value>, Vec<&Value>) =
            objects.into_iter().partition(|object| object["metadata"]["namespace"].is_null());
        Measured::of(self.plane, || {
            for objects in [namespaces, others] {
                let calls: Vec<_> = objects.into_iter().map(|object| self.patch(&kinds, object)).collect();
                let calls = stream::iter(calls).buffer_unordered(AT_ONCE).try_collect::<Vec<_>>();
                self.runtime.block_on(calls).map_err(io::Error::other)?;
            }
            Ok(())
        })
    }

    pub fn list(&self, objects: &[Value]) -> io::Result<Measured> {
        let kinds = self.kinds(&objects.iter().collect::<Vec<_>>())?;
        Measured::of(self.plane, || {
            for kind in kinds.values() {
                let api: Api<DynamicObject> = Api::all_with(self.client.clone(), kind);
                let mut page = ListParams::default().limit(PAGE);
                loop {
                    let list = self.runtime.block_on(api.list(&page)).map_err(io::Error::other)?;
                    match list.metadata.continue_.filter(|token| !token.is_empty()) {
                        Some(token) => page = page.continue_token(&token),
                        None => break,
                    }
                }
            }
            Ok(())
        })
    }

    pub fn apply_one(&self, kinds: &Kinds, object: &Value) -> io::Result<()> {
        self.runtime.block_on(self.patch(kinds, object)).map(drop).map_err(io::Error::other)
    }

    pub fn watch(&self, kinds: &Kinds, object: &Value) -> io::Result<Events> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kinds[&identity(object)]);
        let now = self.runtime.block_on(api.list(&ListParams::default().limit(1)));
        let now = now.map_err(io::Error::other)?.metadata.resource_version.unwrap_or_default();
        let (tell, told) = channel();
        self.runtime.spawn(follow(api, now, tell));
        Ok(Events(told))
    }

    async fn patch(&self, kinds: &Kinds, object: &Value) -> kube::Result<DynamicObject> {
        let kind = &kinds[&identity(object)];
        let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, kind),
            None => Api::all_with(self.client.clone(), kind),
        };
        let name = object["metadata"]["name"].as_str().expect("an object has a name");
        api.patch(name, &PatchParams::apply("floor"), &Patch::Apply(object)).await
    }

    pub fn kinds(&self, objects: &[&Value]) -> io::Result<Kinds> {
        let mut kinds = Kinds::new();
        for object in objects {
            let identity = identity(object);
            if kinds.contains_key(&identity) {
                continue;
            }
            let types = TypeMeta { api_version: identity.0.clone(), kind: identity.1.clone() };
            let kind = GroupVersionKind::try_from(&types).map_err(io::Error::other)?;
            let found = self.runtime.block_on(kube::discovery::pinned_kind(&self.client, &kind));
            kinds.insert(identity, found.map_err(io::Error::other)?.0);
        }
        Ok(kinds)
    }
}

/// Watch events: the arrival time, and the whole object as JSON.
pub struct Events(Receiver<(Instant, String)>);

impl Events {
    /// Waits for an object whose JSON contains this text, and returns when its event arrived.
    pub fn wait(&self, text: &str, patience: Duration) -> io::Result<Instant> {
        loop {
            let (at, object) = self.0.recv_timeout(patience).map_err(io::Error::other)?;
            if object.contains(text) {
                return Ok(at);
            }
        }
    }
}

/// Forwards watch events until the receiver is dropped.
async fn follow(api: Api<DynamicObject>, mut version: String, tell: Sender<(Instant, String)>) {
    // The server ends each watch after some minutes.
    while let Ok(events) = api.watch(&WatchParams::default(), &version).await {
        let mut events = std::pin::pin!(events);
        while let Some(Ok(event)) = events.next().await {
            let at = Instant::now();
            let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event else { continue };
            version = object.metadata.resource_version.clone().unwrap_or_default();
            let object = serde_json::to_string(&object).unwrap_or_default();
            if tell.send((at, object)).is_err() {
                return;
            }
        }
    }
}

fn identity(object: &Value) -> (String, String) {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    (text("apiVersion"), text("kind"))
}
