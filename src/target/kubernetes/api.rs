//! The calls that are made to an API server. What an answer says counts only when it is one to what was asked: nothing is
//! gone because something in between said "not found".

mod grant;
mod lists;
mod writes;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::{Method, Request};
use kube::Client;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

use super::answer::{Answer, Failed, attempt};
use super::budget::Budget;
use super::error::KubeError;
use super::inventory::namespace_key;
use super::pulse::Pulse;
use super::retry::{CALL_TIMEOUT, Nature, persist};
use super::tally;
use super::untrusted;
use super::watch::Written;
use crate::names::ObjectKey;
use crate::parallel::locked;

pub(super) use lists::Listed;
pub(super) use writes::{Applied, ApplyError, Mode};

/// The name under which our fields are managed.
pub(super) const MANAGER: &str = "streamfleet";

/// How many kinds of one API version are known. Kubernetes' own have 40, and the largest of others some hundreds.
const MAX_KINDS: usize = 2_000;

/// Where the objects of a kind are: its name in URLs, and whether they are in namespaces.
type Served = (String, bool);

/// An API server.
pub(super) struct Api {
    client: Client,
    pulse: Pulse,
    /// How much of the cluster this process takes in.
    budget: Arc<Budget>,
    /// The kinds of each API version that was asked for, by name.
    served: Mutex<BTreeMap<String, BTreeMap<String, Served>>>,
    /// What was written and a view has yet to see; none where there is no view.
    written: Option<Mutex<Vec<Written>>>,
    /// Whether Secrets may be read in all namespaces.
    secrets_everywhere: OnceCell<bool>,
    /// Who we are to the server.
    user: OnceCell<String>,
    /// The namespaces in which giving ourselves rights for Secrets came to nothing, and when.
    unhelped: Mutex<BTreeMap<String, Instant>>,
}

