//! Calls to an API server. A response is believed only if it matches the request: no object counts as gone
//! because a proxy said "not found".

mod grant;
mod lists;
mod logs;
mod pod_metrics;
mod writes;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::{Method, Request};
use kube::Client;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

use super::answer::{CallError, ServerAnswer, attempt};
use super::budget::Budget;
use super::error::KubeError;
use super::inventory::namespace_key;
use super::retry::{CALL_TIMEOUT, Repeatability, call_with_retries};
use super::server_liveness::ServerLiveness;
use super::tally;
use super::untrusted;
use super::watch::OwnWrite;
use crate::component::KubernetesKind;
use crate::names::ObjectKey;
use crate::parallel::locked;

pub(super) use lists::ListResult;
pub(super) use logs::LogPart;
pub(super) use writes::{ApplyAnswer, ApplyError, Mode};

/// Our field manager.
pub(super) const MANAGER: &str = "streamfleet";

/// The largest number of kinds that is read of one API version. Kubernetes' own have 40, the largest others
/// some hundreds.
const MAX_KINDS: usize = 2_000;

/// The plural name of a kind in URLs, and whether its objects are namespaced.
type Served = (String, bool);

/// A kind in calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KindRef<'k> {
    pub(super) api_version: &'k str,
    pub(super) kind: &'k str,
}

impl KindRef<'static> {
    /// A kind of the core group.
    pub(super) const fn core(kind: &'static str) -> Self {
        Self { api_version: "v1", kind }
    }
}

impl From<&KubernetesKind> for KindRef<'static> {
    fn from(kind: &KubernetesKind) -> Self {
        Self { api_version: kind.api_version, kind: kind.kind }
    }
}

impl<'k> From<&'k ObjectKey> for KindRef<'k> {
    fn from(key: &'k ObjectKey) -> Self {
        Self { api_version: &key.api_version, kind: &key.kind }
    }
}

pub(super) struct Api {
    client: Client,
    pulse: ServerLiveness,
    budget: Arc<Budget>,
    served: Mutex<BTreeMap<String, BTreeMap<String, Served>>>,
    /// Our writes that the watches have yet to deliver. None without watches.
    written: Option<Mutex<Vec<OwnWrite>>>,
    secrets_everywhere: OnceCell<bool>,
    user: OnceCell<String>,
    /// Namespaces in which granting ourselves access to Secrets failed, and when.
    unhelped: Mutex<BTreeMap<String, Instant>>,
}

