//! A proxy between a client and an API server that injects the faults of networks and servers. It terminates
//! the client's TLS with a CA of its own and speaks HTTP/1.1 to both sides.

pub mod attack;
mod fault;
pub mod tls;
pub mod wire;

use std::io::{self, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::control_plane::ControlPlane;
use tls::{Authority, ToClient, ToServer, Upstream};
use wire::{Message, answer_has_body, read_head, relay_body};

pub use fault::{Fault, Rule, Side};

pub struct Proxy {
    shared: Arc<Shared>,
    port: u16,
    kubeconfig: Value,
}

/// How the proxy treats new connections.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ConnectionBehavior {
    /// With a certificate of the kubeconfig's CA.
    Known,
    /// With a certificate of another CA.
    Stranger,
    /// Accepts the connection and stays silent.
    Deaf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its method and path, without the query.
    pub text: String,
    /// Whether it modifies anything on the server.
    pub changes: bool,
}

impl Call {
    fn of(method: &str, path: &str) -> Call {
        let asks =
            method == "GET" || path.contains("dryRun=All") || path.ends_with("/selfsubjectaccessreviews");
        let text = format!("{method} {}", path.split('?').next().unwrap_or_default());
        Call { text, changes: !asks }
    }
}

struct Shared {
    upstream: Upstream,
    known: Authority,
    stranger: Authority,
    state: Mutex<State>,
    changed: Condvar,
    /// Number of calls answered by an attack.
    harmed: AtomicU64,
}

struct State {
    behavior: ConnectionBehavior,
    rules: Vec<Rule>,
    calls: Vec<Call>,
    open: usize,
    held: bool,
    /// Number of releases of held calls.
    releases: u64,
    closed: bool,
}

impl Proxy {
    /// Starts a proxy in front of a control plane.
    pub fn before(plane: &ControlPlane) -> Proxy {
        let kubeconfig: Value = serde_json::from_str(&plane.kubeconfig()).unwrap();
        let shared = Arc::new(Shared {
            upstream: Upstream::of(&kubeconfig),
            known: Authority::new(),
            stranger: Authority::new(),
            state: Mutex::new(State {
                behavior: ConnectionBehavior::Known,
                rules: Vec::new(),
                calls: Vec::new(),
                open: 0,
                held: false,
                releases: 0,
                closed: false,
            }),
            changed: Condvar::new(),
            harmed: AtomicU64::new(0),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared_with_all = Arc::clone(&shared);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if shared_with_all.lock().closed {
                    return;
                }
                let shared = Arc::clone(&shared_with_all);
                shared.lock().open += 1;
                thread::spawn(move || {
                    // An error of the connection is part of the fault.
                    drop(shared.serve(socket));
                    shared.lock().open -= 1;
                    shared.changed.notify_all();
                });
            }
        });
        Proxy { shared, port, kubeconfig }
    }

    pub fn kubeconfig(&self) -> String {
        let mut kubeconfig = self.kubeconfig.clone();
        let cluster = &mut kubeconfig["clusters"][0]["cluster"];
        cluster["server"] = format!("https://127.0.0.1:{}", self.port).into();
        cluster["certificate-authority-data"] = self.shared.known.certificate.clone().into();
        kubeconfig.to_string()
    }

    pub fn inject(&self, rule: Rule) {
        self.shared.lock().rules.push(rule);
    }

    /// Number of calls answered by an attack.
    pub fn harmed(&self) -> u64 {
        self.shared.harmed.load(Ordering::SeqCst)
    }

    pub fn set_connection_behavior(&self, behavior: ConnectionBehavior) {
        self.shared.lock().behavior = behavior;
    }

    /// Removes all rules, releases held calls, and clears the call log. Returns the log.
    pub fn reset(&self) -> Vec<Call> {
        let mut state = self.shared.lock();
        state.behavior = ConnectionBehavior::Known;
        state.rules.clear();
        state.held = false;
        state.releases += 1;
        self.shared.changed.notify_all();
        std::mem::take(&mut state.calls)
    }

    /// Waits until all connections are closed. Their calls are done by then, also those of killed processes.
    pub fn wait_until_quiet(&self) {
        drop(self.shared.changed.wait_while(self.shared.lock(), |state| state.open > 0).unwrap());
    }

    /// Waits until a call is held; returns false if `over` is true first.
    pub fn holds_unless(&self, mut over: impl FnMut() -> bool) -> bool {
        let mut state = self.shared.lock();
        while !state.held {
            if over() {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, Duration::from_millis(2)).unwrap().0;
        }
        true
    }

    /// Calls the API server directly. Nothing is injected or counted.
    pub fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.shared.upstream.ask(method, path, body).expect("the API server answers")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.reset();
        self.shared.lock().closed = true;
        // Wakes the listener.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn serve(&self, socket: TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let behavior = self.lock().behavior;
        let authority = match behavior {
            ConnectionBehavior::Known => &self.known,
            ConnectionBehavior::Stranger => &self.stranger,
            ConnectionBehavior::Deaf => {
                self.wait_for_release();
                return Ok(());
            }
        };
        let mut client = BufReader::new(authority.accept(socket)?);
        let mut server = None;
        while let Some(request) = Message::read(&mut client)? {
            let server = match &mut server {
                Some(server) => server,
                none => none.insert(self.upstream.connect()?),
            };
            match self.fault_of(&request) {
                None => forward(&request, &mut client, server)?,
                Some(fault) => fault.apply_fault(self, &request, &mut client, server)?,
            }
        }
        Ok(())
    }

    /// Records a call, and returns the fault for it.
    fn fault_of(&self, request: &Message) -> Option<Fault> {
        let mut state = self.lock();
        let (method, path) = request.method_and_path();
        let call = Call::of(method, path);
        // Every rule counts the call, even if an earlier one applies.
        let faults: Vec<_> = state.rules.iter_mut().map(|rule| rule.fault_for_call(&call, path)).collect();
        state.calls.push(call);
        faults.into_iter().flatten().next()
    }

    fn wait_for_release(&self) {
        let state = self.lock();
        let before = state.releases;
        drop(self.changed.wait_while(state, |state| state.releases == before).unwrap());
    }

    fn hold(&self) {
        self.lock().held = true;
        self.changed.notify_all();
        self.wait_for_release();
    }
}

/// Forwards a request, and the answer as it comes, so that a watch arrives event by event.
fn forward(request: &Message, client: &mut ToClient, server: &mut ToServer) -> io::Result<()> {
    request.write(server.get_mut())?;
    let head = read_head(server)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    client.get_mut().write_all(head.as_bytes())?;
    client.get_mut().flush()?;
    match answer_has_body(&head) {
        true => relay_body(&head, server, client.get_mut()),
        false => Ok(()),
    }
}
