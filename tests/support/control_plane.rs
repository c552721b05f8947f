//! A real Kubernetes control plane: etcd, the API server with Strimzi's resource definitions, and the
//! controllers for tests that want them. There are no nodes, so pods never run.

mod credentials;
mod lease;
pub mod process;
pub mod programs;
mod writer;

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Run, run};
use credentials::Credentials;
use lease::{Entry, Store};
use process::Process;
use programs::Programs;

pub use lease::Lease;
pub use process::Folder;
pub use writer::Writer;

/// Timeout of every wait, on a machine that may be busy with something else.
pub const PATIENCE: Duration = Duration::from_secs(120);

const PAUSE: Duration = Duration::from_millis(50);

pub struct ControlPlane {
    // Declared in drop order: dependents first, the folder last.
    controllers: Option<Process>,
    server: Option<Process>,
    store: Process,
    port: u16,
    credentials: Credentials,
    namespaces: AtomicU32,
    /// What it started with, by the keys of the store.
    first: BTreeMap<String, Entry>,
    replaced: bool,
    folder: Folder,
}

impl ControlPlane {
    /// The file with an administrator's kubeconfig, in kubectl's working directory.
    pub const KUBECONFIG: &str = "kubeconfig";

    /// The control plane shared by all tests of the process, each in namespaces of its own. It is never
    /// stopped and has no controllers.
    pub fn shared() -> &'static ControlPlane {
        static SHARED: OnceLock<ControlPlane> = OnceLock::new();
        SHARED.get_or_init(ControlPlane::start)
    }

    /// Starts one, and returns when it serves Strimzi's resources.
    pub fn start() -> ControlPlane {
        let programs = Programs::get();
        let folder = Folder::new();
        let credentials = Credentials::write(folder.path());
        let mut plane = ControlPlane {
            controllers: None,
            server: None,
            store: store(&folder, "etcd"),
            port: 0,
            credentials,
            namespaces: AtomicU32::new(0),
            first: BTreeMap::new(),
            replaced: false,
            folder,
        };
        plane.serve_anywhere();
        plane.apply(&programs.definitions).expect(0);
        plane.wait_for_definitions();
        plane.first = Store::of(&plane).entries();
        plane
    }

    /// Kills the API server, as a crash does. Stored objects stay.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Restarts the API server at the same address.
    pub fn start_again(&mut self) {
        until("the API server is back at its port", || self.serves().then_some(()));
    }

    /// Replaces the cluster by another at the same address, with the same credentials, and empty.
    pub fn replace(&mut self) {
        self.stop();
        self.replaced = true;
        self.store.end();
        self.store = store(&self.folder, "etcd-of-another");
        self.start_again();
    }

    /// Runs Kubernetes' controllers: only they finish the deletion of a namespace, collect orphans, and
    /// create service accounts.
    pub fn run_controllers(&mut self) {
        let mut command = self.command("kube-controller-manager");
        command.args(["--kubeconfig=kubeconfig", "--leader-elect=false", "--secure-port=0"]);
        command.args(["--use-service-account-credentials", "--root-ca-file=ca.crt"]);
        command.arg("--service-account-private-key-file=service-accounts.key");
        self.controllers = Some(Process::start(command, self.file("controllers.log")));
    }

    pub fn definitions() -> &'static str {
        &Programs::get().definitions
    }

    /// Adds the Gateway API to the server.
    pub fn serve_gateways(&self) {
        self.apply(&Programs::get().gateway_definitions).expect(0);
        self.wait_for_definitions();
    }

    /// Adds the Prometheus operator's kinds to the server.
    pub fn serve_monitoring(&self) {
        self.apply(&Programs::get().monitoring_definitions).expect(0);
        self.wait_for_definitions();
    }

    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_of(&self.credentials.admin_token)
    }

    /// With a client certificate instead of a token.
    pub fn kubeconfig_with_certificate(&self) -> String {
        let (certificate, key) = &self.credentials.admin_certificate;
        self.kubeconfig_with(json!({"client-certificate-data": certificate, "client-key-data": key}))
    }

    /// Creates a service account, and returns its kubeconfig. It has only the roles that a test binds to it.
    pub fn service_account(&self, namespace: &str, name: &str) -> String {
        self.kubectl(&format!("create serviceaccount {name} --namespace={namespace}"), "").expect(0);
        let token = self.kubectl(&format!("create token {name} --namespace={namespace}"), "").expect(0);
        self.kubeconfig_of(token.out.trim())
    }

    /// Creates a namespace that no other test has.
    pub fn namespace(&self) -> String {
        let name = format!("test-{}", self.namespaces.fetch_add(1, Ordering::Relaxed));
        self.kubectl(&format!("create namespace {name}"), "").expect(0);
        name
    }

    pub fn kubectl(&self, words: &str, input: &str) -> Run {
        self.kubectl_as(Self::KUBECONFIG, words, input)
    }

    /// Changes fields of an object's status, as its controller does. `object` is a kind, a name and a namespace.
    pub fn set_status(&self, object: &str, fields: &Value) {
        let patch = format!("patch {object} --subresource=status --type=merge --patch-file=/dev/stdin");
        self.kubectl(&patch, &json!({"status": fields}).to_string()).expect(0);
    }

    pub fn kubectl_with(&self, kubeconfig: &str, words: &str) -> Run {
        let file = tempfile::NamedTempFile::new_in(self.folder.path()).unwrap();
        fs::write(file.path(), kubeconfig).unwrap();
        self.kubectl_as(file.path().to_str().unwrap(), words, "")
    }

    /// Applies YAML documents as Streamfleet would: server-side, refusing unknown fields.
    pub fn apply(&self, documents: &str) -> Run {
        self.kubectl("apply --server-side --validate=strict --field-manager=streamfleet -f -", documents)
    }

    pub fn processes(&self) -> Vec<u32> {
        [Some(&self.store), self.server.as_ref(), self.controllers.as_ref()]
            .into_iter()
            .flatten()
            .map(Process::id)
            .collect()
    }

    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn kubectl_as(&self, kubeconfig: &str, words: &str, input: &str) -> Run {
        run(self.kubectl_command(kubeconfig, words), input)
    }

    /// The kubectl command with a kubeconfig file, for tests that run it themselves.
    pub fn kubectl_command(&self, kubeconfig: &str, words: &str) -> Command {
        let mut command = self.command("kubectl");
        command.args(["--kubeconfig", kubeconfig, "--cache-dir=cache"]).args(words.split_whitespace());
        command
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Programs::get().command(program);
        command.current_dir(self.folder.path());
        command
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn wait_for_definitions(&self) {
        let names = "get crd --no-headers --output=custom-columns=:.metadata.name";
        let names = self.kubectl(names, "").expect(0).out.split_whitespace().collect::<Vec<_>>().join(",");
        let get = format!("get {names} --all-namespaces");
        until("every resource that is defined is served", || {
            (self.kubectl(&get, "").code == 0).then_some(())
        });
    }

    /// Starts the API server at a free port, and tries another if the port is taken meanwhile.
    fn serve_anywhere(&mut self) {
        until("the API server has a port", || {
            self.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            fs::write(self.file(Self::KUBECONFIG), self.kubeconfig()).unwrap();
            self.serves().then_some(())
        });
    }

    /// Starts the API server at its port and waits until it is ready. Returns false if the port is taken.
    fn serves(&mut self) -> bool {
        let mut command = self.command("kube-apiserver");
        command.args([
            "--etcd-servers=unix://etcd.sock",
            "--authorization-mode=RBAC",
            "--token-auth-file=tokens",
        ]);
        command.arg("--client-ca-file=ca.crt");
        command.args(["--tls-cert-file=server.crt", "--tls-private-key-file=server.key"]);
        command.args(["--bind-address=127.0.0.1", "--service-cluster-ip-range=10.0.0.0/24"]);
        // No node could reach it by a Service.
        command.args([
            "--endpoint-reconciler-type=none",
            "--service-account-issuer=https://kubernetes.default.svc",
        ]);
        command.arg("--service-account-key-file=service-accounts.pub");
        command.arg("--service-account-signing-key-file=service-accounts.key");
        command.arg(format!("--secure-port={}", self.port));
        let mut server = Process::start(command, self.file("server.log"));
        let ready = until("the API server is ready", || {
            if let Some(said) = self.store.last_words() {
                panic!("etcd ended\n{said}");
            }
            match server.last_words() {
                Some(said) if said.contains("address already in use") => Some(false),
                Some(said) => panic!("the API server ended\n{said}"),
                None => (self.kubectl("get --raw /readyz", "").code == 0).then_some(true),
            }
        });
        self.server = ready.then_some(server);
        ready
    }

    /// A kubeconfig in the form that specs accept: server, CA and token, all inline.
    pub fn kubeconfig_of(&self, token: &str) -> String {
        self.kubeconfig_with(json!({"token": token}))
    }

    fn kubeconfig_with(&self, user: Value) -> String {
        let cluster = json!({
            "server": format!("https://127.0.0.1:{}", self.port),
            "certificate-authority-data": self.credentials.authority,
        });
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        });
        kubeconfig.to_string()
    }
}

/// Starts etcd, with its data in a folder of this name.
fn store(folder: &Folder, data: &str) -> Process {
    let mut store = Programs::get().command("etcd");
    // Nothing here has to survive a power failure.
    store.current_dir(folder.path()).args([&format!("--data-dir={data}"), "--unsafe-no-fsync"]);
    // etcd requires an advertised address, which no client uses, and a peer port, without peers.
    store.args(["--listen-client-urls=unix://etcd.sock", "--advertise-client-urls=http://127.0.0.1:0"]);
    store.args(["--listen-peer-urls=http://127.0.0.1:0", "--log-level=warn"]);
    Process::start(store, folder.path().join("etcd.log"))
}

/// Polls until there is an answer.
#[track_caller]
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    within_patience(ask).unwrap_or_else(|| panic!("waited {PATIENCE:?}, and it is still not so that {what}"))
}

/// Polls until there is an answer; `None` after the timeout. It counts polls, not time: if the whole machine
/// stood still for minutes, the awaited process did, too.
pub fn within_patience<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let mut looks = PATIENCE.as_millis() / PAUSE.as_millis();
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        looks = looks.checked_sub(1)?;
        sleep(PAUSE);
    }
}