impl Api {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            pulse: Pulse::default(),
            budget: Arc::default(),
            served: Mutex::default(),
            written: None,
            secrets_everywhere: OnceCell::new(),
            user: OnceCell::new(),
            unhelped: Mutex::default(),
        }
    }

    /// One that remembers what it writes until somebody takes it.
    pub(super) fn remembering(client: Client) -> Self {
        Self { written: Some(Mutex::default()), ..Self::new(client) }
    }

    /// How much of the cluster this process takes in.
    pub(super) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// What was written since this was asked last.
    pub(super) fn take_written(&self) -> Vec<Written> {
        let written = self.written.as_ref().map(|it| locked(it));
        written.map(|mut written| std::mem::take(&mut *written)).unwrap_or_default()
    }

    fn wrote(&self, written: Option<Written>) {
        if let (Some(all), Some(written)) = (&self.written, written) {
            locked(all).push(written);
        }
    }

    /// The uid that stands for the whole Kubernetes cluster.
    pub(super) async fn cluster(&self) -> Result<String, KubeError> {
        let answer = self.send(Nature::Repeatable, kube_system()?).await;
        answer.map_err(|(failed, tries)| failed.told(KUBE_SYSTEM, tries)).and_then(whose)
    }

    /// The same, asked once, by who asks again and again until there is an answer: even of a server that is left alone for a
    /// while because it was away.
    pub(super) async fn probe(&self) -> Result<String, KubeError> {
        let answer = timeout(CALL_TIMEOUT, attempt(&self.client, &self.budget, kube_system()?)).await;
        let answer = answer
            .unwrap_or(Err(Failed::Overdue(CALL_TIMEOUT)))
            .map_err(|failed| failed.told(KUBE_SYSTEM, 1))?;
        self.pulse.answered(Instant::now());
        whose(answer)
    }

    /// Comes back when the server falls silent, with how that shows.
    pub(super) async fn falls_silent(&self) -> KubeError {
        loop {
            self.pulse.falls_silent.notified().await;
            if let Some(reason) = self.pulse.silence(Instant::now()) {
                return KubeError::connection(KUBE_SYSTEM, reason);
            }
        }
    }

    /// An object; none where it, or its kind, is not there.
    pub(super) async fn get(&self, key: &ObjectKey) -> Result<Option<Value>, KubeError> {
        let Some(path) = self.path(key).await? else { return Ok(None) };
        let attempted = format!("read {key}");
        let found = found(self.call(&attempted, Method::GET, &path, None, &Value::Null).await)?;
        found.map(|object| of(&attempted, key, object)).transpose()
    }

    /// Whether the server knows a kind.
    pub(super) async fn is_served(&self, api_version: &str, kind: &str) -> Result<bool, KubeError> {
        Ok(self.served(api_version, kind).await?.is_some())
    }

    async fn path(&self, key: &ObjectKey) -> Result<Option<String>, KubeError> {
        let Some((plural, namespaced)) = self.served(&key.api_version, &key.kind).await? else {
            return Ok(None);
        };
        let namespace = key.namespace.as_deref().filter(|_| namespaced);
        Ok(Some(format!("{}/{}", collection(&key.api_version, &plural, namespace), encoded(&key.name))))
    }

    /// Where the objects of a kind are; none where the server doesn't know it, which is asked again each time.
    async fn served(&self, api_version: &str, kind: &str) -> Result<Option<Served>, KubeError> {
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

    /// The kinds of a version of an API; none where the server doesn't have it.
    pub(super) async fn kinds(
        &self,
        api_version: &str,
    ) -> Result<Option<BTreeMap<String, Served>>, KubeError> {
        let attempted = format!("read which kinds there are in {api_version}");
        let request = request(&attempted, Method::GET, &root(api_version), None, &Value::Null)?;
        let list = match self.send(Nature::Repeatable, request).await {
            Ok(Answer { value: list, .. })
                if list["kind"] == "APIResourceList" && list["groupVersion"] == api_version =>
            {
                list
            }
            Ok(_) => return Err(unasked(&attempted)),
            Err((failed, _))
                if failed.is_not_found() && !self.lists_version(&attempted, api_version).await? =>
            {
                return Ok(None);
            }
            Err((failed, tries)) => return Err(failed.told(&attempted, tries)),
        };
        // Without the field nothing is said of any kind.
        let resources = list["resources"].as_array().ok_or_else(|| unasked(&attempted))?;
        // Objects of a kind that were left out would count as gone.
        if resources.len() > MAX_KINDS {
            let reason = format!("{api_version} has more than {MAX_KINDS} kinds");
            return Err(KubeError::too_much(&attempted, reason));
        }
        let kinds = resources.iter().filter_map(|resource| {
            let text = |field: &str| resource.get(field).and_then(Value::as_str);
            // `pods/log` and the like are parts of others.
            let plural = text("name").filter(|name| !name.contains('/'))?;
            let namespaced = resource.get("namespaced").and_then(Value::as_bool)?;
            Some((text("kind")?.to_owned(), (encoded(plural), namespaced)))
        });
        Ok(Some(kinds.collect()))
    }

    /// Whether the server itself says that there is a version of an API. A kind isn't gone because its URL isn't found.
    async fn lists_version(&self, attempted: &str, api_version: &str) -> Result<bool, KubeError> {
        let groups = self.call(attempted, Method::GET, "/apis", None, &Value::Null).await?;
        let listed = groups["groups"].as_array().filter(|_| groups["kind"] == "APIGroupList");
        let groups = listed.ok_or_else(|| unasked(attempted))?.iter();
        let mut versions = groups.flat_map(|group| group["versions"].as_array().into_iter().flatten());
        Ok(api_version == "v1" || versions.any(|version| version["groupVersion"] == api_version))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, BTreeMap<String, Served>>> {
        // It is a cache of whole values, so that whoever panicked left nothing half done.
        locked(&self.served)
    }

    /// Makes a request that may be made twice, and gives the answer. `attempted` says what for.
    pub(super) async fn call(
        &self,
        attempted: &str,
        method: Method,
        path: &str,
        content: Option<&str>,
        body: &Value,
    ) -> Result<Value, KubeError> {
        let request = request(attempted, method, path, content, body)?;
        let answer = self.send(Nature::Repeatable, request).await;
        answer.map(|answer| answer.value).map_err(|(failed, tries)| failed.told(attempted, tries))
    }

    /// Sends a request, as often as it takes and is worth it. Says how often it was.
    async fn send(&self, nature: Nature, request: Request<Vec<u8>>) -> Result<Answer, (Failed, u32)> {
        self.send_by(nature, request.uri().path(), || attempt(&self.client, &self.budget, request.clone()))
            .await
    }

    /// The same for any way to read the answer.
    async fn send_by<T, C: Future<Output = Result<T, Failed>>>(
        &self,
        nature: Nature,
        path: &str,
        attempt: impl Fn() -> C,
    ) -> Result<T, (Failed, u32)> {
        let began = Instant::now();
        if let Some(reason) = self.pulse.silence(began) {
            return Err((Failed::Resting(reason), 0));
        }
        let mut answer = self.persistent(nature, &attempt).await;
        if let Err((failed, _)) = &answer
            && Box::pin(self.grants(path, failed)).await
        {
            answer = self.once_granted(nature, path, &attempt).await;
        }
        match &answer {
            Err((failed, _)) if failed.is_silence() => {
                self.pulse.was_silent(began, Instant::now(), &failed.reason());
            }
            _ => self.pulse.answered(Instant::now()),
        }
        // That a URL isn't served is said without a `Status`: a kind may be gone, or be somewhere else by now.
        if let Err((Failed::Stray { code: 404, .. }, _)) = &answer {
            self.lock().clear();
        }
        answer
    }

    async fn persistent<T, C: Future<Output = Result<T, Failed>>>(
        &self,
        nature: Nature,
        attempt: impl Fn() -> C,
    ) -> Result<T, (Failed, u32)> {
        let answer = persist(nature, attempt).await;
        tally::count(&answer);
        answer
    }
}

/// How the question is told of by which a cluster is known.
const KUBE_SYSTEM: &str = "read the namespace kube-system";

fn kube_system() -> Result<Request<Vec<u8>>, KubeError> {
    request(KUBE_SYSTEM, Method::GET, "/api/v1/namespaces/kube-system", None, &Value::Null)
}

/// The uid in the answer to it.
fn whose(answer: Answer) -> Result<String, KubeError> {
    let namespace = of(KUBE_SYSTEM, &namespace_key("kube-system"), answer.value)?;
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

/// The kind of which nothing but metadata is listed and watched: nobody has to have what many of them hold.
const SECRET: &str = "Secret";

fn metadata_alone(kind: &str, form: &str, request: &mut Request<Vec<u8>>) {
    let accept = format!("application/json;as={form};g=meta.k8s.io;v=v1");
    if let Some(accept) = accept.parse().ok().filter(|_| kind == SECRET) {
        request.headers_mut().insert("accept", accept);
    }
}

/// Not being there is no error.
fn found(answer: Result<Value, KubeError>) -> Result<Option<Value>, KubeError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_code(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The object that was asked for, and not what something in between may have said.
fn of(attempted: &str, key: &ObjectKey, object: Value) -> Result<Value, KubeError> {
    let is_one = object["kind"] == key.kind.as_str()
        && object.pointer("/metadata/name").is_some_and(|name| name == key.name.as_str())
        && uid(&object).is_some_and(|uid| !uid.is_empty())
        && untrusted::is_named_properly(&key.kind, &object);
    if is_one { Ok(object) } else { Err(unasked(attempted)) }
}

/// An answer is one to something else.
pub(super) fn unasked(attempted: &str) -> KubeError {
    KubeError::connection(attempted, "the answer is not to what was asked")
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

/// A part of a URL. What an inventory names may be anybody's, and must not lead to another path.
fn encoded(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_~".contains(&byte);
    let dotted = part.bytes().any(|byte| byte != b'.');
    let encode = |byte: u8| match byte {
        byte if plain(byte) || (byte == b'.' && dotted) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    part.bytes().map(encode).collect()
}

/// The server's mark of an object's or a list's version.
pub(super) fn version(object: &Value) -> &str {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default()
}

/// The server's own name for the very object.
pub(super) fn uid(object: &Value) -> Option<&str> {
    object.pointer("/metadata/uid").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_secrets_nothing_but_metadata_is_listed() {
        let accepted = |kind| {
            let mut request = request("", Method::GET, "/", None, &Value::Null).unwrap();
            metadata_alone(kind, "PartialObjectMetadataList", &mut request);
            request.headers()["accept"].to_str().unwrap().to_owned()
        };
        assert_eq!(accepted("Pod"), "application/json");
        assert_eq!(accepted("Secret"), "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    }

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