impl Api {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            pulse: ServerLiveness::default(),
            budget: Arc::default(),
            served: Mutex::default(),
            written: None,
            secrets_everywhere: OnceCell::new(),
            user: OnceCell::new(),
            unhelped: Mutex::default(),
        }
    }

    /// An `Api` that remembers its writes until [`Self::take_written`].
    pub(super) fn remembering(client: Client) -> Self {
        Self { written: Some(Mutex::default()), ..Self::new(client) }
    }

    pub(super) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    pub(super) fn take_written(&self) -> Vec<OwnWrite> {
        let written = self.written.as_ref().map(|it| locked(it));
        written.map(|mut written| std::mem::take(&mut *written)).unwrap_or_default()
    }

    fn wrote(&self, written: Option<OwnWrite>) {
        if let (Some(all), Some(written)) = (&self.written, written) {
            locked(all).push(written);
        }
    }

    /// The UID of `kube-system`, which identifies the Kubernetes cluster.
    pub(super) async fn cluster(&self) -> Result<String, KubeError> {
        let answer = self.send(Repeatability::Repeatable, kube_system()?).await;
        answer.map_err(|(failed, tries)| failed.into_kube_error(KUBE_SYSTEM, tries)).and_then(kube_system_uid)
    }

    /// Like [`Self::cluster`], in one try and even while the server counts as silent. The caller repeats it
    /// until there is an answer.
    pub(super) async fn probe(&self) -> Result<String, KubeError> {
        let answer = timeout(CALL_TIMEOUT, attempt(&self.client, &self.budget, kube_system()?)).await;
        let answer = answer
            .unwrap_or(Err(CallError::Overdue(CALL_TIMEOUT)))
            .map_err(|failed| failed.into_kube_error(KUBE_SYSTEM, 1))?;
        self.pulse.answered(Instant::now());
        kube_system_uid(answer)
    }

    pub(super) async fn falls_silent(&self) -> KubeError {
        loop {
            self.pulse.falls_silent.notified().await;
            if let Some(reason) = self.pulse.silence(Instant::now()) {
                return KubeError::connection(KUBE_SYSTEM, reason);
            }
        }
    }

    /// Reads an object. None when the object or its kind doesn't exist.
    pub(super) async fn get(&self, key: &ObjectKey) -> Result<Option<Value>, KubeError> {
        let Some(path) = self.path(key).await? else { return Ok(None) };
        let attempted = format!("read {key}");
        let found = found(self.call(&attempted, Method::GET, &path, None, &Value::Null).await)?;
        found.map(|object| checked_object(&attempted, key, object)).transpose()
    }

    pub(super) async fn is_served(&self, kind: KindRef<'_>) -> Result<bool, KubeError> {
        Ok(self.served(kind).await?.is_some())
    }

    async fn path(&self, key: &ObjectKey) -> Result<Option<String>, KubeError> {
        let Some((plural, namespaced)) = self.served(key.into()).await? else {
            return Ok(None);
        };
        let namespace = key.namespace.as_deref().filter(|_| namespaced);
        Ok(Some(format!("{}/{}", collection(&key.api_version, &plural, namespace), encoded(&key.name))))
    }

    /// Looks a kind up in the cache, then on the server. An unknown kind is not cached.
    async fn served(&self, kind: KindRef<'_>) -> Result<Option<Served>, KubeError> {
        let KindRef { api_version, kind } = kind;
        let known = |kinds: &BTreeMap<String, Served>| kinds.get(kind).cloned();
        let cached = self.lock().get(api_version).and_then(known);
        if cached.is_some() {
            return Ok(cached);
        }
        let Some(kinds) = self.kinds(api_version).await? else { return Ok(None) };
        let served = known(&kinds);
        self.lock().insert(api_version.to_owned(), kinds);
        Ok(served)
    }

    /// The kinds of an API version. None when the server doesn't have the version.
    pub(super) async fn kinds(
        &self,
        api_version: &str,
    ) -> Result<Option<BTreeMap<String, Served>>, KubeError> {
        let attempted = format!("list the kinds of {api_version}");
        let request = request(&attempted, Method::GET, &root(api_version), None, &Value::Null)?;
        let list = match self.send(Repeatability::Repeatable, request).await {
            Ok(ServerAnswer { value: list, .. })
                if list["kind"] == "APIResourceList" && list["groupVersion"] == api_version =>
            {
                list
            }
            Ok(_) => return Err(unexpected_response(&attempted)),
            Err((failed, _))
                if failed.is_not_found() && !self.lists_version(&attempted, api_version).await? =>
            {
                return Ok(None);
            }
            Err((failed, tries)) => return Err(failed.into_kube_error(&attempted, tries)),
        };
        // A missing field says nothing about any kind.
        let resources = list["resources"].as_array().ok_or_else(|| unexpected_response(&attempted))?;
        // Truncating is no option: objects of an omitted kind would count as gone.
        if resources.len() > MAX_KINDS {
            let reason = format!("{api_version} has more than {MAX_KINDS} kinds");
            return Err(KubeError::too_much(&attempted, reason));
        }
        let kinds = resources.iter().filter_map(|resource| {
            let text = |field: &str| resource.get(field).and_then(Value::as_str);
            // `pods/log` and the like are subresources.
            let plural = text("name").filter(|name| !name.contains('/'))?;
            let namespaced = resource.get("namespaced").and_then(Value::as_bool)?;
            Some((text("kind")?.to_owned(), (encoded(plural), namespaced)))
        });
        Ok(Some(kinds.collect()))
    }

    /// Whether the server's list of API groups has this version. A 404 alone doesn't prove that a kind is
    /// gone.
    async fn lists_version(&self, attempted: &str, api_version: &str) -> Result<bool, KubeError> {
        let groups = self.call(attempted, Method::GET, "/apis", None, &Value::Null).await?;
        let listed = groups["groups"].as_array().filter(|_| groups["kind"] == "APIGroupList");
        let groups = listed.ok_or_else(|| unexpected_response(attempted))?.iter();
        let mut versions = groups.flat_map(|group| group["versions"].as_array().into_iter().flatten());
        Ok(api_version == "v1" || versions.any(|version| version["groupVersion"] == api_version))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, BTreeMap<String, Served>>> {
        // The cache only ever has whole values, so a panic can't have left it inconsistent.
        locked(&self.served)
    }

    /// Makes a repeatable call. `attempted` describes it in errors.
    pub(super) async fn call(
        &self,
        attempted: &str,
        method: Method,
        path: &str,
        content: Option<&str>,
        body: &Value,
    ) -> Result<Value, KubeError> {
        let request = request(attempted, method, path, content, body)?;
        let answer = self.send(Repeatability::Repeatable, request).await;
        answer.map(|answer| answer.value).map_err(|(failed, tries)| failed.into_kube_error(attempted, tries))
    }

    /// Sends a request with retries. An error comes with the number of tries.
    async fn send(
        &self,
        nature: Repeatability,
        request: Request<Vec<u8>>,
    ) -> Result<ServerAnswer, (CallError, u32)> {
        self.send_by(nature, request.uri().path(), || attempt(&self.client, &self.budget, request.clone()))
            .await
    }

    /// Like [`Self::send`], for any way to read the response.
    async fn send_by<T, C: Future<Output = Result<T, CallError>>>(
        &self,
        nature: Repeatability,
        path: &str,
        attempt: impl Fn() -> C,
    ) -> Result<T, (CallError, u32)> {
        let began = Instant::now();
        if let Some(reason) = self.pulse.silence(began) {
            return Err((CallError::Resting(reason), 0));
        }
        let mut answer = self.persistent(nature, &attempt).await;
        if let Err((failed, _)) = &answer
            && Box::pin(self.grant_after_refusal(path, failed)).await
        {
            answer = self.once_granted(nature, path, &attempt).await;
        }
        match &answer {
            Err((failed, _)) if failed.is_silence() => {
                self.pulse.was_silent(began, Instant::now(), &failed.reason());
            }
            _ => self.pulse.answered(Instant::now()),
        }
        // A URL that isn't served gives a 404 without a `Status`: the kind may have gone, or have moved to
        // another version.
        if let Err((CallError::Stray { code: 404, .. }, _)) = &answer {
            self.lock().clear();
        }
        answer
    }

    async fn persistent<T, C: Future<Output = Result<T, CallError>>>(
        &self,
        nature: Repeatability,
        attempt: impl Fn() -> C,
    ) -> Result<T, (CallError, u32)> {
        let answer = call_with_retries(nature, attempt).await;
        tally::count(&answer);
        answer
    }
}

