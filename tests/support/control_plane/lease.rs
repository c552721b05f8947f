//! Control planes that tests use one after another: starting one takes five seconds of processor time, and
//! putting one back to how it started takes milliseconds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::proxy::wire::Message;
use super::{ControlPlane, PAUSE};

static IDLE: Mutex<Vec<ControlPlane>> = Mutex::new(Vec::new());

/// Keys that the API server writes for itself at any time.
const ITS_OWN: [&str; 8] = [
    "/registry/leases/kube-system/",
    "/registry/masterleases/",
    "/registry/flowschemas/",
    "/registry/prioritylevelconfigurations/",
    "/registry/namespaces/kube-",
    "/registry/namespaces/default",
    "/registry/services/specs/default/kubernetes",
    "/registry/storageversionmigrations/",
];

/// Keys of which the API server acts on a change some time later. A control plane where they changed is not
/// used again.
const ACTED_ON_LATER: [&str; 3] = [
    "/registry/apiextensions.k8s.io/",
    "/registry/apiregistration.k8s.io/",
    "/registry/admissionregistration.k8s.io/",
];

/// A control plane that no other test has at the same time. It has what it started with, and nothing of
/// earlier tests.
pub struct Lease {
    /// `None` only during drop.
    plane: Option<ControlPlane>,
}

impl ControlPlane {
    /// A control plane that another test is done with, or a new one.
    pub fn lease() -> Lease {
        loop {
            let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(mut plane) = idle else { return Lease { plane: Some(ControlPlane::start()) } };
            if plane.reset() {
                return Lease { plane: Some(plane) };
            }
        }
    }

    /// Puts everything back that was changed since the start. Returns false if that is not possible.
    fn reset(&mut self) -> bool {
        let mut store = Store::of(self);
        loop {
            let now = store.revisions();
            let is_same = |key: &&String| {
                let first = self.first.get(*key).map(|entry| &entry.revision);
                now.get(*key) == first || ITS_OWN.iter().any(|own| key.starts_with(own))
            };
            let changed: Vec<&String> =
                now.keys().chain(self.first.keys()).filter(|key| !is_same(key)).collect();
            if changed.is_empty() {
                return true;
            }
            if changed.iter().any(|key| ACTED_ON_LATER.iter().any(|prefix| key.starts_with(prefix))) {
                return false;
            }
            for key in changed.into_iter().cloned().collect::<Vec<_>>() {
                match self.first.get_mut(&key) {
                    None => store.delete(&key),
                    Some(entry) => entry.revision = store.put(&key, &entry.value),
                }
            }
            // The API server may still execute a call of a process that the last test killed.
            sleep(PAUSE);
        }
    }
}

impl Deref for Lease {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.plane.as_ref().unwrap()
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut ControlPlane {
        self.plane.as_mut().unwrap()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut plane = self.plane.take().unwrap();
        plane.controllers = None;
        if plane.server.is_some() && !plane.replaced && !std::thread::panicking() {
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(plane);
        }
    }
}

/// A key's value, in base64, and the revision that it was written with.
pub(super) struct Entry {
    revision: String,
    value: String,
}

/// etcd, by its JSON interface.
pub(super) struct Store {
    connection: BufReader<UnixStream>,
}

impl Store {
    pub(super) fn of(plane: &ControlPlane) -> Store {
        // By the folder's descriptor, since the path of a socket may have only some hundred bytes.
        let folder = File::open(plane.folder.path()).unwrap();
        let socket = format!("/proc/self/fd/{}/etcd.sock", folder.as_raw_fd());
        Store { connection: BufReader::new(UnixStream::connect(socket).unwrap()) }
    }

    pub(super) fn entries(&mut self) -> BTreeMap<String, Entry> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entries = self.all(false).into_iter();
        entries
            .map(|(key, kv)| (key, Entry { revision: text(&kv["mod_revision"]), value: text(&kv["value"]) }))
            .collect()
    }

    fn revisions(&mut self) -> BTreeMap<String, String> {
        let revision = |kv: &Value| kv["mod_revision"].as_str().unwrap().to_owned();
        self.all(true).into_iter().map(|(key, kv)| (key, revision(&kv))).collect()
    }

    fn all(&mut self, keys_only: bool) -> Vec<(String, Value)> {
        let range =
            json!({"key": STANDARD.encode("/"), "range_end": STANDARD.encode("0"), "keys_only": keys_only});
        let mut answer = self.call("range", &range);
        let Value::Array(kvs) = answer["kvs"].take() else { panic!("no keys in {answer}") };
        let key =
            |kv: &Value| String::from_utf8(STANDARD.decode(kv["key"].as_str().unwrap()).unwrap()).unwrap();
        kvs.into_iter().map(|kv| (key(&kv), kv)).collect()
    }

    fn delete(&mut self, key: &str) {
        self.call("deleterange", &json!({"key": STANDARD.encode(key)}));
    }

    /// Returns the revision that it is written with.
    fn put(&mut self, key: &str, value: &str) -> String {
        let answer = self.call("put", &json!({"key": STANDARD.encode(key), "value": value}));
        answer["header"]["revision"].as_str().unwrap().to_owned()
    }

    fn call(&mut self, what: &str, body: &Value) -> Value {
        let head =
            format!("POST /v3/kv/{what} HTTP/1.1\r\nhost: etcd\r\ncontent-type: application/json\r\n\r\n");
        Message { head, body: body.to_string().into_bytes() }.write(self.connection.get_mut()).unwrap();
        let answer = Message::read(&mut self.connection).unwrap().expect("etcd answers");
        assert_eq!(answer.status(), 200, "{}", String::from_utf8_lossy(&answer.body));
        serde_json::from_slice(&answer.body).unwrap()
    }
}