const KUBE_SYSTEM: &str = "read the namespace kube-system";

fn kube_system() -> Result<Request<Vec<u8>>, KubeError> {
    request(KUBE_SYSTEM, Method::GET, "/api/v1/namespaces/kube-system", None, &Value::Null)
}

fn kube_system_uid(answer: ServerAnswer) -> Result<String, KubeError> {
    let namespace = checked_object(KUBE_SYSTEM, &namespace_key("kube-system"), answer.value)?;
    Ok(uid(&namespace).unwrap_or_default().to_owned())
}

fn request(
    attempted: &str,
    method: Method,
    path: &str,
    content: Option<&str>,
    body: &Value,
) -> Result<Request<Vec<u8>>, KubeError> {
    let request = Request::builder().method(method).uri(path).header("accept", "application/json");
    let request = match content {
        Some(content) => request.header("content-type", content).body(body.to_string().into_bytes()),
        None => request.body(Vec::new()),
    };
    request.map_err(|error| KubeError::connection(attempted, error.to_string()))
}

/// The kind whose objects are listed and watched as metadata only, so that the process doesn't collect a
/// cluster's secrets.
const SECRET: &str = "Secret";

fn metadata_alone(form: &str, request: &mut Request<Vec<u8>>) {
    let accept = format!("application/json;as={form};g=meta.k8s.io;v=v1");
    if let Ok(accept) = accept.parse() {
        request.headers_mut().insert("accept", accept);
    }
}

fn found(answer: Result<Value, KubeError>) -> Result<Option<Value>, KubeError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_code(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns an object if it is the requested one, and not a proxy's response.
fn checked_object(attempted: &str, key: &ObjectKey, object: Value) -> Result<Value, KubeError> {
    let is_one = object["kind"] == key.kind.as_str()
        && object.pointer("/metadata/name").is_some_and(|name| name == key.name.as_str())
        && uid(&object).is_some_and(|uid| !uid.is_empty())
        && untrusted::is_named_properly(&key.kind, &object);
    if is_one { Ok(object) } else { Err(unexpected_response(attempted)) }
}

pub(super) fn unexpected_response(attempted: &str) -> KubeError {
    KubeError::connection(attempted, "the answer doesn't match the request")
}

fn root(api_version: &str) -> String {
    match api_version.split_once('/') {
        Some((group, version)) => format!("/apis/{}/{}", encoded(group), encoded(version)),
        None => format!("/api/{}", encoded(api_version)),
    }
}

fn collection(api_version: &str, plural: &str, namespace: Option<&str>) -> String {
    let namespace = namespace.map(|it| format!("/namespaces/{}", encoded(it))).unwrap_or_default();
    format!("{}{namespace}/{plural}", root(api_version))
}

/// Percent-encodes a path segment. A cluster's owner can write any name into the inventory, and it must not
/// change the path.
fn encoded(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~".contains(&byte);
    let dotted = part.bytes().any(|byte| byte != b'.');
    let encode = |byte: u8| match byte {
        byte if plain(byte) || (byte == b'.' && dotted) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    part.bytes().map(encode).collect()
}

pub(super) fn version(object: &Value) -> &str {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn uid(object: &Value) -> Option<&str> {
    object.pointer("/metadata/uid").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_part_of_its_path() {
        for (part, expected) in [
            ("kafka-acme--orders", "kafka-acme--orders"),
            ("a.b", "a.b"),
            ("..", "%2E%2E"),
            ("../nodes", "..%2Fnodes"),
            ("x?y#z", "x%3Fy%23z"),
        ] {
            assert_eq!(encoded(part), expected);
        }
        assert_eq!(
            collection("kafka.strimzi.io/v1", "kafkas", Some("n")),
            "/apis/kafka.strimzi.io/v1/namespaces/n/kafkas"
        );
        assert_eq!(collection("v1", "namespaces", None), "/api/v1/namespaces");
    }
}
